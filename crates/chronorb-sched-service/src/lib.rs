//! The scheduling service of chronorb: TAO's `RtecScheduler::Scheduler`, over GIOP.
//!
//! Clients register operations with their needs, and the calls between them. The service decides
//! whether all deadlines are met, and gives each operation a priority of its thread, a level of
//! dispatching and a subpriority. The analysis is that of [`chronorb_sched`].
//!
//! ```no_run
//! use chronorb::prelude::*;
//! use chronorb_sched_service::SchedulingService;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = Orb::init(&mut std::env::args().collect())?;
//! let root = orb.root_poa()?;
//! // Clients reach it by `corbaloc:iiop:HOST:PORT/ScheduleService`.
//! let object = SchedulingService::new().serve_in(&root)?;
//! println!("{}", orb.object_to_string(&object));
//! root.manager().activate()?;
//! orb.run_until_signal()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//! * A period or execution time has units of 100 ns. An operation with a period runs at it if it
//!   has threads or nothing calls it. Others run when they are called.
//! * A two-way caller executes its callees in its own thread, so their execution times count in
//!   its demand. A one-way call is dispatched on its own. An operation with one-way callers needs
//!   a call of each (`OPERATION`, `CONJUNCTION`), or runs at each call (`DISJUNCTION`). It runs at
//!   each two-way call, whatever its kind.
//! * The greatest rate of an operation decides its priority. Within a level the order is by rate,
//!   importance, and calls: callers and suppliers before callees and consumers. With
//!   [`MaximumUrgency`](chronorb_sched::LevelStrategy::MaximumUrgency) importance comes first.
//! * Criticality spreads to the operations that an operation depends on.
//! * An operation that was set several times has several rates. The lowest rates of all are
//!   admitted first.
//! * The result follows from names, needs and dependencies, whatever the order of registration.
//!
//! # Anomalies
//! | severity | meaning |
//! |---|---|
//! | fatal | there is no new schedule: cycles, threads without a period, too few steps |
//! | error | there is a schedule, and deadlines may be missed |
//! | warning | part of the input has no effect |
//!
//! `compute_scheduling` reports its findings as anomalies. It raises none of its user exceptions,
//! because an exception would lose the anomalies. Without a schedule, `priority` raises
//! `NOT_SCHEDULED`. A schedule is in force until a later computation has another one, so a fatal
//! anomaly takes no priority away; a warning beside it says so. Numbers that are negative are
//! `BAD_PARAM`.
//!
//! # Limits
//! More operations, octets of names, rates or dependencies than [`Limits`] are `NO_RESOURCES`, as
//! is an answer of too many octets. Operations, names and dependencies are
//! [quotas](chronorb::quota): one client has half of them by default. Operations cannot be
//! removed, so they count until the end of the service.
//!
//! A computation reads a copy, so no other call waits for it. Changes meanwhile are kept for the
//! next one. It has a budget of steps in proportion to what is registered. Too few steps are a
//! fatal anomaly for the lowest rates, a warning for further ones, and an error for the analysis.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod admit;
mod budget;
mod compute;
mod cycles;
mod flow;
pub mod idl;
mod late;
mod model;
#[cfg(test)]
mod oracle;
mod servant;
mod service;
#[cfg(test)]
mod tests;
mod usage;

pub use model::Limits;
pub use service::{SchedulingService, ServeError};
