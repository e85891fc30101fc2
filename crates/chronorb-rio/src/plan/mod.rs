//! Plans: what each class of packets is promised, and whether all of it can be kept.
//!
//! A [`Reservation`] says it for one class: its priority, when its packets are processed and how
//! many of them, and what they cost. The engine, which keeps the promise, and the admission, which
//! finds out whether it can be kept, have it from the same value.

mod admission;
#[cfg(feature = "plan-file")]
mod file;
mod processors;
mod refusal;
mod reservation;
mod response;
#[cfg(test)]
mod tests;

pub use admission::{Admission, Admitted, DriverKind, Interface, admit};
#[cfg(feature = "plan-file")]
pub use file::{Plan, PlanError};
pub use refusal::{Bits, Refusal, Warning, Why};
pub use reservation::{Cap, MAX_NATIVE, Output, Policy, Processing, Reservation, ReservationError};
