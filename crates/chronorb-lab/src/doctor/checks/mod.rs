//! The checks: a table of small functions, and a module for each subject.

mod clock;
mod interrupts;
mod io_subsystem;
mod isolation;
mod memory;
mod network;
mod power;
mod preemption;
mod processors;
mod rights;
mod throttling;

use super::finding::{Finding, Judgement, Verdict};
use super::machine::{Machine, Unreadable};

/// What a check comes to: a judgement, or the reason why there is none.
type Examined = Result<Judgement, Unreadable>;

/// One check.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) id: &'static str,
    title: &'static str,
    /// What it costs at worst.
    cost: &'static str,
    /// How to find out what could not be read.
    look: &'static str,
    examine: fn(&Machine) -> Examined,
}

impl Check {
    /// Makes the check.
    pub(super) fn run(&self, machine: &Machine) -> Finding {
        let judgement = (self.examine)(machine)
            .unwrap_or_else(|unreadable| Judgement::unknown(unreadable.to_string(), self.look));
        let is_good = judgement.verdict == Verdict::Good;
        Finding {
            id: self.id,
            title: self.title,
            verdict: judgement.verdict,
            found: judgement.found,
            cost: (!is_good).then(|| judgement.cost.unwrap_or(self.cost).to_owned()),
            remedy: (!is_good).then_some(judgement.remedy),
        }
    }
}

/// All checks; those first that find what costs most at worst, and among equals what is soonest
/// mended.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "rt-priorities",
        title: "Real-time priorities",
        cost: "threads share the CPUs with every other process: a request may wait for ms, \
               whatever its priority",
        look: "try it:\n  chrt -f 98 true",
        examine: rights::priorities,
    },
    Check {
        id: "rt-group-budget",
        title: "Group budget",
        cost: "without a budget no thread of the control group gets a real-time priority: a \
               request may wait for ms",
        look: "read the budget of the group, if there is one:\n  \
               cat /sys/fs/cgroup/cpu/GROUP/cpu.rt_runtime_us",
        examine: rights::group_budget,
    },
    Check {
        id: "memory-lock",
        title: "Locked memory",
        cost: "a page that the kernel has taken away is fetched again while a request waits: \
               ms, from a disk",
        look: "ask for the limit:\n  ulimit -l",
        examine: rights::memory_lock,
    },
    Check {
        id: "preemption",
        title: "Preemption",
        cost: "an urgent thread waits until a system call of another is done, or a tick comes: \
               ms, at times tens of them",
        look: "ask:\n  uname -v",
        examine: preemption::model,
    },
    Check {
        id: "swap",
        title: "Swap",
        cost: "a page of a process without locked memory may be on the disk when it is needed: ms",
        look: "ask:\n  swapon --show",
        examine: memory::swap,
    },
    Check {
        id: "timer-resolution",
        title: "Timer resolution",
        cost: "a sleep ends at a tick: up to 10 ms late",
        look: "look for the resolution of each clock, as root:\n  grep resolution /proc/timer_list",
        examine: clock::resolution,
    },
    Check {
        id: "preempt-rt",
        title: "Real-time kernel",
        cost: "handlers of interrupts, and parts of the kernel that hold a spin lock, are not \
               preempted: hundreds of µs, under load ms",
        look: "ask:\n  uname -v",
        examine: preemption::real_time,
    },
    Check {
        id: "virtual-machine",
        title: "Virtual machine",
        cost: "the host may take a CPU away in the middle of anything: ms; interrupts and idling \
               go through the hypervisor: tens of µs",
        look: "ask:\n  systemd-detect-virt",
        examine: processors::virtual_machine,
    },
    Check {
        id: "cpus",
        title: "CPUs",
        cost: "urgent threads have no CPU beside the others: each interrupt and each section of \
               the kernel that cannot be preempted is before them",
        look: "ask:\n  nproc --all; taskset -cp $$",
        examine: processors::number,
    },
    Check {
        id: "rt-throttling",
        title: "Throttling",
        cost: "real-time threads that have used it up stand still for the rest of the period, all \
               of them on that CPU, by default 50 ms; on Linux 6.12 and newer only with \
               RT_GROUP_SCHED",
        look: "ask:\n  sysctl kernel.sched_rt_runtime_us kernel.sched_rt_period_us",
        examine: throttling::budget,
    },
    Check {
        id: "fair-server",
        title: "Fair server",
        cost: "where real-time threads leave a CPU to nobody, ordinary ones get it for a while, \
               by default 50 ms of each second",
        look: "as root:\n  \
               mount -t debugfs none /sys/kernel/debug\n  \
               grep . /sys/kernel/debug/sched/fair_server/*/*",
        examine: throttling::fair_server,
    },
    Check {
        id: "isolated-cpus",
        title: "Isolated CPUs",
        cost: "other threads, and work of the kernel on their behalf, come to the CPUs of urgent \
               threads and leave cold caches: tens to hundreds of µs",
        look: "read the kernel's command line:\n  grep -o 'isolcpus=[^ ]*' /proc/cmdline",
        examine: isolation::isolated_cpus,
    },
    Check {
        id: "idle-states",
        title: "Idle states",
        cost: "an idle CPU first has to leave its state when work comes: for deep ones hundreds \
               of µs",
        look: "ask:\n  cpupower idle-info",
        examine: power::idle_states,
    },
    Check {
        id: "cpu-frequency",
        title: "CPU frequency",
        cost: "after idling a CPU is slow until the governor raises its frequency: the same work \
               takes several times as long, for ms",
        look: "ask:\n  cpupower frequency-info",
        examine: power::governor,
    },
    Check {
        id: "transparent-huge-pages",
        title: "Huge pages",
        cost: "the kernel moves pages together while programs use them; who touches one waits: \
               hundreds of µs",
        look: "read:\n  cat /sys/kernel/mm/transparent_hugepage/enabled",
        examine: memory::huge_pages,
    },
    Check {
        id: "network-queueing",
        title: "Network queueing",
        cost: "urgent packets wait behind those that came first: with a full queue ms",
        look: "ask:\n  tc qdisc show",
        examine: network::queueing,
    },
    Check {
        id: "network-offloads",
        title: "Network offloads",
        cost: "a message waits for packets received with it, some µs, and behind a segment of \
               64 KiB that is being sent, 0.5 ms at 1 Gbit/s",
        look: "ask:\n  ethtool -k INTERFACE",
        examine: network::offloads,
    },
    Check {
        id: "interrupt-coalescing",
        title: "Interrupt coalescing",
        cost: "each message waits for up to this time in the interface: tens to hundreds of µs",
        look: "ask:\n  ethtool -c INTERFACE",
        examine: network::coalescing,
    },
    Check {
        id: "napi-threads",
        title: "Receive threads",
        cost: "packets are received in the context of whichever thread is interrupted, or by \
               ksoftirqd without a priority: urgent ones wait for the others, up to ms under load",
        look: "read:\n  cat /sys/class/net/*/threaded",
        examine: network::threaded,
    },
    Check {
        id: "real-time-io",
        title: "Real-time I/O",
        cost: "RIO (riop) cannot tell packets apart by priority before any protocol work: urgent ones wait \
               for the others in the kernel, up to ms under load",
        look: "try it, as root:\n  chronorb doctor",
        examine: io_subsystem::drivers,
    },
    Check {
        id: "smt",
        title: "Shared cores",
        cost: "a thread runs at half the speed, about, while its core's other thread is busy, and \
               shares its caches",
        look: "ask:\n  lscpu --extended",
        examine: processors::siblings,
    },
    Check {
        id: "clock-source",
        title: "Clock source",
        cost: "each reading of the time is a system call and a slow device: a µs or more",
        look: "read:\n  cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
        examine: clock::source,
    },
    Check {
        id: "interrupt-affinity",
        title: "Interrupts",
        cost: "a device's interrupt stops whatever thread runs there: some to tens of µs each",
        look: "as root:\n  grep . /proc/irq/*/smp_affinity_list",
        examine: interrupts::affinity,
    },
    Check {
        id: "irqbalance",
        title: "irqbalance",
        cost: "interrupts are moved by load, also to the CPUs of urgent threads that are not \
               isolated: some to tens of µs each",
        look: "ask:\n  pgrep irqbalance",
        examine: interrupts::balancer,
    },
    Check {
        id: "nohz-full",
        title: "Tick",
        cost: "the kernel interrupts a busy CPU 100 to 1000 times a second, for some µs",
        look: "read the kernel's command line:\n  grep -o 'nohz_full=[^ ]*' /proc/cmdline",
        examine: isolation::nohz_full,
    },
    Check {
        id: "rcu-nocbs",
        title: "RCU callbacks",
        cost: "deferred work of the kernel runs on the CPUs of urgent threads: tens of µs",
        look: "read the kernel's command line:\n  grep -o 'rcu_nocbs=[^ ]*' /proc/cmdline",
        examine: isolation::rcu_nocbs,
    },
    Check {
        id: "same-page-merging",
        title: "Page merging",
        cost: "a thread that writes to a merged page waits for a copy of it: some µs; only for \
               programs that asked for merging",
        look: "read:\n  cat /sys/kernel/mm/ksm/run",
        examine: memory::same_page_merging,
    },
    Check {
        id: "timer-slack",
        title: "Timer slack",
        cost: "sleeps of ordinary threads end up to this much later",
        look: "read:\n  cat /proc/self/timerslack_ns",
        examine: clock::slack,
    },
    Check {
        id: "busy-poll",
        title: "Busy polling",
        cost: "each message costs an interrupt and a wake-up: some to tens of µs",
        look: "ask:\n  sysctl net.core.busy_read net.core.busy_poll",
        examine: network::busy_poll,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::doctor::fixture::Fixture;

    #[test]
    fn every_check_has_an_id_of_its_own_and_a_title_that_fits() {
        let ids: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), CHECKS.len());
        for check in CHECKS {
            assert!(check.title.chars().count() <= 20, "{}", check.title);
        }
    }

    #[test]
    fn a_machine_without_any_file_is_only_told_what_calls_tell() {
        let fixture = Fixture::new(&[]);
        for check in CHECKS {
            let finding = fixture.finding(check.id);
            let called = [
                "rt-priorities",
                "memory-lock",
                "timer-resolution",
                "real-time-io",
            ];
            let called = called.contains(&check.id);
            // No such file: the kernel does not have it, or does not show it.
            let says_so = finding.found.contains("does not exist");
            assert!(called || says_so, "{finding:?}");
        }
    }

    #[test]
    fn this_machine_can_be_examined() {
        let machine = Machine::this();
        for check in CHECKS {
            assert!(!check.run(&machine).found.is_empty(), "{}", check.id);
        }
    }
}
