//! Tests of the event channel, as its clients see it.

mod correlation;
mod filters;
mod lifecycle;
mod multicast;
mod observers;
mod outboxes;
mod overload;
mod peers;
mod rings;
mod statistics;
mod support;
mod timers;
mod validation;
mod wire;
