//! RIO: the real-time I/O subsystem of chronorb.
//!
//! Packets are told apart by priority before any protocol work, protocol work is done by scheduled
//! threads that go with the lanes of the ORB, and each priority has its own path through the stack, in
//! both directions: early demultiplexing, schedule-driven protocol processing and dedicated streams, as in *The Design
//! and Performance of an I/O Subsystem for Real-time ORB Endsystem Middleware* (§3.3).
//!
//! The way of a packet, downwards in this list as it comes in:
//!
//! * [`driver`]: a network interface, and the kernel's part of early demultiplexing;
//! * [`path`]: what a driver gives each class, a receiver and a transmitter of its own;
//! * [`class`]: what the classes are, and which packets belong to each.
//!
//! Beside it stands what is done with the kernel's own network: [`netlink`] asks and changes it, [`network`] is a network
//! of two hosts on one machine, for tests and experiments.

pub mod class;
pub mod driver;
pub mod netlink;
pub mod network;
pub mod path;
