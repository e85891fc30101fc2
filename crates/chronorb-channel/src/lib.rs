//! A real-time event channel within a process.
//!
//! Suppliers push events of any type into a [`Channel`], and consumers receive those that pass
//! their filters. The filters, groups and timers are those of [`chronorb_events`]. Suppliers and
//! consumers do not know each other, and the cost of an event follows its matches and not the
//! number of consumers.
//!
//! # Ways of delivery
//!
//! | way | thread | filters | while a consumer is slow |
//! |---|---|---|---|
//! | [direct](SubscriptionBuilder::call) | that of the supplier; the event is borrowed | without state | the supplier waits |
//! | [inline](SubscriptionBuilder::call_inline) | that of the supplier; of a lane | all | the supplier waits |
//! | [on a lane](SubscriptionBuilder::call_on) | that of the lane, at its priority | all | its queue overflows by its policy |
//! | [stream](SubscriptionBuilder::stream) | the consumer's own | all | its queue overflows by its policy |
//!
//! A direct delivery takes no lock, allocates nothing and makes no system call. The other ways take
//! the lock of the consumer's queue, which no other consumer uses, and clone the event. So a body
//! that is costly to clone stands behind an `Arc`.
//!
//! # Rules
//! * The events of one supplier reach a consumer in order. On a lane, subscriptions with a lower
//!   subpriority are served first, then those whose events have waited longer.
//! * Timers of a lane fire in the order of their times. While deliveries are ready, each turn of a
//!   timer is followed by one of a delivery. The delivery of an event fires one timer of its
//!   subscription before it at most. Missed intervals are skipped.
//! * Every lost event is counted, and its consumer is told at the place in the order at which it is
//!   missing.
//! * After [`Subscription::disconnect`] has returned, no push to the consumer begins. Those in
//!   progress are over, unless the caller is within a push itself.
//! * A consumer on a lane that is not [ready](Consumer::is_ready), or has used its [`Budget`], is
//!   passed over, and its events wait in its queue.
//! * A suspended subscription gets no events, and its groups keep what they have.
//!
//! # Example
//! ```
//! use std::time::Duration;
//!
//! use chronorb_channel::{Channel, Lane, Delivery};
//! use chronorb_events::{Filter, Overflow};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! const TEMPERATURE: i32 = 20;
//! let channel = Channel::<f64>::builder().lane(Lane::new("alarms")).start()?;
//!
//! let alarm = channel.subscribe(Filter::of_type(TEMPERATURE));
//! let alarm = alarm.call_on(0, |set: &[chronorb_channel::Event<f64>]| {
//!     assert!(set[0].body < 100.0);
//! })?;
//! let log = channel.subscribe(Filter::Everything).queue(2, Overflow::DropOldest);
//! let mut log = log.stream()?;
//!
//! let sensor = channel.supplier(1);
//! for value in [20.5, 21.0, 21.5] {
//!     sensor.push(TEMPERATURE, value);
//! }
//! assert!(matches!(log.next_within(Duration::ZERO), Some(Delivery::Lost(1))));
//! let Some(Delivery::Set(set)) = log.next_within(Duration::ZERO) else {
//!     panic!("two events wait");
//! };
//! assert_eq!(set[0].body, 21.0);
//! alarm.disconnect();
//! # Ok(())
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod budget;
mod channel;
mod clock;
mod consumer;
mod correlation;
mod error;
mod gate;
mod lane;
mod mailbox;
mod member;
mod parking;
mod plans;
mod stream;
mod subscription;
mod sync;

pub use budget::Budget;
pub use channel::{Channel, ChannelBuilder, Lane, Supplier};
pub use chronorb_events::{Allowance, Event, Filter, Header, Overflow};
pub use clock::{Clock, SystemClock};
pub use consumer::{Body, Consumer};
pub use error::{StartError, SubscribeError};
pub use gate::{PushGate, PushGuard};
pub use member::SubscriptionStatus;
pub use stream::{Delivery, DeliveryRef, EventStream};
pub use subscription::{Subscription, SubscriptionBuilder, Waker};
