//! The server's half of the way of a request: pool, lane, connection,
//! intake, dispatch.

mod connection;
mod dispatch;
mod input;
mod intake;
mod lane;
mod load;
mod output;
mod pool;
mod worker;

pub(crate) use lane::{Lane, Published};
pub(crate) use pool::{LaneSpec, Pools, Threadpool, shutdown};
