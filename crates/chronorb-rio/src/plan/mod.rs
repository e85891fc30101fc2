//! Plans: the reservations of the classes of an interface, and their admission control.
//!
//! A [`Reservation`] describes one class: its priority, when its packets are processed, how many of
//! them, and at which cost. The engine enforces the reservation, and the admission control checks
//! that it can be kept, both from the same value.

mod admission;
#[cfg(feature = "plan-file")]
mod file;
mod processors;
mod refusal;
mod reservation;
mod response;
#[cfg(test)]
mod tests;

pub use admission::{Admission, ClassAdmission, DriverKind, Interface, admit};
#[cfg(feature = "plan-file")]
pub use file::{Plan, PlanError};
pub use refusal::{Bits, Refusal, Warning, Why};
pub use reservation::{Cap, MAX_NATIVE, Output, Policy, Processing, Reservation, ReservationError};
