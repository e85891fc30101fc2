//! What the fuzz targets do with their input.
//!
//! Each function takes any octets, hands them to a part of chronorb that reads
//! what others wrote, and panics if that does something that it must not: an
//! answer that contradicts another one, or a value that is not the same after
//! it was written and read. That nothing else panics, hangs or grows is what
//! the fuzzer watches.
//!
//! The functions do not need the fuzzer, so `tests/replay.rs` calls them with
//! all files of the corpora, on a stable toolchain.

/// The types of the whole endsystems.
pub mod idl {
    chronorb::include_idl!("hostile");
}

/// The counter of what values allocate.
#[global_allocator]
static ALLOCATOR: chronorb_rt::CountingAllocator = chronorb_rt::CountingAllocator;

mod cdr_values;
mod endsystem;
mod giop_message;
mod idl_grammar;
mod idl_source;
mod message_reader;
mod multicast_packets;
mod omniorb_anys;
mod reference_text;
mod rio_frame;
mod shared_ring;
mod small_stack;
mod typed;
mod values;
mod walk;

pub use cdr_values::cdr_values;
pub use endsystem::{client_replies, monitor_lines, object_keys, server_requests};
pub use giop_message::{giop_message, gioplite};
pub use idl_grammar::{idl, idl_grammar};
pub use idl_source::idl_source;
pub use message_reader::message_reader;
pub use multicast_packets::multicast_packets;
pub use omniorb_anys::omniorb_anys;
pub use reference_text::reference_text;
pub use rio_frame::rio_frame;
pub use shared_ring::shared_ring;
pub use typed::typed_values;
