//! The server side of the request path: pool, lane, connection, message
//! reading, dispatch.

mod affinity;
mod at;
#[cfg(feature = "bidir")]
mod callbacks;
mod connection;
mod datagram_peers;
mod dispatch;
mod end;
mod endpoints;
#[cfg(feature = "baselines")]
mod filter;
mod growth;
mod input;
mod lane;
#[cfg(feature = "bidir")]
mod lane_link;
#[cfg(feature = "bidir")]
mod listen_points;
mod listening;
mod load;
mod main_thread;
mod output;
mod parking;
mod pool;
#[cfg(feature = "diop")]
mod proof;
mod queued;
mod scheduler;
mod snapshot;
mod state;
mod strategy;
mod threads;
mod turns;
mod watch;
mod worker;

pub use listening::{ListeningEndpoint, ListeningEndpoints, PeerProof};
pub(crate) use listening::{listening, log_listening};
#[cfg(feature = "miop")]
pub(crate) use pool::lanes_of;
pub(crate) use pool::{ServerPool, is_pool_thread, report_unused_endpoints};
pub(crate) use snapshot::{Watcher, snapshot, take_times};
pub(crate) use state::{ServerState, lane_ended, stop};
