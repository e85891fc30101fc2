//! RIO: the real-time I/O subsystem of chronorb.
//!
//! Packets are told apart by priority before any protocol work. Protocol work is done by scheduled
//! threads that go with the lanes of the ORB. Each priority has its own path through the stack, in
//! both directions: early demultiplexing, schedule-driven protocol processing and dedicated
//! streams, as in *The Design and Performance of an I/O Subsystem for Real-time ORB Endsystem
//! Middleware* (§3.3).
//!
//! Applications use it as a transport, [`Riop`]. Beside it are
//!
//! * [`plan`]: what each class of packets is promised, and whether all of it can be kept;
//! * [`status`]: what each class has done, for any process that looks;
//! * [`kernel`]: promises that the kernel's own network keeps, without a driver;
//! * [`class`] and [`frame`]: the rules by which packets are told apart, and the headers that they
//!   look at.
//!
//! Inside, a module uses those above it in this list:
//!
//! * `frame`, `class`: headers and rules;
//! * `bpf`: rules as programs that the kernel runs for each packet;
//! * `path`: what a driver gives each class, a receiver and a transmitter of its own;
//! * `driver`: a network interface, and the kernel's part of early demultiplexing;
//! * `neighbours`: where packets go on the link;
//! * `plan`, `status`: promises and counters;
//! * `engine`: classes' threads and budgets, and connections, each with its own TCP/IP;
//! * `kernel`: plans kept by queueing disciplines;
//! * `transport`: all of it as a transport of the ORB.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod bpf;
pub mod class;
mod driver;
mod engine;
pub mod frame;
pub mod kernel;
mod neighbours;
mod path;
pub mod plan;
pub mod status;
#[cfg(test)]
mod tests;
mod transport;

pub use driver::xdp::{Mode as XdpMode, Options as XdpOptions};
pub use driver::{
    Choice as DriverChoice, DriverError, OpenError as DriverOpenError, Options as DriverOptions,
    PacketAccess, PacketRights, UnknownChoice,
};
pub use engine::{ClassConfig, Output, Processing, Urgency};
pub use transport::{Riop, RiopError, RiopSettings};

// The statements of `chronorb-transport` name it so.
#[cfg(test)]
use tests::conformance;
