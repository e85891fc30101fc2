//! The server's half of the way of a request: pool, lane, connection,
//! intake, dispatch.

mod connection;
mod dispatch;
mod input;
mod intake;
mod lane;
mod load;
mod main_thread;
mod output;
mod pool;
mod worker;

pub(crate) use dispatch::Dispatch;
pub(crate) use lane::{Lane, Published};
pub(crate) use main_thread::MainThread;
pub(crate) use pool::{LaneSpec, Pools, Threadpool, is_published, shutdown};
