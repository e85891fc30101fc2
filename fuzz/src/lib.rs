//! The functions that the fuzz targets call with their input.
//!
//! Each function takes any octets and passes them to a part of chronorb that reads data of others.
//! It panics if the result is wrong: two results contradict each other, or a value changes when it
//! is written and read. Other panics, hangs and growth are detected by the fuzzer.
//!
//! The functions do not need the fuzzer, so `tests/replay` calls them with all files of the
//! corpora, on a stable toolchain.

/// The types of the whole endsystems.
pub mod idl {
    chronorb::include_idl!("hostile");
}

/// The counter of what values allocate.
#[global_allocator]
static ALLOCATOR: chronorb_rt::CountingAllocator = chronorb_rt::CountingAllocator;

mod bounds;
mod cdr_values;
mod endsystem;
mod event_subscriptions;
mod giop_message;
mod idl_grammar;
mod idl_source;
mod message_reader;
mod multicast_packets;
mod naming;
mod omniorb_anys;
mod reference_text;
mod rio_frame;
mod schedule_file;
mod scheduler_histories;
mod service_contexts;
mod shared_ring;
mod small_stack;
mod typed;
mod values;
mod walk;

pub use cdr_values::cdr_values;
pub use endsystem::{
    client_replies, context_requests, event_channel, monitor_lines, object_keys, server_requests,
};
pub use event_subscriptions::event_subscriptions;
pub use giop_message::{giop_message, gioplite};
pub use idl_grammar::{idl, idl_grammar};
pub use idl_source::idl_source;
pub use message_reader::message_reader;
pub use multicast_packets::multicast_packets;
pub use naming::{naming_store, naming_text};
pub use omniorb_anys::omniorb_anys;
pub use reference_text::reference_text;
pub use rio_frame::rio_frame;
pub use schedule_file::schedule_file;
pub use scheduler_histories::scheduler_histories;
pub use service_contexts::service_contexts;
pub use shared_ring::shared_ring;
pub use typed::typed_values;
