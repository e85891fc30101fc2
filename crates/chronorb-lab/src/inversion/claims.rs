//! What the paper and chronorb say of priority inversion, and whether it is so here.

use super::architecture::Architecture;
use super::outcome::{Class, Outcome, Row};
use super::plan::Mode;
use super::report;
use crate::Claim;
use crate::units;

/// All claims, of one mode after the other.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let modes = outcome.modes().into_iter();
    modes.flat_map(|mode| in_mode(outcome, mode)).collect()
}

/// The claims of a mode: those of the real-time architecture, then those of the others.
pub(super) fn in_mode(outcome: &Outcome, mode: Mode) -> Vec<Claim> {
    let mut claims = Vec::new();
    let architectures = outcome.architectures();
    // Calls back to back find everybody awake, and cannot be compared with those at fixed times.
    let classes_compare = mode != Mode::Saturated;
    if architectures.contains(&Architecture::RealTime) {
        if classes_compare {
            claims.extend([MEAN, P99, MAX].map(|figure| never_slower(outcome, mode, figure)));
        }
        claims.push(steady(outcome, mode, MEAN, STEADY_MEAN));
        claims.push(steady(outcome, mode, P99, STEADY_P99));
        for other in architectures.iter().filter(|of| of.is_conventional()) {
            claims.push(slower(outcome, mode, *other));
            claims.push(jitters(outcome, mode, *other));
        }
    }
    if classes_compare {
        let gaps = GAPS.into_iter();
        let run = gaps.filter(|(architecture, _)| architectures.contains(architecture));
        claims.extend(run.map(|(of, published)| gap(outcome, mode, of, published)));
        if architectures.contains(&Architecture::FilterChain) {
            claims.push(inverts(outcome, mode));
        }
    }
    claims
}

/// A figure of a row, and its name.
type Figure = (&'static str, fn(&Row) -> f64);

const MEAN: Figure = ("mean", |row| row.latency.mean_us);
const P99: Figure = ("p99", |row| row.latency.p99_us);
const MAX: Figure = ("longest", |row| row.latency.max_us);

/// The high-priority client of the real-time architecture is never slower than the others.
fn never_slower(outcome: &Outcome, mode: Mode, (name, figure): Figure) -> Claim {
    let claim = format!(
        "{mode}: with the real-time architecture the high-priority client is never slower than the low-priority ones: \
         {name}"
    );
    let claim = match name {
        "mean" => Claim::of_paper(FIGURE_7, claim).published("TAO: at no number of clients"),
        _ => Claim::aim(claim),
    };
    let pairs = outcome.pairs(Architecture::RealTime, mode);
    let slower: Vec<_> = pairs
        .iter()
        .filter(|(high, low)| figure(high) > figure(low))
        .map(|(high, low)| against(high, figure(high), figure(low)))
        .collect();
    let measured = (!pairs.is_empty()).then(|| match slower.is_empty() {
        true => (
            true,
            format!("at none of {} numbers of clients", pairs.len()),
        ),
        false => (false, slower.join(", ")),
    });
    let why = pairs.iter().find(|(high, low)| figure(high) > figure(low));
    let why = why.map_or_else(String::new, |(high, _)| circumstances(high));
    claim.holds(measured).because(why)
}

/// The high-priority client of the real-time architecture does not feel the others.
fn steady(outcome: &Outcome, mode: Mode, (name, figure): Figure, most: f64) -> Claim {
    let claim = format!(
        "{mode}: with the real-time architecture the high-priority client does not feel the others: {name} with the \
         most of them at most {most} times that with the least"
    );
    let rows = outcome.series(Architecture::RealTime, mode, Class::High);
    let ends = ends(&rows);
    let measured = ends.map(|(few, many)| {
        let text = format!(
            "{} with {}, {} with {}",
            units::time(figure(few)),
            few.low_clients,
            units::time(figure(many)),
            many.low_clients
        );
        (figure(many) / figure(few), text)
    });
    Claim::aim(claim)
        .published("TAO: 0.7 ms more with 50 than with 1 (RTAS 1998, figure 7)")
        .by_ratio(measured, |ratio| ratio <= most)
        .because(ends.map_or_else(String::new, |(_, many)| circumstances(many)))
}

/// The high-priority client of a conventional architecture is slower.
fn slower(outcome: &Outcome, mode: Mode, other: Architecture) -> Claim {
    let claim = format!(
        "{mode}: {}: with the most low-priority clients the high-priority client's mean is at least {SLOWER} times that \
         of the real-time architecture",
        other.title()
    );
    let published = published(other).map(|factors| factors.latency);
    let own = outcome.series(Architecture::RealTime, mode, Class::High);
    let others = outcome.series(other, mode, Class::High);
    let both = own.last().zip(others.last());
    let both = both.filter(|(own, other)| own.low_clients == other.low_clients);
    let measured = both.map(|(own, other)| {
        let (own_us, other_us) = (own.latency.mean_us, other.latency.mean_us);
        (other_us / own_us, against(own, other_us, own_us))
    });
    of_paper_or_own(claim, FIGURE_7, published)
        .by_ratio(measured, |ratio| ratio >= SLOWER)
        .because(both.map_or_else(String::new, |(_, other)| circumstances(other)))
}

/// The calls of the high-priority client of a conventional architecture differ more from each other.
fn jitters(outcome: &Outcome, mode: Mode, other: Architecture) -> Claim {
    let claim = format!(
        "{mode}: {}: in the worst case the high-priority client's jitter is at least {JITTERS} times that of the \
         real-time architecture",
        other.title()
    );
    let published = published(other).map(|factors| factors.jitter);
    let own = outcome.series(Architecture::RealTime, mode, Class::High);
    let others = outcome.series(other, mode, Class::High);
    let ratio = |(own, other): (&Row, &Row)| other.latency.jitter_us / own.latency.jitter_us;
    let both = others.iter().filter_map(|other| {
        let own = own.iter().find(|own| own.low_clients == other.low_clients);
        own.map(|own| (*own, *other))
    });
    // With few clients there is little to invert, and one disturbance would decide.
    let worst = both
        .filter(|(own, _)| own.low_clients > FEW && own.latency.jitter_us > 0.0)
        .max_by(|one, another| ratio(*one).total_cmp(&ratio(*another)));
    let measured = worst.map(|(own, other)| {
        let text = against(own, other.latency.jitter_us, own.latency.jitter_us);
        (ratio((own, other)), text)
    });
    of_paper_or_own(claim, FIGURE_8, published)
        .by_ratio(measured, |ratio| ratio >= JITTERS)
        .because(worst.map_or_else(String::new, |(own, _)| {
            format!("real-time: {}", circumstances(own))
        }))
}

/// How the means of both classes move apart with the number of low-priority clients, as an ORB of the paper had it.
fn gap(
    outcome: &Outcome,
    mode: Mode,
    architecture: Architecture,
    published: &'static str,
) -> Claim {
    let pairs = outcome.pairs(architecture, mode);
    let gap = |(high, low): &(&Row, &Row)| low.latency.mean_us - high.latency.mean_us;
    let claim = format!(
        "{mode}: {}: the means of both classes move apart as low-priority clients become more",
        architecture.title()
    );
    let ends = pairs.first().zip(pairs.last());
    let ends = ends.filter(|(few, many)| few.0.low_clients < many.0.low_clients);
    let measured = ends.map(|(few, many)| {
        let text = format!(
            "the low ones take {} more with {}, {} more with {}",
            signed(gap(few)),
            few.0.low_clients,
            signed(gap(many)),
            many.0.low_clients
        );
        (gap(many) > gap(few), text)
    });
    Claim::of_paper(FIGURE_7, claim)
        .published(published)
        .holds(measured)
        .because(ends.map_or_else(String::new, |(_, many)| circumstances(many.0)))
}

/// With many others the high-priority client of a filter chain is slower than they are.
fn inverts(outcome: &Outcome, mode: Mode) -> Claim {
    let claim = format!(
        "{mode}: {}: beyond {FEW} low-priority clients the high-priority client is slower than they are: mean",
        Architecture::FilterChain.title()
    );
    let pairs = outcome.pairs(Architecture::FilterChain, mode).into_iter();
    let beyond: Vec<_> = pairs.filter(|(high, _)| high.low_clients > FEW).collect();
    let is_slower = |(high, low): &(&Row, &Row)| high.latency.mean_us > low.latency.mean_us;
    let measured = (!beyond.is_empty()).then(|| {
        let text = beyond
            .iter()
            .map(|(high, low)| against(high, high.latency.mean_us, low.latency.mean_us));
        let text = text.collect::<Vec<_>>().join(", ");
        (beyond.iter().all(is_slower), text)
    });
    let why = beyond.iter().find(|pair| !is_slower(pair));
    Claim::of_paper(FIGURE_7, claim)
        .published("MT-Orbix: 2 to 14 ms from 1 to 50 clients, and slower than they are beyond 10")
        .holds(measured)
        .because(why.map_or_else(String::new, |(high, _)| circumstances(high)))
}

/// A time and another one, with as many clients as in a trial.
fn against(row: &Row, us: f64, other_us: f64) -> String {
    let [time, other] = [us, other_us].map(units::time);
    format!("{time} against {other} with {}", row.low_clients)
}

/// What may have kept a finding from showing.
fn circumstances(row: &Row) -> String {
    let (server, client) = (row.server_cpu_percent, row.client_cpu_percent);
    let mut why = format!(
        "with {} the server took {server:.0} % of a processor, the client {client:.0} %, and the host {:.1} % of \
         all",
        report::clients(row.low_clients),
        row.stolen_percent
    );
    if server < IDLE_PERCENT {
        why.push_str("; a server with so little to do seldom has requests waiting");
    }
    if client >= FULL_PERCENT {
        why.push_str(
            "; the client's processor is full, so that its low-priority threads wait there, by priority, and not in the \
             server",
        );
    }
    match row.architecture {
        Architecture::FilterChain if row.mode != Mode::OneCpu => why.push_str(
            "; its one thread takes a request in within some microseconds, and behind it each priority has its own \
             queue and thread",
        ),
        of if of.is_conventional() && of != Architecture::FilterChain && row.mode == Mode::OneCpu => {
            why.push_str(
                "; the server's threads have the high priority here, so that on one processor a request is served \
                 before another low-priority client can send one",
            );
        }
        _ => {}
    }
    if server >= FULL_PERCENT {
        why.push_str(
            "; where real-time threads leave nothing of a processor, the kernel takes it from them for up to 50 ms of \
             each second",
        );
    }
    if row.stolen_percent >= STOLEN_PERCENT {
        why.push_str(
            "; while the host takes a processor nothing runs on it, whatever its priority",
        );
    }
    why
}

/// The least and the greatest number of clients, where these differ.
fn ends<'a>(rows: &[&'a Row]) -> Option<(&'a Row, &'a Row)> {
    let (few, many) = (rows.first()?, rows.last()?);
    (few.low_clients < many.low_clients).then_some((*few, *many))
}

fn of_paper_or_own(claim: String, paper: &'static str, published: Option<&str>) -> Claim {
    match published {
        Some(published) => Claim::of_paper(paper, claim).published(published),
        None => Claim::aim(claim),
    }
}

fn signed(us: f64) -> String {
    match us < 0.0 {
        true => format!("−{}", units::time(-us)),
        false => units::time(us),
    }
}

/// What the paper found of the ORB of an architecture, by TAO. Of jitter its text does not say which clients it is of; the
/// sentence before is about those of low priority.
struct Factors {
    latency: &'static str,
    jitter: &'static str,
}

const fn published(architecture: Architecture) -> Option<Factors> {
    match architecture {
        Architecture::WorkerPool => Some(Factors {
            latency: "CORBAplus: 25 times TAO's",
            jitter: "CORBAplus: 300 times TAO's in the worst case",
        }),
        Architecture::FilterChain => Some(Factors {
            latency: "MT-Orbix: 7 times TAO's",
            jitter: "MT-Orbix: 25 times TAO's in the worst case",
        }),
        Architecture::LeaderFollowersMuxed => Some(Factors {
            latency: "miniCOOL: about 3 times TAO's, for the low-priority clients",
            jitter: "miniCOOL: similar to CORBAplus",
        }),
        _ => None,
    }
}

/// How far the means of both classes were from each other in the paper, with 1 and with 50 clients.
const GAPS: [(Architecture, &str); 3] = [
    (Architecture::RealTime, "TAO: 0.05 to 0.27 ms"),
    (Architecture::WorkerPool, "CORBAplus: 0.42 to 15 ms"),
    (
        Architecture::LeaderFollowersMuxed,
        "miniCOOL: 0.55 to 10 ms",
    ),
];

const FIGURE_7: &str = "RTAS 1998, figure 7";
const FIGURE_8: &str = "RTAS 1998, figure 8";
/// Up to so many clients MT-Orbix kept the order of priorities.
const FEW: u32 = 10;
/// What a high-priority client that does not feel the others may take with the most of them, by what it takes with
/// the least.
pub(super) const STEADY_MEAN: f64 = 1.2;
const STEADY_P99: f64 = 1.5;
/// The least of what the paper found.
const SLOWER: f64 = 3.0;
const JITTERS: f64 = 10.0;
/// A server that does less than this has seldom more than one request at a time.
const IDLE_PERCENT: f64 = 30.0;
const FULL_PERCENT: f64 = 95.0;
/// Stolen time that may show in the 99th percentile.
const STOLEN_PERCENT: f64 = 0.5;

#[cfg(test)]
pub(super) mod tests {
    use super::super::outcome::Calibration;
    use super::super::plan::Plan;
    use super::*;
    use crate::Verdict;
    use crate::bench::OmniOrb;
    use crate::environment::Environment;
    use crate::experiment::Findings;
    use crate::stats::Summary;

    /// One of which everything holds that is claimed: real-time calls of high priority take 100 µs, whatever else
    /// there is, others ten times that for each client.
    pub(in super::super) fn outcome() -> Outcome {
        let mut rows = Vec::new();
        for mode in [Mode::Loaded, Mode::Saturated] {
            for architecture in Architecture::ALL {
                for low_clients in [1, 10, 50] {
                    let clients = f64::from(low_clients);
                    let high = match architecture.is_conventional() {
                        true => 100.0 + 20.0 * clients,
                        false => 100.0 + clients / 10.0,
                    };
                    let low = match architecture {
                        Architecture::FilterChain if low_clients > 10 => high / 2.0,
                        _ => 110.0 + 30.0 * clients,
                    };
                    rows.push(row((architecture, mode, low_clients, Class::High), high));
                    rows.push(row((architecture, mode, low_clients, Class::Low), low));
                }
            }
        }
        Outcome {
            plan: Plan::full(),
            environment: Environment::example(),
            real_time: true,
            memory_locked: true,
            one_cpu: false,
            omniorb: OmniOrb {
                version: Some("4.3.2".to_owned()),
                missing: String::new(),
                programs: None,
            },
            calibrations: vec![Calibration {
                mode: Mode::Loaded,
                server_cpu_us_per_request: 25.0,
                client_cpu_us_per_request: 20.0,
                requests_per_s: 40_000.0,
                high_period_us: 925.0,
                low_period_us: 1_785.0,
            }],
            rows,
        }
    }

    fn row(
        (architecture, mode, low_clients, class): (Architecture, Mode, u32, Class),
        us: f64,
    ) -> Row {
        let jitter_us = match architecture.is_conventional() {
            true => us,
            false => us / 50.0,
        };
        Row {
            architecture,
            mode,
            place: mode.place(),
            low_clients,
            class,
            latency: Summary {
                calls: 2_000,
                p50_us: us,
                p99_us: us * 1.1,
                p999_us: us * 1.2,
                max_us: us * 1.3,
                mean_us: us,
                jitter_us,
            },
            call_mean_us: us,
            call_jitter_us: us,
            call_p99_us: us,
            call_max_us: us,
            period_us: 5_000.0,
            work_us: 10.0,
            server_cpu_percent: 71.0,
            client_cpu_percent: 60.0,
            stolen_percent: 0.0,
        }
    }

    fn change(
        outcome: &mut Outcome,
        architecture: Architecture,
        class: Class,
        change: impl Fn(&mut Row),
    ) {
        let rows = outcome.rows.iter_mut();
        rows.filter(|row| row.architecture == architecture && row.class == class)
            .for_each(change);
    }

    fn missed(outcome: &Outcome) -> Vec<String> {
        let claims = outcome.claims().into_iter();
        claims
            .filter(|claim| claim.verdict() != Verdict::Pass)
            .map(|claim| format!("{}: {} ({})", claim.claim, claim.measured, claim.why))
            .collect()
    }

    #[test]
    fn what_holds_is_said_to_hold_in_each_mode() {
        let outcome = outcome();
        assert_eq!(missed(&outcome), Vec::<String>::new());
        for mode in ["loaded: ", "saturated: "] {
            let claims = outcome.claims().into_iter();
            assert!(claims.filter(|claim| claim.claim.starts_with(mode)).count() >= 9);
        }
    }

    #[test]
    fn where_the_high_priority_client_is_slower_is_said_with_the_number_of_clients() {
        let mut outcome = outcome();
        change(&mut outcome, Architecture::RealTime, Class::High, |row| {
            if row.low_clients == 10 && row.mode == Mode::Loaded {
                row.latency.max_us = 9_000.0;
                row.stolen_percent = 3.0;
            }
        });
        let missed = missed(&outcome);
        assert_eq!(missed.len(), 1, "{missed:?}");
        for part in ["longest", "9.00 ms against 533 µs with 10", "3.0 % of all"] {
            assert!(missed[0].contains(part), "{missed:?}");
        }
    }

    #[test]
    fn nobody_compares_calls_at_fixed_times_with_calls_back_to_back() {
        let mut outcome = outcome();
        change(&mut outcome, Architecture::RealTime, Class::High, |row| {
            if row.mode == Mode::Saturated {
                row.latency.max_us = 9_000.0;
            }
        });
        change(&mut outcome, Architecture::WorkerPool, Class::Low, |row| {
            if row.mode == Mode::Saturated {
                row.latency.mean_us = 1.0;
            }
        });
        assert_eq!(missed(&outcome), Vec::<String>::new());
    }

    #[test]
    fn a_client_that_feels_the_others_is_said_to() {
        let mut outcome = outcome();
        change(&mut outcome, Architecture::RealTime, Class::High, |row| {
            row.latency.mean_us += f64::from(row.low_clients);
            row.client_cpu_percent = 99.0;
        });
        let missed = missed(&outcome);
        assert_eq!(missed.len(), 2, "one in each mode: {missed:?}");
        assert!(
            missed[0].contains("client's processor is full"),
            "{missed:?}"
        );
    }

    #[test]
    fn an_architecture_that_inverts_nothing_is_not_reproduced_and_says_how_busy_it_was() {
        let mut outcome = outcome();
        let muxed = Architecture::LeaderFollowersMuxed;
        change(&mut outcome, muxed, Class::High, |row| {
            row.latency.mean_us = 120.0;
            row.latency.jitter_us = 10.0;
            row.server_cpu_percent = 12.0;
        });
        let claims = outcome.claims().into_iter();
        let of_paper: Vec<_> = claims
            .filter(|claim| claim.verdict() == Verdict::Missed)
            .collect();
        assert_eq!(of_paper.len(), 4);
        assert!(of_paper.iter().all(|claim| claim.paper.is_some()));
        assert_eq!(of_paper[0].ratio, Some(1.143));
        assert!(of_paper[0].why.contains("12 %"), "{:?}", of_paper[0]);
    }

    #[test]
    fn nothing_is_claimed_of_what_was_not_run() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert!(outcome.claims().is_empty());
        let mut outcome = tests::outcome();
        outcome.rows.retain(|row| row.low_clients == 1);
        let claims = outcome.claims().into_iter();
        let unknown = claims.filter(|claim| claim.verdict() == Verdict::NotMeasured);
        assert!(
            unknown.count() > 0,
            "one number of clients has no most and least"
        );
    }
}
