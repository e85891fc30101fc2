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
//! * [`class`]: what the classes are, and which packets belong to each;
//! * [`frame`]: the headers that this is told by;
//! * [`engine`]: what is done with them: classes' threads and budgets, and connections, each with its own TCP/IP;
//! * [`neighbours`]: where packets go on the link;
//! * [`transport`]: all of it as a transport of the ORB;
//! * [`bpf`]: the same as programs that the kernel runs for each packet;
//! * [`plan`]: what each class is promised, and whether all of it can be kept;
//! * [`status`]: what each class has done, for anyone who may look.
//!
//! Beside it stands [`kernel`], which keeps promises by the means of the kernel's own network alone.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod bpf;
pub mod class;
pub mod driver;
pub mod engine;
pub mod frame;
pub mod kernel;
pub mod neighbours;
pub mod path;
pub mod plan;
pub mod status;
pub mod transport;
