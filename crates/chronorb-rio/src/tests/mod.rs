//! Tests of the whole subsystem: on a wire in memory, and on test networks if the process may
//! create them.

#[macro_use]
#[path = "../../../chronorb-transport/tests/it/conformance/statements.rs"]
mod statements;
#[path = "../../../chronorb-transport/tests/it/conformance"]
pub(crate) mod conformance {
    pub(crate) mod any;
    pub(crate) mod streams;
    pub(crate) mod subject;
    pub(crate) mod two_way;
    pub(crate) mod waits;
}
mod support;

mod admission;
mod arrivals;
mod bpf;
mod drivers;
mod hostile;
mod kernel_programs;
mod lifetimes;
mod long_streams;
mod peers;
mod status;
mod transport;
mod wire;
mod xdp;
