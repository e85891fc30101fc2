//! The checks, in a module for each subject.

mod cpus;
mod devices;
mod kernel;
mod memory;
mod network;
mod rights;

use crate::check::Check;

/// All checks, by their cost at worst; among equals the one that is mended soonest is first.
pub(crate) static CHECKS: [&Check; 29] = [
    &rights::PRIORITIES,
    &rights::GROUP_BUDGET,
    &rights::MEMORY_LOCK,
    &kernel::PREEMPTION,
    &memory::SWAP,
    &kernel::TIMER_RESOLUTION,
    &kernel::REAL_TIME,
    &cpus::VIRTUAL_MACHINE,
    &cpus::NUMBER,
    &kernel::THROTTLING,
    &kernel::FAIR_SERVER,
    &cpus::ISOLATED,
    &cpus::IDLE_STATES,
    &cpus::FREQUENCY,
    &memory::HUGE_PAGES,
    &network::QUEUEING,
    &network::OFFLOADS,
    &network::COALESCING,
    &network::RECEIVE_THREADS,
    &rights::REAL_TIME_IO,
    &cpus::SHARED_CORES,
    &kernel::CLOCK_SOURCE,
    &devices::AFFINITY,
    &devices::BALANCER,
    &cpus::TICK,
    &cpus::CALLBACKS,
    &memory::MERGING,
    &kernel::TIMER_SLACK,
    &network::BUSY_POLL,
];
