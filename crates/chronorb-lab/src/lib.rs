//! The laboratory of chronorb: experiments that show whether priorities hold, and what
//! calls cost.
//!
//! An experiment ([`Experiment`]) runs real servers and clients, describes the machine
//! ([`Environment`]) and reports its findings for people and for programs ([`Findings`]).
//!
//! | module | subject |
//! |---|---|
//! | [`demo`] | the demonstration: the same load without priorities and with them |
//! | [`demux`] | the cost of finding the target of a request, within one process |
//! | [`endurance`] | a mixed load whose processes are killed and stopped |
//! | [`events`] | the event channel: priorities, fan-out, filters, losses |
//! | [`failover`] | calls whose server dies under load |
//! | [`hostile`] | the effect of attacks on a server, as its clients see it |
//! | [`inversion`] | priority inversion in several architectures of ORBs |
//! | [`latency`], [`throughput`] | calls and data, beside raw sockets and omniORB |
//! | [`os`] | the scheduling of the ORB by the operating system |
//! | [`overtake`] | calls of high priority while all lower lanes are saturated |
//! | [`protocols`] | the ORB's addition to its transports, and the savings of GIOPlite |
//! | [`rio`] | the real-time I/O subsystem, beside the kernel's TCP |
//! | [`scheduling`] | task sets: analysed, simulated, and run on lanes |
//! | [`thread_pools`] | strategies of thread pools |
//! | [`timeprobes`] | the time that a call spends in each layer |
//! | [`waits`] | ways in which a thread waits for a request, on raw sockets |
//! | [`whitebox`] | the operations inside a call: allocations, locks, system calls |
//!
//! [`all`] runs every experiment, and [`compare`] compares two runs of one. [`peer`] takes part in
//! comparisons of other ORBs. [`mod@bench`] has the servers and clients.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod all;
pub mod bench;
pub mod compare;
pub mod demo;
pub mod demux;
pub mod endurance;
pub mod events;
pub mod failover;
pub mod hostile;
pub mod inversion;
pub mod latency;
pub mod os;
pub mod overtake;
pub mod peer;
pub mod protocols;
pub mod rio;
pub mod scheduling;
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
mod named;
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
pub use comparison::{LoadSetup, PhaseCalls, PriorityComparison};
pub use environment::Environment;
pub use error::LabError;
pub use experiment::{Experiment, Findings, Options, run};
pub use pairs::PairedRatio;
pub use part::{CHILD_COMMAND, child_main};
pub use process::ProcessError;
pub use stats::{Point, Record, Summary};
