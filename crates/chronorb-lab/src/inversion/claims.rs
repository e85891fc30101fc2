//! The claims of the paper and of chronorb on priority inversion.

use super::architecture::Architecture;
use super::outcome::{ClientClass, InversionOutcome, InversionRow, RowPair};
use super::plan::Mode;
use super::report;
use crate::Claim;
use crate::units;

/// Returns all claims, of one mode after the other.
pub(super) fn of(outcome: &InversionOutcome) -> Vec<Claim> {
    let modes = outcome.modes().into_iter();
    modes.flat_map(|mode| in_mode(outcome, mode)).collect()
}

/// Returns the claims of a mode: those of the real-time architecture, then those of the others.
pub(super) fn in_mode(outcome: &InversionOutcome, mode: Mode) -> Vec<Claim> {
    let mut claims = Vec::new();
    let architectures = outcome.architectures();
    // Calls back to back never wake a thread, and cannot be compared with those at fixed times.
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
        let published = architectures.iter();
        let published = published.filter_map(|of| Some((*of, published_of(*of).gap?)));
        claims.extend(published.map(|(of, gap)| moves_apart(outcome, mode, of, gap)));
        if architectures.contains(&Architecture::FilterChain) {
            claims.push(inverts(outcome, mode));
        }
    }
    claims
}

/// A figure of a row, and its name.
type NamedFigure = (&'static str, fn(&InversionRow) -> f64);

const MEAN: NamedFigure = ("mean", |row| row.latency.mean_us);
const P99: NamedFigure = ("p99", |row| row.latency.p99_us);
const MAX: NamedFigure = ("longest", |row| row.latency.max_us);

/// The high-priority client of the real-time architecture is never slower than the others.
fn never_slower(outcome: &InversionOutcome, mode: Mode, (name, figure): NamedFigure) -> Claim {
    let claim = format!(
        "{mode}: with the real-time architecture the high-priority client is never slower than the \
         low-priority ones: {name}"
    );
    let claim = match name {
        "mean" => Claim::of_paper(FIGURE_7, claim).published("TAO: at no number of clients"),
        _ => Claim::aim(claim),
    };
    let pairs = outcome.pairs(Architecture::RealTime, mode);
    let slower = pairs
        .iter()
        .filter(|(high, low)| figure(high) > figure(low));
    let words = slower
        .clone()
        .map(|(high, low)| against(high, figure(high), figure(low)));
    let words: Vec<_> = words.collect();
    let measured = if words.is_empty() {
        format!("at none of {} numbers of clients", pairs.len())
    } else {
        words.join(", ")
    };
    claim
        .holds((!pairs.is_empty()).then_some((words.is_empty(), measured)))
        .because(circumstances(slower.map(|(high, _)| *high).next()))
}

/// The other clients do not slow down the high-priority client of the real-time architecture.
fn steady(outcome: &InversionOutcome, mode: Mode, (name, figure): NamedFigure, most: f64) -> Claim {
    let claim = format!(
        "{mode}: with the real-time architecture the high-priority client does not feel the \
         others: {name} with the most of them at most {most} times that with the least"
    );
    let rows = outcome.series(Architecture::RealTime, mode, ClientClass::High);
    let ends = rows.first().zip(rows.last());
    let ends = ends.filter(|(few, many)| few.low_clients < many.low_clients);
    let measured = ends.map(|(few, many)| {
        let [of_few, of_many] =
            [few, many].map(|row| format!("{} with {}", units::time(figure(row)), row.low_clients));
        (figure(many) / figure(few), format!("{of_few}, {of_many}"))
    });
    Claim::aim(claim)
        .published("TAO: 0.7 ms more with 50 than with 1 (RTAS 1998, figure 7)")
        .by_ratio(measured, |ratio| ratio <= most)
        .because(circumstances(ends.map(|(_, many)| *many)))
}

/// The high-priority client of a conventional architecture is slower.
fn slower(outcome: &InversionOutcome, mode: Mode, other: Architecture) -> Claim {
    let claim = format!(
        "{mode}: {}: with the most low-priority clients the high-priority client's mean is at \
         least {SLOWER} times that of the real-time architecture",
        other.title()
    );
    let pairs = outcome.high_of([Architecture::RealTime, other], mode);
    let most = pairs.last();
    of_paper_or_own(claim, FIGURE_7, published_of(other).latency)
        .by_ratio(most.map(|pair| by_real_time(pair, MEAN.1)), |ratio| {
            ratio >= SLOWER
        })
        .because(circumstances(most.map(|(_, other)| *other)))
}

/// The calls of the high-priority client of a conventional architecture vary more.
fn jitters(outcome: &InversionOutcome, mode: Mode, other: Architecture) -> Claim {
    let claim = format!(
        "{mode}: {}: in the worst case the high-priority client's jitter is at least {JITTERS} \
         times that of the real-time architecture",
        other.title()
    );
    let by = |pair: &RowPair<'_>| by_real_time(pair, |row| row.latency.jitter_us);
    // With few clients there is little to invert, and one disturbance would decide.
    let pairs = outcome.high_of([Architecture::RealTime, other], mode);
    let worst = pairs
        .iter()
        .filter(|(own, _)| own.low_clients > FEW && own.latency.jitter_us > 0.0)
        .max_by(|one, another| by(one).0.total_cmp(&by(another).0));
    let why = circumstances(worst.map(|(own, _)| *own));
    of_paper_or_own(claim, FIGURE_8, published_of(other).jitter)
        .by_ratio(worst.map(by), |ratio| ratio >= JITTERS)
        .because(format!("real-time: {why}"))
}

/// Returns a figure of another architecture by that of the real-time one, and both in words.
fn by_real_time((own, other): &RowPair<'_>, figure: fn(&InversionRow) -> f64) -> (f64, String) {
    let (own_us, other_us) = (figure(own), figure(other));
    (other_us / own_us, against(own, other_us, own_us))
}

/// The means of both classes move apart with the number of low-priority clients.
fn moves_apart(
    outcome: &InversionOutcome,
    mode: Mode,
    architecture: Architecture,
    published: &'static str,
) -> Claim {
    let pairs = outcome.pairs(architecture, mode);
    let gap = |(high, low): &RowPair<'_>| low.latency.mean_us - high.latency.mean_us;
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
        .because(circumstances(ends.map(|(_, many)| many.0)))
}

/// With many others the high-priority client of a filter chain is slower than they are.
fn inverts(outcome: &InversionOutcome, mode: Mode) -> Claim {
    let claim = format!(
        "{mode}: {}: beyond {FEW} low-priority clients the high-priority client is slower than \
         they are: mean",
        Architecture::FilterChain.title()
    );
    let mut pairs = outcome.pairs(Architecture::FilterChain, mode);
    pairs.retain(|(high, _)| high.low_clients > FEW);
    let texts = pairs
        .iter()
        .map(|(high, low)| against(high, high.latency.mean_us, low.latency.mean_us));
    let text = texts.collect::<Vec<_>>().join(", ");
    let mut pairs_in_order = pairs.iter();
    let why = pairs_in_order.find(|(high, low)| high.latency.mean_us <= low.latency.mean_us);
    Claim::of_paper(FIGURE_7, claim)
        .published("MT-Orbix: 2 to 14 ms from 1 to 50 clients, and slower than they are beyond 10")
        .holds((!pairs.is_empty()).then(|| (why.is_none(), text)))
        .because(circumstances(why.map(|(high, _)| *high)))
}

/// Returns a time and another one, with the number of clients of a trial.
fn against(row: &InversionRow, us: f64, other_us: f64) -> String {
    let [time, other] = [us, other_us].map(units::time);
    format!("{time} against {other} with {}", row.low_clients)
}

/// Returns the circumstances of a trial that may have hidden an effect.
fn circumstances(row: Option<&InversionRow>) -> String {
    let Some(row) = row else {
        return String::new();
    };
    let (server, client) = (row.server_cpu_percent, row.client_cpu_percent);
    let mut why = format!(
        "with {} the server took {server:.0} % of a processor, the client {client:.0} %, and the \
         host {:.1} % of all",
        report::clients(row.low_clients),
        row.stolen_percent
    );
    if server < IDLE_PERCENT {
        why.push_str("; a server with so little to do seldom has requests waiting");
    }
    if client >= FULL_PERCENT {
        why.push_str(
            "; the client's processor is full, so that its low-priority threads wait there, by \
             priority, and not in the server",
        );
    }
    match row.architecture {
        Architecture::FilterChain if row.mode != Mode::OneCpu => why.push_str(
            "; its one thread takes a request in within some microseconds, and behind it each \
             priority has its own queue and thread",
        ),
        of if of.is_conventional()
            && of != Architecture::FilterChain
            && row.mode == Mode::OneCpu =>
        {
            why.push_str(
                "; the server's threads have the high priority here, so that on one processor a \
                 request is served before another low-priority client can send one",
            );
        }
        _ => {}
    }
    if server >= FULL_PERCENT {
        why.push_str(
            "; where real-time threads leave nothing of a processor, the kernel takes it from them \
             for up to 50 ms of each second",
        );
    }
    if row.stolen_percent >= STOLEN_PERCENT {
        why.push_str(
            "; while the host takes a processor nothing runs on it, whatever its priority",
        );
    }
    why
}

fn of_paper_or_own(claim: String, paper: &'static str, published: Option<&str>) -> Claim {
    match published {
        Some(published) => Claim::of_paper(paper, claim).published(published),
        None => Claim::aim(claim),
    }
}

fn signed(us: f64) -> String {
    let sign = if us < 0.0 { "−" } else { "" };
    format!("{sign}{}", units::time(us.abs()))
}

/// The figures of the paper for the ORB of an architecture, by those of TAO.
///
/// For jitter its text does not name the class of clients; the sentence before is about those of
/// low priority.
struct PublishedFactors {
    latency: Option<&'static str>,
    jitter: Option<&'static str>,
    /// The distance of the means of both classes, with 1 and with 50 clients.
    gap: Option<&'static str>,
}

const fn published_of(architecture: Architecture) -> PublishedFactors {
    let (latency, jitter, gap) = match architecture {
        Architecture::RealTime => (None, None, Some("TAO: 0.05 to 0.27 ms")),
        Architecture::WorkerPool => (
            Some("CORBAplus: 25 times TAO's"),
            Some("CORBAplus: 300 times TAO's in the worst case"),
            Some("CORBAplus: 0.42 to 15 ms"),
        ),
        Architecture::LeaderFollowersMuxed => (
            Some("miniCOOL: about 3 times TAO's, for the low-priority clients"),
            Some("miniCOOL: similar to CORBAplus"),
            Some("miniCOOL: 0.55 to 10 ms"),
        ),
        Architecture::FilterChain => (
            Some("MT-Orbix: 7 times TAO's"),
            Some("MT-Orbix: 25 times TAO's in the worst case"),
            None,
        ),
        _ => (None, None, None),
    };
    PublishedFactors {
        latency,
        jitter,
        gap,
    }
}

const FIGURE_7: &str = "RTAS 1998, figure 7";
const FIGURE_8: &str = "RTAS 1998, figure 8";
/// The number of clients up to which MT-Orbix kept the order of priorities.
const FEW: u32 = 10;
/// The greatest mean of a steady high-priority client with the most others, by that with the least.
pub(super) const STEADY_MEAN: f64 = 1.2;
/// The same for the 99th percentile.
const STEADY_P99: f64 = 1.5;
/// The least factors that the paper found.
const SLOWER: f64 = 3.0;
const JITTERS: f64 = 10.0;
/// A server with less to do seldom has more than one request at a time.
const IDLE_PERCENT: f64 = 30.0;
const FULL_PERCENT: f64 = 95.0;
/// Stolen time that may show in the 99th percentile.
const STOLEN_PERCENT: f64 = 0.5;

#[cfg(test)]
pub(super) mod tests {
    use super::super::outcome::Calibration;
    use super::super::plan::InversionPlan;
    use super::*;
    use crate::Verdict;
    use crate::bench::OmniOrb;
    use crate::environment::Environment;
    use crate::experiment::Findings;
    use crate::stats::Summary;

    /// An outcome of which all claims hold: real-time calls of high priority take 100 µs with any
    /// number of clients, others 20 µs more for each client.
    pub(in super::super) fn outcome() -> InversionOutcome {
        let mut rows = Vec::new();
        for mode in [Mode::Loaded, Mode::Saturated] {
            for architecture in Architecture::ALL {
                for low_clients in [1, 10, 50] {
                    let clients = f64::from(low_clients);
                    let high = if architecture.is_conventional() {
                        100.0 + 20.0 * clients
                    } else {
                        100.0 + clients / 10.0
                    };
                    let low = match architecture {
                        Architecture::FilterChain if low_clients > 10 => high / 2.0,
                        _ => 110.0 + 30.0 * clients,
                    };
                    rows.push(row(
                        (architecture, mode, low_clients, ClientClass::High),
                        high,
                    ));
                    rows.push(row(
                        (architecture, mode, low_clients, ClientClass::Low),
                        low,
                    ));
                }
            }
        }
        InversionOutcome {
            plan: InversionPlan::full(),
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
        (architecture, mode, low_clients, class): (Architecture, Mode, u32, ClientClass),
        us: f64,
    ) -> InversionRow {
        let jitter_us = if architecture.is_conventional() {
            us
        } else {
            us / 50.0
        };
        InversionRow {
            architecture,
            mode,
            place: InversionPlan::full().place_in(mode),
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
        outcome: &mut InversionOutcome,
        architecture: Architecture,
        class: ClientClass,
        change: impl Fn(&mut InversionRow),
    ) {
        let rows = outcome.rows.iter_mut();
        rows.filter(|row| row.architecture == architecture && row.class == class)
            .for_each(change);
    }

    fn missed(outcome: &InversionOutcome) -> Vec<String> {
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
        change(
            &mut outcome,
            Architecture::RealTime,
            ClientClass::High,
            |row| {
                if row.low_clients == 10 && row.mode == Mode::Loaded {
                    row.latency.max_us = 9_000.0;
                    row.stolen_percent = 3.0;
                }
            },
        );
        let missed = missed(&outcome);
        assert_eq!(missed.len(), 1, "{missed:?}");
        for part in ["longest", "9.00 ms against 533 µs with 10", "3.0 % of all"] {
            assert!(missed[0].contains(part), "{missed:?}");
        }
    }

    #[test]
    fn classes_are_not_compared_in_calls_back_to_back() {
        let mut outcome = outcome();
        change(
            &mut outcome,
            Architecture::RealTime,
            ClientClass::High,
            |row| {
                if row.mode == Mode::Saturated {
                    row.latency.max_us = 9_000.0;
                }
            },
        );
        change(
            &mut outcome,
            Architecture::WorkerPool,
            ClientClass::Low,
            |row| {
                if row.mode == Mode::Saturated {
                    row.latency.mean_us = 1.0;
                }
            },
        );
        assert_eq!(missed(&outcome), Vec::<String>::new());
    }

    #[test]
    fn a_client_that_feels_the_others_is_said_to() {
        let mut outcome = outcome();
        change(
            &mut outcome,
            Architecture::RealTime,
            ClientClass::High,
            |row| {
                row.latency.mean_us += f64::from(row.low_clients);
                row.client_cpu_percent = 99.0;
            },
        );
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
        change(&mut outcome, muxed, ClientClass::High, |row| {
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
