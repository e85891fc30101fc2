//! The processor time of a request, measured by what it leaves to scavengers: threads of lowest
//! priority that count on the CPUs of client and server.

use std::fs;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, Scheduling, sleep_until};
use rustix::process::{setpriority_process, setsid};
use serde::{Deserialize, Serialize};

use super::class::HIGH;
use super::fleet::{Members, OsFleet, WIND_DOWN, soon};
use super::outcome::{CpuOwner, ScavengerRow};
use super::{OsPart, OsRun, PART, thousandths, threads};
use crate::bench::{Pace, Placement};
use crate::error::LabError;
use crate::process::{self, Child, Parent, Ready};
use crate::work;

/// A span in which scavengers count.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Span {
    at_ns: u64,
    length: Duration,
}

/// Counts on the CPUs of client and server while the client rests, while it only wakes up, and
/// while it calls. Returns no rows if there is one CPU only.
pub(super) fn measure(run: &OsRun<'_>) -> Result<Vec<ScavengerRow>, LabError> {
    if !run.cpus.are_several() {
        return Ok(Vec::new());
    }
    let plan = run.plan;
    let case = run.fifo(Placement::AcrossCpus);
    let mut fleet = OsFleet::start(Members::one_each(case, &[HIGH]))?;
    let part = OsPart::Scavenger(run.ends());
    let (mut scavengers, Ready {}) = Child::start("scavengers", PART, &part)?;
    let mut counts = vec![Counts::default(); plan.call_rates_hz.len()];
    for _ in 0..plan.scavenging_rounds {
        for (rate_hz, counts) in plan.call_rates_hz.iter().zip(&mut counts) {
            run.watch.begin("what is left to scavengers");
            let period = Duration::from_secs(1) / *rate_hz;
            let paces = [Pace::Rest, Pace::WakeEvery(period), Pace::CallEvery(period)];
            for (sums, pace) in counts.of_pace.iter_mut().zip(paces) {
                let (start, length) = (soon(), plan.scavenging);
                let at_ns = start.as_nanos();
                scavengers.tell(&Some(Span { at_ns, length }))?;
                let course = fleet.run(start, &[pace], length, 1)?;
                let more: [u64; 2] = scavengers.hear(Deadline::after(WIND_DOWN))?;
                *sums = [sums[0] + more[0], sums[1] + more[1]];
                // The client makes no calls at the other paces.
                if matches!(pace, Pace::CallEvery(_)) {
                    counts.requests += course.measured.calls[0].calls();
                }
            }
        }
    }
    scavengers.dismiss(Deadline::after(WIND_DOWN))?;
    fleet.stop()?;
    let time = plan.scavenging * plan.scavenging_rounds;
    let all = plan.call_rates_hz.iter().zip(&counts);
    let rows = all.flat_map(|(rate_hz, counts)| counts.rows(*rate_hz, time));
    Ok(rows.collect())
}

/// The counts of scavengers beside calls of one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The counts of the scavengers of client and server: beside a client that rests, that wakes
    /// up, and that calls.
    of_pace: [[u64; 2]; 3],
    requests: u64,
}

impl Counts {
    fn rows(&self, rate_hz: u32, time: Duration) -> [ScavengerRow; 2] {
        [CpuOwner::Client, CpuOwner::Server].map(|side| {
            let [alone, waking, calling] = self.of_pace.map(|counts| counts[side as usize] as f64);
            let us = time.as_secs_f64() * 1e6 / self.requests.max(1) as f64;
            let cost = |from: f64| thousandths((from - calling) / alone.max(1.0) * us);
            let percent = |left: f64| thousandths(left / alone.max(1.0) * 100.0);
            ScavengerRow {
                side,
                rate_hz,
                requests: self.requests,
                left_percent: percent(calling),
                left_by_waking_percent: percent(waking),
                cpu_us_per_request: cost(alone),
                // The server wakes up for requests only.
                orb_us_per_request: cost(match side {
                    CpuOwner::Client => waking,
                    CpuOwner::Server => alone,
                }),
            }
        })
    }
}

/// Counts on each CPU in each span that the parent orders.
///
/// Scavengers are ordinary threads: every real-time thread goes before them. Of the ordinary
/// threads they have the greatest weight if that is permitted, so that other programs take little.
pub(super) fn scavenge(cpus: [usize; 2]) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    gain_weight();
    process::tell(&Ready {})?;
    while let Some(span) = parent.hear::<Option<Span>>()? {
        let scavenger = |cpu| {
            let ordinary = Scheduling::OTHER;
            threads::start("scavenger", ordinary, cpu, move || count(span))
        };
        let [client, server] = cpus.map(scavenger);
        let counts = [threads::join(client?), threads::join(server?)];
        process::tell(&counts)?;
    }
    Ok(())
}

/// Gives this process a group of its own for time sharing (sched(7), autogroups), with the greatest
/// weight. If that is refused, or there are no such groups, scavengers have the ordinary weight.
fn gain_weight() {
    let _ = setsid();
    let _ = fs::write("/proc/self/autogroup", LEAST_NICE.to_string());
}

/// Returns how far a thread counts in a span.
fn count(span: Span) -> u64 {
    let _ = setpriority_process(None, LEAST_NICE);
    let start = Monotonic::from_nanos(span.at_ns);
    let until = start + span.length;
    let mut count = 0;
    sleep_until(start);
    while Monotonic::now() < until {
        work::cube(7, STEPS);
        count += 1;
    }
    count
}

/// About a µs of work, so that counts resolve small shares of the time.
const STEPS: u32 = 500;
const LEAST_NICE: i32 = -20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_scavengers_lose_is_the_time_of_requests() {
        let counts = Counts {
            of_pace: [[1_000, 2_000], [950, 2_000], [900, 1_700]],
            requests: 1_000,
        };
        let [client, server] = counts.rows(1_000, Duration::from_secs(1));
        let left = |row: &ScavengerRow| (row.left_percent, row.left_by_waking_percent);
        let cost = |row: &ScavengerRow| (row.cpu_us_per_request, row.orb_us_per_request);
        assert_eq!(
            (left(&client), cost(&client)),
            ((90.0, 95.0), (100.0, 50.0))
        );
        assert_eq!(
            (left(&server), cost(&server)),
            ((85.0, 100.0), (150.0, 150.0))
        );
    }

    #[test]
    fn counts_of_zero_give_figures_of_zero() {
        let [client, _] = Counts::default().rows(1_000, Duration::ZERO);
        assert_eq!(client.left_percent, 0.0);
        assert_eq!(client.orb_us_per_request, 0.0);
    }
}
