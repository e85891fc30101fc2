//! The monitor: tells over a local socket what the ORB's lanes and threads are doing.
//!
//! It is made only where `-ORBMonitor` asks for it. A program connects to the Unix socket and sends
//! lines; the one that is understood is `snapshot`, and its answer is one line, a [`Report`] in
//! JSON. Only the user of the process and root are answered. One thread of ordinary scheduling
//! serves all clients; while there is one, the lanes take the time of each request.
//!
//! What is told, and how, is [`Report`]; [`Client`] asks for it, and [`directories`] says where to
//! look for sockets. The command `chronorb top` is made of them.

mod client;
mod place;
mod report;
mod serve;
mod session;
mod switch;
mod thread;

pub use client::{Client, ClientError};
pub use place::{SocketError, directories, directories_of};
pub use report::{
    Doing, LaneReport, PolicyReport, PoolReport, ReadError, Report, SchedulingReport, Strategy,
    ThreadReport, TimesReport, VERSION,
};
pub(crate) use thread::Monitor;
pub use thread::MonitorError;
