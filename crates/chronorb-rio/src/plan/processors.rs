//! Processor time: response times of fixed priorities, and utilisation.
//!
//! Each class is analysed as if it shared one processor with all classes that can run there: those
//! bound to it, and those that may run anywhere. On a machine with more processors that is safe: if
//! no more urgent work would be left on the single processor, none is left in reality, so no class
//! finishes later than computed. A class that may run anywhere gets the best of the processors that
//! the plan names.

use std::time::Duration;

use super::refusal::{Refusal, Warning, Why};
use super::reservation::{Cap, Policy, Processing, Reservation};
use super::response::{BILLION, Task, response, share};

/// The results of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    pub(super) utilisation: Option<f64>,
    pub(super) response: Option<Duration>,
}

/// Analyses the classes, the most urgent one first.
pub(super) fn analyse(
    ranked: &[&Reservation],
    refusals: &mut Vec<Refusal>,
    warnings: &mut Vec<Warning>,
) -> Vec<Cpu> {
    let without_cost = ranked.iter().filter(|class| class.cost.is_none());
    let names: Vec<_> = without_cost.map(|class| class.name.clone()).collect();
    if !names.is_empty() {
        warnings.push(Warning::NoCost(names));
    }
    unbounded(ranked, refusals);
    overload(ranked, refusals);
    rate_monotonic(ranked, warnings);
    ranked
        .iter()
        .map(|class| Cpu {
            utilisation: class.task().map(|task| fraction(task.share())),
            response: respond(ranked, class, refusals),
        })
        .collect()
}

impl Reservation {
    /// Returns the rank by which classes compete for a processor; a greater one is served first.
    pub(super) fn urgency(&self) -> (u8, u8) {
        match self.policy {
            Policy::Deadline => (2, 0),
            Policy::Fifo | Policy::RoundRobin => (1, self.priority),
            Policy::Other => (0, 0),
        }
    }

    /// Returns the class's periodic task; `None` if it is unbounded, or its cost is unknown.
    fn task(&self) -> Option<Task> {
        self.bound().and_then(|bound| self.task_of(bound))
    }

    fn task_of(&self, bound: Cap) -> Option<Task> {
        let cost = nanos(self.cost?).saturating_mul(bound.packets.into());
        let period = nanos(bound.period);
        let jitter = match (self.processing, self.policy) {
            // The work is released at the start of the period and runs at its priority.
            (Processing::Periodic { .. }, Policy::Fifo | Policy::RoundRobin) => 0,
            // All of the work may run at the end of a period, and again at the start of the next
            // one.
            _ => period.saturating_sub(cost),
        };
        Some(Task {
            cost,
            period,
            jitter,
        })
    }

    /// Returns whether the class can run on this processor. `None` is a processor that no class is
    /// bound to.
    fn runs_on(&self, cpu: Option<usize>) -> bool {
        self.cpu.is_none() || self.cpu == cpu
    }
}

/// Returns the processors to analyse for a class: its own, or each that the plan names.
fn processors(ranked: &[&Reservation], class: &Reservation) -> Vec<Option<usize>> {
    if class.cpu.is_some() {
        return vec![class.cpu];
    }
    let mut named: Vec<_> = ranked
        .iter()
        .map(|it| it.cpu)
        .filter(Option::is_some)
        .collect();
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        named.push(None);
    }
    named
}

/// Computes the response time of a class with fixed priority. The class is refused if it is longer
/// than the period.
fn respond(
    ranked: &[&Reservation],
    class: &Reservation,
    refusals: &mut Vec<Refusal>,
) -> Option<Duration> {
    let bound = class.bound()?;
    match class.policy {
        Policy::Other => return None,
        // Either all deadline classes keep their periods, or they are refused together.
        Policy::Deadline => return class.cost.map(|_| bound.period),
        Policy::Fifo | Policy::RoundRobin => {}
    }
    let best = |packets| best_response(ranked, class, Cap { packets, ..bound });
    match best(bound.packets)? {
        Ok(nanos) => Some(Duration::from_nanos(nanos)),
        Err(at_least) => {
            let fits = most(bound.packets, |packets| {
                matches!(best(packets), Some(Ok(_)))
            });
            refusals.push(Refusal::of(
                class,
                Why::Late {
                    at_least: Duration::from_nanos(at_least),
                    period: bound.period,
                    fits,
                },
            ));
            None
        }
    }
}

/// Returns the least response time over the analysed processors; `None` if it is unknown on all of
/// them.
fn best_response(
    ranked: &[&Reservation],
    class: &Reservation,
    bound: Cap,
) -> Option<Result<u64, u64>> {
    let task = class.task_of(bound)?;
    let responses = processors(ranked, class).into_iter().filter_map(|cpu| {
        let others = || {
            let others = ranked.iter().filter(|other| other.name != class.name);
            others.filter(|other| other.runs_on(cpu))
        };
        let above: Option<Vec<_>> = (others())
            .filter(|other| other.urgency() >= class.urgency())
            .map(|other| other.task())
            .collect();
        let below = others().filter(|other| other.urgency() < class.urgency());
        let blocking = below.filter_map(|other| other.cost).max().map_or(0, nanos);
        Some(response(task.cost, task.period, blocking, &above?))
    });
    responses.min_by_key(|response| response.map_or_else(|late| (1, late), |time| (0, time)))
}

/// Refuses real-time classes without a bound if they delay classes that have one.
fn unbounded(ranked: &[&Reservation], refusals: &mut Vec<Refusal>) {
    let without = ranked
        .iter()
        .filter(|class| class.is_real_time() && class.bound().is_none());
    for class in without {
        let held_up = ranked.iter().find(|other| {
            let is_guaranteed = other.is_real_time() && other.bound().is_some();
            let meet = |cpu| class.runs_on(cpu);
            is_guaranteed
                && other.urgency() <= class.urgency()
                && processors(ranked, other).into_iter().all(meet)
        });
        if let Some(other) = held_up {
            let why = Why::Unbounded {
                processing: class.processing,
                other: other.name.clone(),
                priority: other.priority,
            };
            refusals.push(Refusal::of(class, why));
        }
    }
}

/// Refuses classes beyond the real-time share: on each named processor, the classes bound to it; on
/// the best processor, all classes that may run there. Deadline classes must fit even if other work
/// that has begun blocks them.
fn overload(ranked: &[&Reservation], refusals: &mut Vec<Refusal>) {
    let real_time = || ranked.iter().filter(|class| class.is_real_time());
    let share_of = |classes: &[&Reservation]| {
        let tasks = classes.iter().filter_map(|class| class.task());
        tasks.map(|task| task.share()).sum::<u128>()
    };
    let mut named: Vec<_> = ranked.iter().filter_map(|class| class.cpu).collect();
    named.sort_unstable();
    named.dedup();
    let bound_to = |cpu| -> Vec<_> {
        real_time()
            .filter(|it| it.cpu == Some(cpu))
            .copied()
            .collect()
    };
    let anywhere: Vec<_> = real_time().filter(|it| it.cpu.is_none()).copied().collect();
    for cpu in &named {
        let classes = bound_to(*cpu);
        refusals.extend(too_much(&classes, share_of(&classes), Some(*cpu)));
    }
    let least = named.iter().map(|cpu| share_of(&bound_to(*cpu)));
    let before = least.min().unwrap_or(0);
    if before <= REAL_TIME_BILLIONTHS {
        let share = before + share_of(&anywhere);
        refusals.extend(too_much(&anywhere, share, None));
    }
    let deadlines: Vec<_> = anywhere
        .into_iter()
        .filter(|class| class.policy == Policy::Deadline)
        .collect();
    let others = ranked
        .iter()
        .filter(|class| class.policy != Policy::Deadline);
    let blocking = others.filter_map(|class| class.cost).max().map_or(0, nanos);
    let periods = deadlines.iter().filter_map(|class| class.task());
    let shortest = periods.map(|task| task.period).min().unwrap_or(u64::MAX);
    let without_blocking = share_of(&deadlines);
    if without_blocking <= REAL_TIME_BILLIONTHS {
        let share = without_blocking + share(blocking, shortest);
        refusals.extend(too_much(&deadlines, share, None));
    }
}

/// Refuses the least urgent of classes that together exceed the share.
fn too_much(classes: &[&Reservation], share: u128, cpu: Option<usize>) -> Option<Refusal> {
    if share <= REAL_TIME_BILLIONTHS {
        return None;
    }
    let last = classes.iter().rev().find(|class| class.task().is_some())?;
    let bound = last.bound()?;
    let others = share - last.task()?.share();
    let fits = most(bound.packets, |packets| {
        let task = last.task_of(Cap { packets, ..bound });
        task.is_some_and(|task| others + task.share() <= REAL_TIME_BILLIONTHS)
    });
    let share = fraction(share);
    Some(Refusal::of(last, Why::Overload { cpu, share, fits }))
}

/// Warns of a longer period with a higher priority than a shorter one.
fn rate_monotonic(ranked: &[&Reservation], warnings: &mut Vec<Warning>) {
    let periodic = || {
        let fixed = ranked.iter().filter(|class| class.urgency().0 == 1);
        fixed.filter_map(|class| Some((class, class.bound()?.period)))
    };
    for (class, period) in periodic() {
        let shorter = periodic().find(|(other, other_period)| {
            let share_processor = class.cpu.is_none() || other.runs_on(class.cpu);
            other.urgency() < class.urgency() && *other_period < period && share_processor
        });
        if let Some((other, _)) = shorter {
            warnings.push(Warning::Order {
                longer: class.name.clone(),
                shorter: other.name.clone(),
            });
        }
    }
}

/// Returns the greatest number of packets below `asked` that fits, or 0. `fits` is monotonic.
pub(super) fn most(asked: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut good, mut bad) = (0, asked);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Converts a share in billionths to a fraction of 1.
fn fraction(share: u128) -> f64 {
    share as f64 / BILLION as f64
}

/// The maximum share of a processor that Linux gives to real-time threads (the default of
/// `kernel.sched_rt_runtime_us`).
pub(super) const REAL_TIME_SHARE: f64 = REAL_TIME_BILLIONTHS as f64 / BILLION as f64;
const REAL_TIME_BILLIONTHS: u128 = 950_000_000;
