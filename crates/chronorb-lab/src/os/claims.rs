//! Claims of the papers and own aims, held against the figures.

use super::class::SchedulingClass::{self, Fifo, Other, Rr};
use super::load::CompetingLoad::{self, Hogs, Idle, Mixed};
use super::outcome::{ClassRow, ClientPriority, OsOutcome, RateMode};
use super::switch::Switching;
use crate::Claim;
use crate::bench::Placement;
use crate::report::largest;
use crate::units;

/// Returns all claims: those of the papers, then own aims.
pub(super) fn of(outcome: &OsOutcome) -> Vec<Claim> {
    vec![
        the_system_decides(outcome),
        inversion_without_priorities(outcome),
        yielding_is_cheapest(outcome),
        switches_settle(outcome),
        inversion_at_four_rates(outcome),
        jitter_at_four_rates(outcome),
        keeps_its_time(outcome, Fifo, Hogs),
        keeps_its_time(outcome, Fifo, Mixed),
        keeps_its_time(outcome, Rr, Hogs),
        time_sharing_is_worse(outcome),
        no_inversion(outcome, RateMode::Paper, "20, 10, 5 and 1 Hz"),
        no_inversion(
            outcome,
            RateMode::Scaled,
            "200, 100, 50 and 10 Hz with work and load",
        ),
    ]
}

/// Claims that the same ORB is predictable on one system and erratic on another.
fn the_system_decides(outcome: &OsOutcome) -> Claim {
    let claim = Claim::of_paper(
        LATENCY,
        "how predictable one ORB is depends on how the operating system schedules: the most \
         erratic by the least, twice or more",
    )
    .published(
        "LynxOS low and deterministic; Solaris high but predictable; VxWorks and Windows NT \
         erratic",
    );
    let words = "jitter of the high class under load: {} with SCHED_OTHER, {} with SCHED_FIFO";
    shows_with_time_sharing(claim, words, |class| {
        Some(high(outcome, class, Mixed)?.latency.jitter_us)
    })
}

/// Claims that urgent calls fare no better than others without scheduling by priority.
fn inversion_without_priorities(outcome: &OsOutcome) -> Claim {
    let mean = |client| Some(outcome.free(Other, Hogs, client)?.latency.mean_us);
    Claim::of_paper(
        LATENCY,
        "without scheduling by priority the mean of the high class is not below that of the low \
         one",
    )
    .published("Windows NT: priority inversion at 50 clients of low priority")
    .times(
        [ClientPriority::High, ClientPriority::Low].map(mean),
        "SCHED_OTHER under load: high {}, low {}",
        |ratio| ratio >= 1.0,
    )
    .because(
        "the high class has a lane and a connection of its own, so no other call precedes it, even \
         if the kernel does not distinguish priorities",
    )
}

/// Claims that yielding takes less time than synchronising.
fn yielding_is_cheapest(outcome: &OsOutcome) -> Claim {
    let mean = |switching| Some(outcome.switch(switching, 1)?.mean_us);
    let switchings = [Switching::Semaphore, Switching::Yield];
    Claim::of_paper(
        SWITCHING,
        "a context switch by synchronisation takes longer than one by yielding",
    )
    .published(
        "Solaris 128 and 17.8 µs, LynxOS 5.45 and 3.72, Linux 18.2 and 6.52, Windows NT 7.02 and \
         5.76",
    )
    .times(switchings.map(mean), "semaphore {}, yield {}", |ratio| {
        ratio > 1.0
    })
    .because("a yield goes through the whole scheduler too, and a futex costs next to nothing now")
}

/// Claims that a request has no more context switches with more clients.
fn switches_settle(outcome: &OsOutcome) -> Claim {
    let rows = outcome.requests.iter();
    let mut rows = rows.filter(|row| row.placement == Placement::SameCpu);
    let first = rows.next();
    let measured = first.zip(rows.next_back()).map(|(first, last)| {
        let [one, many] = [first, last].map(|row| row.switches());
        let words = format!(
            "client and server on one CPU: {one:.2} with {} client, {many:.2} with {}",
            first.clients, last.clients,
        );
        (many / one.max(1e-3), words)
    });
    Claim::of_paper(
        REQUESTS,
        "the context switches of a request do not grow with the number of clients (to 1.1 of one \
         client's at most)",
    )
    .published("VxWorks soon settles at one for each request; Windows NT has most")
    .by_ratio(measured, |ratio| ratio <= 1.1)
    .because("with more clients than threads in a lane, its threads wait for each other too")
}

/// Claims that time sharing does not serve the four clients in the order of their priorities.
fn inversion_at_four_rates(outcome: &OsOutcome) -> Claim {
    let inversion = inversion(outcome, Other, RateMode::Scaled);
    Claim::of_paper(
        FOUR_RATES,
        "on systems that do not keep priorities, a more urgent client has a longer mean than a \
         less urgent one",
    )
    .published("VxWorks and Solaris show average priority inversion")
    .holds(inversion.map(|(ratio, means)| {
        let words = format!("SCHED_OTHER under load: {means}");
        (ratio > TOLERANCE, words)
    }))
    .because(
        "the periods are multiples of each other, so a rare call always competes with frequent \
         ones: that alone makes its mean longer, and hides the effect of the kernel",
    )
}

/// Claims that time sharing has more jitter than scheduling by priority.
fn jitter_at_four_rates(outcome: &OsOutcome) -> Claim {
    let claim = Claim::of_paper(
        FOUR_RATES,
        "on systems that do not keep priorities jitter is high: twice that of one that does, or \
         more",
    )
    .published("Solaris and Windows NT have high jitter");
    let words = "the most of a client under load: SCHED_OTHER {}, SCHED_FIFO {}";
    shows_with_time_sharing(claim, words, |class| {
        let four = outcome.four(class, RateMode::Scaled)?;
        Some(largest(four.iter().map(|row| row.latency.jitter_us)))
    })
}

/// Claims that load does not change the latency of urgent calls.
fn keeps_its_time(outcome: &OsOutcome, class: SchedulingClass, load: CompetingLoad) -> Claim {
    Claim::aim(format!(
        "{}, {}: p99 of the high class at most {WITHIN} times that of the idle machine",
        class.name(),
        load.name(),
    ))
    .times(
        [load, Idle].map(|load| Some(high(outcome, class, load)?.p99_of_rounds_us)),
        "{}, {} when idle",
        |ratio| ratio <= WITHIN,
    )
    .because(
        "interrupts, threads of the kernel or the host, which precede all threads, may have taken \
         the CPU",
    )
}

/// Claims that load changes that latency with time sharing.
fn time_sharing_is_worse(outcome: &OsOutcome) -> Claim {
    let claim = Claim::aim(format!(
        "{}: they show under SCHED_OTHER: p99 of the high class {VISIBLY} times that under \
         SCHED_FIFO, or more",
        Mixed.name(),
    ));
    shows_with_time_sharing(claim, "SCHED_OTHER {}, SCHED_FIFO {}", |class| {
        Some(high(outcome, class, Mixed)?.p99_of_rounds_us)
    })
}

/// Claims that no client has a longer mean than a less urgent one.
fn no_inversion(outcome: &OsOutcome, mode: RateMode, rates: &str) -> Claim {
    Claim::aim(format!(
        "SCHED_FIFO, four clients at {rates}: no mean above {TOLERANCE} times that of a less \
         urgent client"
    ))
    .by_ratio(inversion(outcome, Fifo, mode), |ratio| ratio <= TOLERANCE)
    .because("the rarest clients make few calls: one disturbed call weighs much")
}

/// Judges a claim by a figure under time sharing, which must visibly exceed that under
/// `SCHED_FIFO`.
fn shows_with_time_sharing(
    claim: Claim,
    words: &str,
    figure: impl Fn(SchedulingClass) -> Option<f64>,
) -> Claim {
    claim
        .times([Other, Fifo].map(figure), words, |ratio| ratio >= VISIBLY)
        .because(
            "the load did not disturb the threads of time sharing here: the kernel woke them at \
             once",
        )
}

/// Returns the urgent calls of a class under a load.
fn high(outcome: &OsOutcome, class: SchedulingClass, load: CompetingLoad) -> Option<&ClassRow> {
    outcome.free(class, load, ClientPriority::High)
}

/// Returns the largest ratio of a client's mean to that of a less urgent one, and all means in
/// words.
fn inversion(outcome: &OsOutcome, class: SchedulingClass, mode: RateMode) -> Option<(f64, String)> {
    let means = outcome.four(class, mode)?.map(|row| row.latency.mean_us);
    let ratios = means.iter().enumerate().flat_map(|(index, mean)| {
        let less_urgent = means[index + 1..].iter();
        less_urgent.map(move |less| mean.max(TICK_US) / less.max(TICK_US))
    });
    let words = means.map(units::time).join(", ");
    Some((largest(ratios), format!("means {words}")))
}

/// The bound of the ratio of a p99 under load to that without.
const WITHIN: f64 = 2.0;
/// The least ratio that counts as visible.
const VISIBLY: f64 = 2.0;
/// The greatest ratio of two means that count as equal.
const TOLERANCE: f64 = 1.1;
/// Less than the time of any call.
const TICK_US: f64 = 0.1;
const LATENCY: &str = "Flores-Gaitan, slides: latency by operating system";
const SWITCHING: &str = "Flores-Gaitan, slides: context switch time";
const REQUESTS: &str = "Flores-Gaitan, slides: context switches";
const FOUR_RATES: &str = "Flores-Gaitan, slides: priority inversion test";

#[cfg(test)]
pub(super) mod tests {
    use super::super::case::OsCase;
    use super::super::outcome::{
        CpuOwner, RateRow, RequestRow, ScavengerRow, SwitchRow, ThrottlingRow,
    };
    use super::super::plan::PAPER_RATES_HZ;
    use super::super::{KernelSettings, OperatingSystem};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Experiment;
    use crate::stats::Summary;

    /// Figures that meet all aims: calls take 100 µs, and more under load with time sharing only.
    pub(in super::super) fn outcome() -> OsOutcome {
        OsOutcome {
            plan: OperatingSystem::full(),
            environment: Environment::example(),
            kernel: KernelSettings::probe(),
            refused: Vec::new(),
            classes: classes(),
            throttling: [false, true].map(throttling).to_vec(),
            switches: switches(),
            requests: [1, 10, 50].map(request).to_vec(),
            scavengers: [500, 4_000].map(scavengers).concat(),
            rates: rates(),
        }
    }

    fn latency(us: f64) -> Summary {
        Summary {
            calls: 1_000,
            p50_us: us,
            p99_us: us * 1.2,
            p999_us: us * 1.5,
            max_us: us * 2.0,
            mean_us: us,
            jitter_us: us / 10.0,
        }
    }

    fn classes() -> Vec<ClassRow> {
        let rows = OsCase::all(true, true).into_iter().flat_map(|case| {
            [ClientPriority::High, ClientPriority::Low].map(|client| {
                let base = match client {
                    ClientPriority::High => 100.0,
                    ClientPriority::Low => 120.0,
                };
                let us = match (case.class, case.load) {
                    (Other, Hogs | Mixed) => base * 20.0,
                    _ => base,
                };
                ClassRow {
                    case,
                    client,
                    latency: latency(us),
                    p99_of_rounds_us: us * 1.2,
                    cpu_busy_percent: 50.0,
                    cpu_stolen_percent: 0.0,
                }
            })
        });
        rows.collect()
    }

    fn throttling(contended: bool) -> ThrottlingRow {
        ThrottlingRow {
            contended,
            length_s: 2.5,
            longest_gap_us: 50_000.0,
            gaps_of_a_ms: 2,
            lost_percent: 4.0,
            given_percent: if contended { 4.5 } else { 0.0 },
        }
    }

    fn switches() -> Vec<SwitchRow> {
        let trials = Switching::ALL.map(|switching| (switching, 1));
        let trials = trials.into_iter().chain([(Switching::SuspendResume, 2)]);
        let rows = trials.zip([1.5, 0.75, 1.75, 2.25, 9.0]);
        rows.map(|((switching, cpus), us)| SwitchRow {
            switching,
            cpus,
            turns: 20_000,
            mean_us: us,
            deviation_us: 0.25,
            p50_us: us,
            p99_us: us * 1.1,
            max_us: us * 9.0,
            counted_by_expected: 1.0,
        })
        .collect()
    }

    fn request(clients: u32) -> RequestRow {
        RequestRow {
            placement: Placement::SameCpu,
            clients,
            requests: 9_000,
            client_switches_per_request: 1.0,
            server_switches_per_request: 1.0,
        }
    }

    fn scavengers(rate_hz: u32) -> [ScavengerRow; 2] {
        [CpuOwner::Client, CpuOwner::Server].map(|side| ScavengerRow {
            side,
            rate_hz,
            requests: 2_000,
            left_percent: 80.0,
            left_by_waking_percent: 99.0,
            cpu_us_per_request: 25.0,
            orb_us_per_request: 20.0,
        })
    }

    fn rates() -> Vec<RateRow> {
        let trials = [Other, Fifo]
            .into_iter()
            .flat_map(|class| [RateMode::Paper, RateMode::Scaled].map(|mode| (class, mode)));
        let rows = trials.flat_map(|(class, mode)| {
            (1..=4).zip(PAPER_RATES_HZ).map(move |(client, rate_hz)| {
                let us = match (class, mode) {
                    // The most urgent client fares worst.
                    (Other, RateMode::Scaled) => 9_000.0 / f64::from(client),
                    _ => 100.0 * f64::from(client),
                };
                RateRow {
                    class,
                    mode,
                    client,
                    priority: 80 - client as u8 * 10,
                    rate_hz,
                    latency: latency(us),
                }
            })
        });
        rows.collect()
    }

    fn word(claims: &[Claim], part: &str) -> &'static str {
        let mut found = claims.iter().filter(|claim| claim.claim.contains(part));
        let word = found.next().expect("there is such a claim").word();
        assert!(found.next().is_none(), "{part} is not the only one");
        word
    }

    #[test]
    fn all_claims_but_one_hold_if_load_shows_with_time_sharing_alone() {
        let claims = of(&outcome());
        let not: Vec<_> = claims
            .iter()
            .filter(|claim| claim.verdict() != Verdict::Pass)
            .collect();
        assert_eq!(not.len(), 1, "{not:?}");
        assert_eq!(word(&claims, "without scheduling by priority"), "missed");
        assert!(!not[0].why.is_empty());
        assert_eq!(
            claims.iter().filter(|claim| claim.paper.is_some()).count(),
            6
        );
    }

    #[test]
    fn real_time_calls_that_take_longer_under_load_miss_the_aim() {
        let mut outcome = outcome();
        let busy = |row: &&mut ClassRow| row.case.class == Fifo && row.case.load == Hogs;
        let rows = outcome.classes.iter_mut();
        rows.filter(busy)
            .for_each(|row| row.p99_of_rounds_us *= 2.1);
        let claims = of(&outcome);
        assert_eq!(word(&claims, "SCHED_FIFO, hogs:"), "missed");
        assert_eq!(word(&claims, "SCHED_FIFO, hogs and I/O:"), "met");
    }

    #[test]
    fn an_urgent_client_with_a_longer_mean_is_an_inversion() {
        let mut outcome = outcome();
        let second = outcome
            .rates
            .iter_mut()
            .find(|row| row.class == Fifo && row.mode == RateMode::Scaled && row.client == 2);
        second.unwrap().latency.mean_us = 450.0;
        let claims = of(&outcome);
        assert_eq!(word(&claims, "200, 100, 50 and 10 Hz"), "missed");
        assert_eq!(word(&claims, "four clients at 20, 10"), "met");
    }

    #[test]
    fn unlocked_cases_are_compared_if_memory_cannot_be_locked() {
        let mut outcome = outcome();
        outcome
            .classes
            .retain(|row| row.case.placement == Placement::Unpinned);
        for row in &mut outcome.classes {
            row.case.memory_locked = false;
        }
        assert_eq!(word(&of(&outcome), "SCHED_RR, hogs"), "met");
    }

    #[test]
    fn claims_without_figures_are_not_measured() {
        let mut outcome = outcome();
        outcome.classes.clear();
        outcome.switches.clear();
        outcome.requests.clear();
        outcome.rates.clear();
        let verdicts: Vec<_> = of(&outcome).iter().map(Claim::verdict).collect();
        assert_eq!(verdicts, vec![Verdict::NotMeasured; verdicts.len()]);
    }
}
