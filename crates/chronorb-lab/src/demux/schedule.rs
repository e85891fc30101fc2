//! Who is measured when: all cases take turns, round after round.
//!
//! Whatever else the machine does meanwhile then hits all of them alike, and one bad moment only
//! one round of each: a figure is the median over the rounds.

use std::time::{Duration, Instant};

use super::Plan;
use super::outcome::Row;
use super::probe::clock_cost;
use super::sequence::Sequence;
use super::setup::{Case, Cases};
use crate::error::LabError;
use crate::progress::Progress;
use crate::stats::quantile;

/// Rows for entries drawn at random, rows for always the same entry, and numbers of operations with
/// the octets of the perfect table for them.
pub(super) type Measured = (Vec<Row>, Vec<Row>, Vec<(u32, u64)>);

/// Measures all cases.
pub(super) fn measure(plan: &Plan) -> Result<Measured, LabError> {
    let progress = Progress::start("making POAs and objects", Cases::steps(plan));
    let Cases {
        cases,
        operation_octets,
        homes,
    } = Cases::new(plan, || progress.advance(1))?;
    drop(progress);

    let clock = clock_cost();
    let mut turns: Vec<Turns> = cases.into_iter().zip(1..).map(Turns::new).collect();
    let progress = Progress::start("measuring, rounds", u64::from(plan.rounds));
    for _ in 0..plan.rounds {
        for turns in &mut turns {
            turns.take(plan, clock)?;
        }
        progress.advance(1);
    }
    drop(progress);

    let rows = turns.iter().map(|turns| turns.row(&turns.drawn));
    let rows = rows.collect();
    let hot = turns
        .iter()
        .filter(|turns| turns.case.stage.is_look_up())
        .map(|turns| turns.row(&turns.same));
    let hot = hot.collect();
    drop(turns);
    drop(homes);
    Ok((rows, hot, operation_octets))
}

/// A case, and what its turns have shown.
struct Turns {
    case: Case,
    drawn: Walk,
    same: Walk,
}

/// The entries that are looked up, and the figures of each round.
struct Walk {
    sequence: Sequence,
    rounds: Vec<Figures>,
}

/// What one look-up took in one round, in ns.
#[derive(Clone, Copy)]
struct Figures {
    p50: f64,
    p99: f64,
}

impl Turns {
    fn new((case, seed): (Case, u64)) -> Self {
        let walk = |sequence| Walk {
            sequence,
            rounds: Vec::new(),
        };
        Self {
            drawn: walk(Sequence::shuffled(case.entries, seed)),
            // That in the middle, for the sake of linear search.
            same: walk(Sequence::only(case.entries / 2)),
            case,
        }
    }

    fn take(&mut self, plan: &Plan, clock: f64) -> Result<(), LabError> {
        let entries = self.case.entries as usize;
        self.drawn.take(&mut self.case, entries, plan.turn, clock)?;
        if self.case.stage.is_look_up() {
            self.same.take(&mut self.case, 1, plan.turn, clock)?;
        }
        Ok(())
    }

    fn row(&self, walk: &Walk) -> Row {
        let median = |figure: fn(&Figures) -> f64| {
            let mut figures: Vec<f64> = walk.rounds.iter().map(figure).collect();
            rounded(quantile(&mut figures, 0.5))
        };
        Row {
            stage: self.case.stage,
            strategy: self.case.strategy,
            entries: self.case.entries,
            p50_ns: median(|figures| figures.p50),
            p99_ns: median(|figures| figures.p99),
        }
    }
}

impl Walk {
    /// Warms up, by as many look-ups as there are entries, and measures for the time of a turn.
    fn take(
        &mut self,
        case: &mut Case,
        entries: usize,
        turn: Duration,
        clock: f64,
    ) -> Result<(), LabError> {
        let size = self.warm_up(case, entries.min(WARM_UP), turn);
        let mut samples = Vec::new();
        let end = Instant::now() + turn;
        while samples.len() < LEAST_BATCHES || Instant::now() < end {
            let sample = case.probe.run(self.sequence.take(size));
            if sample.found != size {
                let missing = size - sample.found;
                let stage = case.stage.name();
                return Err(LabError::Outcome(format!(
                    "{missing} of {size} look-ups of the stage {stage} found nothing"
                )));
            }
            samples.push((sample.ns - clock).max(0.0) / size as f64);
        }
        self.rounds.push(Figures {
            p50: quantile(&mut samples, 0.5),
            p99: quantile(&mut samples, 0.99),
        });
        Ok(())
    }

    /// Brings the table into the cache, as far as it fits and time allows, and finds out how many
    /// look-ups make a batch.
    fn warm_up(&mut self, case: &mut Case, look_ups: usize, turn: Duration) -> usize {
        let end = Instant::now() + turn * 2;
        let mut done = 0;
        let mut size = BATCH;
        while done < look_ups && Instant::now() < end {
            let few = if done == 0 { BATCH_OF_SLOW } else { size };
            let sample = case.probe.run(self.sequence.take(few));
            done += few;
            size = match sample.ns / few as f64 > SLOW_NS {
                true => BATCH_OF_SLOW,
                false => BATCH,
            };
        }
        size
    }
}

/// One more digit than anybody should believe.
fn rounded(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Look-ups between two readings of the clock.
pub(super) const BATCH: usize = 64;
/// The same, where a look-up takes longer than [`SLOW_NS`].
pub(super) const BATCH_OF_SLOW: usize = 8;
const SLOW_NS: f64 = 2_000.0;
/// In each round; a turn may last longer for it.
const LEAST_BATCHES: usize = 5;
/// No more look-ups before those that are measured.
pub(super) const WARM_UP: usize = 20_000;
