//! Consumers of a process that share messages.
//!
//! A [`ConsumerGroup`] is for any number of consumers of one channel in one process. Each has a
//! subscription of its own, with its filter, queue, losses and suspension in the channel. The
//! channel sends an event once for all consumers of the group that get it at the same time, by
//! `ChronorbEvents::FanOutConsumer`.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronorb::poa::{ObjectId, Poa};
use chronorb::{Call, SystemException};
use chronorb_channel::PushGate;
use chronorb_events::Filter;
use chronorb_rt::{Deadline, PiMutex, SpawnError};

use crate::event::lost_in_channel;
use crate::idl::chronorb_events::{
    FanOutConsumer, FanOutConsumerOwnedServant, FanOutConsumerSkeleton, QueueQOS,
};
use crate::idl::rtec_event_channel_admin::{EventChannel, ProxyPushSupplier};
use crate::idl::rtec_event_comm::{
    EventSet, PushConsumer, PushConsumerOwnedServant, PushConsumerSkeleton,
};
use crate::subscribe::{ConnectError, Subscription};
use crate::watch::{
    ChannelChange, ChannelCheck, ChannelWatch, Reconnect, WatchOptions, WatchRound,
};

/// A consumer of a group, which is called with its events.
///
/// Implemented for closures, which are told neither losses nor the end nor changes of the channel.
/// Events come in the order of their suppliers if the ORBs have the settings of
/// [`keep_order`](crate::keep_order). All calls of a group come by one connection, so a consumer
/// that is slow delays the others.
pub trait GroupCallback: Send + Sync + 'static {
    /// Takes a set of events.
    fn push(&self, events: EventSet<'_>);

    /// Learns that the channel has lost this number of events before the next one, if the queue of
    /// the consumer tells losses.
    fn lost(&self, number: u64) {
        let _ = number;
    }

    /// Learns that the channel has ended the subscription.
    fn disconnected(&self) {}

    /// Learns that the channel was lost, or found again, if the group
    /// [watches](ConsumerGroup::watch) it.
    fn channel_changed(&self, change: &ChannelChange) {
        let _ = change;
    }
}

impl<F: Fn(EventSet<'_>) + Send + Sync + 'static> GroupCallback for F {
    fn push(&self, events: EventSet<'_>) {
        self(events);
    }
}

/// The options of a consumer.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConsumerOptions {
    /// The queue of the consumer in the channel. Without one it has that of its lane, if there are
    /// lanes.
    pub queue: Option<QueueQOS>,
    /// The number of its lane, from 1, or the handle of its operation.
    pub rt_info: i32,
}

/// Consumers of one channel in this process, which share messages.
///
/// # Example
/// ```
/// use chronorb::prelude::*;
/// use chronorb_rtec::idl::rtec_event_channel_admin::EventChannel;
/// use chronorb_rtec::idl::rtec_event_comm::EventSet;
/// use chronorb_rtec::{
///     ConsumerGroup, ConsumerOptions, EventServer, Filter, WatchOptions,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut args = vec!["p".into(), "-ORBListenEndpoints".into(), "iiop://127.0.0.1:0".into()];
/// let orb = Orb::init(&mut args)?;
/// let root = orb.root_poa()?;
/// let service = EventServer::new().serve_in(&root)?;
/// root.manager().activate()?;
/// let channel = EventChannel::unchecked_narrow(service.channel());
/// let group = ConsumerGroup::open(&root, &channel)?;
/// // Its consumers subscribe again if the channel dies and comes back.
/// group.watch(WatchOptions::default())?;
/// let options = ConsumerOptions::default();
/// let show = |events: EventSet<'_>| println!("{} events", events.len());
/// let first = group.subscribe(&Filter::of_type(20), &options, show)?;
/// let second = group.subscribe(&Filter::Everything, &options, show)?;
/// first.disconnect()?;
/// # drop(second);
/// # orb.shutdown(true)?;
/// # Ok(())
/// # }
/// ```
pub struct ConsumerGroup {
    shared: Arc<GroupState>,
}

/// The part of a group that its consumers share.
struct GroupState {
    poa: Poa,
    channel: EventChannel,
    members: Arc<Members>,
    fan_out: FanOutConsumer,
    /// The object id of `fan_out`.
    id: ObjectId,
    watch: PiMutex<Option<ChannelWatch>>,
}

/// The consumers of a group, which is the servant of its object.
struct Members {
    /// By number. Replaced as a whole, so that none is locked during a push.
    present: PiMutex<Arc<[Arc<Member>]>>,
    last_number: PiMutex<u32>,
}

/// A consumer, and its servant.
struct Member {
    number: u32,
    callback: Box<dyn GroupCallback>,
    gate: PushGate,
    /// Whether it was told that the channel has ended the subscription.
    is_told: AtomicBool,
    /// The subscription, once it is made.
    subscription: PiMutex<Option<Arc<Subscription>>>,
}

/// A consumer of a group. Dropping it disconnects the consumer.
pub struct GroupConsumer {
    group: Arc<GroupState>,
    member: Arc<Member>,
    subscription: Arc<Subscription>,
    /// The object id of the consumer.
    id: ObjectId,
    has_ended: bool,
}

impl ConsumerGroup {
    /// A group without consumers. Its objects are activated in `poa`.
    ///
    /// # Errors
    /// [`ConnectError::Activate`] and [`ConnectError::Reference`].
    pub fn open(poa: &Poa, channel: &EventChannel) -> Result<Self, ConnectError> {
        let members = Arc::new(Members {
            present: PiMutex::new(Arc::new([])),
            last_number: PiMutex::new(0),
        });
        let id = poa.activate_object(FanOutConsumerSkeleton::from_arc(members.clone()))?;
        let fan_out = FanOutConsumer::unchecked_narrow(&poa.id_to_reference(&id)?);
        let shared = GroupState {
            poa: poa.clone(),
            channel: channel.clone(),
            members,
            fan_out,
            id,
            watch: PiMutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Connects a consumer of the events that pass a filter. At a channel that does not know groups
    /// it has messages of its own.
    ///
    /// # Errors
    /// [`ConnectError`], and then nothing is left of it.
    pub fn subscribe(
        &self,
        filter: &Filter,
        options: &ConsumerOptions,
        callback: impl GroupCallback,
    ) -> Result<GroupConsumer, ConnectError> {
        let group = &self.shared;
        let member = group.members.add(callback);
        let poa = &group.poa;
        let activated = poa.activate_object(PushConsumerSkeleton::from_arc(member.clone()));
        let id = activated.inspect_err(|_| group.members.remove(member.number))?;
        let object = poa.id_to_reference(&id).inspect_err(|_| {
            group.members.remove(member.number);
            let _ = poa.deactivate_object(&id);
        })?;
        let subscription = Arc::new(Subscription {
            consumer: PushConsumer::unchecked_narrow(&object),
            filter: filter.clone(),
            queue: options.queue,
            rt_info: options.rt_info,
            fan_out: Some((group.fan_out.clone(), member.number)),
            state: PiMutex::default(),
        });
        // If the next step fails, dropping it undoes the others.
        let this = GroupConsumer {
            group: group.clone(),
            member,
            subscription: subscription.clone(),
            id,
            has_ended: false,
        };
        subscription.make(&group.channel, None)?;
        *this.member.subscription.lock() = Some(subscription);
        Ok(this)
    }

    /// Has a thread ask the channel regularly whether it still has the consumers of the group.
    /// They are told what it finds by [`GroupCallback::channel_changed`], and subscribe again
    /// unless the options say otherwise, with the options that they have, suspended ones too.
    /// Ends with the group and its consumers; replaces the thread of a call before.
    ///
    /// # Errors
    /// There is no thread.
    pub fn watch(&self, options: WatchOptions) -> Result<(), SpawnError> {
        let (members, channel) = (self.shared.members.clone(), self.shared.channel.clone());
        let mut checks = HashMap::new();
        let watch = ChannelWatch::start(options.period, move || {
            members.check(&channel, &options, &mut checks);
        })?;
        *self.shared.watch.lock() = Some(watch);
        Ok(())
    }

    /// The number of consumers.
    #[must_use]
    pub fn consumers(&self) -> usize {
        self.shared.members.present.lock().len()
    }
}

impl fmt::Debug for ConsumerGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerGroup")
            .field("consumers", &self.consumers())
            .finish_non_exhaustive()
    }
}

impl Drop for GroupState {
    fn drop(&mut self) {
        // The POA may have ended.
        let _ = self.poa.deactivate_object(&self.id);
    }
}

impl GroupConsumer {
    /// The proxy of the consumer in the channel: the last one, if the consumer has
    /// [subscribed again](ConsumerGroup::watch).
    ///
    /// # Panics
    /// Never: a consumer has a proxy until it is disconnected.
    #[must_use]
    pub fn proxy(&self) -> ProxyPushSupplier {
        self.subscription.proxy().expect("it is connected")
    }

    /// The object of the consumer, which the channel checks.
    #[must_use]
    pub fn object(&self) -> &PushConsumer {
        &self.subscription.consumer
    }

    /// Stops the events of the consumer. They are not kept.
    ///
    /// # Errors
    /// A system exception, as `OBJECT_NOT_EXIST` if the channel has disconnected the consumer.
    pub fn suspend(&self) -> Result<(), SystemException> {
        self.subscription.suspend(true)
    }

    /// Lets the events go on.
    ///
    /// # Errors
    /// As [`suspend`](Self::suspend).
    pub fn resume(&self) -> Result<(), SystemException> {
        self.subscription.suspend(false)
    }

    /// Disconnects the consumer. When it returns no call of the consumer begins any more, and those
    /// in progress are over, unless they took more than another 5 s; within such a call it does not
    /// wait for it.
    ///
    /// # Errors
    /// A system exception if the channel is not reached, or has disconnected the consumer before.
    /// No call begins then either.
    pub fn disconnect(mut self) -> Result<(), SystemException> {
        self.end()
    }

    fn end(&mut self) -> Result<(), SystemException> {
        self.has_ended = true;
        self.member.gate.close();
        self.member.gate.wait(Deadline::after(PATIENCE));
        self.group.members.remove(self.member.number);
        let ended = self.subscription.end();
        // The POA may have ended.
        let _ = self.group.poa.deactivate_object(&self.id);
        ended
    }
}

impl Drop for GroupConsumer {
    fn drop(&mut self) {
        if !self.has_ended {
            // The channel may have ended.
            let _ = self.end();
        }
    }
}

impl fmt::Debug for GroupConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupConsumer")
            .field("number", &self.member.number)
            .finish_non_exhaustive()
    }
}

impl Members {
    /// Adds a consumer with a number that none had before.
    fn add(&self, callback: impl GroupCallback) -> Arc<Member> {
        let mut last_number = self.last_number.lock();
        *last_number += 1;
        let member = Arc::new(Member {
            number: *last_number,
            callback: Box::new(callback),
            gate: PushGate::default(),
            is_told: AtomicBool::new(false),
            subscription: PiMutex::default(),
        });
        let mut present = self.present.lock();
        let added = present.iter().cloned().chain([member.clone()]);
        *present = added.collect();
        member
    }

    fn remove(&self, number: u32) {
        let mut present = self.present.lock();
        let left = present.iter().filter(|member| member.number != number);
        *present = left.cloned().collect();
    }

    /// Asks the channel for all subscriptions, and makes those again that are lost.
    fn check(
        &self,
        channel: &EventChannel,
        options: &WatchOptions,
        checks: &mut HashMap<u32, ChannelCheck>,
    ) {
        let present = self.present.lock().clone();
        checks.retain(|number, _| {
            let place = present.binary_search_by_key(number, |member| member.number);
            place.is_ok()
        });
        let is_told_only = matches!(options.reconnect, Reconnect::No);
        let mut round = WatchRound::new(options, channel);
        for member in present.iter() {
            let Some(subscription) = member.subscription.lock().clone() else {
                continue;
            };
            if is_told_only && member.is_told.load(Ordering::Acquire) {
                continue;
            }
            let check = checks.entry(member.number).or_default();
            round.check(&subscription, check, |change| member.tell(change));
        }
    }

    /// Gives events to the consumers with these numbers. Unknown ones are of consumers that have
    /// ended.
    fn give(&self, numbers: &[u32], events: EventSet<'_>) {
        let present = self.present.lock().clone();
        let known = numbers.iter().filter_map(|number| {
            let place = present.binary_search_by_key(number, |member| member.number);
            present.get(place.ok()?)
        });
        // A peer that repeats numbers causes no more calls than there are consumers.
        for member in known.take(present.len()) {
            member.take(events);
        }
    }
}

impl FanOutConsumerOwnedServant for Members {
    fn push_to(
        &self,
        _: &Call<'_>,
        members: &[u32],
        data: EventSet<'_>,
    ) -> Result<(), SystemException> {
        self.give(members, data);
        Ok(())
    }
}

impl Member {
    fn take(&self, events: EventSet<'_>) {
        let Some(_push) = self.gate.enter() else {
            return;
        };
        self.guarded(|| match lost_in_channel(events) {
            Some(number) => self.callback.lost(number),
            None => self.callback.push(events),
        });
    }

    /// Tells the consumer a change of its connection to the channel.
    fn tell(&self, change: &ChannelChange) {
        if matches!(change, ChannelChange::Subscribed) {
            self.is_told.store(false, Ordering::Release);
        }
        if let Some(_call) = self.gate.enter() {
            self.guarded(|| self.callback.channel_changed(change));
        }
    }

    /// Keeps a panic of a consumer from the others of its message. The hook of the process has
    /// printed it.
    fn guarded(&self, call: impl FnOnce()) {
        let _ = catch_unwind(AssertUnwindSafe(call));
    }
}

impl PushConsumerOwnedServant for Member {
    fn push(&self, _: &Call<'_>, data: EventSet<'_>) -> Result<(), SystemException> {
        self.take(data);
        Ok(())
    }

    fn disconnect_push_consumer(&self, _: &Call<'_>) -> Result<(), SystemException> {
        if let Some(_push) = self.gate.enter()
            && !self.is_told.swap(true, Ordering::AcqRel)
        {
            self.guarded(|| self.callback.disconnected());
        }
        Ok(())
    }
}

/// The longest wait for calls in progress at the end of a consumer.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use chronorb_events::EVENTS_LOST;

    use super::*;
    use crate::event::{empty_data, wire_header};
    use crate::idl::rtec_event_comm::Event;

    fn members() -> Members {
        Members {
            present: PiMutex::new(Arc::new([])),
            last_number: PiMutex::new(0),
        }
    }

    fn event(event_type: i32) -> Event<'static> {
        Event {
            header: wire_header(1, event_type),
            data: empty_data(),
        }
    }

    /// Adds a consumer that notes its name for each set.
    fn noting(members: &Members, name: char, notes: &Arc<PiMutex<String>>) -> u32 {
        let notes = notes.clone();
        let callback = move |_: EventSet<'_>| notes.lock().push(name);
        members.add(callback).number
    }

    #[test]
    fn wrong_numbers_reach_nobody_and_cost_little() {
        let (members, notes) = (members(), Arc::default());
        let first = noting(&members, 'a', &notes);
        let second = noting(&members, 'b', &notes);
        let third = noting(&members, 'c', &notes);
        let give = |numbers: &[u32]| {
            members.give(numbers, &[event(20)]);
            std::mem::take(&mut *notes.lock())
        };
        assert_eq!(give(&[third, first]), "ca", "in the order of the message");
        assert_eq!(give(&[]), "");
        assert_eq!(give(&[0, u32::MAX, second, 77]), "b");
        assert_eq!(
            give(&[second; 1000]),
            "bbb",
            "one call for each consumer at most"
        );
        members.remove(first);
        assert_eq!(
            give(&[first, second, third]),
            "bc",
            "no one takes a place of the others"
        );
        assert_ne!(noting(&members, 'd', &notes), first);
        assert_eq!(give(&[first]), "");
    }

    #[test]
    fn a_panic_of_a_consumer_is_its_own() {
        let (members, notes) = (members(), Arc::default());
        let bad = members.add(|_: EventSet<'_>| panic!("a consumer fails, as this test wants"));
        let good = noting(&members, 'g', &notes);
        members.give(&[bad.number, good], &[event(20)]);
        assert_eq!(*notes.lock(), "g");
    }

    #[test]
    fn a_loss_without_a_number_is_an_event() {
        let (members, notes) = (members(), Arc::default());
        let number = noting(&members, 'e', &notes);
        let lost = Event {
            header: wire_header(0, EVENTS_LOST),
            data: empty_data(),
        };
        members.give(&[number], &[lost]);
        assert_eq!(*notes.lock(), "e");
    }
}
