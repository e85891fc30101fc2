//! The thread of a class: protocol work driven by packets, periods and budgets.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_rt::{Monotonic, sleep_until};
use chronorb_transport::{Interest, Reactor};
use rustix::event::{PollFd, PollFlags, poll};

use super::class::ClassEngine;
use super::config::ClassProcessing;
use super::connection::Attendant;
use super::control::{Control, Order};
use crate::path::PathError;

/// Creates the set of events for the thread of a class that works on demand. All are
/// level-triggered.
pub(super) fn tasks(engine: &ClassEngine, control: &Control) -> io::Result<Reactor> {
    let tasks = Reactor::new()?;
    tasks.add(engine.packets(), PACKETS, Interest::Everyone)?;
    tasks.add(engine.alarm(), ALARM, Interest::Everyone)?;
    tasks.add(control, ORDER, Interest::Everyone)?;
    Ok(tasks)
}

/// Works until it is commanded to end, or the interface fails. All connections have ended then.
pub(super) fn work(
    engine: &ClassEngine,
    control: &Control,
    tasks: &Reactor,
    processing: ClassProcessing,
) {
    // A failure of the interface is visible by the end of the class.
    let _ = match processing {
        ClassProcessing::OnArrival => on_demand(engine, control, tasks, None),
        ClassProcessing::OnDemand { cap } => on_demand(engine, control, tasks, cap),
        ClassProcessing::Periodic { period, budget } => periodic(engine, control, period, budget),
    };
    // No thread works for the remaining connections, nor for those that are started later.
    control.end();
    engine.abort_all(Monotonic::now());
    engine.call_listeners();
}

/// Returns whether the thread may end.
fn is_done(engine: &ClassEngine, order: Order) -> bool {
    match order {
        Order::Work => false,
        Order::Finish => engine.used() == 0,
        Order::Hurry => !engine.owes(),
    }
}

fn on_demand(
    engine: &ClassEngine,
    control: &Control,
    tasks: &Reactor,
    cap: Option<(usize, Duration)>,
) -> Result<(), PathError> {
    let mut account = cap.map(|(cap, period)| Account::new(cap, period, Monotonic::now()));
    loop {
        let order = control.present();
        if is_done(engine, order) {
            return Ok(());
        }
        // At the end, the thread does not rely on lane threads, which may no longer wait.
        if order < Order::Hurry && control.is_attended() {
            // A signal ends the wait early, which does no harm.
            let _ = poll(&mut [PollFd::new(control, PollFlags::IN)], None);
            control.listen();
            continue;
        }
        let now = Monotonic::now();
        engine.drain_alarm(now);
        let budget = account
            .as_mut()
            .map_or(BATCH, |account| account.left(now).min(BATCH));
        let outcome = engine.step(now, budget, Attendant::Nobody)?;
        if let Some(account) = &mut account {
            account.take(outcome.packets);
            let used = account.budget - account.left;
            engine.publisher.as_ref().inspect(|it| it.budget_used(used));
            if account.left == 0 {
                engine.counters.exhausted.fetch_add(1, Ordering::Relaxed);
                sleep_until(account.end());
                let missed = account.begin(Monotonic::now());
                engine
                    .counters
                    .overruns
                    .fetch_add(missed, Ordering::Relaxed);
                continue;
            }
        }
        // This step may have met the condition to end, and no further event would wake the thread.
        if !outcome.has_more && !is_done(engine, order) {
            let event = tasks.wait(None)?;
            if event.is_some_and(|event| event.token == ORDER) {
                control.listen();
            }
        }
    }
}

fn periodic(
    engine: &ClassEngine,
    control: &Control,
    period: Duration,
    budget: usize,
) -> Result<(), PathError> {
    let mut account = Account::new(budget, period, Monotonic::now());
    while !is_done(engine, control.present()) {
        let now = Monotonic::now();
        engine.drain_alarm(now);
        let missed = account.begin(now);
        engine
            .counters
            .overruns
            .fetch_add(missed, Ordering::Relaxed);
        let outcome = engine.step(now, budget, Attendant::Nobody)?;
        if let Some(publisher) = &engine.publisher {
            publisher.period();
            publisher.budget_used(outcome.packets);
        }
        if outcome.has_more {
            engine.counters.exhausted.fetch_add(1, Ordering::Relaxed);
        }
        sleep_until(account.end());
    }
    Ok(())
}

/// A budget of packets for each period, by an absolute clock.
#[derive(Debug)]
pub(super) struct Account {
    budget: usize,
    period: Duration,
    left: usize,
    /// The end of the present period.
    end: Monotonic,
}

impl Account {
    pub(super) fn new(budget: usize, period: Duration, now: Monotonic) -> Self {
        Self {
            budget,
            period,
            left: budget,
            end: now + period,
        }
    }

    /// Returns the rest of the budget at this time.
    pub(super) fn left(&mut self, now: Monotonic) -> usize {
        if now >= self.end {
            self.begin(now);
        }
        self.left
    }

    /// Records that this many packets of the budget were used.
    pub(super) fn take(&mut self, packets: usize) {
        self.left = self.left.saturating_sub(packets);
    }

    /// Returns the end of the present period.
    pub(super) const fn end(&self) -> Monotonic {
        self.end
    }

    /// Begins the period at this time, which may be the next one. Returns the number of periods
    /// that were missed altogether.
    pub(super) fn begin(&mut self, now: Monotonic) -> u64 {
        self.left = self.budget;
        let late = now.since(self.end).as_nanos();
        if now < self.end {
            return 0;
        }
        let missed = u64::try_from(late / self.period.as_nanos().max(1)).unwrap_or(u64::MAX);
        let periods = u32::try_from(missed.saturating_add(1)).unwrap_or(u32::MAX);
        self.end = self.end + self.period * periods;
        missed
    }
}

/// The number of packets processed between two checks of other events.
const BATCH: usize = 64;
const PACKETS: u64 = 0;
const ALARM: u64 = 1;
const ORDER: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(10);

    fn at(milliseconds: u64) -> Monotonic {
        Monotonic::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn periods_keep_to_the_clock_and_missed_ones_are_counted() {
        let mut account = Account::new(8, PERIOD, at(0));
        assert_eq!(account.begin(at(1)), 0, "the first has not ended");
        assert_eq!(account.end, at(10));
        assert_eq!(account.begin(at(12)), 0, "late, but within the next");
        assert_eq!(account.end, at(20));
        assert_eq!(account.begin(at(45)), 2, "those from 20 and from 30");
        assert_eq!(account.end, at(50));
    }

    #[test]
    fn a_budget_is_there_again_with_the_next_period() {
        let mut account = Account::new(8, PERIOD, at(0));
        account.left = 0;
        assert_eq!(account.left(at(9)), 0);
        assert_eq!(account.left(at(10)), 8);
    }
}
