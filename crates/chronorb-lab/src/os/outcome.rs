//! The figures of a run.

use serde::{Deserialize, Serialize};

use super::case::OsCase;
use super::class::SchedulingClass;
use super::kernel::KernelSettings;
use super::load::CompetingLoad;
use super::plan::OsPlan;
use super::switch::Switching;
use crate::bench::Placement;
use crate::environment::Environment;
use crate::stats::Summary;

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct OsOutcome {
    /// The plan of the run.
    pub plan: OsPlan,
    /// The machine.
    pub environment: Environment,
    /// The settings of its kernel.
    pub kernel: KernelSettings,
    /// The scheduling classes that this process may not use.
    pub refused: Vec<ClassRefusal>,
    /// The calls under each class and load.
    #[serde(skip)]
    pub classes: Vec<ClassRow>,
    /// The throttling of a real-time thread.
    #[serde(skip)]
    pub throttling: Vec<ThrottlingRow>,
    /// The cost of a context switch.
    #[serde(skip)]
    pub switches: Vec<SwitchRow>,
    /// The context switches of requests.
    #[serde(skip)]
    pub requests: Vec<RequestRow>,
    /// The processor time that the ORB leaves.
    #[serde(skip)]
    pub scavengers: Vec<ScavengerRow>,
    /// The calls of four clients at four rates.
    #[serde(skip)]
    pub rates: Vec<RateRow>,
}

/// A scheduling class that this process may not use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassRefusal {
    /// The class.
    pub class: SchedulingClass,
    /// The reason.
    pub why: String,
}

impl ClassRefusal {
    pub(super) fn of(class: SchedulingClass) -> Option<Self> {
        let why = class.refusal()?;
        Some(Self { class, why })
    }
}

/// The priority of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientPriority {
    /// The one client of high priority.
    High,
    /// The clients of low priority together.
    Low,
}

/// The calls of the clients of one priority in a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "part", rename = "scheduling-class")]
pub struct ClassRow {
    /// The case.
    #[serde(flatten)]
    pub case: OsCase,
    /// The priority of the clients.
    pub client: ClientPriority,
    /// The latencies of all rounds together, from the times when the calls were due.
    #[serde(flatten)]
    pub latency: Summary,
    /// The median of the rounds' 99th percentiles.
    pub p99_of_rounds_us: f64,
    /// The share of the processor time that all programs took.
    pub cpu_busy_percent: f64,
    /// The share of the processor time that a hypervisor took away.
    pub cpu_stolen_percent: f64,
}

/// The figures of a real-time thread that computes without a break.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "part", rename = "throttling")]
pub struct ThrottlingRow {
    /// Whether an ordinary thread computed on the same CPU.
    pub contended: bool,
    /// The time for which it computed.
    pub length_s: f64,
    /// The longest time between two readings of the clock.
    pub longest_gap_us: f64,
    /// The number of such times of 1 ms or more.
    pub gaps_of_a_ms: u64,
    /// The share of the time for which it had no CPU.
    pub lost_percent: f64,
    /// The share of the time for which the ordinary thread had the CPU.
    pub given_percent: f64,
}

/// The cost of a context switch.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "part", rename = "context-switch")]
pub struct SwitchRow {
    /// The mechanism by which two threads took turns.
    pub switching: Switching,
    /// The number of CPUs on which they ran.
    pub cpus: u32,
    /// The number of turns.
    pub turns: u64,
    /// The mean of a switch, which is half of the time to the next turn.
    pub mean_us: f64,
    /// The standard deviation of a switch.
    pub deviation_us: f64,
    /// The median of a switch.
    pub p50_us: f64,
    /// The 99th percentile of a switch.
    pub p99_us: f64,
    /// The longest switch.
    pub max_us: f64,
    /// The number of switches that the kernel counted, by the expected number.
    pub counted_by_expected: f64,
}

/// The context switches of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "part", rename = "switches-per-request")]
pub struct RequestRow {
    /// The CPUs of client and server.
    pub placement: Placement,
    /// The number of concurrent clients.
    pub clients: u32,
    /// The number of requests.
    pub requests: u64,
    /// The context switches of the client's threads for each request.
    pub client_switches_per_request: f64,
    /// The context switches of the server's threads for each request.
    pub server_switches_per_request: f64,
}

impl RequestRow {
    /// Returns the context switches of both sides for each request.
    pub(super) fn switches(&self) -> f64 {
        self.client_switches_per_request + self.server_switches_per_request
    }
}

/// The process that has a CPU for itself and a scavenger.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuOwner {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// The processor time that calls left to a scavenger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "part", rename = "scavenger")]
pub struct ScavengerRow {
    /// The process on the same CPU.
    pub side: CpuOwner,
    /// The rate of the calls.
    pub rate_hz: u32,
    /// The number of calls.
    pub requests: u64,
    /// The count beside calls, by the count beside a client that rests.
    pub left_percent: f64,
    /// The count beside a client that only wakes up, by the same.
    pub left_by_waking_percent: f64,
    /// The processor time of a request.
    pub cpu_us_per_request: f64,
    /// The processor time of a request without that of waking up.
    pub orb_us_per_request: f64,
}

/// The conditions under which four clients called.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateMode {
    /// The rates of the papers, with next to no work.
    Paper,
    /// Ten times these rates, with work, on busy CPUs.
    Scaled,
}

impl RateMode {
    pub(super) const ALL: [Self; 2] = [Self::Paper, Self::Scaled];
}

/// The calls of one of four clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "part", rename = "four-rates")]
pub struct RateRow {
    /// The scheduling class of all threads.
    pub class: SchedulingClass,
    /// The conditions.
    pub mode: RateMode,
    /// The number of the client; 1 is the most urgent.
    pub client: u32,
    /// The priority of the client, in CORBA and in Linux.
    pub priority: u8,
    /// The rate of its calls.
    pub rate_hz: u32,
    /// The latencies of its calls, from the times when they were due.
    #[serde(flatten)]
    pub latency: Summary,
}

impl OsOutcome {
    /// Returns the calls of a class under a load, free to run on all CPUs, with locked memory if
    /// that is permitted.
    pub(super) fn free(
        &self,
        class: SchedulingClass,
        load: CompetingLoad,
        client: ClientPriority,
    ) -> Option<&ClassRow> {
        let locked = self.classes.iter().any(|row| row.case.memory_locked);
        let case = OsCase::new(class, load, Placement::Unpinned, locked);
        let mut rows = self.classes.iter();
        rows.find(|row| row.case == case && row.client == client && row.latency.calls > 0)
    }

    /// Returns the cost of a context switch.
    pub(super) fn switch(&self, switching: Switching, cpus: u32) -> Option<&SwitchRow> {
        let mut rows = self.switches.iter();
        rows.find(|row| row.switching == switching && row.cpus == cpus)
    }

    /// Returns the calls of the four clients, the most urgent first, or `None` unless all of them
    /// called.
    pub(super) fn four(&self, class: SchedulingClass, mode: RateMode) -> Option<[&RateRow; 4]> {
        let rows = self.rates.iter().filter(|row| row.class == class);
        let rows = rows.filter(|row| row.mode == mode && row.latency.calls > 0);
        rows.collect::<Vec<_>>().try_into().ok()
    }
}
