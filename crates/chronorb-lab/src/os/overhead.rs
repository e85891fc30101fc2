//! The processor time of a request, by what it leaves to scavengers.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};

use super::PART;
use super::class::{Class, HIGH};
use super::fleet::{Members, OsFleet};
use super::load::Load;
use super::order::{Part, Scavenge, Scavenged, ScavengerOrder};
use super::outcome::{ScavengerRow, Side};
use super::plan::Plan;
use crate::bench::{Cpus, Pace, Placement};
use crate::error::LabError;
use crate::process::{Child, Ready};
use crate::watch::Watch;

/// Lets a thread of lowest priority count on the processors of client and server, while nothing is called, while
/// the client only wakes up, and while it calls. Nothing where there are not two processors.
pub(super) fn measure(
    plan: &Plan,
    class: Class,
    lock_memory: bool,
    watch: &Watch,
) -> Result<Vec<ScavengerRow>, LabError> {
    let cpus = Cpus::of_this_process()?;
    if !cpus.are_several() {
        return Ok(Vec::new());
    }
    let mut fleet = OsFleet::start(&Members {
        class,
        lock_memory,
        placement: Placement::AcrossCpus,
        load: Load::Idle,
        lanes: vec![(HIGH, 1)],
        callers: vec![HIGH],
    })?;
    let mut scavengers = Scavengers::start(&cpus)?;
    let mut counts = vec![Counts::default(); plan.call_rates_hz.len()];
    for _ in 0..plan.scavenging_rounds {
        for (rate_hz, counts) in plan.call_rates_hz.iter().zip(&mut counts) {
            watch.begin("what is left to scavengers");
            let period = Duration::from_secs(1) / *rate_hz;
            let paces = [Pace::Rest, Pace::WakeEvery(period), Pace::CallEvery(period)];
            for (index, pace) in paces.into_iter().enumerate() {
                let tell = |start| scavengers.count(start, plan.scavenging);
                let course = fleet.run(&[pace], plan.scavenging, 1, tell)?;
                let counted = scavengers.counted()?;
                counts.of_pace[index][0] += counted[0];
                counts.of_pace[index][1] += counted[1];
                if index == CALLING {
                    counts.requests += course.measured.calls[0].calls();
                }
            }
        }
    }
    scavengers.stop()?;
    fleet.stop()?;
    let time = plan.scavenging * plan.scavenging_rounds;
    let counted = plan.call_rates_hz.iter().zip(&counts);
    Ok(counted
        .flat_map(|(rate_hz, counts)| counts.rows(*rate_hz, time))
        .collect())
}

/// How far scavengers counted beside calls of one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Beside nothing, wake-ups, and calls; at the client, and at the server.
    of_pace: [[u64; 2]; 3],
    requests: u64,
}

impl Counts {
    fn rows(&self, rate_hz: u32, time: Duration) -> [ScavengerRow; 2] {
        [Side::Client, Side::Server].map(|side| {
            let [alone, waking, calling] = self.of_pace.map(|counts| counts[side as usize] as f64);
            let us = time.as_secs_f64() * 1e6 / self.requests.max(1) as f64;
            let taken_by = |from: f64, left: f64| rounded((from - left) / alone.max(1.0) * us);
            let percent = |left: f64| rounded(left / alone.max(1.0) * 100.0);
            ScavengerRow {
                side,
                rate_hz,
                requests: self.requests,
                left_percent: percent(calling),
                left_by_waking_percent: percent(waking),
                cpu_us_per_request: taken_by(alone, calling),
                orb_us_per_request: match side {
                    Side::Client => taken_by(waking, calling),
                    // Nothing wakes up there but for a request.
                    Side::Server => taken_by(alone, calling),
                },
            }
        })
    }
}

/// The process that counts on the processors of client and server.
struct Scavengers(Child);

impl Scavengers {
    fn start(cpus: &Cpus) -> Result<Self, LabError> {
        let cpus: Vec<usize> = cpus.iter().collect();
        let order = ScavengerOrder {
            cpus: vec![cpus[0], cpus[cpus.len() - 1]],
        };
        let (child, Ready {}) = Child::start("scavengers", PART, &Part::Scavenger(order))?;
        Ok(Self(child))
    }

    fn count(&mut self, start: Monotonic, length: Duration) -> Result<(), LabError> {
        let at_ns = start.as_nanos();
        Ok(self.0.tell(&Some(Scavenge { at_ns, length }))?)
    }

    fn counted(&mut self) -> Result<[u64; 2], LabError> {
        let Scavenged { counts } = self.0.hear(Deadline::after(PATIENCE))?;
        let pair = counts.try_into();
        pair.map_err(|_| LabError::work("counting beside calls")("a scavenger has ended"))
    }

    fn stop(self) -> Result<(), LabError> {
        Ok(self.0.dismiss(Deadline::after(PATIENCE))?)
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The place of calling among the paces.
const CALLING: usize = 2;
const PATIENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_to_scavengers_is_for_the_requests() {
        let counts = Counts {
            of_pace: [[1_000, 2_000], [950, 2_000], [900, 1_700]],
            requests: 1_000,
        };
        let [client, server] = counts.rows(1_000, Duration::from_secs(1));
        assert_eq!(
            (client.left_percent, client.left_by_waking_percent),
            (90.0, 95.0)
        );
        assert_eq!(
            (client.cpu_us_per_request, client.orb_us_per_request),
            (100.0, 50.0)
        );
        assert_eq!(
            (server.left_percent, server.cpu_us_per_request),
            (85.0, 150.0)
        );
        assert_eq!(server.orb_us_per_request, 150.0);
    }

    #[test]
    fn nothing_counted_is_no_failure() {
        let [client, _] = Counts::default().rows(1_000, Duration::ZERO);
        assert_eq!(client.left_percent, 0.0);
        assert_eq!(client.orb_us_per_request, 0.0);
    }
}
