//! Locks: taking, releasing, and the priorities of holders.

use std::cmp::Reverse;

use super::Machine;

impl Machine<'_> {
    pub(super) fn take_lock(&mut self, frame: usize, lock: usize) {
        self.close_slice(self.frames[frame].cpu);
        if let Some(holder) = self.locks[lock].holder {
            self.suspend(frame);
            self.locks[lock].waiting.push(frame);
            self.set_priority(holder);
        } else {
            self.locks[lock].holder = Some(frame);
            self.frames[frame].holds = Some(lock);
            self.set_priority(frame);
        }
    }

    /// Gives the lock of a frame to the most urgent frame that waits for it.
    pub(super) fn release_lock(&mut self, frame: usize) {
        self.close_slice(self.frames[frame].cpu);
        let Some(lock) = self.frames[frame].holds.take() else {
            return;
        };
        let waiting = self.locks[lock].waiting.iter().enumerate();
        let next = waiting.max_by_key(|(place, it)| (self.frames[**it].base, Reverse(*place)));
        let next = next.map(|(place, _)| place);
        let next = next.map(|place| self.locks[lock].waiting.remove(place));
        self.locks[lock].holder = next;
        self.set_priority(frame);
        if let Some(next) = next {
            self.frames[next].holds = Some(lock);
            self.resume(next);
            self.set_priority(next);
        }
    }

    /// Computes the priority of a frame with ceilings and inheritance.
    pub(super) fn set_priority(&mut self, frame: usize) {
        let it = &self.frames[frame];
        let mut priority = it.base;
        if let Some(lock) = it.holds.map(|lock| &self.locks[lock]) {
            let waiting = lock.waiting.iter().map(|it| self.frames[*it].base);
            priority = waiting.fold(priority.max(2 * lock.ceiling), u64::max);
        }
        self.move_to(frame, priority);
    }

    pub(super) fn move_to(&mut self, frame: usize, priority: u64) {
        let it = &mut self.frames[frame];
        let cpu = &mut self.cpus[it.cpu];
        if it.is_ready {
            cpu.remove(frame, it.urgency);
        }
        it.urgency.priority = priority;
        if it.is_ready {
            cpu.insert(frame, it.urgency);
            self.changed_cpus.insert(it.cpu);
        }
    }
}
