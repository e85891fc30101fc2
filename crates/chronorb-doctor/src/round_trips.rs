//! The round trips between CPUs, by threads that poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chronorb_report::stats::Record;
use chronorb_report::{Table, counted, units};
use chronorb_rt::{Monotonic, Thread, ThreadBuilder};
use serde_json::{Value, json};

use crate::error::DoctorError;

/// The round trips of a counter between threads on two CPUs that poll for it.
#[derive(Clone, Debug)]
pub struct CpuRoundTrips {
    /// The numbers of the CPUs.
    pub cpus: [usize; 2],
    /// The mean of each hundred round trips.
    pub means: Record,
}

impl CpuRoundTrips {
    /// Whether the usual lengths differ by a factor of two or more, as they do where virtual CPUs
    /// are moved.
    #[must_use]
    pub fn is_uneven(&self) -> bool {
        let (short, long) = self.usual_us();
        long >= short * UNEVEN
    }

    /// Returns the length that 5 % of the means do not exceed, and that of 95 %, in µs.
    fn usual_us(&self) -> (f64, f64) {
        (self.means.quantile_us(0.05), self.means.quantile_us(0.95))
    }

    /// Describes uneven round trips, and their causes.
    pub(crate) fn caveat(&self) -> Option<String> {
        let (short, long) = self.usual_us();
        let [one, other] = self.cpus;
        self.is_uneven().then(|| {
            format!(
                "A round trip between CPU {one} and CPU {other} takes {} or {}: other threads ran \
                 there, or a hypervisor moved or interrupted the CPUs. Threads that poll for each \
                 other are as uneven.",
                units::time(short),
                units::time(long),
            )
        })
    }

    pub(crate) fn figures(&self) -> Value {
        let figures = self.means.summary();
        json!({
            "cpus": self.cpus,
            "hundreds": figures.calls,
            "min_us": self.means.min_us(),
            "p50_us": figures.p50_us,
            "p95_us": self.means.quantile_us(0.95),
            "p99_us": figures.p99_us,
            "max_us": figures.max_us,
            "uneven": self.is_uneven(),
        })
    }
}

/// Returns the figures: a line for each pair of CPUs.
pub(crate) fn table(round_trips: &[CpuRoundTrips]) -> Table {
    let lines = round_trips.iter().map(|pair| {
        let [one, other] = pair.cpus;
        let means = &pair.means;
        let times = [0.05, 0.5, 0.95, 0.99].map(|share| means.quantile_us(share));
        let [low, middle, high, higher] = times;
        let times = [means.min_us(), low, middle, high, higher, means.max_us()];
        (
            format!("CPUs {one} and {other}"),
            counted(means.calls(), times),
        )
    });
    let columns = ["hundreds", "min", "p5", "p50", "p95", "p99", "max"];
    Table::new("Round trip", columns, lines)
}

/// Measures the round trips between neighbouring CPUs, one pair after the other, for `length`
/// altogether. The threads have no real-time priority, since they poll all the time.
pub(crate) fn measure(cpus: &[usize], length: Duration) -> Result<Vec<CpuRoundTrips>, DoctorError> {
    let pairs = cpus.windows(2).map(|pair| [pair[0], pair[1]]);
    let each = length / u32::try_from(pairs.len().max(1)).unwrap_or(u32::MAX);
    let measured = pairs.map(|cpus| {
        let means = between(cpus, each)?;
        Ok(CpuRoundTrips { cpus, means })
    });
    measured.collect()
}

fn between([asking, answering]: [usize; 2], length: Duration) -> Result<Record, DoctorError> {
    let counter = Arc::new(Counter::default());
    let other = Arc::clone(&counter);
    let answers = spawn(answering, move || other.answer())?;
    let other = Arc::clone(&counter);
    let asks = spawn(asking, move || other.ask(length));
    if asks.is_err() {
        counter.0.store(OVER, Ordering::Release);
    }
    let means = asks.map(result);
    result(answers);
    means
}

fn result<T>(thread: Thread<T>) -> T {
    (thread.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn spawn<T: Send + 'static>(
    cpu: usize,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<Thread<T>, DoctorError> {
    let thread = ThreadBuilder::new(format!("doctor-{cpu}")).affinity(&[cpu]);
    let thread = thread.spawn(run);
    thread.map_err(|source| DoctorError::Thread { cpu, source })
}

/// A counter in a cache line of its own: odd for the answering thread, even for the asking one.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU32);

impl Counter {
    /// Makes it odd and polls until it is even, again and again, and measures each hundred.
    fn ask(&self, length: Duration) -> Record {
        let mut record = Record::new();
        let begin = Monotonic::now();
        let mut turn = 0_u32;
        let mut before = begin;
        while before.since(begin) < length {
            for _ in 0..HUNDRED {
                self.0.store(turn + 1, Ordering::Release);
                while self.0.load(Ordering::Acquire) != turn + 2 {
                    std::hint::spin_loop();
                }
                turn = (turn + 2) % WRAP;
            }
            let now = Monotonic::now();
            record.add(before.since(begin), now.since(before) / HUNDRED);
            before = now;
        }
        self.0.store(OVER, Ordering::Release);
        record
    }

    /// Makes it even whenever it is odd, until it is over.
    fn answer(&self) {
        loop {
            match self.0.load(Ordering::Acquire) {
                OVER => return,
                odd if odd % 2 == 1 => self.0.store(odd + 1, Ordering::Release),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// The round trips of a mean.
const HUNDRED: u32 = 100;
/// The even value after which the counter begins again.
const WRAP: u32 = 1 << 30;
/// The value of the counter at the end.
const OVER: u32 = u32::MAX;
/// The ratio of usual lengths from which they are uneven.
const UNEVEN: f64 = 2.0;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Round trips between two CPUs, of which a part took much longer.
    pub(crate) fn round_trips(long_us: u64) -> CpuRoundTrips {
        let mut means = Record::new();
        for n in 0..1000 {
            let us = if n % 10 == 0 { long_us } else { 1 };
            means.add(Duration::from_micros(100 * n), Duration::from_micros(us));
        }
        CpuRoundTrips {
            cpus: [0, 1],
            means,
        }
    }

    #[test]
    fn usual_lengths_that_differ_are_named() {
        assert_eq!(round_trips(1).caveat(), None);
        let caveat = round_trips(4).caveat().expect("they differ");
        assert!(caveat.contains("takes 1.00 µs or 4.00 µs"), "{caveat}");
        let figures = round_trips(4).figures();
        assert_eq!(figures["hundreds"], 1000);
        assert_eq!(figures["p50_us"], 1.0);
        assert_eq!(figures["p95_us"], 4.0);
        assert_eq!(figures["uneven"], true);
    }

    #[test]
    fn every_pair_of_neighbours_is_measured() {
        let cpus: Vec<usize> = crate::machine::Machine::this()
            .allowed_cpus()
            .expect("the kernel lists them")
            .iter()
            .collect();
        let measured = measure(&cpus, Duration::from_millis(20)).expect("threads can be made");
        assert_eq!(measured.len(), cpus.len() - 1);
        for pair in &measured {
            assert!(pair.means.calls() > 0);
        }
        assert!(measure(&cpus[..1], Duration::ZERO).is_ok_and(|none| none.is_empty()));
    }
}
