//! Claims of the papers and own aims, held against the figures.

use super::outcome::{DemuxOutcome, LookUpRow, Stage};
use crate::Claim;
use crate::units;

/// Returns all claims.
pub(super) fn of(outcome: &DemuxOutcome) -> Vec<Claim> {
    let look_ups = [Stage::Poa, Stage::Servant, Stage::Operation];
    let mut claims = vec![whole_path(outcome)];
    let flat = |(stage, strategy)| flat(outcome, stage, strategy);
    claims.extend(BY_DEFAULT[1..].iter().copied().map(flat));
    claims.extend(look_ups.map(|stage| grows(outcome, stage)));
    claims.extend(BY_DEFAULT.map(|(stage, strategy)| as_published(outcome, stage, strategy)));
    claims.push(memory_is_back(outcome));
    claims
}

/// Claims that the whole path takes less than a bound.
fn whole_path(outcome: &DemuxOutcome) -> Claim {
    let claim = format!(
        "The whole way takes less than {WHOLE_PATH_NS:.0} ns in the median at {} objects",
        units::count(ENTRIES.into())
    );
    let row = outcome.row(Stage::Total, "active", ENTRIES);
    Claim::aim(claim).holds(row.map(|row| {
        let measured = format!("{:.1} ns, from octets to skeleton and back", row.p50_ns);
        (row.p50_ns < WHOLE_PATH_NS, measured)
    }))
}

/// Claims that a stage takes a small part of its time on the computers of the papers.
fn as_published(outcome: &DemuxOutcome, stage: Stage, strategy: &str) -> Claim {
    let published_us = stage.published_ns() / 1e3;
    // It is rounded to whole ns, because the product of two decimals is not exact.
    let aim_us = (stage.published_ns() * THEN).round() / 1e3;
    let row = outcome.row(stage, strategy, ENTRIES);
    let measured = row.map(|row| {
        let measured = format!("{:.1} ns in the median, {strategy}", row.p50_ns);
        (row.p50_ns / stage.published_ns(), measured)
    });
    Claim::aim(format!(
        "{} takes {aim_us} µs or less, with {} {}: a tenth of what it took then",
        stage.title(),
        units::count(ENTRIES.into()),
        stage.entries(),
    ))
    .published(format!(
        "{published_us} µs, on a computer of then ({SLIDES})"
    ))
    .by_ratio(measured, |ratio| ratio <= THEN)
}

/// Claims that a strategy takes the same time for one entry and for as many as fit into the cache.
fn flat(outcome: &DemuxOutcome, stage: Stage, strategy: &str) -> Claim {
    let fits = |row: &LookUpRow| bytes_read(outcome, row) <= outcome.caches.l2.unwrap_or(USUAL_L2);
    let mut rows = outcome.series(stage, strategy);
    rows.retain(fits);
    let most = rows.last().map_or(1, |row| row.entries);
    let p50 = |pick: fn(f64, f64) -> f64| rows.iter().map(|row| row.p50_ns).reduce(pick);
    let ends = p50(f64::min).zip(p50(f64::max)).filter(|_| rows.len() > 1);
    let claim = format!(
        "{}, {strategy}: flat within {FLAT} from 1 to {}, as far as it fits the L2 cache",
        stage.title(),
        units::count(most.into()),
    );
    Claim::of_paper(SLIDES, claim)
        .published(match stage {
            Stage::Operation => "perfect hashing: highly predictable",
            _ => "active demultiplexing: efficient and predictable",
        })
        .by_ratio(
            ends.map(|(least, most)| (most / least, format!("{least:.1} to {most:.1} ns"))),
            |ratio| ratio <= FLAT,
        )
}

/// Claims that a linear search takes longer with more entries.
fn grows(outcome: &DemuxOutcome, stage: Stage) -> Claim {
    let claim = format!("{}, linear: grows visibly", stage.title());
    // The slides say so of servants only.
    let claim = match stage {
        Stage::Servant => Claim::of_paper(SLIDES, claim).published("linear demultiplexing: costly"),
        _ => Claim::aim(claim),
    };
    let rows = outcome.series(stage, "linear");
    let ends = rows.first().zip(rows.last());
    let ends = ends.filter(|(first, last)| first.entries < last.entries);
    let measured = ends.map(|(first, last)| {
        let ratio = last.p50_ns / first.p50_ns;
        let [one, many] = [first, last].map(|row| units::count(row.entries.into()));
        let factor = units::factor(ratio);
        (
            ratio,
            format!("{factor} times as long for {many} as for {one}"),
        )
    });
    claim.by_ratio(measured, |ratio| ratio >= GROWS)
}

/// Claims that objects leave no memory behind.
fn memory_is_back(outcome: &DemuxOutcome) -> Claim {
    let objects = &outcome.scale.objects;
    let claim = format!(
        "After the deactivation of {} objects the memory is back",
        units::count(objects.count.into())
    );
    let rest = objects.rest.allocated.zip(objects.octets.allocated);
    Claim::aim(claim).holds(rest.map(|(rest, each)| {
        let all = each * f64::from(objects.count);
        let [left, of] = [rest.max(0.0), all].map(|octets| units::count(octets as u64));
        (
            rest <= REST * all,
            format!("{left} of {of} octets are left"),
        )
    }))
}

/// Returns the bytes of a table that all look-ups of a row read together.
fn bytes_read(outcome: &DemuxOutcome, row: &LookUpRow) -> u64 {
    let mut sizes = outcome.operation_bytes.iter();
    let size = sizes.find(|(entries, _)| *entries == row.entries);
    match row.stage {
        Stage::Operation => size.map_or(0, |(_, bytes)| *bytes),
        _ => u64::from(row.entries) * SLOT,
    }
}

/// The bytes of a table of POAs or objects that are read for one of them: a slot is a cache line.
pub(super) const SLOT: u64 = 64;
const SLIDES: &str = "tutorial slides 1999, demultiplexing";
/// The stages with figures in the slides, each with the default strategy of the ORB.
const BY_DEFAULT: [(Stage, &str); 4] = [
    (Stage::Request, "giop"),
    (Stage::Poa, "active"),
    (Stage::Servant, "active"),
    (Stage::Operation, "perfect"),
];
const WHOLE_PATH_NS: f64 = 150.0;
/// The number of entries to which the aims apply.
const ENTRIES: u32 = 1_000;
/// The greatest ratio of the largest figure of a flat strategy to the smallest.
const FLAT: f64 = 1.25;
/// The least ratio of the last figure of a strategy that grows to the first.
const GROWS: f64 = 10.0;
/// The aim for a stage, as a share of its figure in the slides.
const THEN: f64 = 0.1;
/// The share of the memory that tables may keep.
const REST: f64 = 0.01;
/// The size of the L2 cache if the system does not report it.
const USUAL_L2: u64 = 512 << 10;

#[cfg(test)]
pub(super) mod tests {
    use super::super::{BulkCost, Caches, DemuxPlan, MemoryUse, Scale};
    use super::*;
    use crate::Verdict;
    use crate::environment::Environment;
    use crate::experiment::Findings;

    /// Figures for which all claims hold.
    pub(in super::super) fn outcome() -> DemuxOutcome {
        let mut rows = Vec::new();
        let mut add = |stage, strategy, of: fn(f64) -> f64| {
            for entries in [1, 10, 100, 1_000, 10_000_u32] {
                let p50_ns = of(f64::from(entries).log10());
                rows.push(LookUpRow {
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
        let many = |count, octets| BulkCost {
            count,
            begin_ns: 500.0,
            end_ns: 400.0,
            octets: memory(octets),
            rest: memory(0.0),
        };
        DemuxOutcome {
            plan: DemuxPlan::full(),
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
            operation_bytes: vec![(1, 40), (10, 400), (100, 4_000), (1_000, 40_000)],
        }
    }

    fn verdicts(outcome: &DemuxOutcome) -> Vec<Verdict> {
        let claims = outcome.claims();
        claims.into_iter().map(|claim| claim.verdict()).collect()
    }

    fn change(outcome: &mut DemuxOutcome, stage: Stage, strategy: &str, entries: u32, ns: f64) {
        let mut rows = outcome.rows.iter_mut();
        let row =
            rows.find(|row| (row.stage, row.strategy, row.entries) == (stage, strategy, entries));
        row.expect("there is such a row").p50_ns = ns;
    }

    #[test]
    fn figures_within_bounds_pass() {
        assert_eq!(verdicts(&outcome()), [Verdict::Pass; 12]);
    }

    #[test]
    fn a_slow_path_is_a_miss() {
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
    fn memory_that_stays_is_a_miss() {
        let mut outcome = outcome();
        outcome.scale.objects.rest.allocated = Some(1.3e6);
        assert_eq!(verdicts(&outcome)[11], Verdict::Missed);
    }

    #[test]
    fn claims_without_figures_are_not_measured() {
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
