//! The heart: classes of packets, the threads that work on them, and connections with a small
//! TCP/IP stack of their own.
//!
//! A [`Subsystem`] has one network interface, and opens a [`Class`] for each kind of traffic. Each
//! connection has an `Interface` and one TCP socket of smoltcp to itself, so that no packet, timer
//! or buffer of another one stands in its way. Who is called for a packet takes it in and tells who
//! waits by an event descriptor (its bell); who sends does the work for it, unless the class leaves
//! that to its thread.
//!
//! Time is passed in to everything that decides by it. After a class is open nothing is allocated
//! but what the application holds of a connection.
//!
//! What it keeps to:
//! * a lock is held for a call of the protocol only, and never while anybody is waited for or
//!   called;
//! * of a flood only as much is worked on as the class's budget allows, and none of it by another
//!   class;
//! * half-open connections are bounded and the oldest gives way; connections over the limit are not
//!   begun, and counted;
//! * whatever a peer does, a slot is free again after a bounded time.

mod alarm;
mod class;
mod clock;
mod config;
mod connection;
mod control;
mod counts;
mod demux;
mod device;
mod error;
mod handshakes;
mod listener;
mod open;
mod ports;
mod promises;
mod reserved;
mod reset;
mod sent;
mod shown;
mod stream;
mod subsystem;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod thread;
mod timers;

pub use config::{ClassConfig, Output, Processing, Urgency};
#[cfg(test)]
pub(crate) use counts::ClassCounts;
pub(crate) use error::{ConnectFault, OpenError};
pub(crate) use listener::Listener;
pub(crate) use open::Class;
#[cfg(test)]
pub(crate) use ports::{Ports, ReservedPort};
pub(crate) use stream::Stream;
pub(crate) use subsystem::Subsystem;
