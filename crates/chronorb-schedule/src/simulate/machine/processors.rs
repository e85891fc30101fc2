//! Processors: the choice of frames, and their slices.

use super::state::Event;
use super::{MAX_SLICES, Machine};
use crate::schedule::Time;
use crate::simulate::run::WorkSlice;
use crate::simulate::work::Work;
use crate::task_sets::ResourceKind;

impl Machine<'_> {
    /// Lets processors and links choose until nothing changes.
    pub(super) fn choose(&mut self) {
        loop {
            if let Some(cpu) = self.changed_cpus.pop_first() {
                self.choose_frame(cpu);
            } else if let Some((link, node)) = self.changed_ports.pop_first() {
                self.choose_packet(link, node);
            } else {
                return;
            }
        }
    }

    pub(super) fn choose_frame(&mut self, cpu: usize) {
        self.count_execution(cpu);
        loop {
            let first = self.cpus[cpu].first();
            if self.cpus[cpu].running != first {
                self.stop(cpu);
                self.cpus[cpu].running = first;
                self.cpus[cpu].since = self.now;
                self.cpus[cpu].opened = self.now;
            }
            let Some(frame) = first else {
                return;
            };
            let it = &self.frames[frame];
            if it.of.is_none() {
                self.move_to(frame, u64::MAX);
            }
            let it = &self.frames[frame];
            let (at, _) = it.points[it.next];
            if at <= it.done {
                self.pass_points(frame, true);
                continue;
            }
            let due = self.now.saturating_add(at - it.done);
            if self.cpus[cpu].due != Some(due) {
                self.cpus[cpu].due = Some(due);
                self.push(due, Event::Due { cpu });
            }
            self.changed_cpus.remove(&cpu);
            return;
        }
    }

    /// Counts the execution of the running frame up to now.
    pub(super) fn count_execution(&mut self, cpu: usize) {
        let it = &mut self.cpus[cpu];
        if let Some(frame) = it.running {
            self.frames[frame].done += self.now - it.since;
            it.since = self.now;
        }
    }

    pub(super) fn stop(&mut self, cpu: usize) {
        self.count_execution(cpu);
        self.close_slice(cpu);
        self.cpus[cpu].running = None;
    }

    /// Records the execution since the last slice.
    pub(super) fn close_slice(&mut self, cpu: usize) {
        let it = &mut self.cpus[cpu];
        let start = std::mem::replace(&mut it.opened, self.now);
        let Some(frame) = it.running else { return };
        let it = &self.frames[frame];
        let Some((job, operation)) = it.of else {
            return;
        };
        let locked = it.holds.is_some();
        let work = Work::Execution { operation };
        self.record(ResourceKind::Processor(cpu), job, work, start, locked);
    }

    pub(super) fn record(
        &mut self,
        resource: ResourceKind,
        job: usize,
        work: Work,
        start: Time,
        locked: bool,
    ) {
        if self.rules.record && start < self.now && self.slices.len() < MAX_SLICES {
            let job = &self.jobs[job];
            self.slices.push(WorkSlice {
                resource,
                activity: job.activity,
                job: job.number,
                work,
                start,
                end: self.now,
                locked,
            });
        }
    }
}
