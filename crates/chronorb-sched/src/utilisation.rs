//! Utilisation, and the tests that need nothing else: the bounds of Liu and Layland (1973), of
//! Kuo and Mok (1991) for harmonic chains, and of Bini and Buttazzo (2001).
//!
//! These tests hold for rate-monotonic priorities, with deadlines equal to periods, without jitter
//! and blocking. They are sufficient only: [`responses`](crate::responses) is exact.

use std::cmp::Ordering;

use crate::error::{AnalysisError, Steps};
use crate::exact::Natural;
use crate::task::{BILLION, Load, Task, Time};

/// Returns the utilisation of tasks in billionths, each rounded up.
pub fn utilisation(tasks: &[Task]) -> u128 {
    tasks.iter().map(|task| task.load().share()).sum()
}

/// Compares the utilisation of tasks with that of a whole processor. The comparison is exact.
pub fn compare_to_processor(tasks: &[Task]) -> Ordering {
    compare_loads(tasks.iter().map(Task::load))
}

pub(crate) fn compare_loads(loads: impl Iterator<Item = Load> + Clone) -> Ordering {
    let mut bounds = Bounds::default();
    for load in loads.clone() {
        bounds.add(load);
    }
    bounds.compare().unwrap_or_else(|| compare_exactly(loads))
}

/// Compares as [`compare_loads`], and counts the steps.
pub(crate) fn compare_within(
    loads: impl Iterator<Item = Load> + Clone,
    steps: &mut Steps,
) -> Result<Ordering, AnalysisError> {
    let mut bounds = Bounds::default();
    let mut count = 0_usize;
    for load in loads.clone() {
        bounds.add(load);
        count += 1;
    }
    steps.visit(count)?;
    if let Some(ordering) = bounds.compare() {
        return Ok(ordering);
    }
    // The numbers have as many words as there are loads.
    steps.visit(count.saturating_mul(count))?;
    Ok(compare_exactly(loads))
}

/// Returns the length of the longest prefix that needs at most a processor.
pub(crate) fn fitting_prefix(loads: impl Iterator<Item = Load> + Clone) -> usize {
    let mut bounds = Bounds::default();
    for (count, load) in loads.clone().enumerate() {
        bounds.add(load);
        let compared = bounds.compare();
        let exactly = || compare_exactly(loads.clone().take(count + 1));
        if compared.unwrap_or_else(exactly) == Ordering::Greater {
            return count;
        }
    }
    loads.count()
}

/// The bounds of a utilisation, in units of 2⁻⁶⁴.
#[derive(Default)]
pub(crate) struct Bounds {
    least: u128,
    most: u128,
}

impl Bounds {
    pub(crate) fn add(&mut self, load: Load) {
        let (cost, period) = (u128::from(load.cost) << 64, u128::from(load.period.max(1)));
        self.least = self.least.saturating_add(cost / period);
        self.most = self.most.saturating_add(cost.div_ceil(period));
    }

    /// Compares with a processor; `None` if the bounds do not decide.
    pub(crate) fn compare(&self) -> Option<Ordering> {
        const ONE: u128 = 1 << 64;
        if self.most < ONE {
            return Some(Ordering::Less);
        }
        (self.least > ONE).then_some(Ordering::Greater)
    }
}

fn compare_exactly(loads: impl Iterator<Item = Load>) -> Ordering {
    let zero = (Natural::zero(), Natural::one());
    let (work, time) = loads.fold(zero, |(work, time), load| {
        let period = load.period.max(1);
        let work = work.times(period).plus(&time.times(load.cost));
        (work, time.times(period))
    });
    work.cmp(&time)
}

/// Whether the product of all (utilisation + 1) is at most 2, exactly: the hyperbolic bound.
pub fn passes_hyperbolic_bound(tasks: &[Task]) -> bool {
    let one = (Natural::one(), Natural::one());
    let (product, limit) = tasks.iter().fold(one, |(product, limit), task| {
        let period = task.period.max(1);
        let both = product.times(period).plus(&product.times(task.cost));
        (both, limit.times(period))
    });
    product <= limit.times(2)
}

/// Whether the utilisation is at most [`liu_layland_bound`] for as many tasks.
pub fn passes_liu_layland_bound(tasks: &[Task]) -> bool {
    utilisation(tasks) <= liu_layland_bound(tasks.len()).into()
}

/// Whether the utilisation is at most the bound for as many tasks as there are harmonic chains.
///
/// In a chain each period is a multiple of the next shorter one. A single chain may use the whole
/// processor.
pub fn passes_harmonic_bound(tasks: &[Task]) -> bool {
    let mut periods: Vec<_> = tasks.iter().map(|task| task.period.max(1)).collect();
    periods.sort_unstable();
    let mut chains: Vec<Time> = Vec::new();
    for period in periods {
        match chains.iter_mut().find(|end| period.is_multiple_of(**end)) {
            Some(end) => *end = period,
            None => chains.push(period),
        }
    }
    if chains.len() <= 1 {
        return compare_to_processor(tasks) != Ordering::Greater;
    }
    utilisation(tasks) <= liu_layland_bound(chains.len()).into()
}

/// Returns n(2^(1/n) − 1) in billionths, rounded down: below this utilisation any n tasks are
/// schedulable by rate-monotonic priorities.
pub fn liu_layland_bound(tasks: usize) -> u64 {
    let tasks = tasks.max(1) as u128;
    let (mut good, mut bad) = (693_147_180_u64, BILLION as u64 + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if power_is_at_most_two(middle.into(), tasks) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// Whether (1 + billionths/n)^n is at most 2. Products are rounded up, in units of 2⁻⁶².
fn power_is_at_most_two(billionths: u128, tasks: u128) -> bool {
    const ONE: u128 = 1 << 62;
    let multiply = |a: u128, b: u128| (a * b).div_ceil(ONE);
    let mut base = ONE + (ONE * billionths).div_ceil(BILLION.saturating_mul(tasks));
    let (mut power, mut left) = (ONE, tasks);
    loop {
        if left & 1 == 1 {
            power = multiply(power, base);
        }
        left >>= 1;
        if power > 2 * ONE {
            return false;
        }
        if left == 0 {
            return true;
        }
        base = multiply(base, base);
        if base > 2 * ONE {
            return false;
        }
    }
}
