//! Channels, their lanes, and suppliers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chronorb_events::{Event, Filter, Limits, Program, Routes, Rules};
use chronorb_rt::{Deadline, PiMutex, PiMutexGuard, Scheduling, ThreadBuilder};

use crate::clock::{Clock, SystemClock, never};
use crate::consumer::Body;
use crate::error::{StartError, SubscribeError};
use crate::lane::{LaneQueue, LaneWorker, PendingCall};
use crate::member::{Binding, Rank, Route, Way};
use crate::plans::Plans;
use crate::subscription::SubscriptionBuilder;

/// A real-time event channel for events with a body of type `B`.
///
/// A handle; clones are the same channel. It is closed by [`close`](Self::close), or when the last
/// handle, supplier and subscription are dropped.
pub struct Channel<B: Body> {
    pub(crate) inner: Arc<ChannelInner<B>>,
}

/// The setting-up of a channel.
pub struct ChannelBuilder<B> {
    lanes: Vec<Lane>,
    limits: Limits,
    rules: Rules,
    most: usize,
    clock: Option<Arc<dyn Clock>>,
    send_deferred: Option<fn()>,
    octets_of: fn(&B) -> usize,
}

/// A lane of a channel: a thread that delivers events at one priority.
#[derive(Clone, Debug)]
pub struct Lane {
    name: String,
    scheduling: Scheduling,
    cpus: Option<Vec<usize>>,
}

/// A supplier of events with one source. A push allocates nothing, and waits for direct consumers
/// and for queues with the policy [`Overflow::Block`](chronorb_events::Overflow::Block) only.
pub struct Supplier<B: Body> {
    inner: Arc<ChannelInner<B>>,
    source: i32,
}

/// The present plan, and those that suppliers still use: at most one for each thread that pushes.
const MAX_PLANS: u32 = 1 << 16;

pub(crate) struct ChannelInner<B: Body> {
    /// The routes to the subscriptions, as suppliers see them.
    plans: Plans<Plan<B>>,
    /// Locked while subscriptions change.
    members: PiMutex<Members<B>>,
    pub(crate) lanes: Box<[Arc<LaneQueue<B>>]>,
    /// The lanes without threads, whose steps the application takes.
    manual: Option<Box<[PiMutex<LaneWorker<B>>]>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) octets_of: fn(&B) -> usize,
    limits: Limits,
    rules: Rules,
    most: usize,
    next_number: AtomicU64,
    is_closed: AtomicBool,
}

/// The subscriptions as suppliers see them.
#[derive(Clone)]
struct Plan<B> {
    routes: Routes<Route<B>>,
    /// The nodes of all filters together.
    nodes: u64,
}

/// The subscriptions of a channel.
struct Members<B> {
    by_rank: BTreeMap<Rank, Arc<Binding<B>>>,
    /// The next plan.
    plan: Plan<B>,
}

impl Lane {
    /// A lane with ordinary scheduling. Its thread has this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scheduling: Scheduling::OTHER,
            cpus: None,
        }
    }

    /// The scheduling of its thread, as `Scheduling::fifo(80)`.
    #[must_use]
    pub fn scheduling(mut self, scheduling: Scheduling) -> Self {
        self.scheduling = scheduling;
        self
    }

    /// The processors on which its thread runs.
    #[must_use]
    pub fn affinity(mut self, cpus: &[usize]) -> Self {
        self.cpus = Some(cpus.to_vec());
        self
    }
}

impl<B: Body> ChannelBuilder<B> {
    /// Adds a lane, less urgent than those before it. Events are put into the queues of urgent
    /// lanes first.
    #[must_use]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lanes.push(lane);
        self
    }

    /// The bounds of subscriptions. By default those of [`Limits`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The rules of groups. By default the corrected ones.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The most subscriptions. By default 65,536.
    #[must_use]
    pub fn subscriptions(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// The clock of timers and budgets. If it is not that of the system, timers fire when the
    /// application [says so](Channel::run_timers).
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The octets that a body has besides its size in memory, as those behind a pointer. An event
    /// that a subscription with an [allowance](SubscriptionBuilder::allowance) keeps counts for
    /// `size_of::<Event<B>>()` and these. By default there are none.
    #[must_use]
    pub fn octets_of(mut self, octets_of: fn(&B) -> usize) -> Self {
        self.octets_of = octets_of;
        self
    }

    /// Calls `send` on the thread of a lane before it waits, and after 64 deliveries at most. So
    /// consumers of a lane can defer an event, to send it with those of others.
    #[must_use]
    pub fn send_deferred(mut self, send: fn()) -> Self {
        self.send_deferred = Some(send);
        self
    }

    /// Makes the channel and starts the threads of its lanes.
    ///
    /// # Errors
    /// [`StartError`] with the lane whose thread cannot be started.
    pub fn start(self) -> Result<Channel<B>, StartError> {
        let lanes = self.lanes.clone();
        let (clock, send_deferred) = (self.clock.clone(), self.send_deferred);
        let channel = self.make(clock.unwrap_or_else(|| Arc::new(SystemClock)), false);
        for (lane, queue) in lanes.into_iter().zip(&channel.inner.lanes) {
            let clock = channel.inner.clock.clone();
            let mut worker = LaneWorker::new(queue.clone(), clock, send_deferred);
            let mut thread = ThreadBuilder::new(lane.name.clone())
                .scheduling(lane.scheduling)
                .prefault_stack(true);
            if let Some(cpus) = &lane.cpus {
                thread = thread.affinity(cpus);
            }
            let spawned = thread.spawn(move || worker.run());
            spawned.map_err(|source| StartError::NoThread {
                lane: lane.name,
                source,
            })?;
        }
        Ok(channel)
    }

    /// Makes a channel without threads. Its lanes work when they are [told to](Channel::step), for
    /// tests in virtual time and for applications with a loop of their own, or by
    /// [threads of the application](Channel::serve_lane).
    pub fn without_threads(self, clock: Arc<dyn Clock>) -> Channel<B> {
        self.make(clock, true)
    }

    fn make(self, clock: Arc<dyn Clock>, is_manual: bool) -> Channel<B> {
        let queue = |_: &Lane| Arc::new(LaneQueue::new());
        let lanes: Box<[_]> = self.lanes.iter().map(queue).collect();
        let worker = |lane: &Arc<LaneQueue<B>>| {
            let worker = LaneWorker::new(lane.clone(), clock.clone(), self.send_deferred);
            PiMutex::new(worker)
        };
        let manual = is_manual.then(|| lanes.iter().map(worker).collect());
        let inner = ChannelInner {
            plans: Plans::new(MAX_PLANS),
            members: PiMutex::new(Members::new()),
            lanes,
            manual,
            clock,
            octets_of: self.octets_of,
            limits: self.limits,
            rules: self.rules,
            most: self.most,
            next_number: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        };
        Channel {
            inner: Arc::new(inner),
        }
    }
}

impl<B: Body> Channel<B> {
    /// Sets up a channel.
    #[must_use]
    pub fn builder() -> ChannelBuilder<B> {
        ChannelBuilder {
            lanes: Vec::new(),
            limits: Limits::default(),
            rules: Rules::default(),
            most: 1 << 16,
            clock: None,
            send_deferred: None,
            octets_of: |_| 0,
        }
    }

    /// Begins a subscription to the events that pass a filter.
    pub fn subscribe(&self, filter: Filter) -> SubscriptionBuilder<'_, B> {
        SubscriptionBuilder::new(self, filter)
    }

    /// A supplier of events with a source.
    pub fn supplier(&self, source: i32) -> Supplier<B> {
        let inner = self.inner.clone();
        Supplier { inner, source }
    }

    /// Pushes an event to the consumers whose filters it passes, like a [`Supplier`].
    #[inline]
    pub fn push(&self, event: &Event<B>) {
        self.inner.push(event);
    }

    /// Pushes an event as [`push`](Self::push) does, if it costs at most `work`: the nodes of the
    /// filters that it may concern, and one for each subscription to masks. So a bound of the work
    /// of a set of events is handed from event to event, and falls by what each costs.
    ///
    /// Returns false if the event costs more, and then delivers it to no consumer. The bound falls
    /// by the number of subscriptions that were looked at.
    pub fn push_within(&self, event: &Event<B>, work: &mut u64) -> bool {
        self.inner.push_within(event, work)
    }

    /// Takes the steps of a lane [without a thread](ChannelBuilder::without_threads) until nothing
    /// is left to do. Returns the time of its next timer, in nanoseconds of the clock; `None` if it
    /// has no timers, if it is stepped already, and for a lane with a thread.
    pub fn step(&self, lane: usize) -> Option<u64> {
        self.inner.manual(lane)?.work_off()
    }

    /// Serves a lane [without a thread](ChannelBuilder::without_threads) on the calling thread,
    /// until the channel is closed. Returns at once for lanes with a thread. Waits while another
    /// thread serves the lane.
    pub fn serve_lane(&self, lane: usize) {
        let lanes = self.inner.manual.as_ref();
        if let Some(worker) = lanes.and_then(|lanes| lanes.get(lane)) {
            worker.lock().run();
        }
    }

    /// Lets the threads of all lanes fire the timers that are due by a [clock](Clock) that is not
    /// the system's, and waits until nothing is left to do. Returns the time of the next timer, in
    /// nanoseconds of the clock.
    pub fn run_timers(&self) -> Option<u64> {
        for lane in &self.inner.lanes {
            lane.call();
        }
        self.inner.flush(never());
        let due = self.inner.lanes.iter().filter_map(|lane| lane.next_due());
        due.min()
    }

    /// Waits until the threads of lanes have delivered what was pushed, for at most `limit`.
    /// Returns whether they have. Events stay in the queues of consumers that are not
    /// [ready](crate::Consumer::is_ready) or have used their [budget](crate::Budget).
    pub fn flush(&self, limit: Duration) -> bool {
        self.inner.flush(Deadline::after(limit))
    }

    /// Ends all subscriptions, and tells their consumers. No push begins after it has returned,
    /// unless it is called within one. Later events reach no consumer.
    pub fn close(&self) {
        self.inner.close();
    }

    /// The number of subscriptions.
    pub fn subscriptions(&self) -> usize {
        self.inner.members.lock().by_rank.len()
    }
}

impl<B: Body> Supplier<B> {
    /// Pushes an event of a type.
    #[inline]
    pub fn push(&self, event_type: i32, body: B) {
        self.inner.push(&Event::new(self.source, event_type, body));
    }

    /// Pushes an event with its own header, which the source of the supplier has no part in.
    #[inline]
    pub fn push_event(&self, event: &Event<B>) {
        self.inner.push(event);
    }

    /// The source of its events.
    pub fn source(&self) -> i32 {
        self.source
    }
}

impl<B: Body> ChannelInner<B> {
    #[inline]
    fn push(&self, event: &Event<B>) {
        if let Some(plan) = self.plans.read() {
            self.offer(&plan, event, |_| ());
        }
    }

    fn push_within(&self, event: &Event<B>, work: &mut u64) -> bool {
        let Some(plan) = self.plans.read() else {
            return true;
        };
        let guards = plan.routes.guards() as u64;
        if plan.nodes + guards > *work && !plan.has_work_within(event, work) {
            return false;
        }
        *work -= guards;
        self.offer(&plan, event, |route| *work -= route.nodes());
        true
    }

    /// Offers an event to the subscriptions that it may concern, each of which is shown to `see`.
    #[inline]
    fn offer(&self, plan: &Plan<B>, event: &Event<B>, mut see: impl FnMut(&Route<B>)) {
        let mut pending = PendingCall::new();
        for route in plan.routes.candidates(&event.header) {
            see(route);
            route.binding.offer(event, &*self.clock, &mut pending);
        }
    }

    pub(crate) fn compile(&self, filter: &Filter) -> Result<Program, SubscribeError> {
        Ok(Program::compile(filter, self.rules, &self.limits)?)
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn flush(&self, deadline: Deadline) -> bool {
        (0..self.lanes.len()).all(|lane| match self.manual(lane) {
            Some(mut worker) => {
                worker.work_off();
                true
            }
            None => self.lanes[lane].flush(deadline),
        })
    }

    /// Locks the work of a lane without a thread, unless a thread does it at present.
    fn manual(&self, lane: usize) -> Option<PiMutexGuard<'_, LaneWorker<B>>> {
        self.manual.as_ref()?.get(lane)?.try_lock()
    }

    /// Adds a subscription, to which events come from now on.
    pub(crate) fn add(&self, binding: &Arc<Binding<B>>) -> Result<(), SubscribeError> {
        let mut members = self.members.lock();
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(SubscribeError::Closed);
        }
        let too_many = SubscribeError::TooMany { most: self.most };
        if members.by_rank.len() >= self.most {
            return Err(too_many);
        }
        let lane = self.lanes.get(binding.member.rank.group);
        if let Some(lane) = lane {
            lane.add_subscription();
        }
        members.insert(binding);
        if self.plans.replace(members.plan.clone()) {
            return Ok(());
        }
        members.remove(binding);
        if let Some(lane) = lane {
            lane.remove_subscription();
        }
        Err(too_many)
    }

    /// Replaces a binding of a subscription, between two events.
    pub(crate) fn rebind(
        &self,
        before: &Arc<Binding<B>>,
        binding: &Arc<Binding<B>>,
    ) -> Result<(), SubscribeError> {
        let mut members = self.members.lock();
        if !members.remove(before) {
            return Err(SubscribeError::Closed);
        }
        members.insert(binding);
        if self.plans.replace(members.plan.clone()) {
            return Ok(());
        }
        members.remove(binding);
        members.insert(before);
        Err(SubscribeError::TooMany { most: self.most })
    }

    /// Removes a subscription.
    pub(crate) fn remove(&self, binding: &Arc<Binding<B>>) {
        let mut members = self.members.lock();
        if members.remove(binding) {
            // Without room for a new plan the old one goes on, and has a closed subscription.
            self.plans.replace(members.plan.clone());
        }
        drop(members);
        if let Some(lane) = self.lanes.get(binding.member.rank.group) {
            lane.remove_subscription();
        }
    }

    fn close(&self) {
        let mut members = self.members.lock();
        self.is_closed.store(true, Ordering::Relaxed);
        let ended = std::mem::replace(&mut *members, Members::new());
        self.plans.replace(Plan::new());
        drop(members);
        for binding in ended.by_rank.into_values() {
            let was_open = binding.member.end();
            binding.member.gate.wait(never());
            if was_open {
                binding.tell_end();
            }
            // The owner of a stream may still take what waits.
            if !matches!(binding.member.way, Way::Stream(..)) {
                binding.release();
            }
        }
        for lane in &self.lanes {
            lane.end();
        }
    }
}

impl<B: Body> Plan<B> {
    fn new() -> Self {
        Self {
            routes: Routes::new(),
            nodes: 0,
        }
    }

    /// Whether the work of an event is within a bound that is less than all filters could cost.
    /// Otherwise the bound falls by the number of subscriptions that were looked at.
    #[cold]
    fn has_work_within(&self, event: &Event<B>, work: &mut u64) -> bool {
        let guards = self.routes.guards() as u64;
        let mut rest = work.checked_sub(guards);
        let mut looks = guards;
        for route in self.routes.candidates(&event.header) {
            let Some(before) = rest else {
                break;
            };
            rest = before.checked_sub(route.nodes());
            looks += 1;
        }
        if rest.is_none() {
            *work = work.saturating_sub(looks);
        }
        rest.is_some()
    }
}

impl<B: Body> Members<B> {
    fn new() -> Self {
        Self {
            by_rank: BTreeMap::new(),
            plan: Plan::new(),
        }
    }

    fn insert(&mut self, binding: &Arc<Binding<B>>) {
        let program = &binding.program;
        self.plan.routes.insert(program, Route::to(binding));
        self.plan.nodes += program.nodes() as u64;
        self.by_rank.insert(binding.member.rank, binding.clone());
    }

    /// Removes a subscription. Returns whether it was there.
    fn remove(&mut self, binding: &Arc<Binding<B>>) -> bool {
        let removed = self.by_rank.remove(&binding.member.rank);
        if removed.is_some() {
            let program = &binding.program;
            self.plan.routes.remove(program, &Route::to(binding));
            self.plan.nodes -= program.nodes() as u64;
        }
        removed.is_some()
    }
}

impl<B: Body> Drop for ChannelInner<B> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<B: Body> Clone for Channel<B> {
    fn clone(&self) -> Self {
        let inner = self.inner.clone();
        Self { inner }
    }
}

impl<B: Body> Clone for Supplier<B> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            source: self.source,
        }
    }
}

impl<B> fmt::Debug for ChannelBuilder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelBuilder")
            .field("lanes", &self.lanes)
            .field("limits", &self.limits)
            .field("rules", &self.rules)
            .field("subscriptions", &self.most)
            .finish_non_exhaustive()
    }
}

impl<B: Body> fmt::Debug for Channel<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("subscriptions", &self.subscriptions())
            .field("lanes", &self.inner.lanes.len())
            .finish_non_exhaustive()
    }
}

impl<B: Body> fmt::Debug for Supplier<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supplier")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
