//! The order of the measurements: all cases take turns, round after round.
//!
//! Other activities of the machine then hit all cases alike, and a short disturbance hits one round
//! of each only. A figure is the median over the rounds.

use std::time::{Duration, Instant};

use super::DemuxPlan;
use super::cases::{Cases, LookUpCase};
use super::outcome::LookUpRow;
use super::probe::clock_cost;
use crate::error::LabError;
use crate::progress::Progress;
use crate::stats::quantile;

/// The figures of all cases.
pub(super) struct LookUpFigures {
    /// The figures with entries drawn at random.
    pub(super) rows: Vec<LookUpRow>,
    /// The figures with the same entry again and again.
    pub(super) hot: Vec<LookUpRow>,
    /// Numbers of operations, each with the bytes of its perfect table.
    pub(super) operation_bytes: Vec<(u32, u64)>,
}

/// Measures all cases.
pub(super) fn measure(plan: &DemuxPlan) -> Result<LookUpFigures, LabError> {
    let progress = Progress::start("making POAs and objects", Cases::steps(plan));
    let Cases {
        cases,
        operation_bytes,
        homes,
    } = Cases::new(plan, || progress.advance(1))?;
    drop(progress);

    let clock = clock_cost();
    let mut turns: Vec<Turns> = cases.into_iter().zip(1..).map(Turns::new).collect();
    let progress = Progress::start("measuring, rounds", u64::from(plan.rounds));
    for _ in 0..plan.rounds {
        for Turns { case, drawn, same } in &mut turns {
            let entries = case.entries as usize;
            drawn.take(case, entries, plan.turn, clock)?;
            if case.stage.is_look_up() {
                same.take(case, 1, plan.turn, clock)?;
            }
        }
        progress.advance(1);
    }
    drop(progress);

    let rows = turns.iter().map(|turns| turns.drawn.row(&turns.case));
    let rows = rows.collect();
    let hot = turns.iter().filter(|turns| turns.case.stage.is_look_up());
    let hot = hot.map(|turns| turns.same.row(&turns.case)).collect();
    drop(turns);
    drop(homes);
    Ok(LookUpFigures {
        rows,
        hot,
        operation_bytes,
    })
}

/// A case, with its walks through random entries and through one entry.
struct Turns {
    case: LookUpCase,
    drawn: Walk,
    same: Walk,
}

impl Turns {
    fn new((case, seed): (LookUpCase, u64)) -> Self {
        Self {
            drawn: Walk::shuffled(case.entries, seed),
            // A linear search goes through half of the entries to the one in the middle.
            same: Walk::through(vec![case.entries / 2; SHORTEST]),
            case,
        }
    }
}

/// A walk through the entries of a table, again and again, and its figures.
///
/// The order is drawn in advance, so that drawing is not measured and the processor cannot predict
/// the next entry. Every entry occurs equally often.
struct Walk {
    entries: Vec<u32>,
    next: usize,
    /// The median and the 99th percentile of the time of a look-up in each round, in ns.
    rounds: Vec<[f64; 2]>,
}

impl Walk {
    fn through(entries: Vec<u32>) -> Self {
        Self {
            entries,
            next: 0,
            rounds: Vec::new(),
        }
    }

    /// Returns a walk through all entries below `count` in random order. A few entries occur
    /// several times, each time in another order.
    fn shuffled(count: u32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut entries = Vec::new();
        while entries.len() < SHORTEST {
            let start = entries.len();
            entries.extend(0..count.max(1));
            random.shuffle(&mut entries[start..]);
        }
        Self::through(entries)
    }

    /// Returns the next few entries.
    fn step(&mut self, count: usize) -> &[u32] {
        if self.next + count > self.entries.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += count;
        &self.entries[start..self.next]
    }

    /// Warms up with as many look-ups as there are entries, and measures for the time of a turn.
    fn take(
        &mut self,
        case: &mut LookUpCase,
        entries: usize,
        turn: Duration,
        clock: f64,
    ) -> Result<(), LabError> {
        let size = self.warm_up(case, entries.min(WARM_UP), turn);
        let mut times = Vec::new();
        let end = Instant::now() + turn;
        while times.len() < LEAST_BATCHES || Instant::now() < end {
            let batch = (case.probe)(self.step(size));
            if batch.successes != size {
                let failures = size - batch.successes;
                let stage = case.stage.title();
                return Err(LabError::Outcome(format!(
                    "{stage}: {failures} of {size} look-ups found nothing"
                )));
            }
            times.push((batch.ns - clock).max(0.0) / size as f64);
        }
        let quantiles = [0.5, 0.99].map(|of| quantile(&mut times, of));
        self.rounds.push(quantiles);
        Ok(())
    }

    /// Brings the table into the cache, as far as it fits and time allows. Returns the number of
    /// look-ups of a batch, by the time that they take.
    fn warm_up(&mut self, case: &mut LookUpCase, look_ups: usize, turn: Duration) -> usize {
        let end = Instant::now() + turn * 2;
        let mut done = 0;
        let mut size = BATCH;
        while done < look_ups && Instant::now() < end {
            let few = if done == 0 { BATCH_OF_SLOW } else { size };
            let batch = (case.probe)(self.step(few));
            done += few;
            let is_slow = batch.ns / few as f64 > SLOW_NS;
            size = if is_slow { BATCH_OF_SLOW } else { BATCH };
        }
        size
    }

    /// Returns the medians over the rounds.
    fn row(&self, case: &LookUpCase) -> LookUpRow {
        let [p50_ns, p99_ns] = [0, 1].map(|figure| {
            let mut figures: Vec<f64> = self.rounds.iter().map(|round| round[figure]).collect();
            (quantile(&mut figures, 0.5) * 10.0).round() / 10.0
        });
        LookUpRow {
            stage: case.stage,
            strategy: case.strategy,
            entries: case.entries,
            p50_ns,
            p99_ns,
        }
    }
}

/// The number of look-ups between two readings of the clock.
pub(super) const BATCH: usize = 64;
/// The same if a look-up takes longer than [`SLOW_NS`].
pub(super) const BATCH_OF_SLOW: usize = 8;
const SLOW_NS: f64 = 2_000.0;
/// The least number of batches in each round, for which a turn may last longer.
const LEAST_BATCHES: usize = 5;
/// The bound of the look-ups before a measurement.
pub(super) const WARM_UP: usize = 20_000;
/// The least number of entries of a walk: more than a batch, and so many that the branch predictor
/// does not learn them.
const SHORTEST: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_occurs_equally_often() {
        let mut walk = Walk::shuffled(10, 1);
        let mut seen = [0; 10];
        for entry in walk.step(100) {
            seen[*entry as usize] += 1;
        }
        assert_eq!(seen, [10; 10]);
    }

    #[test]
    fn the_order_is_drawn() {
        let mut many: Vec<u32> = Walk::shuffled(20_000, 7).step(20_000).to_vec();
        assert!(!many.is_sorted());
        many.sort_unstable();
        assert!(many.into_iter().eq(0..20_000));
    }

    #[test]
    fn a_walk_starts_again_at_its_end() {
        let mut walk = Walk::through(vec![3; SHORTEST]);
        for _ in 0..1_000 {
            assert_eq!(walk.step(64), [3; 64]);
        }
    }
}
