//! What should be true of the figures, and whether it is.

use super::outcome::{Outcome, Row, Stage};
use crate::Claim;
use crate::units;

/// All claims.
pub(super) fn of(outcome: &Outcome) -> Vec<Claim> {
    let mut claims = vec![
        whole_way(outcome),
        flat(outcome, Stage::Poa, "active"),
        flat(outcome, Stage::Servant, "active"),
        flat(outcome, Stage::Operation, "perfect"),
    ];
    claims
        .extend([Stage::Poa, Stage::Servant, Stage::Operation].map(|stage| grows(outcome, stage)));
    claims.extend(PUBLISHED.map(|(stage, strategy)| as_published(outcome, stage, strategy)));
    claims.push(memory_is_back(outcome));
    claims
}

fn whole_way(outcome: &Outcome) -> Claim {
    let claim = format!(
        "The whole way takes less than {WHOLE_WAY_NS:.0} ns in the median at {} objects",
        units::count(WHOLE_WAY_ENTRIES.into())
    );
    let row = outcome.row(Stage::Total, "active", WHOLE_WAY_ENTRIES);
    Claim::aim(claim).holds(row.map(|row| {
        let measured = format!("{:.1} ns, from octets to skeleton and back", row.p50_ns);
        (row.p50_ns < WHOLE_WAY_NS, measured)
    }))
}

/// A stage takes a small part of what it did on the computers of the papers, as everything should that computes.
fn as_published(outcome: &Outcome, stage: Stage, strategy: &str) -> Claim {
    let published_us = stage.published_ns() / 1e3;
    // In whole ns: the product of two decimals is not exact.
    let aim_us = (stage.published_ns() * THEN).round() / 1e3;
    let claim = format!(
        "{} takes {} µs or less, with {} {}: a tenth of what it took then",
        stage.title(),
        aim_us,
        units::count(WHOLE_WAY_ENTRIES.into()),
        stage.entries(),
    );
    let row = outcome.row(stage, strategy, WHOLE_WAY_ENTRIES);
    let measured = row.map(|row| {
        let measured = format!("{:.1} ns in the median, {strategy}", row.p50_ns);
        (row.p50_ns / stage.published_ns(), measured)
    });
    Claim::aim(claim)
        .published(format!(
            "{published_us} µs, on a computer of then ({SLIDES})"
        ))
        .by_ratio(measured, |ratio| ratio <= THEN)
}

/// A strategy takes the same time for one and for many, as long as what it reads fits the cache.
fn flat(outcome: &Outcome, stage: Stage, strategy: &str) -> Claim {
    let fits = |row: &Row| octets_read(outcome, row) <= outcome.caches.l2.unwrap_or(USUAL_L2);
    let rows: Vec<Row> = outcome.series(stage, strategy);
    let rows: Vec<Row> = rows.into_iter().filter(fits).collect();
    let most = rows.last().map_or(1, |row| row.entries);
    let claim = format!(
        "{}, {strategy}: flat within {FLAT} from 1 to {}, as far as it fits the L2 cache",
        stage.title(),
        units::count(most.into()),
    );
    let p50 = |pick: fn(f64, f64) -> f64| rows.iter().map(|row| row.p50_ns).reduce(pick);
    let ends = p50(f64::min).zip(p50(f64::max)).filter(|_| rows.len() > 1);
    let measured = ends.map(|(least, most)| (most / least, format!("{least:.1} to {most:.1} ns")));
    Claim::of_paper(SLIDES, claim)
        .published(match stage {
            Stage::Operation => "perfect hashing: highly predictable",
            _ => "active demultiplexing: efficient and predictable",
        })
        .by_ratio(measured, |ratio| ratio <= FLAT)
}

fn grows(outcome: &Outcome, stage: Stage) -> Claim {
    let claim = format!("{}, linear: grows visibly", stage.title());
    let rows = outcome.series(stage, "linear");
    let ends = rows.first().zip(rows.last());
    let ends = ends.filter(|(first, last)| first.entries < last.entries);
    let measured = ends.map(|(first, last)| {
        let ratio = last.p50_ns / first.p50_ns;
        let measured = format!(
            "{} times as long for {} as for {}",
            units::factor(ratio),
            units::count(last.entries.into()),
            units::count(first.entries.into()),
        );
        (ratio, measured)
    });
    // Of the other stages the slides do not say so.
    let claim = match stage {
        Stage::Servant => Claim::of_paper(SLIDES, claim).published("linear demultiplexing: costly"),
        _ => Claim::aim(claim),
    };
    claim.by_ratio(measured, |ratio| ratio >= GROWS)
}

fn memory_is_back(outcome: &Outcome) -> Claim {
    let objects = &outcome.scale.objects;
    let claim = format!(
        "After the deactivation of {} objects the memory is back",
        units::count(objects.count.into())
    );
    let rest = objects.rest.allocated.zip(objects.octets.allocated);
    Claim::aim(claim).holds(rest.map(|(rest, each)| {
        let measured = format!(
            "{} of {} octets are left",
            units::count(rest.max(0.0) as u64),
            units::count((each * f64::from(objects.count)) as u64),
        );
        (rest <= REST * each * f64::from(objects.count), measured)
    }))
}

/// How much of the table the look-ups of a row read in all.
pub(super) fn octets_read(outcome: &Outcome, row: &Row) -> u64 {
    let sizes = &outcome.operation_octets;
    match row.stage {
        Stage::Operation => sizes
            .iter()
            .find(|(entries, _)| *entries == row.entries)
            .map_or(0, |(_, octets)| *octets),
        _ => u64::from(row.entries) * SLOT,
    }
}

/// Octets of a table of POAs or objects that are read for one of them: a slot is a cache line.
pub(super) const SLOT: u64 = 64;
const SLIDES: &str = "tutorial slides 1999, demultiplexing";
/// The stages that the slides have figures of, each with the strategy that an ORB uses if nobody asks for another.
const PUBLISHED: [(Stage, &str); 4] = [
    (Stage::Request, "giop"),
    (Stage::Poa, "active"),
    (Stage::Servant, "active"),
    (Stage::Operation, "perfect"),
];
const WHOLE_WAY_NS: f64 = 150.0;
const WHOLE_WAY_ENTRIES: u32 = 1_000;
/// The largest figure by the smallest.
const FLAT: f64 = 1.25;
const GROWS: f64 = 10.0;
/// What a stage may take by what the slides give.
const THEN: f64 = 0.1;
/// The share of the memory that tables may keep.
const REST: f64 = 0.01;
/// Where the system does not tell.
const USUAL_L2: u64 = 512 << 10;

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Caches, Many, MemoryUse, Plan, Scale};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Findings;

    /// One of which everything holds that is claimed.
    pub(in super::super) fn outcome() -> Outcome {
        let mut rows = Vec::new();
        let mut add = |stage, strategy, of: fn(f64) -> f64| {
            for entries in [1, 10, 100, 1_000, 10_000_u32] {
                let p50_ns = of(f64::from(entries).log10());
                rows.push(Row {
                    stage,
                    strategy,
                    entries,
                    p50_ns,
                    p99_ns: p50_ns * 1.5,
                });
            }
        };
        let constant = |_: f64| 20.0;
        let linear = |exponent: f64| 10.0 + 10_f64.powf(exponent);
        add(Stage::Request, "giop", constant);
        add(Stage::Poa, "active", constant);
        add(Stage::Poa, "linear", linear);
        add(Stage::Servant, "linear", linear);
        add(Stage::Servant, "active", constant);
        add(Stage::Operation, "perfect", constant);
        add(Stage::Operation, "linear", linear);
        add(Stage::Total, "active", |exponent| 100.0 + 10.0 * exponent);
        let hot = rows.iter().filter(|row| row.stage.is_look_up());
        let memory = |octets| MemoryUse {
            allocated: Some(octets),
            resident: octets,
        };
        let many = |count, octets| Many {
            count,
            begin_ns: 500.0,
            end_ns: 400.0,
            octets: memory(octets),
            rest: memory(0.0),
        };
        Outcome {
            plan: Plan::full(),
            caches: Caches {
                l1d: Some(32 << 10),
                l2: Some(512 << 10),
                l3: Some(32 << 20),
            },
            environment: Environment::example(),
            hot: hot.copied().collect(),
            rows,
            scale: Scale {
                objects: many(1_000_000, 128.0),
                poas: many(10_000, 1_800.0),
            },
            operation_octets: vec![(1, 40), (10, 400), (100, 4_000), (1_000, 40_000)],
        }
    }

    fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
        let claims = outcome.claims();
        claims.into_iter().map(|claim| claim.verdict()).collect()
    }

    fn change(outcome: &mut Outcome, stage: Stage, strategy: &str, entries: u32, ns: f64) {
        let mut rows = outcome.rows.iter_mut();
        let row =
            rows.find(|row| (row.stage, row.strategy, row.entries) == (stage, strategy, entries));
        row.expect("there is such a row").p50_ns = ns;
    }

    #[test]
    fn what_holds_passes() {
        assert_eq!(verdicts(&outcome()), [Verdict::Pass; 12]);
    }

    #[test]
    fn a_way_that_takes_too_long_is_said() {
        let mut outcome = outcome();
        change(&mut outcome, Stage::Total, "active", 1_000, 150.0);
        let claim = &outcome.claims()[0];
        assert_eq!(claim.verdict(), Verdict::Missed);
        assert!(claim.measured.starts_with("150.0 ns"), "{}", claim.measured);
    }

    #[test]
    fn growth_within_the_cache_is_a_miss_and_beyond_it_is_none() {
        let mut outcome = outcome();
        change(&mut outcome, Stage::Servant, "active", 10_000, 90.0);
        assert_eq!(outcome.claims()[2].verdict(), Verdict::Pass);
        change(&mut outcome, Stage::Servant, "active", 1_000, 25.2);
        let claim = &outcome.claims()[2];
        assert_eq!(claim.verdict(), Verdict::Missed);
        assert_eq!(claim.measured, "20.0 to 25.2 ns");
        assert_eq!(claim.ratio, Some(1.26));
    }

    #[test]
    fn memory_that_stays_is_said() {
        let mut outcome = outcome();
        outcome.scale.objects.rest.allocated = Some(1.3e6);
        assert_eq!(verdicts(&outcome)[11], Verdict::Missed);
    }

    #[test]
    fn nothing_is_claimed_of_what_was_not_measured() {
        let mut outcome = outcome();
        outcome.rows.clear();
        outcome.scale.objects.rest.allocated = None;
        assert_eq!(verdicts(&outcome), [Verdict::NotMeasured; 12]);
    }

    #[test]
    fn figures_for_programs_have_the_documented_shape() {
        let outcome = outcome();
        let figures = outcome.figures();
        assert_eq!(figures["experiment"], "demux");
        assert!(figures["environment"].is_object());
        let rows = figures["rows"].as_array().unwrap();
        assert_eq!(rows.len(), outcome.rows.len());
        let row = rows[0].as_object().unwrap();
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        assert_eq!(names.len(), 5);
        assert_eq!(row["stage"], "request");
        assert_eq!(row["strategy"], "giop");
        assert_eq!(row["entries"], 1);
        assert_eq!(row["p50_ns"], 20.0);
        assert_eq!(row["p99_ns"], 30.0);
        assert_eq!(figures["scale"]["objects"]["octets"]["allocated"], 128.0);
        assert_eq!(figures["claims"][0]["verdict"], "PASS");
    }
}
