//! The protocol engine: classes of packets, their threads, and connections with a small TCP/IP
//! stack each.
//!
//! A [`Subsystem`] has one network interface and opens a [`Class`] for each kind of traffic. Each
//! connection has its own `Interface` and TCP socket of smoltcp, so it shares no packet, timer or
//! buffer with another. The thread that is woken for a packet processes it and notifies waiting
//! threads by an event descriptor (the bell of the connection). The sending thread does the
//! protocol work of its output, unless the class leaves that to its own thread.
//!
//! All functions that depend on the time take it as a parameter. After a class is open, only the
//! application's handles of connections are allocated.
//!
//! Invariants:
//! * A lock is held only for a call of the protocol, and never while a thread waits or is notified.
//! * A flood is processed only within the budget of its class, and never by another class.
//! * The number of half-open connections is bounded, and the oldest is dropped first. Connections
//!   over the limit are not started, and counted.
//! * Whatever a peer does, a slot becomes free again within a bounded time.

mod alarm;
mod arrivals;
mod class;
mod clock;
mod config;
mod connection;
mod control;
mod conversions;
mod counts;
mod demux;
mod device;
mod error;
mod handshakes;
mod listener;
mod open;
mod ports;
mod publisher;
mod reservations;
mod reset;
mod send_position;
mod stream;
mod subsystem;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod thread;
mod timers;

pub use config::{ClassConfig, ClassOutput, ClassProcessing, Urgency};
#[cfg(test)]
pub(crate) use counts::ClassCounts;
pub(crate) use error::{ClassOpenError, ConnectFault};
pub(crate) use listener::{Listener, ListenerEvent};
pub(crate) use open::Class;
#[cfg(test)]
pub(crate) use ports::{Ports, ReservedPort};
pub(crate) use stream::Stream;
pub(crate) use subsystem::Subsystem;
