//! Jobs: arrivals, releases, and what of them is done.

use super::Machine;
use super::state::{Delivery, Event, Job, Then};
use crate::schedule::{DeclaredStep, Schedule};
use crate::simulate::work::Work;
use crate::simulate::works::Source;

impl Machine<'_> {
    pub(super) fn arrive(&mut self, activity: usize) {
        let it = &self.activities[activity];
        let (period, jitter) = (it.period, it.jitter);
        if self.now.saturating_add(it.deadline) <= self.rules.window {
            self.counted[activity] += 1;
        }
        let releases = &mut self.releases[activity];
        let number = releases.next;
        releases.next += 1;
        let delay = self.choices.delay(jitter, number == 0);
        let release = self.now.saturating_add(delay).max(releases.last);
        releases.last = release;
        let job = self.jobs.insert(Job {
            activity,
            number,
            arrival: self.now,
            done: vec![0; it.works.len()],
            parts: 1,
        });
        self.push(release, Event::Release { job });
        let gap = self.choices.gap(period);
        if let Some(next) = self
            .now
            .checked_add(period)
            .and_then(|it| it.checked_add(gap))
        {
            self.push(next, Event::Arrive { activity });
        }
    }

    pub(super) fn release(&mut self, job: usize) {
        let activity = self.jobs[job].activity;
        let operation = match self.activities[activity].source {
            Source::Transaction(_) => {
                self.step(job, 0);
                return;
            }
            Source::Operation(operation) => operation,
        };
        let releases = &mut self.releases[activity];
        match releases.threads {
            None => self.request(job, operation, Then::Nothing, false),
            Some(threads) if releases.busy == threads => releases.waiting.push_back(job),
            Some(_) => {
                releases.busy += 1;
                let frame = self.frame(job, operation, None, Then::NextJob);
                self.make_ready(frame);
            }
        }
    }

    /// Begins a step of a transaction, or ends it.
    pub(super) fn step(&mut self, job: usize, step: usize) {
        let Source::Transaction(number) = self.activities[self.jobs[job].activity].source else {
            return;
        };
        let schedule = self.schedule;
        let steps = &schedule.transactions[number].steps;
        match steps.get(step) {
            None => self.end_part(job),
            Some(DeclaredStep::Operation { operation }) => {
                let then = Then::Step { step: step + 1 };
                self.request(job, *operation, then, true);
            }
            Some(DeclaredStep::Message { link, length }) => {
                let node = sending_node(schedule, steps, step);
                let then = Delivery::Step { step: step + 1 };
                let work = Work::Message { step };
                let activity = &self.activities[self.jobs[job].activity];
                let priority = activity.works[activity.index[&work]].priority;
                self.send(job, work, priority, (*link, node, *length), then);
            }
        }
    }

    pub(super) fn end_part(&mut self, job: usize) {
        self.jobs[job].parts -= 1;
        if self.jobs[job].parts == 0 {
            self.jobs.remove(job);
        }
    }

    pub(super) fn count_work(&mut self, job: usize, work: Work) {
        let job = &mut self.jobs[job];
        let activity = &mut self.activities[job.activity];
        let Some(index) = activity.index.get(&work).copied() else {
            return;
        };
        job.done[index] += 1;
        let outcome = &mut activity.works[index];
        let response = self.now - job.arrival;
        outcome.longest = outcome.longest.max(response);
        if job.arrival.saturating_add(outcome.deadline) <= self.rules.window {
            if response <= outcome.deadline {
                outcome.met += 1;
            } else {
                outcome.missed += 1;
            }
        }
    }
}

/// Returns the node of the last operation before a declared message.
pub(super) fn sending_node(
    schedule: &Schedule,
    steps: &[DeclaredStep],
    step: usize,
) -> Option<usize> {
    let last = steps[..step].iter().rev().find_map(|step| match step {
        DeclaredStep::Operation { operation } => Some(*operation),
        DeclaredStep::Message { .. } => None,
    });
    last.map(|it| schedule.processors[schedule.operations[it].processor].node)
}
