//! Frames: executions of operations, and their calls.

use super::state::{Delivery, Event, OpenFrame, Then};
use super::{Machine, priority};
use crate::simulate::cpu::Urgency;
use crate::simulate::program::Point;
use crate::simulate::work::Work;

impl Machine<'_> {
    pub(super) fn frame(
        &mut self,
        job: usize,
        operation: usize,
        lane: Option<usize>,
        then: Then,
    ) -> usize {
        let base = priority(self.numbers.priorities[operation]);
        self.frames.insert(OpenFrame {
            of: Some((job, operation)),
            cpu: self.schedule.operations[operation].processor,
            lane,
            has_thread: false,
            then,
            points: self.programs[operation].points(&mut self.choices),
            next: 0,
            done: 0,
            base,
            urgency: Urgency {
                priority: base,
                turn: 0,
            },
            is_ready: false,
            holds: None,
        })
    }

    pub(super) fn begin_outside(&mut self, cpu: usize) {
        let operations = self
            .schedule
            .operations
            .iter()
            .zip(&self.numbers.priorities);
        let own = operations.filter(|(it, _)| it.processor == cpu);
        let least = own.map(|(_, priority)| *priority).min().unwrap_or(0);
        // It interrupts the least urgent operations only, and nothing interrupts it.
        let base = priority(least) + 1;
        let frame = self.frames.insert(OpenFrame {
            of: None,
            cpu,
            lane: None,
            has_thread: false,
            then: Then::Nothing,
            points: vec![(self.schedule.processors[cpu].blocking, Point::End)],
            next: 0,
            done: 0,
            base,
            urgency: Urgency {
                priority: base,
                turn: 0,
            },
            is_ready: false,
            holds: None,
        });
        self.make_ready(frame);
    }

    /// Lets a lane serve a request.
    pub(super) fn request(&mut self, job: usize, operation: usize, then: Then, may_be_late: bool) {
        let lane = self.numbers.lane_of[operation];
        let frame = self.frame(job, operation, Some(lane), then);
        let it = &self.schedule.operations[operation];
        let is_first = self.jobs[job].number == 0;
        let late = if may_be_late && it.period.is_none() {
            self.choices.delay(it.jitter, is_first)
        } else {
            0
        };
        if late > 0 {
            self.push(self.now.saturating_add(late), Event::Start { frame });
        } else {
            self.start(frame);
        }
    }

    /// Gives a frame a thread of its lane, or lets it wait.
    pub(super) fn start(&mut self, frame: usize) {
        let turn = self.next_turn();
        let it = &mut self.frames[frame];
        it.has_thread = true;
        let (Some(lane), Some((job, _))) = (it.lane, it.of) else {
            return;
        };
        let job = &self.jobs[job];
        let activity = &self.activities[job.activity];
        if self.lanes[lane].admit(frame, turn, activity, job.arrival) {
            self.make_ready(frame);
        }
    }

    pub(super) fn make_ready(&mut self, frame: usize) {
        self.resume(frame);
        self.block(frame);
    }

    /// Makes a frame ready whose release was delayed before, if at all.
    pub(super) fn resume(&mut self, frame: usize) {
        let turn = self.next_turn();
        let it = &mut self.frames[frame];
        it.is_ready = true;
        it.urgency.turn = turn;
        self.cpus[it.cpu].insert(frame, it.urgency);
        self.changed_cpus.insert(it.cpu);
    }

    /// Lets less urgent work that is executed go on before a frame that has become ready, for the
    /// blocking that its operation and all those between have.
    fn block(&mut self, frame: usize) {
        let it = &self.frames[frame];
        let (cpu, base) = (it.cpu, it.base);
        let own = it.of.map_or(0, |(_, operation)| {
            self.schedule.operations[operation].blocking
        });
        let Some(running) = self.cpus[cpu].running.filter(|_| own > 0) else {
            return;
        };
        self.count_execution(cpu);
        let it = &self.frames[running];
        // Work that holds a lock, or blocks another frame, has its own bound.
        if it.of.is_none() || it.holds.is_some() || it.urgency.priority != it.base {
            return;
        }
        let operations = self.schedule.operations.iter();
        let delayed = operations
            .zip(&self.numbers.priorities)
            .filter(|(other, level)| {
                let level = priority(**level);
                other.processor == cpu && it.base < level && level <= base
            });
        let most = delayed.map(|(other, _)| other.blocking).min().unwrap_or(0);
        let most = self.choices.taken(most);
        let it = &mut self.frames[running];
        let (next, _) = it.points[it.next];
        let end = next.min(it.done.saturating_add(most));
        if end > it.done {
            it.points.insert(it.next, (end, Point::Yield));
            self.move_to(running, base + 1);
        }
    }

    /// Takes a frame from its processor.
    pub(super) fn suspend(&mut self, frame: usize) {
        let cpu = self.frames[frame].cpu;
        if self.cpus[cpu].running == Some(frame) {
            self.stop(cpu);
        }
        let it = &mut self.frames[frame];
        it.is_ready = false;
        self.cpus[cpu].remove(frame, it.urgency);
        self.changed_cpus.insert(cpu);
    }

    /// Passes the points at which a frame is. Locks are taken only by the frame that its processor
    /// has chosen.
    pub(super) fn pass_points(&mut self, frame: usize, may_take: bool) {
        loop {
            let it = &mut self.frames[frame];
            let (at, point) = it.points[it.next];
            if at > it.done || (!may_take && matches!(point, Point::Take(_))) {
                return;
            }
            it.next += 1;
            match point {
                Point::Release => self.release_lock(frame),
                Point::Yield => {
                    self.set_priority(frame);
                    return;
                }
                Point::Call(call) => {
                    if self.call(frame, call) {
                        return;
                    }
                }
                Point::Take(lock) => {
                    self.take_lock(frame, lock);
                    return;
                }
                Point::End => {
                    self.end(frame);
                    return;
                }
            }
        }
    }

    /// Makes a call. Returns whether the frame waits for its reply.
    pub(super) fn call(&mut self, frame: usize, number: usize) -> bool {
        let Some((job, caller)) = self.frames[frame].of else {
            return false;
        };
        let schedule = self.schedule;
        let call = &schedule.operations[caller].calls[number];
        let operation = call.operation;
        if call.oneway {
            self.jobs[job].parts += 1;
        } else {
            self.suspend(frame);
        }
        let waiting = (!call.oneway).then_some((frame, number));
        match call.messages {
            Some(sent) => {
                let work = Work::Request { operation };
                let priority = self.numbers.priorities[operation];
                let route = (sent.link, Some(self.node_of(caller)), sent.request);
                let then = Delivery::Request {
                    operation,
                    caller: waiting,
                };
                self.send(job, work, priority, route, then);
            }
            None => self.deliver_request(job, operation, waiting),
        }
        !call.oneway
    }

    pub(super) fn deliver_request(
        &mut self,
        job: usize,
        operation: usize,
        caller: Option<(usize, usize)>,
    ) {
        let Some((caller, call)) = caller else {
            self.request(job, operation, Then::Nothing, true);
            return;
        };
        let then = Then::Reply { caller, call };
        let lane = self.numbers.lane_of[operation];
        let it = &self.frames[caller];
        let is_local = it.of.is_some_and(|(_, operation)| {
            self.schedule.operations[operation].calls[call]
                .messages
                .is_none()
        });
        if is_local && it.lane == Some(lane) {
            // The thread of the caller executes it.
            let frame = self.frame(job, operation, Some(lane), then);
            self.make_ready(frame);
        } else {
            self.request(job, operation, then, true);
        }
    }

    pub(super) fn end(&mut self, frame: usize) {
        self.suspend(frame);
        let Some(ended) = self.frames.remove(frame) else {
            return;
        };
        let Some((job, operation)) = ended.of else {
            return;
        };
        self.count_work(job, Work::Execution { operation });
        if let Some(lane) = ended.lane.filter(|_| ended.has_thread)
            && let Some(next) = self.lanes[lane].give_back()
        {
            self.make_ready(next);
        }
        match ended.then {
            Then::Reply { caller, call } => {
                let Some((_, calling)) = self.frames[caller].of else {
                    return;
                };
                let messages = self.schedule.operations[calling].calls[call].messages;
                match messages.and_then(|sent| Some((sent.link, sent.reply?))) {
                    Some((link, reply)) => {
                        let work = Work::Reply { operation };
                        let priority = self.numbers.priorities[operation];
                        let route = (link, Some(self.node_of(operation)), reply);
                        self.send(job, work, priority, route, Delivery::Reply { caller });
                    }
                    None => self.make_ready(caller),
                }
            }
            Then::Step { step } => self.step(job, step),
            Then::NextJob => {
                let activity = self.jobs[job].activity;
                self.end_part(job);
                self.releases[activity].busy -= 1;
                if let Some(next) = self.releases[activity].waiting.pop_front() {
                    self.release(next);
                }
            }
            Then::Nothing => self.end_part(job),
        }
    }

    pub(super) fn node_of(&self, operation: usize) -> usize {
        let processor = self.schedule.operations[operation].processor;
        self.schedule.processors[processor].node
    }
}
