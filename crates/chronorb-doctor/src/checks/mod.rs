//! The checks: their texts in `checks.txt`, and their readers in a module for each subject.

mod cpus;
mod devices;
mod kernel;
mod memory;
mod network;
mod rights;

use std::sync::LazyLock;

use crate::check::{Check, ReadStates, told};
use crate::machine::Machine;

/// All checks, by their cost at worst.
pub(crate) static CHECKS: LazyLock<Vec<Check>> =
    LazyLock::new(|| Check::parse(include_str!("../checks.txt"), reader));

/// Returns the function that reads the machine for a check.
fn reader(id: &str) -> fn(&Machine) -> ReadStates {
    match id {
        "busy-poll" => network::busy_poll,
        "clock-source" => kernel::clock_source,
        "cpu-frequency" => cpus::governors,
        "cpus" => cpus::number,
        "fair-server" => kernel::fair_server,
        "idle-states" => cpus::idle_states,
        "interrupt-affinity" => devices::affinity,
        "interrupt-coalescing" => |machine| network::each(machine, network::coalescing),
        "irqbalance" => devices::balancer,
        "isolated-cpus" => cpus::isolated_cpus,
        "memory-lock" => rights::memory_lock,
        "napi-threads" => |machine| network::each(machine, network::threaded),
        "network-offloads" => |machine| network::each(machine, network::offloads),
        "network-queueing" => network::queueing,
        "nohz-full" => cpus::tick,
        "preempt-rt" => kernel::real_time,
        "preemption" => kernel::preemption_model,
        "rcu-nocbs" => cpus::callbacks,
        "real-time-io" => rights::packet_rights,
        "rt-group-budget" => rights::group_budget,
        "rt-priorities" => rights::priorities,
        "rt-throttling" => kernel::throttling,
        "same-page-merging" => |machine| told(machine, "/sys/kernel/mm/ksm/run"),
        "smt" => |machine| told(machine, "/sys/devices/system/cpu/smt/active"),
        "stolen-time" => cpus::stolen_time,
        "swap" => memory::swap,
        "timer-resolution" => kernel::timer_resolution,
        "timer-slack" => kernel::timer_slack,
        "transparent-huge-pages" => memory::huge_pages,
        "virtual-machine" => cpus::virtual_machine,
        _ => panic!("the check {id} has no reader"),
    }
}
