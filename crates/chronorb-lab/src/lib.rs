//! The laboratory of chronorb: experiments that show whether priorities hold, and what
//! calls cost.
//!
//! An experiment runs the real thing, describes the machine ([`Environment`]) and reports what it
//! found, for people and for programs. [`demo`] runs a server and clients, and measures each call
//! ([`Record`], [`Comparison`]); [`demux`] measures, within one process, what it costs to find the
//! target of a request; [`hostile`] measures what a client notices of attacks on its server; [`overtake`] measures calls of high priority while all lower lanes are
//! saturated; [`inversion`] compares architectures of ORBs by how they invert priorities; [`latency`] and
//! [`throughput`] measure what calls take beside raw sockets and omniORB, by what is in [`mod@bench`], and
//! [`peer`] takes part in comparisons that others make; [`protocols`] measures what the ORB adds to what its protocols
//! stand on, and what GIOPlite spares; [`thread_pools`] compares the strategies of thread
//! pools; [`waits`] measures, on raw sockets, the ways in which a server's thread can wait for a request;
//! [`timeprobes`] finds out where the time of a call goes; [`whitebox`] counts what calls do inside; [`os`] varies how the operating system schedules the ORB;
//! [`all`] runs every experiment, and
//! [`compare`] holds two runs of one against each other.

pub mod all;
pub mod bench;
pub mod compare;
pub mod demo;
pub mod demux;
pub mod hostile;
pub mod inversion;
pub mod latency;
pub mod os;
pub mod overtake;
pub mod peer;
pub mod protocols;
pub mod rio;
pub mod thread_pools;
pub mod throughput;
pub mod timeprobes;
pub mod waits;
pub mod whitebox;

mod awake;

mod comparison;
mod error;
mod experiment;
mod idl;
mod pairs;
mod part;
mod process;
mod report;
mod schedule;

mod usage;

mod watch;
mod work;
mod xdg;

use chronorb_doctor::environment;
pub use chronorb_report::{Claim, Verdict};
use chronorb_report::{progress, stats, units};
pub use comparison::{Comparison, Figures, Phase, Setup};
pub use environment::Environment;
pub use error::LabError;
pub use experiment::{Experiment, Findings, Options, run};
pub use pairs::PairedRatio;
pub use part::{CHILD_COMMAND, child_main};
pub use process::ProcessError;
pub use stats::{Point, Record, Summary};
