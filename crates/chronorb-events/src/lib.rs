//! The core of a real-time event channel: filters, correlation, timers, routing and queues.
//!
//! Nothing here has a thread, a socket or a clock. A caller tells a [`Lane`] the time and takes
//! what it delivers, so the same code runs in virtual time and in a channel. The interfaces that
//! the filters and their notation come from are `RtecEventComm` and `RtecEventChannelAdmin`.
//!
//! | need | item |
//! |---|---|
//! | an event | [`Event`], [`Header`] |
//! | what a consumer subscribes to, as a tree or as text | [`Filter`] |
//! | a subscription as it comes over the wire | [`read_entries`], [`write_entries`] |
//! | checks and compilation | [`Program::compile`], [`Limits`], [`Rules`] |
//! | the consumers of one priority | [`Lane`] |
//! | consumers that an event may concern | [`Routes`] |
//! | a consumer that is slower than its suppliers | [`Queue`], [`Overflow`] |
//! | the octets of the events that are kept | [`Allowance`], [`OctetAccount`] |
//!
//! # Example
//! ```
//! use std::time::Duration;
//! use chronorb_events::*;
//!
//! let mut lane = Lane::new();
//! let filter = Filter::of_type(20) | Filter::silence(Duration::from_millis(80));
//! let program = Program::compile(&filter, Rules::Corrected, &Limits::default())?;
//! lane.subscribe(program.into(), 0, 0);
//!
//! let mut types = Vec::new();
//! lane.push(&Event::new(1, 20, ()), 50_000_000, |_, set| types.push(set[0].header.event_type));
//! assert_eq!(lane.next_due(), Some(80_000_000));
//! lane.expire(130_000_000, |_, set| types.push(set[0].header.event_type));
//! assert_eq!(types, [20, DEADLINE_TIMEOUT]);
//! # Ok::<(), SubscriptionError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod correlation;
mod entries;
mod error;
mod event;
mod filter;
mod lane;
mod octets;
mod plan;
mod program;
mod queue;
mod text;

pub use entries::{Entry, Notation, fits_basic, read_entries, write_entries};
pub use error::{Limits, SubscriptionError};
pub use event::{
    ANY_SOURCE, ANY_TYPE, DEADLINE_TIMEOUT, EVENTS_LOST, Event, FIRST_USER_TYPE, Header,
    INTERVAL_TIMEOUT, TIMEOUT,
};
pub use filter::{Filter, TimerKind};
pub use lane::{Lane, SubscriptionId};
pub use octets::{Allowance, OctetAccount};
pub use plan::{Candidates, Routes};
pub use program::{Program, Rules};
pub use queue::{Next, Overflow, Put, Queue};
pub use text::FilterTextError;
