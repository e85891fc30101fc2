//! The experiments, run for real with next to nothing.

mod contest;
mod demux;
mod demux_report;
mod endurance;
mod events;
mod failover;
mod harness;
mod hostile;
mod inversion;
mod omniorb;
mod os;
mod overtake;
mod rio;
mod scheduling;
mod thread_pools;
mod timeprobes;
mod waits;

use std::process::ExitCode;

use chronorb_rt::CountingAllocator;

/// For the memory that objects take, which is an experiment's result.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    let tests = [
        ("contest", contest::TESTS),
        ("demux", demux::TESTS),
        ("demux_report", demux_report::TESTS),
        ("endurance", endurance::TESTS),
        ("events", events::TESTS),
        ("failover", failover::TESTS),
        ("hostile", hostile::TESTS),
        ("inversion", inversion::TESTS),
        ("omniorb", omniorb::TESTS),
        ("os", os::TESTS),
        ("overtake", overtake::TESTS),
        ("rio", rio::TESTS),
        ("scheduling", scheduling::TESTS),
        ("thread_pools", thread_pools::TESTS),
        ("timeprobes", timeprobes::TESTS),
        ("waits", waits::TESTS),
    ];
    harness::main(&tests)
}
