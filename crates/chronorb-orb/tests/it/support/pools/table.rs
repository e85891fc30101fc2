//! The table of pools.

use chronorb_orb::poa::PriorityModel;
use chronorb_orb::rtcorba::{Lane, RequestBuffering, Threadpool, ThreadpoolId, ThreadpoolLanes};
use chronorb_orb::{Orb, SystemException, ThreadpoolStrategy};

use super::{HIGH, LOW, MID, corba};

/// All strategies.
pub(crate) const STRATEGIES: [ThreadpoolStrategy; 4] = [
    ThreadpoolStrategy::LeaderFollowers,
    ThreadpoolStrategy::HalfSyncHalfAsync,
    ThreadpoolStrategy::WorkerPool,
    ThreadpoolStrategy::FilterChain,
];
/// Those whose pools may have lanes.
pub(crate) const LANED: [ThreadpoolStrategy; 3] = [
    ThreadpoolStrategy::LeaderFollowers,
    ThreadpoolStrategy::HalfSyncHalfAsync,
    ThreadpoolStrategy::FilterChain,
];

/// What requests carry where it does not matter how much it is.
pub(crate) const BALLAST: usize = 1_000;
/// Octets that two requests with [`BALLAST`] have room in, and three have not.
pub(crate) const ROOM_FOR_TWO: usize = 2_600;

/// How many threads a lane has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Threads {
    Static,
    Mixed,
    Dynamic,
}

impl Threads {
    /// Static and dynamic ones.
    pub(crate) fn counts(self) -> (u32, u32) {
        match self {
            Self::Static => (2, 0),
            Self::Mixed => (1, 1),
            Self::Dynamic => (0, 2),
        }
    }
}

/// What bounds the requests that wait; always so that there is room for two.
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

/// All rows of a strategy and a number of lanes; none where it has no lanes.
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
    /// The priorities that requests come at, the least urgent first: their number is a request's
    /// class.
    pub(crate) fn priorities(&self) -> &'static [i16] {
        match self.lanes {
            1 => &[MID],
            _ => &[LOW, MID, HIGH],
        }
    }

    /// How many may wait in the ORB; none where all do so in the transport.
    pub(crate) fn room(&self) -> Option<usize> {
        let asked = self.buffering.setting().map(|_| 2);
        asked.or_else(|| self.has_queues().then_some(4096))
    }

    /// Whether requests wait in queues by the strategy's nature, and are served in the order of
    /// arrival.
    pub(crate) fn has_queues(&self) -> bool {
        matches!(
            self.strategy,
            ThreadpoolStrategy::WorkerPool | ThreadpoolStrategy::FilterChain
        )
    }

    /// The classes of the lanes in the order in which the pool is given them; it is not that of
    /// priorities.
    pub(crate) fn order(&self) -> &'static [usize] {
        match self.lanes {
            3 => &[2, 0, 1],
            _ => &[0],
        }
    }

    /// The class whose lane has the number; 0 without lanes.
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
            });
        }
        let lane = |class: &usize| Lane {
            priority: corba(self.priorities()[*class]),
            static_threads,
            dynamic_threads,
        };
        server.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
            stack_size: 0,
            lanes: self.order().iter().map(lane).collect(),
            allow_borrowing: self.borrowing,
            request_buffering,
        })
    }
}
