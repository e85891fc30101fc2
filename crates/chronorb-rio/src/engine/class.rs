//! The protocol engine of a class, run by whichever thread does the class's work.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_rt::{Monotonic, PiMutex};

use super::alarm::Alarm;
use super::arrivals::Arrivals;
use super::config::{ClassConfig, ClassOutput};
use super::connection::{Attendant, Changes, Connection, Idleness, Patience, Role, Slot};
use super::counts::Counters;
use super::demux::{AcceptQueue, Demux, Stage};
use super::device::{Egress, Envelope, Marks};
use super::handshakes::{Handshakes, Syn};
use super::publisher::{StatusPublisher, StepInput};
use super::reset;
use super::table::Flow;
use super::timers::{NEVER, Timers};
use crate::driver::Link;
use crate::frame::{Ethernet, Headers};
use crate::path::{Frame, Path, PathError, Receiver};
use crate::status::ClassCounters;

/// The connections of a class, and its path.
///
/// Lock order: ingress, a connection, egress. Each lock is held only for calls of the protocol.
#[derive(Debug)]
pub(super) struct ClassEngine {
    slots: Box<[Slot]>,
    ingress: PiMutex<Ingress>,
    egress: PiMutex<Egress>,
    timers: Timers,
    alarm: Alarm,
    /// Readable while packets wait.
    packets: OwnedFd,
    hardware: [u8; 6],
    marks: Marks,
    output: ClassOutput,
    pub(super) counters: Counters,
    /// The counters that other processes can read; `None` in tests.
    pub(super) publisher: Option<StatusPublisher>,
    /// The maximum number of waiting frames.
    queue: usize,
}

/// The state that only one thread at a time uses.
#[derive(Debug)]
struct Ingress {
    receiver: Box<dyn Receiver>,
    demux: Demux,
    handshakes: Handshakes,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Outcome {
    /// The number of packets that were received.
    pub(super) packets: usize,
    /// Whether more packets may wait.
    pub(super) has_more: bool,
    /// Whether connections wait to be accepted.
    pub(super) has_arrivals: bool,
}

/// The reason why a connection cannot be started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Busy {
    /// A connection between the same endpoints exists.
    Flow,
    /// All slots are in use.
    Slots,
}

impl ClassEngine {
    /// Creates the engine with everything that connections will need.
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn new(config: &ClassConfig, link: &Link, path: Path) -> io::Result<Self> {
        let marks = Marks {
            dscp: config.dscp.unwrap_or(0),
            vlan_priority: config.vlan_priority,
        };
        let patience = Patience {
            acknowledgement: config.silence,
            life: config.keep_alive,
            end: config.linger,
        };
        let envelope = Envelope {
            ethernet: Ethernet {
                to: [0; 6],
                from: link.hardware,
                vlan: None,
                kind: Ethernet::IPV4,
            },
            dscp: 0,
        };
        let connection = || Connection::new(envelope, link.mtu, config.buffer, patience);
        let slot = || Slot::new(connection());
        let (backlog, time) = (config.backlog, config.handshake_time);
        Ok(Self {
            slots: std::iter::repeat_with(slot)
                .take(config.connections)
                .collect(),
            packets: path.receiver.as_fd().try_clone_to_owned()?,
            ingress: PiMutex::new(Ingress {
                receiver: path.receiver,
                demux: Demux::new(config.connections),
                handshakes: Handshakes::new(backlog, time, connection(), link.mtu),
            }),
            egress: PiMutex::new(Egress::new(path.transmitter, link.mtu)),
            timers: Timers::new(config.connections),
            alarm: Alarm::new()?,
            hardware: link.hardware,
            marks,
            output: config.output,
            counters: Counters::default(),
            publisher: None,
            queue: config.queue,
        })
    }

    /// Publishes the counters to other processes.
    pub(super) fn with_publisher(self, status: ClassCounters) -> Self {
        Self {
            publisher: Some(StatusPublisher::new(status, self.queue)),
            ..self
        }
    }

    /// Performs the pending work: receives at most `budget` packets, and serves timers. In a class
    /// with scheduled output, it sends at most as many packets.
    ///
    /// The `attendant` is the calling thread.
    pub(super) fn step(
        &self,
        now: Monotonic,
        budget: usize,
        attendant: Attendant<'_>,
    ) -> Result<Outcome, PathError> {
        let mut ingress = self.ingress.lock();
        let Ingress {
            receiver,
            demux,
            handshakes,
        } = &mut *ingress;
        handshakes.expire(now);
        demux.has_input = false;
        if self.output == ClassOutput::Scheduled {
            self.egress.lock().allowance = budget;
        }
        let waiting = self.publisher.as_ref().map_or(0, |_| receiver.waiting());
        let mut packets = 0;
        let mut octets = 0;
        let mut take = |frame: Frame<'_>| {
            octets += frame.octets.len();
            self.take((demux, handshakes), frame, now, attendant);
        };
        while packets < budget && receiver.receive(&mut take)? {
            packets += 1;
        }
        while let Some(slot) = demux.next_dirty() {
            self.serve(demux, slot, now, attendant);
        }
        if self.alarm.rings(now) {
            self.serve_due(demux, now, attendant);
        }
        if let Some(due) = handshakes.answer_again(&self.egress, now) {
            self.alarm.set(due.as_nanos());
        }
        let mut egress = self.egress.lock();
        if self.output == ClassOutput::Scheduled {
            egress.allowance = 0;
        }
        egress.flush()?;
        if let Some(publisher) = &self.publisher {
            publisher.departures(&egress);
            let input = StepInput {
                packets,
                octets,
                waiting,
                has_more: packets == budget,
                has_input: demux.has_input,
            };
            let half_open = handshakes.count();
            publisher.step(now, input, &self.counters, &**receiver, half_open, demux);
        }
        self.counters
            .packets
            .fetch_add(packets as u64, Ordering::Relaxed);
        Ok(Outcome {
            packets,
            has_more: packets == budget,
            has_arrivals: demux.has_arrivals(),
        })
    }

    /// Returns the time of the next step that is due without a packet.
    #[cfg(test)]
    pub(super) fn due(&self) -> Option<Monotonic> {
        self.alarm.next()
    }

    /// Returns the number of connections whose time was read.
    #[cfg(test)]
    pub(super) fn times_read(&self) -> usize {
        self.timers.read()
    }

    /// Makes the alarm's descriptor unreadable. A step has to follow.
    pub(super) fn drain_alarm(&self, now: Monotonic) {
        self.alarm.drain(now);
    }

    /// Puts off arming the timer: the caller does the work of the class before it waits, and calls
    /// [`resume_alarm`](Self::resume_alarm) then.
    pub(super) fn defer_alarm(&self) {
        self.alarm.defer();
    }

    /// Arms the timer for the work that became due while it was put off.
    pub(super) fn resume_alarm(&self) {
        self.alarm.resume();
    }

    /// Returns whether a step would find nothing to do.
    pub(super) fn is_idle(&self, now: Monotonic) -> bool {
        !self.alarm.is_due(now) && self.ingress.lock().receiver.waiting() == 0
    }

    /// Returns a descriptor that is readable once a step is due by time.
    pub(super) fn alarm(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    /// Returns a descriptor that is readable while packets wait.
    pub(super) fn packets(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }

    /// Starts to listen at an address, and notifies `arrivals` of connections. Returns `None` if
    /// the address is in use.
    #[allow(clippy::disallowed_methods, reason = "when an endpoint opens")]
    pub(super) fn listen(&self, address: SocketAddr, arrivals: Arc<Arrivals>) -> Option<usize> {
        let mut ingress = self.ingress.lock();
        let demux = &mut ingress.demux;
        if demux.listener(&address).is_some() {
            return None;
        }
        let waiting = AcceptQueue {
            address,
            queue: VecDeque::with_capacity(self.slots.len()),
            arrivals,
        };
        let index = demux.listeners.iter().position(Option::is_none);
        let index = index.unwrap_or(demux.listeners.len());
        match demux.listeners.get_mut(index) {
            Some(free) => *free = Some(waiting),
            None => demux.listeners.push(Some(waiting)),
        }
        Some(index)
    }

    /// Stops listening, and refuses connections that were not accepted yet.
    pub(super) fn stop_listening(&self, listener: usize, now: Monotonic) {
        let mut ingress = self.ingress.lock();
        let demux = &mut ingress.demux;
        let Some(waiting) = demux.listeners[listener].take() else {
            return;
        };
        for (index, slot) in self.slots.iter().enumerate() {
            let mut connection = slot.connection.lock();
            if waiting.queue.contains(&(index as u32)) {
                connection.abort(now);
                drop(connection);
                demux.enter(index, Stage::Used);
                self.serve(demux, index, now, Attendant::Nobody);
            }
        }
        // An interface that fails sends nothing any more.
        let _ = self.egress.lock().flush();
    }

    /// Notifies the threads that wait at all listeners.
    pub(super) fn call_listeners(&self) {
        let ingress = self.ingress.lock();
        for waiting in ingress.demux.listeners.iter().flatten() {
            waiting.arrivals.notify();
        }
    }

    /// Accepts the next connection of a listener if `prepare` succeeds. Otherwise the connection
    /// stays queued.
    pub(super) fn accept<R, E>(
        &self,
        listener: usize,
        now: Monotonic,
        prepare: impl FnOnce(&Slot) -> Result<R, E>,
    ) -> Result<Option<(usize, R)>, E> {
        let mut ingress = self.ingress.lock();
        let demux = &mut ingress.demux;
        let taken = loop {
            let waiting = demux.listeners.get(listener).and_then(Option::as_ref);
            let Some(slot) = waiting.and_then(|waiting| waiting.queue.front().copied()) else {
                break Ok(None);
            };
            let slot = slot as usize;
            let at = &self.slots[slot];
            if at.connection.lock().is_there() {
                break prepare(at).map(|prepared| Some((slot, prepared)));
            }
            // The connection was ended before it was accepted.
            if let Some(Some(waiting)) = demux.listeners.get_mut(listener) {
                waiting.queue.pop_front();
            }
            at.connection.lock().let_go(now);
            self.serve(demux, slot, now, Attendant::Nobody);
        };
        if let Ok(Some((slot, _))) = taken {
            self.slots[slot].set_listener(listener);
            self.slots[slot].connection.lock().role = Role::Open;
            // Rings the bell for input that arrived before the connection was accepted.
            self.serve(demux, slot, now, Attendant::Nobody);
        }
        if let Some(Some(waiting)) = demux.listeners.get_mut(listener) {
            if matches!(taken, Ok(Some(_))) {
                waiting.queue.pop_front();
            }
            if !waiting.queue.is_empty() {
                waiting.arrivals.notify();
            }
        }
        taken
    }

    /// Starts to connect.
    pub(super) fn connect(
        &self,
        flow: Flow,
        ethernet: Ethernet,
        now: Monotonic,
    ) -> Result<usize, Busy> {
        let mut ingress = self.ingress.lock();
        let demux = &mut ingress.demux;
        if let Some(slot) = demux.table.get(&flow)
            && demux.stage(slot) == Stage::WaitingOut
        {
            self.release(demux, slot);
        }
        if demux.table.get(&flow).is_some() {
            return Err(Busy::Flow);
        }
        if let Some(old) = demux.gives_way() {
            self.release(demux, old);
        }
        let slot = demux.take_free(flow, Stage::Used).ok_or(Busy::Slots)?;
        let envelope = Envelope {
            ethernet,
            dscp: self.marks.dscp,
        };
        self.slots[slot]
            .connection
            .lock()
            .connect(flow, envelope, now);
        self.serve(demux, slot, now, Attendant::Nobody);
        // An interface that fails answers nothing either.
        let _ = self.egress.lock().flush();
        Ok(slot)
    }

    /// Returns the slot of an accepted connection.
    pub(super) fn slot(&self, slot: usize) -> &Slot {
        &self.slots[slot]
    }

    /// Performs an operation on an accepted connection and handles its consequences.
    pub(super) fn with<R>(
        &self,
        slot: usize,
        now: Monotonic,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> R {
        let at = &self.slots[slot];
        let mut connection = at.connection.lock();
        let result = act(&mut connection);
        if self.output == ClassOutput::Scheduled {
            self.note_due(slot, now.as_nanos());
            return result;
        }
        let changes = connection.run(&self.egress, now);
        self.note_due(slot, connection.due(now));
        drop(connection);
        at.ring(slot, changes, Attendant::Nobody);
        let mut egress = self.egress.lock();
        // After a failure of the interface, the connection times out.
        let _ = egress.flush();
        if let Some(publisher) = &self.publisher {
            publisher.departures(&egress);
        }
        result
    }

    /// Releases a connection, whose handle was dropped.
    pub(super) fn let_go(&self, slot: usize, now: Monotonic) {
        let mut ingress = self.ingress.lock();
        let demux = &mut ingress.demux;
        self.slots[slot].connection.lock().let_go(now);
        self.serve(demux, slot, now, Attendant::Nobody);
        let _ = self.egress.lock().flush();
    }

    /// Aborts all connections, and notifies their holders.
    pub(super) fn abort_all(&self, now: Monotonic) {
        let mut ingress = self.ingress.lock();
        ingress.handshakes.clear();
        let demux = &mut ingress.demux;
        for (index, slot) in self.slots.iter().enumerate() {
            let mut connection = slot.connection.lock();
            if connection.role != Role::Free {
                connection.abort(now);
                drop(connection);
                self.serve(demux, index, now, Attendant::Nobody);
                slot.ring(index, Changes::of_end(), Attendant::Nobody);
            }
        }
        let _ = self.egress.lock().flush();
    }

    /// Returns the number of slots in use.
    pub(super) fn used(&self) -> usize {
        self.ingress.lock().demux.used()
    }

    /// Returns whether sent data is not acknowledged yet.
    pub(super) fn owes(&self) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.connection.lock().is_owed())
    }

    /// Returns the number of unfinished handshakes.
    #[cfg(test)]
    pub(super) fn half_open(&self) -> usize {
        self.ingress.lock().handshakes.count()
    }

    /// Returns the counts of incoming and outgoing frames.
    #[cfg(test)]
    pub(super) fn path_counts(&self) -> (crate::path::ReceiveCounts, crate::path::TransmitCounts) {
        let received = self.ingress.lock().receiver.counts();
        (received, self.egress.lock().transmitter().counts())
    }

    /// Processes an incoming frame.
    fn take(
        &self,
        (demux, handshakes): (&mut Demux, &mut Handshakes),
        frame: Frame<'_>,
        now: Monotonic,
        attendant: Attendant<'_>,
    ) {
        let counters = &self.counters;
        let Some((headers, flow)) = read(&frame) else {
            counters.malformed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if !frame.is_checked && !headers.has_right_checksums(frame.octets) {
            counters.wrong_checksums.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let asks_to_connect = headers.tcp.is_some_and(|tcp| tcp.flags.asks_to_connect());
        let mut slot = demux.table.get(&flow);
        if let Some(old) = slot
            && asks_to_connect
            && demux.stage(old) == Stage::WaitingOut
        {
            self.release(demux, old);
            slot = None;
        }
        let packet = &frame.octets[headers.packet()];
        let Some(slot) = slot else {
            let envelope = Envelope::of_answer(&headers.ethernet, self.hardware, self.marks);
            let new = Newcomer {
                flow,
                packet,
                envelope,
            };
            let listener = demux.listener(&flow.local);
            let is_known = match listener {
                Some(_) if asks_to_connect => {
                    let segment = &frame.octets[headers.transport..headers.end];
                    Syn::read(segment, &flow)
                        .is_some_and(|syn| self.answer_syn(demux, handshakes, &new, syn, now))
                }
                Some(listener) => {
                    self.establish((demux, handshakes), &new, listener, now, attendant)
                }
                None => false,
            };
            if !is_known {
                counters.refused.fetch_add(1, Ordering::Relaxed);
                reset::answer(&headers, &envelope, &self.egress);
            }
            return;
        };
        let mut connection = self.slots[slot].connection.lock();
        let changes = connection.feed(packet, &self.egress, now);
        drop(connection);
        self.follow(demux, slot, changes, attendant);
        if !changes.is_over {
            demux.mark_dirty(slot);
        }
    }

    /// Answers a SYN unless no slot would be available for the connection. Always returns true: the
    /// address has a listener, so the packet must not be refused by a reset.
    fn answer_syn(
        &self,
        demux: &mut Demux,
        handshakes: &mut Handshakes,
        new: &Newcomer<'_>,
        syn: Syn,
        now: Monotonic,
    ) -> bool {
        if !demux.has_room() && now < demux.crowded_until {
            self.count_dropped();
            return true;
        }
        if !demux.has_room() && self.least_needed(demux, None, now).is_none() {
            demux.crowded_until = now + CROWDED;
            self.count_dropped();
            return true;
        }
        if handshakes.answer((new.flow, syn), new.envelope, &self.egress, now) {
            self.counters.gave_way.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Establishes a connection when a peer acknowledges the answer to its SYN. Returns whether
    /// there is such a handshake.
    fn establish(
        &self,
        (demux, handshakes): (&mut Demux, &mut Handshakes),
        new: &Newcomer<'_>,
        listener: usize,
        now: Monotonic,
        attendant: Attendant<'_>,
    ) -> bool {
        let flow = new.flow;
        let Some(handshake) = handshakes.get(&flow) else {
            return false;
        };
        if let Some(old) = demux.gives_way() {
            self.release(demux, old);
        }
        // An evicted connection keeps its slot until its holder drops it. A packet that is dropped
        // until then is retransmitted by the peer.
        if !demux.has_room()
            && !handshake.has_made_room
            && let Some(least) = self.least_needed(demux, Some(flow.remote.ip()), now)
        {
            handshake.has_made_room = true;
            self.evict(demux, least, now);
        }
        let Some(slot) = demux.take_free(flow, Stage::Used) else {
            self.count_dropped();
            return true;
        };
        let mut connection = self.slots[slot].connection.lock();
        let resumed = handshakes.resume(
            (flow, listener),
            &mut connection,
            new.packet,
            new.envelope,
            &self.egress,
            now,
        );
        drop(connection);
        match resumed {
            Some(changes) if changes.established.is_some() => {
                self.follow(demux, slot, changes, attendant);
                demux.mark_dirty(slot);
            }
            // The packet acknowledges something else, or resets the connection.
            _ => self.release(demux, slot),
        }
        true
    }

    /// Returns the connection to evict if there is no room; `to` is the new peer's address, if it
    /// is proved.
    ///
    /// Connections whose peers have never sent data come first, then idle ones, the longest idle
    /// first. For an address that has its share of the slots, only its own connections are
    /// candidates. Busy connections are candidates only if their address has more than its share
    /// and the new one does not.
    #[cold]
    fn least_needed(&self, demux: &Demux, to: Option<IpAddr>, now: Monotonic) -> Option<usize> {
        let share = demux.share();
        let has_share = to.is_some_and(|to| demux.slots_of(&to) >= share);
        let candidates = self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let connection = slot.connection.lock();
            let (idleness, since) = connection.idleness(now)?;
            let from = connection.flow?.remote.ip();
            let gives_way = if has_share {
                to == Some(from) && idleness != Idleness::Busy
            } else {
                idleness != Idleness::Busy || demux.slots_of(&from) > share
            };
            gives_way.then_some((idleness, since, index))
        });
        candidates.min().map(|(.., index)| index)
    }

    /// Ends a connection to make room for another.
    #[cold]
    fn evict(&self, demux: &mut Demux, index: usize, now: Monotonic) {
        self.counters.evicted.fetch_add(1, Ordering::Relaxed);
        let mut connection = self.slots[index].connection.lock();
        if connection.role == Role::Queued {
            // A connection that was not accepted has no holder, so its slot is free at once.
            for waiting in demux.listeners.iter_mut().flatten() {
                waiting.queue.retain(|queued| *queued as usize != index);
            }
            connection.abort(now);
        } else {
            connection.give_way();
        }
        drop(connection);
        self.serve(demux, index, now, Attendant::Nobody);
    }

    fn count_dropped(&self) {
        let dropped = &self.counters.connections_dropped;
        dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends what a connection can send, and serves its timers.
    fn serve(&self, demux: &mut Demux, slot: usize, now: Monotonic, attendant: Attendant<'_>) {
        let at = &self.slots[slot];
        let mut connection = at.connection.lock();
        let changes = connection.run(&self.egress, now);
        self.note_due(slot, connection.due(now));
        drop(connection);
        self.follow(demux, slot, changes, attendant);
    }

    fn serve_due(&self, demux: &mut Demux, now: Monotonic, attendant: Attendant<'_>) {
        // The first slot rotates, so that a short budget does not always disadvantage the same
        // connections.
        let first = demux.next_first();
        let mut serve = |slot| self.serve(demux, slot, now, attendant);
        let mut next = NEVER;
        for slots in [first..self.slots.len(), 0..first] {
            next = self.timers.serve(&slots, now.as_nanos(), &mut serve);
        }
        self.alarm.set(next);
    }

    fn note_due(&self, slot: usize, due: u64) {
        self.timers.set(slot, due);
        self.alarm.set(due);
    }

    /// Acts on the changes of a connection: notifies its holder, queues or frees it.
    fn follow(&self, demux: &mut Demux, slot: usize, changes: Changes, attendant: Attendant<'_>) {
        demux.has_input |= changes.has_input();
        self.slots[slot].ring(slot, changes, attendant);
        if let Some(listener) = changes.established {
            demux.enter(slot, Stage::Used);
            match demux.listeners.get_mut(listener) {
                Some(Some(waiting)) => {
                    waiting.queue.push_back(slot as u32);
                    waiting.arrivals.notify();
                    self.counters.connections.fetch_add(1, Ordering::Relaxed);
                }
                _ => self.release(demux, slot),
            }
        }
        if changes.is_waiting_out {
            demux.enter(slot, Stage::WaitingOut);
        }
        if changes.is_over {
            self.release(demux, slot);
        }
    }

    fn release(&self, demux: &mut Demux, slot: usize) {
        let flow = self.slots[slot].connection.lock().forget();
        self.timers.set(slot, NEVER);
        demux.release(slot, flow);
    }

    /// Returns the interface's hardware address.
    pub(super) const fn hardware(&self) -> [u8; 6] {
        self.hardware
    }
}

/// A packet that belongs to no connection.
struct Newcomer<'a> {
    flow: Flow,
    packet: &'a [u8],
    envelope: Envelope,
}

/// Reads the headers of a frame with a TCP segment, and its flow.
fn read(frame: &Frame<'_>) -> Option<(Headers, Flow)> {
    let headers = Headers::read(frame.octets).ok()?;
    let (remote, local) = headers.ends()?;
    // IPv6 options before the TCP header are for routers; such packets are dropped.
    let is_plain = headers.from.is_ipv4() || headers.transport - headers.network == IPV6_HEADER;
    let is_from_one = !remote.ip().is_multicast() && !remote.ip().is_unspecified();
    let has_ports = remote.port() != 0 && local.port() != 0;
    (is_plain && is_from_one && has_ports).then_some((headers, Flow { local, remote }))
}

const IPV6_HEADER: usize = 40;
/// The time for which a failed search for a connection to evict is remembered, so that a flood does
/// not cause a search for each packet.
const CROWDED: Duration = Duration::from_millis(10);
