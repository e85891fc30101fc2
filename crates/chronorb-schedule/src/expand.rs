//! The expansion of operations and their calls into transactions.

use std::collections::{HashMap, HashSet};

use chronorb_sched::{
    LockProtocol, Preemption, Resource, Section, Step, Task, Time, Transaction, assign_blocking,
};

use crate::assign::Assignment;
use crate::error::ScheduleError;
use crate::frames::{Frame, ThreadPools};
use crate::pieces::Pieces;
use crate::schedule::{Call, DeclaredStep, LaneOrder, MessageLength, Schedule};
use crate::task_sets::{
    LockRequest, NamedTransaction, ResourceKind, SharedResource, StepWork, TaskSets,
};

impl Schedule {
    /// Returns the task sets of the schedule with a priority for each operation, and then for each
    /// transaction of messages only; a greater one is more urgent. Other messages have the priority
    /// of the operation that they call.
    ///
    /// An operation that makes calls has a step before and after each of them. After a one-way call
    /// the rest of the caller and the called operation both follow the same step, so they can delay
    /// each other. The overhead of the node is added to each step that a thread begins: not to the
    /// one after a one-way call.
    ///
    /// A request gets a thread of its lane, and keeps it while its operation waits for calls
    /// ([`threads`](crate::TaskSets::frames)).
    ///
    /// The operations of a lane with the order [`LaneOrder::Deadline`] are ordered by the deadlines
    /// of their transactions, if they take no locks and wait for no calls. Otherwise a thread of
    /// the lane can begin a request while another one is suspended.
    ///
    /// # Errors
    /// [`ScheduleError`] for calls without end, a lock on several processors of a node by
    /// inheritance, and more than 20,000 steps.
    ///
    /// # Panics
    /// If `priorities` has not [`priority_count`](Self::priority_count) values.
    pub fn to_task_sets(&self, priorities: &[u32]) -> Result<TaskSets, ScheduleError> {
        assert_eq!(
            priorities.len(),
            self.priority_count(),
            "one priority for each operation and transaction of messages"
        );
        self.refuse_cycles()?;
        let blocking = self.blocking(priorities)?;
        let links = self.link_resources();
        let is_ordered = self.ordered(priorities);
        let pools = ThreadPools::new(self, priorities);
        let mut frames = Vec::new();
        let mut left = MAX_STEPS;
        let mut transactions = Vec::new();
        for (number, operation) in self.operations.iter().enumerate() {
            let Some(period) = operation.period else {
                continue;
            };
            let mut expansion = Expansion::new(self, priorities, &blocking, &links, &mut left);
            expansion.operation(number, Origin::START, None);
            let deadline = operation.deadline.unwrap_or(period);
            let times = (period, deadline, operation.jitter);
            expansion.give_frames(transactions.len(), &mut frames);
            transactions.push(expansion.finish(&operation.name, times, &is_ordered, false)?);
        }
        let mut of_messages = priorities[self.operations.len()..].iter();
        for declared in &self.transactions {
            let own = declared.has_only_messages();
            let own = own.then(|| of_messages.next().copied()).flatten();
            let mut expansion = Expansion::new(self, priorities, &blocking, &links, &mut left);
            let mut before = None;
            for (position, step) in declared.steps.iter().enumerate() {
                before = match step {
                    DeclaredStep::Operation { operation } => {
                        let branch = (!expansion.frames.is_empty()).then_some(0);
                        let origin = Origin {
                            caller: None,
                            branch,
                        };
                        expansion.operation(*operation, origin, before)
                    }
                    DeclaredStep::Message { link, length } => {
                        let called = || message_priority(&declared.steps, position, priorities);
                        let priority = own.unwrap_or_else(called);
                        let sender = self.sender(&declared.steps, position);
                        let route = (*link, sender);
                        expansion.message(route, *length, priority, StepWork::Message, before)
                    }
                };
            }
            let times = (declared.period, declared.deadline, declared.jitter);
            expansion.give_frames(transactions.len(), &mut frames);
            transactions.push(expansion.finish(&declared.name, times, &is_ordered, true)?);
        }
        let mut sets = TaskSets {
            requests: LockRequest::all(self, &transactions, &frames, priorities),
            resources: self.resources(),
            transactions,
            frames,
            pools,
        };
        sets.mark_suspended();
        Ok(sets)
    }

    /// Returns the transaction of an operation that a further client calls, with all calls that it
    /// makes: a part of a session for [`AdmissionControl`](chronorb_sched::AdmissionControl). The
    /// message of the call itself is left out.
    ///
    /// # Errors
    /// As for [`to_task_sets`](Self::to_task_sets).
    ///
    /// # Panics
    /// If the assignment is of another schedule.
    pub fn further_calls(
        &self,
        assignment: &Assignment,
        operation: usize,
        (period, deadline): (Time, Time),
    ) -> Result<Transaction, ScheduleError> {
        let priorities = assignment.band_ranks();
        self.refuse_cycles()?;
        let blocking = self.blocking(&priorities)?;
        let links = self.link_resources();
        let mut left = MAX_STEPS;
        let mut expansion = Expansion::new(self, &priorities, &blocking, &links, &mut left);
        expansion.operation(operation, Origin::START, None);
        let name = &self.operations[operation].name;
        let calls = expansion.finish(
            name,
            (period, deadline, 0),
            &self.ordered(&priorities),
            false,
        )?;
        Ok(calls.transaction)
    }

    fn resources(&self) -> Vec<SharedResource> {
        let processors = self
            .processors
            .iter()
            .enumerate()
            .map(|(index, it)| SharedResource {
                name: it.name.clone(),
                kind: ResourceKind::Processor(index),
                resource: Resource {
                    preemption: Preemption::Preemptive,
                    blocking: it.blocking,
                },
            });
        let links = self.links.iter().enumerate().flat_map(|(index, it)| {
            let directions = self.directions(index).into_iter();
            directions.map(move |sender| SharedResource {
                name: match sender {
                    None => it.name.clone(),
                    Some(sender) => format!("{} from {}", it.name, self.nodes[sender].name),
                },
                kind: ResourceKind::Link(index),
                resource: Resource {
                    preemption: Preemption::NonPreemptive,
                    blocking: it.blocking,
                },
            })
        });
        processors.chain(links).collect()
    }

    fn link_resources(&self) -> Vec<LinkResources> {
        let mut next = self.processors.len();
        let each = (0..self.links.len()).map(|link| {
            let directions = self.directions(link);
            let first = next;
            next += directions.len();
            LinkResources { first, directions }
        });
        each.collect()
    }

    /// Returns whether each operation is served in the order of deadlines, as all others of its
    /// processor and priority.
    fn ordered(&self, priorities: &[u32]) -> Vec<bool> {
        let level = |it: usize| (self.operations[it].processor, priorities[it]);
        let all = || 0..self.operations.len();
        let is_by_deadline = |lane: usize| self.lanes[lane].order == Some(LaneOrder::Deadline);
        let mut lanes: HashMap<_, HashSet<_>> = HashMap::new();
        for it in all() {
            lanes
                .entry(level(it))
                .or_default()
                .extend(self.operations[it].lane);
        }
        let suspended: HashSet<_> = all()
            .filter(|it| {
                let it = &self.operations[*it];
                !it.locks.is_empty() || it.calls.iter().any(|call| !call.oneway)
            })
            .map(level)
            .collect();
        // An operation without a lane joins the one of its level.
        all()
            .map(|it| {
                let lanes = &lanes[&level(it)];
                let is_one = lanes.len() == 1 && lanes.iter().all(|lane| is_by_deadline(*lane));
                is_one && !suspended.contains(&level(it))
            })
            .collect()
    }

    /// Returns the blocking of each operation by locks that only operations of its processor take.
    fn blocking(&self, priorities: &[u32]) -> Result<Vec<Time>, ScheduleError> {
        let mut blocking = vec![0; self.operations.len()];
        let shared = self.shared_locks();
        let key = |operation: usize, lock| {
            let processor = self.operations[operation].processor;
            (self.processors[processor].node, lock)
        };
        if self.rules.locks == LockProtocol::Inheritance
            && let Some((node, lock)) = shared.iter().min()
        {
            let users = (0..self.operations.len()).filter(|it| {
                let mut locks = self.operations[*it].locks.iter();
                locks.any(|used| key(*it, used.lock.as_str()) == (*node, lock))
            });
            let mut processors: Vec<_> = users.map(|it| self.operations[it].processor).collect();
            processors.dedup();
            return Err(ScheduleError::SharedLock {
                lock: (*lock).to_owned(),
                first: self.processors[processors[0]].name.clone(),
                second: self.processors[processors[1]].name.clone(),
            });
        }
        for processor in 0..self.processors.len() {
            let own = (0..self.operations.len())
                .filter(|operation| self.operations[*operation].processor == processor);
            let own: Vec<_> = own.collect();
            let mut tasks = Vec::with_capacity(own.len());
            let mut sections = Vec::new();
            let mut numbers: HashMap<&str, usize> = HashMap::new();
            for (task, operation) in own.iter().enumerate() {
                let priority = priorities[*operation];
                tasks.push(Task::new(1, 1).with_priority(priority));
                let locks = self.operations[*operation].locks.iter();
                let local = locks.filter(|it| !shared.contains(&key(*operation, &it.lock)));
                for it in local {
                    let next = numbers.len();
                    sections.push(Section {
                        task,
                        lock: *numbers.entry(it.lock.as_str()).or_insert(next),
                        length: it.time,
                    });
                }
            }
            if sections.is_empty() {
                continue;
            }
            let result = assign_blocking(&mut tasks, &sections, self.rules.locks);
            result.map_err(|source| ScheduleError::Analysis {
                subject: format!("the locks of processor {}", self.processors[processor].name),
                source,
            })?;
            // By inheritance, work outside of the file can delay a job, and then a lock.
            let outside = match self.rules.locks {
                LockProtocol::Inheritance => self.processors[processor].blocking,
                LockProtocol::Ceiling => 0,
            };
            for (task, operation) in tasks.iter().zip(own) {
                blocking[operation] = task.blocking.saturating_add(outside);
            }
        }
        Ok(blocking)
    }

    /// Returns the blocking of an operation by its own value and by locks, of which it has the
    /// blocking. By inheritance each can delay a job, and so can work outside of the file.
    fn with_own_blocking(&self, operation: usize, by_locks: Time) -> Time {
        let it = &self.operations[operation];
        match (it.blocking, self.rules.locks) {
            (0, _) => by_locks,
            (own, LockProtocol::Ceiling) => by_locks.max(own),
            (own, LockProtocol::Inheritance) => {
                let outside = self.processors[it.processor].blocking;
                by_locks.max(outside).saturating_add(own)
            }
        }
    }

    /// Refuses operations that call themselves, directly or by others.
    fn refuse_cycles(&self) -> Result<(), ScheduleError> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Closed,
        }
        let mut states = vec![State::New; self.operations.len()];
        for start in 0..self.operations.len() {
            if states[start] != State::New {
                continue;
            }
            // The operations that are open, each with the number of its next call.
            let mut path = vec![(start, 0)];
            states[start] = State::Open;
            while let Some((operation, next)) = path.last_mut() {
                let Some(call) = self.operations[*operation].calls.get(*next) else {
                    states[*operation] = State::Closed;
                    path.pop();
                    continue;
                };
                *next += 1;
                let called = call.operation;
                match states[called] {
                    State::Closed => {}
                    State::New => {
                        states[called] = State::Open;
                        path.push((called, 0));
                    }
                    State::Open => {
                        let open = path.iter().map(|(operation, _)| *operation);
                        let cycle = open.skip_while(|operation| *operation != called);
                        let names = cycle.chain([called]);
                        let names = names.map(|it| self.operations[it].name.clone());
                        return Err(ScheduleError::Cycle {
                            operations: names.collect(),
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// The steps of all transactions, at most.
const MAX_STEPS: usize = 20_000;
/// The calls within calls, at most.
const MAX_DEPTH: usize = 200;

/// A message has the priority of the operation after it, or of the last one before it.
fn message_priority(steps: &[DeclaredStep], position: usize, priorities: &[u32]) -> u32 {
    let executed = |step: &DeclaredStep| match step {
        DeclaredStep::Operation { operation } => Some(priorities[*operation]),
        DeclaredStep::Message { .. } => None,
    };
    let after = steps[position..].iter().find_map(executed);
    let before = || steps[..position].iter().rev().find_map(executed);
    after.or_else(before).unwrap_or(0)
}

/// The resources of a link.
struct LinkResources {
    /// The index of the one of the first direction.
    first: usize,
    /// The node that sends in each direction.
    directions: Vec<Option<usize>>,
}

/// The frame that makes a call.
#[derive(Clone, Copy)]
struct Origin {
    /// The frame that waits.
    caller: Option<usize>,
    /// The frame with which its branch begins.
    branch: Option<usize>,
}

impl Origin {
    /// No frame waits: a branch of its own.
    const START: Self = Self {
        caller: None,
        branch: None,
    };
}

/// The steps of one transaction.
struct Expansion<'a> {
    schedule: &'a Schedule,
    priorities: &'a [u32],
    blocking: &'a [Time],
    links: &'a [LinkResources],
    steps: Vec<Step>,
    works: Vec<StepWork>,
    frames: Vec<Frame>,
    /// The steps that the schedule may still have.
    left: &'a mut usize,
    depth: usize,
    is_too_long: bool,
    is_too_deep: bool,
}

impl<'a> Expansion<'a> {
    const fn new(
        schedule: &'a Schedule,
        priorities: &'a [u32],
        blocking: &'a [Time],
        links: &'a [LinkResources],
        left: &'a mut usize,
    ) -> Self {
        Self {
            schedule,
            priorities,
            blocking,
            links,
            steps: Vec::new(),
            works: Vec::new(),
            frames: Vec::new(),
            left,
            depth: 0,
            is_too_long: false,
            is_too_deep: false,
        }
    }

    fn finish(
        mut self,
        name: &str,
        (period, deadline, jitter): (Time, Time, Time),
        is_ordered: &[bool],
        is_declared: bool,
    ) -> Result<NamedTransaction, ScheduleError> {
        if self.is_too_deep {
            return Err(ScheduleError::TooDeep {
                transaction: name.to_owned(),
                limit: MAX_DEPTH,
            });
        }
        if self.is_too_long {
            return Err(ScheduleError::TooManySteps {
                transaction: name.to_owned(),
                limit: MAX_STEPS,
            });
        }
        for (step, work) in self.steps.iter_mut().zip(&self.works) {
            let is_ordered = work.executed().is_some_and(|it| is_ordered[it]);
            step.order = is_ordered.then_some(deadline);
        }
        Ok(NamedTransaction {
            name: name.to_owned(),
            transaction: Transaction {
                period,
                deadline,
                jitter,
                steps: self.steps,
            },
            works: self.works,
            is_declared,
        })
    }

    /// Adds the frames of the transaction to those of all.
    fn give_frames(&mut self, transaction: usize, all: &mut Vec<Frame>) {
        let first = all.len();
        for mut frame in self.frames.drain(..) {
            frame.transaction = transaction;
            frame.caller = frame.caller.map(|caller| first + caller);
            frame.branch += first;
            all.push(frame);
        }
    }

    /// Adds the steps of an operation and of its calls. Returns its last step.
    fn operation(
        &mut self,
        operation: usize,
        origin: Origin,
        before: Option<usize>,
    ) -> Option<usize> {
        self.is_too_deep |= self.depth >= MAX_DEPTH;
        if self.is_too_long || self.is_too_deep {
            self.is_too_long = true;
            return before;
        }
        self.depth += 1;
        let it = &self.schedule.operations[operation];
        let frame = self.frames.len();
        self.frames.push(Frame {
            transaction: 0,
            operation,
            first: self.steps.len(),
            last: 0,
            caller: origin.caller,
            branch: origin.branch.unwrap_or(frame),
            waits: it.calls.iter().any(|call| !call.oneway),
        });
        let pieces = Pieces::new(it);
        let (mut last, mut left) = (before, it.cost);
        // The execution that is sure up to the last piece, as far as pieces and the whole have it.
        let (mut sure, mut parts, mut after) = (0, 0, it.cost);
        // A thread that gets or resumes the operation has the overhead of a dispatch.
        let mut is_resumed = true;
        for call in &it.calls {
            for _ in 0..call.count {
                let own = pieces.before(call).min(after);
                after -= own;
                parts += call.least.min(own);
                let least = pieces.sure(parts, after) - sure;
                sure += least;
                let mut more = own.min(left);
                if is_resumed {
                    // A thread waits for its processor also if it only calls then.
                    more = more.max(1);
                }
                left = left.saturating_sub(more);
                last = self.piece(operation, (more, least), &mut is_resumed, last);
                if call.oneway {
                    self.call((operation, call), Origin::START, last);
                } else {
                    let branch = Some(self.frames[frame].branch);
                    let caller = Some(frame);
                    last = self.call((operation, call), Origin { caller, branch }, last);
                    is_resumed = true;
                }
                if self.is_too_long {
                    return last;
                }
            }
        }
        // It ends after its last call, if that is also all that it does then.
        let rest = if is_resumed { left.max(1) } else { left };
        let least = pieces.sure(parts, 0) - sure;
        last = self.piece(operation, (rest, least), &mut is_resumed, last);
        self.frames[frame].last = last.unwrap_or(0);
        self.depth -= 1;
        last
    }

    /// Adds a piece of an operation, with its longest time and the least one.
    fn piece(
        &mut self,
        operation: usize,
        (cost, least): (Time, Time),
        is_resumed: &mut bool,
        before: Option<usize>,
    ) -> Option<usize> {
        if cost == 0 {
            return before;
        }
        let it = &self.schedule.operations[operation];
        let node = self.schedule.processors[it.processor].node;
        let overhead = if std::mem::take(is_resumed) {
            self.schedule.nodes[node].overhead
        } else {
            0
        };
        let cost = cost.saturating_add(overhead);
        let mut step = Step::new(it.processor, cost, self.priorities[operation]).with_least(least);
        step.blocking = self
            .schedule
            .with_own_blocking(operation, self.blocking[operation]);
        step.deadline = it.deadline.filter(|_| it.period.is_none());
        self.push(step, StepWork::Execution { operation }, before)
    }

    /// Adds the messages and the execution of a call. Returns the step after which a caller that
    /// waits goes on.
    fn call(
        &mut self,
        (caller, call): (usize, &Call),
        origin: Origin,
        before: Option<usize>,
    ) -> Option<usize> {
        let priority = self.priorities[call.operation];
        let operation = call.operation;
        let mut last = before;
        if let Some(sent) = call.messages {
            let work = StepWork::Request { operation };
            let route = (sent.link, Some(self.node_of(caller)));
            last = self.message(route, sent.request, priority, work, last);
        }
        last = self.operation(operation, origin, last);
        if let Some((sent, reply)) = call.messages.and_then(|it| Some((it, it.reply?))) {
            let work = StepWork::Reply { operation };
            let route = (sent.link, Some(self.node_of(operation)));
            last = self.message(route, reply, priority, work, last);
        }
        last
    }

    /// Adds a message that a node sends on a link.
    fn message(
        &mut self,
        (link, sender): (usize, Option<usize>),
        length: MessageLength,
        priority: u32,
        work: StepWork,
        before: Option<usize>,
    ) -> Option<usize> {
        let LinkResources { first, directions } = &self.links[link];
        let direction = directions.iter().position(|it| *it == sender);
        let Some(sent) = self.schedule.links[link].transmission(length) else {
            return before;
        };
        let mut step = Step::new(first + direction.unwrap_or(0), sent.time, priority);
        step.parts = sent.parts;
        self.push(step, work, before)
    }

    fn node_of(&self, operation: usize) -> usize {
        self.schedule.processors[self.schedule.operations[operation].processor].node
    }

    fn push(&mut self, mut step: Step, work: StepWork, before: Option<usize>) -> Option<usize> {
        if *self.left == 0 {
            self.is_too_long = true;
            return before;
        }
        *self.left -= 1;
        let number = self.steps.len();
        step.after = before.filter(|before| before + 1 != number);
        self.steps.push(step);
        self.works.push(work);
        Some(number)
    }
}
