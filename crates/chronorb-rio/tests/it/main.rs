//! The real-time I/O subsystem: on a wire in memory, and on test networks where the process may
//! build some.
//!
//! What hostile peers take of the process's memory is counted by a program of its own, `hostile`.

#[macro_use]
#[path = "../../../chronorb-transport/tests/it/conformance/statements.rs"]
mod statements;
#[path = "../../../chronorb-transport/tests/it/conformance"]
mod conformance {
    pub(crate) mod any;
    pub(crate) mod streams;
    pub(crate) mod subject;
    pub(crate) mod two_way;
    pub(crate) mod waits;
}
mod support;

mod admission;
mod bpf;
mod drivers;
mod kernel;
mod kernel_programs;
mod kernel_sockets;
mod lifetimes;
mod link_local;
mod long_streams;
mod peers;
mod status;
mod transport;
mod wire;
mod xdp;

use chronorb_rt::CountingAllocator;

// It counts by thread, so that tests of what a thread allocates do not disturb each other.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
