//! Attacks on the services of names, events and scheduling.
//!
//! Each attack takes as much as one client can take by a fixed number of octets, once by some and
//! once by twice as many, each time from a new server with the default settings of `ns serve`,
//! `events serve` or `sched serve`. Another client calls the server meanwhile.

mod assailant;
mod attack;
mod claims;
mod consumer;
mod events;
mod names;
mod other_client;
mod report;
mod row;
mod scheduling;
mod trial;
mod victim;

pub use attack::{AttackedService, ServiceAttack};
pub use row::{ServicePlan, ServiceRow};

pub(super) use assailant::attack;
pub(super) use claims::of as claims_of;
pub(super) use other_client::call;
pub(super) use report::{by_attack, notes, tables};
pub(super) use trial::run;
pub(super) use victim::serve;

#[cfg(test)]
pub(super) use claims::tests::rows;
