//! Calls to and from other ORBs, by their programs and by recordings.

mod adapters;
mod anys;
mod asynchronous;
mod bidirectional;
#[path = "../../../../crates/chronorb-transport/tests/it/certificates/mod.rs"]
mod certificates;
mod end_times;
mod jacorb;
mod names;
mod omniorb;
mod rio;
mod ssl;
mod support;
mod sync_scope;
mod values;
mod values_captured;
mod values_of_ours;
