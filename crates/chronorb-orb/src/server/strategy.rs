//! The strategies of thread pools: how the threads of a lane share the work of reading and
//! dispatching.

use std::io;
use std::sync::Arc;

use chronorb_rt::Key;
use chronorb_transport::Interest;

use super::affinity::ConnectionAffinity;
use super::growth::Growth;
use super::lane::setup::LaneSetup;
use super::scheduler::PoolScheduler;
use crate::config::{OrbConfig, ThreadpoolStrategy};
use crate::lanes::{Lane, PoolSpec};
use crate::upcall::Parks;

/// The strategy of a lane, with the state that its threads share.
pub(super) enum LaneStrategy {
    /// Each thread dispatches what it reads: Leader/Followers, and the one thread of a reactor.
    Leaders {
        /// The affinity of its threads to connections, where there are several.
        affinity: Option<ConnectionAffinity>,
        /// The growth of a lane with dynamic threads.
        growth: Option<Growth>,
    },
    /// One thread accepts, and each connection has a thread.
    ThreadPerConnection(ConnectionAffinity),
    /// A scheduler decides which thread dispatches a request, and when.
    Scheduled(Arc<PoolScheduler>),
}

/// The part of a thread in its lane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ThreadPart {
    /// Reads and dispatches what it has read (Leader/Followers).
    Leader,
    /// Reads, and others dispatch (Half-Sync/Half-Async and the like).
    Reader,
    /// Dispatches what a reader has read.
    Dispatcher,
    /// Accepts connections, each of which gets a thread (thread-per-connection).
    Acceptor,
    /// Reads from one connection, and dispatches what it has read (thread-per-connection).
    Connection(Key),
}

impl LaneStrategy {
    /// The strategy of a lane, in a pool with this scheduler.
    ///
    /// # Errors
    /// Those of installing the signal that ends waits on connections.
    pub(super) fn new(
        config: &OrbConfig,
        setup: &LaneSetup,
        scheduler: Option<&Arc<PoolScheduler>>,
    ) -> io::Result<Self> {
        Ok(match (scheduler, config.threadpool_strategy) {
            (Some(scheduler), _) => Self::Scheduled(scheduler.clone()),
            (None, ThreadpoolStrategy::ThreadPerConnection) => {
                Self::ThreadPerConnection(ConnectionAffinity::until_the_end()?)
            }
            (None, _) => {
                let (least, more) = (setup.static_threads, setup.dynamic_threads);
                let idle_timeout = config.dynamic_thread_idle_timeout;
                Self::Leaders {
                    affinity: ConnectionAffinity::new(least.saturating_add(more)),
                    growth: (more > 0).then(|| Growth::new(more, idle_timeout)),
                }
            }
        })
    }

    /// The scheduler of the pool, if it has one.
    #[inline]
    pub(super) fn scheduler(&self) -> Option<&PoolScheduler> {
        match self {
            Self::Scheduled(scheduler) => Some(scheduler),
            Self::Leaders { .. } | Self::ThreadPerConnection(_) => None,
        }
    }

    /// The affinity of threads to connections, if the lane has one.
    #[inline]
    pub(super) fn affinity(&self) -> Option<&ConnectionAffinity> {
        match self {
            Self::Leaders { affinity, .. } => affinity.as_ref(),
            Self::ThreadPerConnection(affinity) => Some(affinity),
            Self::Scheduled(_) => None,
        }
    }

    /// The growth of the lane, if it has dynamic threads without a scheduler.
    #[inline]
    pub(super) fn growth(&self) -> Option<&Growth> {
        match self {
            Self::Leaders { growth, .. } => growth.as_ref(),
            Self::ThreadPerConnection(_) | Self::Scheduled(_) => None,
        }
    }

    /// The parts of the threads that a lane of `threads` threads starts with, and their numbers.
    pub(super) fn parts(&self, threads: u32, reads: bool) -> [(ThreadPart, u32); 2] {
        const NONE: (ThreadPart, u32) = (ThreadPart::Leader, 0);
        match self {
            Self::Leaders { .. } => [(ThreadPart::Leader, threads), NONE],
            Self::ThreadPerConnection(_) => [(ThreadPart::Acceptor, 1), NONE],
            // One thread reads while all others dispatch.
            Self::Scheduled(scheduler) if scheduler.strategy.readers_dispatch() => {
                [(ThreadPart::Leader, threads.saturating_add(1)), NONE]
            }
            Self::Scheduled(_) => [
                (ThreadPart::Reader, reads.into()),
                (ThreadPart::Dispatcher, threads),
            ],
        }
    }

    /// Whether a thread may leave a request that has to wait for its POA, and serve others
    /// meanwhile.
    pub(super) fn parks(&self) -> Parks {
        match self {
            // A thread with its own connection has no others to serve.
            Self::ThreadPerConnection(_) => Parks::No,
            Self::Leaders { .. } | Self::Scheduled(_) => Parks::Yes,
        }
    }

    /// The events of a new connection that matter first.
    pub(super) fn first_interest(&self) -> Interest {
        match self {
            // There is room to send at once, so the event starts its thread before a request.
            Self::ThreadPerConnection(_) => Interest::ReadWrite,
            Self::Leaders { .. } | Self::Scheduled(_) => Interest::Read,
        }
    }

    /// Whether the thread that finds input at an acceptor serves it at once. Threads that stay on
    /// connections, and schedulers, need the event of the connection itself.
    pub(super) fn serves_arrivals(&self) -> bool {
        matches!(self, Self::Leaders { affinity: None, .. })
    }

    /// Whether a connection without a request in progress may be evicted although a thread holds
    /// its input.
    pub(super) fn evicts_held_input(&self) -> bool {
        matches!(self, Self::ThreadPerConnection(_))
    }
}

impl ThreadpoolStrategy {
    /// The reason why this strategy does not support such a pool, if so.
    pub(super) fn refuses(self, spec: &PoolSpec) -> Option<&'static str> {
        match self {
            #[cfg(feature = "baselines")]
            Self::WorkerPool if spec.laned => Some("a worker pool has one queue, and no lanes"),
            Self::Reactive if spec.pool.request_buffering.is_some() => {
                Some("the one thread of a reactive lane cannot buffer requests")
            }
            Self::Reactive if spec.pool.allow_borrowing => {
                Some("the one thread of a reactive lane cannot be lent")
            }
            Self::ThreadPerConnection if spec.pool.request_buffering.is_some() => {
                Some("where each connection has a thread there is nothing to buffer")
            }
            Self::ThreadPerConnection if spec.pool.allow_borrowing => {
                Some("threads of connections cannot be lent")
            }
            _ => None,
        }
    }

    /// The numbers of static and of dynamic threads of a lane. Static threads are those that may
    /// dispatch at a time.
    pub(super) fn threads(self, lane: &Lane, config: &OrbConfig) -> (u32, u32) {
        match self {
            Self::Reactive => (1, 0),
            Self::ThreadPerConnection => (config.max_connections, 0),
            _ => (lane.static_threads, lane.dynamic_threads),
        }
    }

    /// Whether the thread that has read a request dispatches it, if there is a permit for it.
    pub(super) const fn readers_dispatch(self) -> bool {
        match self {
            Self::LeaderFollowers | Self::Reactive | Self::ThreadPerConnection => true,
            Self::HalfSyncHalfAsync => false,
            #[cfg(feature = "baselines")]
            Self::WorkerPool | Self::FilterChain => false,
        }
    }

    /// Whether requests always wait in queues, and are served in the order of arrival whatever
    /// their priorities.
    pub(super) const fn keeps_order(self) -> bool {
        match self {
            #[cfg(feature = "baselines")]
            Self::WorkerPool | Self::FilterChain => true,
            _ => false,
        }
    }

    /// Whether requests that wait in a lane can be served in another order than that of arrival.
    pub(super) const fn orders(self) -> bool {
        matches!(self, Self::LeaderFollowers | Self::HalfSyncHalfAsync)
    }

    /// Whether one thread reads for all lanes of a pool, and filters assign the lane of a request.
    pub(super) const fn filters(self) -> bool {
        match self {
            #[cfg(feature = "baselines")]
            Self::FilterChain => true,
            _ => false,
        }
    }
}
