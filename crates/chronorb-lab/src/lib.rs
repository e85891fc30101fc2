//! The laboratory of chronorb: experiments that show whether priorities hold, and what
//! calls cost.
//!
//! An experiment runs the real thing, describes the machine ([`Environment`]) and reports what it
//! found, for people and for programs. [`demo`] runs a server and clients, and measures each call
//! ([`Record`], [`Comparison`]); [`demux`] measures, within one process, what it costs to find the
//! target of a request; [`hostile`] measures what a client notices of attacks on its server; [`overtake`] measures calls of high priority while all lower lanes are
//! saturated; [`inversion`] compares architectures of ORBs by how they invert priorities; [`latency`] and
//! [`throughput`] measure what calls take beside raw sockets and omniORB, by what is in [`bench`], and
//! [`peer`] takes part in comparisons that others make; [`protocols`] measures what the ORB adds to what its protocols
//! stand on, and what GIOPlite spares; [`thread_pools`] compares the strategies of thread
//! pools; [`waits`] measures, on raw sockets, the ways in which a server's thread can wait for a request;
//! [`timeprobes`] finds out where the time of a call goes; [`whitebox`] counts what calls do inside; [`os`] varies how the operating system schedules the ORB;
//! [`doctor`] looks for what costs latency on the machine, and how to mend it. [`all`] runs every experiment, and
//! [`compare`] holds two runs of one against each other.

pub mod all;
pub mod bench;
pub mod compare;
pub mod demo;
pub mod demux;
pub mod doctor;
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
mod claim;
mod comparison;
mod environment;
mod error;
mod experiment;
mod idl;
mod pairs;
mod part;
mod process;
mod progress;
mod report;
mod schedule;
mod series;
mod stats;
mod units;
mod usage;
mod verdict;
mod watch;
mod work;
mod xdg;

pub use claim::Claim;
pub use comparison::{Comparison, Figures, Phase, Setup};
pub use environment::Environment;
pub use error::LabError;
pub use experiment::{Experiment, Findings, Options, run};
pub use pairs::Paired;
pub use part::{CHILD_COMMAND, child_main};
pub use process::ProcessError;
pub use report::{PlotError, ReportError, html, text_table, write_html};
pub use series::Point;
pub use stats::{Record, Summary};
pub use verdict::Verdict;
