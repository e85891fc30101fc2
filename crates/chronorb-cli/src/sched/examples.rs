//! Simulated responses beside analysed ones.

use std::sync::atomic::Ordering;

use chronorb_schedule::{Assignment, Schedule, SimulationOutcome, SimulationRun, Time, Work};

use super::progress::with_progress;

/// The longest responses of simulated runs by priority, beside the analysis.
#[derive(Debug, Default)]
pub(super) struct Examples {
    pub(super) runs: u64,
    pub(super) window: Time,
    /// None if no run was asked for, or would be too long.
    outcome: Option<SimulationOutcome>,
}

impl Examples {
    /// Simulates runs, the first one from a synchronous start.
    pub(super) fn of(schedule: &Schedule, assignment: &Assignment, runs: u64) -> Self {
        let Some(window) = short_window(schedule, assignment, runs) else {
            return Self::default();
        };
        let numbers = assignment.numbers(schedule);
        with_progress("simulating", runs, |done| {
            let mut all: Option<SimulationOutcome> = None;
            for number in 0..runs {
                let run = match number {
                    0 => SimulationRun::synchronous(schedule, window),
                    _ => SimulationRun::random(1_u64.wrapping_add(number), window),
                };
                let Ok(outcome) = schedule.simulate(&numbers, &run) else {
                    break;
                };
                done.fetch_add(1, Ordering::Relaxed);
                match &mut all {
                    None => all = Some(outcome),
                    Some(all) => all.add(&outcome),
                }
            }
            Self {
                runs,
                window,
                outcome: all,
            }
        })
    }

    /// Whether there are any.
    pub(super) const fn is_some(&self) -> bool {
        self.outcome.is_some()
    }

    /// Returns the longest simulated response of an operation, in the transaction of its result.
    pub(super) fn operation(&self, assignment: &Assignment, operation: usize) -> Option<Time> {
        let transaction = assignment.analysis.operations[operation].transaction;
        self.longest(transaction, Work::Execution { operation })
    }

    /// Returns the longest simulated response of a work of a transaction.
    pub(super) fn longest(&self, transaction: usize, work: Work) -> Option<Time> {
        let activity = self.outcome.as_ref()?.activities.get(transaction)?;
        let mut works = activity.works.iter();
        works.find(|it| it.work == work).map(|it| it.longest)
    }
}

/// Returns the usual window, or a shorter one if it has many steps. `None` if each has too many.
fn short_window(schedule: &Schedule, assignment: &Assignment, runs: u64) -> Option<Time> {
    if runs == 0 {
        return None;
    }
    let steps = |window: Time| {
        let transactions = assignment.task_sets.transactions.iter();
        let each = transactions.map(|it| {
            let jobs = u128::from(window / it.transaction.period) + 1;
            jobs * it.works.len() as u128
        });
        each.sum::<u128>()
    };
    let first_arrival = if runs > 1 {
        activities(schedule).map(|(period, _)| period).max()
    } else {
        None
    };
    let least = longest_deadline(schedule).saturating_add(first_arrival.unwrap_or(0));
    let usual = usual_window(schedule, runs);
    let all = steps(usual).max(1);
    let fitting = u128::from(usual) * MOST_STEPS / all;
    let fitting = Time::try_from(fitting).unwrap_or(Time::MAX);
    let window = usual.min(fitting.max(least));
    (steps(window) <= 4 * MOST_STEPS).then_some(window)
}

/// The steps of a run that `check` makes, as far as the longest deadline lets it.
const MOST_STEPS: u128 = 200_000;

/// The periods and deadlines of all activities.
pub(super) fn activities(schedule: &Schedule) -> impl Iterator<Item = (Time, Time)> + '_ {
    let operations = schedule.operations.iter().filter_map(|it| {
        let period = it.period?;
        Some((period, it.deadline.unwrap_or(period)))
    });
    let transactions = schedule.transactions.iter();
    operations.chain(transactions.map(|it| (it.period, it.deadline)))
}

pub(super) fn longest_deadline(schedule: &Schedule) -> Time {
    let deadlines = activities(schedule).map(|(_, deadline)| deadline);
    deadlines.max().unwrap_or(0)
}

/// Returns the hyperperiod, or 20 of the longest periods if that is less. It holds a job of each
/// activity with its deadline: in random runs the first one arrives within its period.
pub(super) fn usual_window(schedule: &Schedule, runs: u64) -> Time {
    let periods = || activities(schedule).map(|(period, _)| period);
    let longest = periods().max().unwrap_or(1);
    let most = longest.saturating_mul(20);
    let multiple = periods().try_fold(1_u64, |all, period| {
        let (mut a, mut b) = (all, period);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        (all / a)
            .checked_mul(period)
            .filter(|multiple| *multiple <= most)
    });
    let first_arrival = if runs > 1 { longest } else { 0 };
    let least = longest_deadline(schedule).saturating_add(first_arrival);
    multiple.unwrap_or(most).max(least)
}
