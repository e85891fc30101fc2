//! The lateness of threads that sleep until a fixed time.

use std::time::Duration;

use chronorb_report::progress::Progress;
use chronorb_report::stats::Record;
use chronorb_rt::{
    MemoryLock, Monotonic, Rights, Scheduling, ThreadBuilder, lock_all, sleep_until,
};
use serde_json::{Value, json};

use crate::error::DoctorError;
use crate::machine::Machine;

/// The lateness of the wake-ups of one thread on each CPU.
#[derive(Clone, Debug)]
pub struct WakeUps {
    /// The scheduling of the threads.
    pub scheduling: Scheduling,
    /// Whether the memory of the process was locked.
    pub memory_locked: bool,
    /// The time from one wake-up to the next.
    pub period: Duration,
    /// The length of the measurement.
    pub length: Duration,
    /// Each CPU that the process may use, in ascending order.
    pub cpus: Vec<CpuWakeUps>,
}

/// The lateness of the wake-ups on one CPU.
#[derive(Clone, Debug)]
pub struct CpuWakeUps {
    /// The number of the CPU.
    pub cpu: usize,
    /// The lateness of each wake-up.
    pub late: Record,
}

impl WakeUps {
    /// Merges the records of all CPUs.
    #[must_use]
    pub fn all(&self) -> Record {
        let mut all = Record::new();
        for cpu in &self.cpus {
            all.merge(&cpu.late);
        }
        all
    }

    /// Whether the figures are those of real-time threads.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        self.scheduling != Scheduling::OTHER
    }

    /// Returns the reasons to distrust the figures, a text each.
    #[must_use]
    pub fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if !self.is_real_time() {
            caveats.push(
                "NOT REAL-TIME: SCHED_FIFO is not permitted, so that the threads ran under \
                 SCHED_OTHER, among all others and with their timer slack. These figures do not \
                 show what the machine can do."
                    .to_owned(),
            );
        }
        if !self.memory_locked {
            caveats.push(
                "MEMORY NOT LOCKED: it is not permitted without a limit, so that page faults may \
                 be among the figures."
                    .to_owned(),
            );
        }
        caveats
    }

    /// Returns the measurement for programs.
    pub(crate) fn figures(&self) -> Value {
        let cpus = self.cpus.iter().map(|cpu| {
            let mut figures = lateness_figures(&cpu.late);
            figures["cpu"] = cpu.cpu.into();
            figures
        });
        json!({
            "real_time": self.is_real_time(),
            "scheduling": self.scheduling.to_string(),
            "memory_locked": self.memory_locked,
            "period_us": self.period.as_micros() as u64,
            "seconds": self.length.as_secs_f64(),
            "all": lateness_figures(&self.all()),
            "cpus": cpus.collect::<Vec<_>>(),
        })
    }
}

/// Returns the figures of a record, with a histogram by powers of two.
fn lateness_figures(record: &Record) -> Value {
    let summary = record.summary();
    let counts = record.by_powers_of_two().into_iter().enumerate();
    let buckets = counts.map(|(power, count)| {
        json!({"from_us": from_us(power), "below_us": 1_u64 << power, "wake_ups": count})
    });
    json!({
        "wake_ups": summary.calls,
        "p50_us": summary.p50_us,
        "p99_us": summary.p99_us,
        "p999_us": summary.p999_us,
        "max_us": summary.max_us,
        "histogram": buckets.collect::<Vec<_>>(),
    })
}

/// Measures wake-ups on each CPU that the process may use: a thread at the highest permitted
/// priority sleeps until times that are fixed beforehand, one each ms.
///
/// A wake-up that is later than the next due time makes that one late as well. Locks the memory of
/// the process for the rest of its life, where that is permitted without a limit.
///
/// # Errors
///
/// See [`DoctorError`].
pub fn measure(length: Duration) -> Result<WakeUps, DoctorError> {
    let machine = Machine::this();
    let cpus = machine.allowed_cpus();
    let cpus = cpus.map_err(|unreadable| DoctorError::Cpus(unreadable.to_string()))?;
    // With a limit, further threads might have no memory for their stacks.
    let may_lock = machine.rights.memory_lock == MemoryLock::Unlimited;
    let memory_locked = may_lock && lock_all().is_ok();
    let scheduling = scheduling(machine.rights);

    let start = Monotonic::now() + LEAD;
    let mut threads = Vec::new();
    for (index, cpu) in cpus.iter().enumerate() {
        // CPUs that all wake up at once would wait for each other.
        let start = start + PERIOD.mul_f64(index as f64 / cpus.len() as f64);
        let thread = ThreadBuilder::new(format!("doctor-{cpu}"))
            .scheduling(scheduling)
            .affinity(&[cpu])
            .stack_size(STACK)
            .prefault_stack(true)
            .spawn(move || lateness(start, length))
            .map_err(|source| DoctorError::Thread { cpu, source })?;
        threads.push((cpu, thread));
    }
    watch(start, length);
    let joined = threads.into_iter().map(|(cpu, thread)| CpuWakeUps {
        cpu,
        late: (thread.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    });
    Ok(WakeUps {
        scheduling,
        memory_locked,
        period: PERIOD,
        length,
        cpus: joined.collect(),
    })
}

/// Sleeps until each due time. The lateness counts from that time, not from the wake-up before.
fn lateness(start: Monotonic, length: Duration) -> Record {
    let mut record = Record::new();
    let mut due = start;
    while due.since(start) < length {
        sleep_until(due);
        record.add(due.since(start), Monotonic::now().since(due));
        due = due + PERIOD;
    }
    record
}

/// Returns the highest permitted priority. The ORB leaves 99 to the kernel, and so does the doctor.
fn scheduling(rights: Rights) -> Scheduling {
    let fifo = |max: u8| Scheduling::fifo(max.min(98));
    rights.max_fifo.map_or(Scheduling::OTHER, fifo)
}

/// Waits for the end of the measurement, and shows the progress of a long one.
fn watch(start: Monotonic, length: Duration) {
    let end = start + length;
    if length > UNSHOWN {
        let progress = Progress::start_timed("measuring wake-ups", length);
        let mut next = start;
        while next < end {
            sleep_until(next);
            progress.show(Monotonic::now().since(start));
            next = next + TICK;
        }
    }
    sleep_until(end);
}

/// Returns the lower bound of a bucket of [`Record::by_powers_of_two`].
pub(crate) fn from_us(power: usize) -> u64 {
    if power == 0 { 0 } else { 1 << (power - 1) }
}

const PERIOD: Duration = Duration::from_millis(1);
/// The time from the creation of the threads to the first wake-up.
const LEAD: Duration = Duration::from_millis(100);
/// The longest measurement that shows no progress.
const UNSHOWN: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(200);
const STACK: usize = 256 << 10;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The wake-ups of two CPUs. The second was late by ten times as much.
    pub(crate) fn wake_ups() -> WakeUps {
        let record = |us: u64| {
            let mut record = Record::new();
            for n in 0..1000 {
                let late = if n == 500 { 40 * us } else { us };
                record.add(PERIOD * n, Duration::from_micros(late));
            }
            record
        };
        WakeUps {
            scheduling: Scheduling::fifo(98),
            memory_locked: true,
            period: PERIOD,
            length: Duration::from_secs(1),
            cpus: vec![
                CpuWakeUps {
                    cpu: 0,
                    late: record(9),
                },
                CpuWakeUps {
                    cpu: 1,
                    late: record(90),
                },
            ],
        }
    }

    #[test]
    fn figures_for_programs_hold_every_wake_up() {
        let figures = wake_ups().figures();
        assert_eq!(figures["real_time"], true);
        assert_eq!(figures["scheduling"], "fifo 98");
        assert_eq!(figures["period_us"], 1000);
        assert_eq!(figures["all"]["wake_ups"], 2000);
        assert_eq!(figures["all"]["max_us"], 3600.0);
        assert_eq!(figures["cpus"][1]["cpu"], 1);
        let histogram = figures["all"]["histogram"].as_array().unwrap();
        let count = |bucket: &Value| bucket["wake_ups"].as_u64().unwrap();
        assert_eq!(histogram.iter().map(count).sum::<u64>(), 2000);
        let mut buckets = histogram.iter();
        let bucket = buckets.find(|bucket| bucket["from_us"] == 8).unwrap();
        assert_eq!((&bucket["below_us"], count(bucket)), (&16.into(), 999));
    }

    #[test]
    fn missing_rights_are_caveats() {
        let mut wake_ups = wake_ups();
        assert!(wake_ups.caveats().is_empty());
        wake_ups.scheduling = Scheduling::OTHER;
        wake_ups.memory_locked = false;
        let caveats = wake_ups.caveats();
        assert!(caveats[0].starts_with("NOT REAL-TIME"));
        assert!(caveats[1].starts_with("MEMORY NOT LOCKED"));
    }

    #[test]
    fn every_allowed_cpu_is_measured_at_every_period() {
        let length = Duration::from_millis(20);
        let wake_ups = measure(length).expect("threads can be made");
        let allowed = Machine::this().allowed_cpus().unwrap();
        let measured: Vec<_> = wake_ups.cpus.iter().map(|cpu| cpu.cpu).collect();
        assert_eq!(measured, allowed.iter().collect::<Vec<_>>());
        for cpu in &wake_ups.cpus {
            assert_eq!(cpu.late.calls(), 20);
        }
        let may = Rights::probe().max_fifo.is_some();
        assert_eq!(wake_ups.is_real_time(), may);
    }
}
