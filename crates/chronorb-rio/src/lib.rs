//! RIO: the real-time I/O subsystem of chronorb.
//!
//! Packets are demultiplexed by priority before any protocol work. Threads that belong to the lanes
//! of the ORB do the protocol work under their own schedule. Each priority has its own path through
//! the stack in both directions. The design (early demultiplexing, schedule-driven protocol
//! processing and dedicated streams) is that of *The Design and Performance of an I/O Subsystem for
//! Real-time ORB Endsystem Middleware* (§3.3).
//!
//! Applications use it as a transport, [`Riop`]. The other public modules are
//!
//! * [`plan`]: the reservations of each class of packets, and their admission control;
//! * [`status`]: the counters of each class, readable by any process;
//! * [`kernel`]: reservations that the kernel's own network stack enforces, without a driver;
//! * [`class`] and [`frame`]: the classification rules, and the headers that they inspect.
//!
//! A module uses only modules above it in this list:
//!
//! * `frame`, `class`: headers and rules;
//! * `bpf`: rules compiled to programs that the kernel runs for each packet;
//! * `path`: the receiver and the transmitter that a driver gives each class;
//! * `driver`: access to a network interface, and the kernel's part of early demultiplexing;
//! * `neighbours`: hardware addresses of next hops;
//! * `plan`, `status`: reservations and counters;
//! * `engine`: the threads and budgets of classes, and connections, each with its own TCP/IP;
//! * `kernel`: plans enforced by queueing disciplines;
//! * `transport`: the transport of the ORB.

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

pub use driver::xdp::{XdpMode, XdpOptions};
pub use driver::{
    DriverChoice, DriverError, DriverOpenError, DriverOptions, PacketAccess, PacketRights,
    UnknownChoice,
};
pub use engine::{ClassConfig, ClassOutput, ClassProcessing, Urgency};
pub use transport::{Riop, RiopError, RiopSettings};

// The conformance tests of `chronorb-transport` are macros that expect this path.
#[cfg(test)]
use tests::conformance;
