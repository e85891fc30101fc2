//! The table of pools.

use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{Lane, RequestBuffering, Threadpool, ThreadpoolId, ThreadpoolLanes};
use chronorb_orb::{Orb, SystemException, ThreadpoolStrategy};

use super::{HIGH, LOW, MID, corba};

/// All strategies.
pub(crate) const STRATEGIES: &[ThreadpoolStrategy] = &[
    ThreadpoolStrategy::LeaderFollowers,
    ThreadpoolStrategy::HalfSyncHalfAsync,
    #[cfg(feature = "baselines")]
    ThreadpoolStrategy::WorkerPool,
    #[cfg(feature = "baselines")]
    ThreadpoolStrategy::FilterChain,
];
/// The strategies whose pools may have lanes.
pub(crate) const LANED: &[ThreadpoolStrategy] = &[
    ThreadpoolStrategy::LeaderFollowers,
    ThreadpoolStrategy::HalfSyncHalfAsync,
    #[cfg(feature = "baselines")]
    ThreadpoolStrategy::FilterChain,
];

/// The default payload of requests.
pub(crate) const BALLAST: usize = 1_000;
/// A room in octets for two requests with [`BALLAST`], and not for three.
pub(crate) const ROOM_FOR_TWO: usize = 2_600;

/// The number of threads of a lane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Threads {
    Static,
    Mixed,
    Dynamic,
}

impl Threads {
    /// Returns the numbers of static and dynamic threads.
    pub(crate) fn counts(self) -> (u32, u32) {
        match self {
            Self::Static => (2, 0),
            Self::Mixed => (1, 1),
            Self::Dynamic => (0, 2),
        }
    }
}

/// The bound of waiting requests, which always leaves room for two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Buffering {
    Off,
    Requests,
    Octets,
}

impl Buffering {
    pub(crate) fn setting(self) -> Option<RequestBuffering> {
        match self {
            Self::Off => None,
            Self::Requests => Some(RequestBuffering {
                max_requests: 2,
                max_octets: 0,
            }),
            Self::Octets => Some(RequestBuffering {
                max_requests: 0,
                max_octets: ROOM_FOR_TWO,
            }),
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) strategy: ThreadpoolStrategy,
    /// 0 for a pool without lanes.
    pub(crate) lanes: usize,
    pub(crate) buffering: Buffering,
    pub(crate) borrowing: bool,
    pub(crate) threads: Threads,
    pub(crate) model: PriorityModel,
}

/// Returns all rows of a strategy and a number of lanes; none if the strategy has no lanes.
pub(crate) fn cases(strategy: ThreadpoolStrategy, lanes: usize) -> Vec<Case> {
    if lanes > 0 && !LANED.contains(&strategy) {
        return Vec::new();
    }
    let borrowing: &[bool] = if lanes > 0 { &[false, true] } else { &[false] };
    let mut cases = Vec::new();
    for buffering in [Buffering::Off, Buffering::Requests, Buffering::Octets] {
        for borrowing in borrowing {
            for threads in [Threads::Static, Threads::Mixed, Threads::Dynamic] {
                for model in [
                    PriorityModel::ClientPropagated,
                    PriorityModel::ServerDeclared,
                ] {
                    cases.push(Case {
                        strategy,
                        lanes,
                        buffering,
                        borrowing: *borrowing,
                        threads,
                        model,
                    });
                }
            }
        }
    }
    cases
}

impl Case {
    /// Returns the priorities of requests, the least urgent first. A request's class is the index.
    pub(crate) fn priorities(&self) -> &'static [i16] {
        match self.lanes {
            1 => &[MID],
            _ => &[LOW, MID, HIGH],
        }
    }

    /// Returns the number of requests that may wait in the ORB; `None` if they wait in the
    /// transport.
    pub(crate) fn room(&self) -> Option<usize> {
        let asked = self.buffering.setting().map(|_| 2);
        asked.or_else(|| self.has_queues().then_some(4096))
    }

    /// Returns whether a lane's dynamic thread starts when the last thread leaves the reactor, and
    /// so before a request needs it.
    pub(crate) fn grows_ahead(&self) -> bool {
        self.strategy == ThreadpoolStrategy::LeaderFollowers
            && matches!(self.buffering, Buffering::Off)
            && !self.borrowing
            && self.threads == Threads::Mixed
    }

    /// Returns whether the strategy inherently queues requests, and serves them in the order of
    /// arrival.
    pub(crate) fn has_queues(&self) -> bool {
        match self.strategy {
            #[cfg(feature = "baselines")]
            ThreadpoolStrategy::WorkerPool | ThreadpoolStrategy::FilterChain => true,
            _ => false,
        }
    }

    /// Returns the classes of the lanes in the order of their configuration, which is not that of
    /// priorities.
    pub(crate) fn order(&self) -> &'static [usize] {
        match self.lanes {
            3 => &[2, 0, 1],
            _ => &[0],
        }
    }

    /// Returns the class whose lane has the number; 0 without lanes.
    pub(crate) fn class_of_lane(&self, lane: usize) -> usize {
        self.order()[lane]
    }

    pub(super) fn create(&self, server: &Orb) -> Result<ThreadpoolId, SystemException> {
        let (static_threads, dynamic_threads) = self.threads.counts();
        let request_buffering = self.buffering.setting();
        if self.lanes == 0 {
            return server.rt().create_threadpool(&Threadpool {
                stack_size: 0,
                static_threads,
                dynamic_threads,
                default_priority: corba(LOW),
                request_buffering,
                order: None,
            });
        }
        let lane = |class: &usize| Lane {
            priority: corba(self.priorities()[*class]),
            static_threads,
            dynamic_threads,
            order: None,
        };
        server.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
            stack_size: 0,
            lanes: self.order().iter().map(lane).collect(),
            allow_borrowing: self.borrowing,
            request_buffering,
        })
    }
}
