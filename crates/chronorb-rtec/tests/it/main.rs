//! Tests of the event channel, as its clients see it.

mod admission;
mod correlation;
mod filters;
mod gateways;
mod groups;
mod half_open;
mod lifecycle;
#[path = "../../../chronorb-events/tests/it/model.rs"]
mod model;
mod multicast;
mod observers;
mod outboxes;
mod overload;
mod peers;
#[path = "../../../chronorb-consumers/tests/it/raw.rs"]
mod raw;
mod rings;
mod scripts;
mod statistics;
mod strangers;
mod support;
mod timers;
mod validation;
mod wire;
