//! The monitor: a local socket with the state of the ORB's lanes and threads.
//!
//! It is made only where `-ORBMonitor` asks for it. A program connects to the Unix socket and sends
//! lines; the one that is understood is `snapshot`, and its answer is one line, a [`Report`] in
//! JSON. Only the user of the process and root are answered. One thread of ordinary scheduling
//! serves all clients; while there is one, the lanes take the time of each request.
//!
//! [`Report`] is the content and its form; `Client`, of the feature `monitor-client`, requests it,
//! and [`directories`] returns the places of sockets. The command `chronorb top` uses them.

#[cfg(feature = "monitor-client")]
mod client;
mod json;
mod place;
mod report;
mod serve;
mod session;
mod thread;

pub use crate::event_channels::{ChannelSnapshot, ChannelSource, QueueSnapshot};
#[cfg(feature = "monitor-client")]
pub use client::{Client, ClientError};
pub use place::{SocketError, directories, directories_of};
#[cfg(feature = "monitor-client")]
pub use report::ReadError;
pub use report::{Report, Strategy, VERSION};
pub(crate) use thread::Monitor;
pub use thread::MonitorError;
