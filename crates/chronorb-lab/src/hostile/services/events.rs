//! Attacks on an event channel.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use chronorb_giop::TAG_DIOP;
use chronorb_rt::{Monotonic, sleep_until};

use super::super::messages::{self, MessageOctets};
use super::super::victim::IIOP;
use super::assailant::Assailant;
use super::consumer::{BlackHole, ProfileOctets, answering, silent};

/// An entry of a subscription: its source, its type, and the time of a timer in units of 100 ns.
type SubscriptionEntry = (i32, i32, u64);

/// Proxies that are never connected.
pub(super) fn unconnected_proxies(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    for _ in 0..a.count(5_000) {
        a.call(&admins.consumers, "obtain_push_supplier", |_| {})?;
        a.call(&admins.suppliers, "obtain_push_consumer", |_| {})?;
    }
    Ok(())
}

/// Consumers at an address that answers no connection, and events for them.
pub(super) fn unreachable_consumers(a: &mut Assailant<'_>) -> io::Result<()> {
    let hole = BlackHole::open()?;
    to_consumers(a, &ProfileOctets::at(hole.address))
}

/// Consumers at an address of datagrams, and events for them.
pub(super) fn datagram_consumers(a: &mut Assailant<'_>) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let profile = ProfileOctets {
        tag: TAG_DIOP,
        ..ProfileOctets::at(socket.local_addr()?)
    };
    to_consumers(a, &profile)
}

fn to_consumers(a: &mut Assailant<'_>, consumer: &ProfileOctets) -> io::Result<()> {
    let admins = admins(a)?;
    for _ in 0..a.size(64) {
        connect_consumer(a, &admins, consumer, &[EVERYTHING])?;
    }
    let supplier = connect_supplier(a, &admins)?;
    for _ in 0..a.count(400) {
        push(a, &supplier, 1, FIRST_TYPE, EVENT)?;
    }
    finish(a, &supplier)
}

/// Subscriptions of many timers of the shortest interval.
pub(super) fn many_timers(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    let consumer = ProfileOctets::at(answering(Duration::ZERO, &a.answered)?);
    let timers = a.size(100);
    let mut entries = vec![group(DISJUNCTION, timers)];
    entries.extend((0..timers).map(|_| (0, INTERVAL_TIMEOUT, SHORTEST_INTERVAL)));
    for _ in 0..a.count(1) {
        connect_consumer(a, &admins, &consumer, &entries)?;
    }
    sleep_until(a.site.end.min(Monotonic::now() + TIMERS));
    Ok(())
}

/// Subscriptions of many masks, and sets of many events that no mask lets through.
pub(super) fn many_masks(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    let consumer = ProfileOctets::at(answering(Duration::ZERO, &a.answered)?);
    let mut entries = vec![group(DISJUNCTION, MASKS)];
    for mask in 0..MASKS as i32 {
        entries.extend([(0, BITMASK, 0), (-1, -1, 0), (mask + 2, LAST_TYPE, 0)]);
    }
    for _ in 0..a.count(100) {
        connect_consumer(a, &admins, &consumer, &entries)?;
    }
    let supplier = connect_supplier(a, &admins)?;
    for _ in 0..a.count(10) {
        push(a, &supplier, 200, FIRST_TYPE, 0)?;
    }
    finish(a, &supplier)
}

/// Groups of which one part never comes, and large events for the others.
pub(super) fn incomplete_groups(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    let consumer = ProfileOctets::at(answering(Duration::ZERO, &a.answered)?);
    let parts = a.count(32);
    let mut entries = vec![group(CONJUNCTION, parts + 1)];
    entries.extend((0..=parts as i32).map(|part| (0, FIRST_TYPE + part, 0)));
    for _ in 0..GROUPS {
        connect_consumer(a, &admins, &consumer, &entries)?;
    }
    let supplier = connect_supplier(a, &admins)?;
    let payload = a.size(1 << 20);
    for part in 0..parts as i32 {
        push(a, &supplier, 1, FIRST_TYPE + part, payload)?;
    }
    finish(a, &supplier)
}

/// The channel's own proxy as a consumer, and an event that comes back to it.
pub(super) fn event_loop(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    let supplier = connect_supplier(a, &admins)?;
    let itself = ProfileOctets {
        tag: IIOP,
        address: a.site.address,
        key: supplier.clone(),
    };
    connect_consumer(a, &admins, &itself, &[EVERYTHING])?;
    for _ in 0..a.count(1) {
        push(a, &supplier, 1, FIRST_TYPE, EVENT)?;
    }
    finish(a, &supplier)
}

/// Large events for a consumer that answers, and reads slowly.
pub(super) fn slow_reader(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    let consumer = ProfileOctets::at(answering(SLOW, &a.answered)?);
    let proxy = a.call(&admins.consumers, "obtain_push_supplier", |_| {})?;
    let proxy = proxy.key()?;
    a.call(&proxy, "set_queue", |m| {
        m.u32(LONGEST_QUEUE);
        // The oldest is dropped, without blocking and untold.
        m.u32(0);
        m.number(0_u64.to_le_bytes());
        m.octet(0);
    })?;
    subscribe(a, &proxy, &consumer, &[EVERYTHING])?;
    let supplier = connect_supplier(a, &admins)?;
    let payload = a.size(1 << 20);
    for _ in 0..a.count(64) {
        push(a, &supplier, 1, FIRST_TYPE, payload)?;
    }
    finish(a, &supplier)
}

/// Statistics of great subscriptions, which are never read.
pub(super) fn unread_statistics(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    let consumer = ProfileOctets::at(answering(Duration::ZERO, &a.answered)?);
    let entries = alternatives(1_000);
    for _ in 0..a.count(25) {
        connect_consumer(a, &admins, &consumer, &entries)?;
    }
    let request = messages::request(a.root, "statistics", |_| {});
    for _ in 0..a.size(20) {
        a.send_unread(&request.repeat(10))?;
    }
    Ok(())
}

/// Observers that take no connection's octets, and subscriptions that they are told.
pub(super) fn silent_observers(a: &mut Assailant<'_>) -> io::Result<()> {
    let admins = admins(a)?;
    let (_listener, address) = silent()?;
    let observer = ProfileOctets::at(address);
    for _ in 0..OBSERVERS {
        a.call(a.root, "append_observer", |m| observer.write(m, OBSERVER))?;
    }
    let consumer = ProfileOctets::at(answering(Duration::ZERO, &a.answered)?);
    let entries = alternatives(500);
    for _ in 0..a.count(100) {
        connect_consumer(a, &admins, &consumer, &entries)?;
    }
    Ok(())
}

/// The keys of the administrations.
struct AdminKeys {
    consumers: Vec<u8>,
    suppliers: Vec<u8>,
}

fn admins(a: &mut Assailant<'_>) -> io::Result<AdminKeys> {
    Ok(AdminKeys {
        consumers: a.call(a.root, "for_consumers", |_| {})?.key()?,
        suppliers: a.call(a.root, "for_suppliers", |_| {})?.key()?,
    })
}

fn connect_consumer(
    a: &mut Assailant<'_>,
    admins: &AdminKeys,
    consumer: &ProfileOctets,
    entries: &[SubscriptionEntry],
) -> io::Result<()> {
    let proxy = a.call(&admins.consumers, "obtain_push_supplier", |_| {})?;
    // A channel that gives no more proxies is asked on.
    match proxy.key() {
        Ok(proxy) => subscribe(a, &proxy, consumer, entries),
        Err(_) => Ok(()),
    }
}

fn subscribe(
    a: &mut Assailant<'_>,
    proxy: &[u8],
    consumer: &ProfileOctets,
    entries: &[SubscriptionEntry],
) -> io::Result<()> {
    a.call(proxy, "connect_push_consumer", |m| {
        consumer.write(m, CONSUMER);
        m.u32(length(entries.len()));
        for (source, event_type, time) in entries {
            event(m, *source, *event_type, *time, 0);
            // The information for scheduling.
            m.u32(0);
        }
        // It is no gateway.
        m.octet(0);
    })?;
    Ok(())
}

/// Connects a supplier, which is not called back. Returns the key of its proxy.
fn connect_supplier(a: &mut Assailant<'_>, admins: &AdminKeys) -> io::Result<Vec<u8>> {
    let proxy = a.call(&admins.suppliers, "obtain_push_consumer", |_| {})?;
    let proxy = proxy.key()?;
    a.call(&proxy, "connect_push_supplier", |m| {
        // A nil reference, no publications, no gateway.
        m.string("");
        m.u32(0);
        m.u32(0);
        m.octet(0);
    })?;
    Ok(proxy)
}

/// Pushes a set of equal events.
fn push(
    a: &mut Assailant<'_>,
    supplier: &[u8],
    events: usize,
    event_type: i32,
    payload: usize,
) -> io::Result<()> {
    a.send(&messages::oneway(supplier, "push", |m| {
        m.u32(length(events));
        for _ in 0..events {
            event(m, SOURCE, event_type, 0, payload);
        }
    }))
}

/// Waits until the channel has taken what was pushed.
fn finish(a: &mut Assailant<'_>, supplier: &[u8]) -> io::Result<()> {
    a.call(supplier, "_non_existent", |_| {})?;
    Ok(())
}

fn event(m: &mut MessageOctets, source: i32, event_type: i32, time: u64, payload: usize) {
    m.number(event_type.to_le_bytes());
    m.number(source.to_le_bytes());
    m.u32(TTL);
    m.number(time.to_le_bytes());
    for _ in 0..2 {
        m.number(0_u64.to_le_bytes());
    }
    m.u32(0);
    m.octets(&[], payload);
    // An any without a value.
    m.u32(0);
}

/// The first entry of a group.
fn group(kind: i32, children: usize) -> SubscriptionEntry {
    (length(children).cast_signed(), kind, 0)
}

/// A subscription of many types.
fn alternatives(types: usize) -> Vec<SubscriptionEntry> {
    let mut entries = vec![group(DISJUNCTION, types)];
    entries.extend((0..types as i32).map(|number| (0, FIRST_TYPE + number, 0)));
    entries
}

fn length(len: usize) -> u32 {
    u32::try_from(len).expect("attacks are small")
}

const CONSUMER: &str = "IDL:RtecEventComm/PushConsumer:1.0";
const OBSERVER: &str = "IDL:RtecEventChannelAdmin/Observer:1.0";
const INTERVAL_TIMEOUT: i32 = 5;
const CONJUNCTION: i32 = 8;
const DISJUNCTION: i32 = 9;
const BITMASK: i32 = 12;
/// Events of any source and type.
const EVERYTHING: SubscriptionEntry = (0, 0, 0);
/// The first type of the attacker's events.
const FIRST_TYPE: i32 = 1_000;
/// The type that no event has.
const LAST_TYPE: i32 = 1_000_000;
const SOURCE: i32 = 1;
const TTL: u32 = 16;
/// The octets of a small event.
const EVENT: usize = 1_000;
/// 100 µs.
const SHORTEST_INTERVAL: u64 = 1_000;
/// The time for which timers go on.
const TIMERS: Duration = Duration::from_secs(2);
/// The masks of a subscription.
const MASKS: usize = 330;
/// The groups that keep the same events.
const GROUPS: usize = 4;
/// The observers that a channel takes by default.
const OBSERVERS: usize = 16;
/// The longest queue that a consumer may state by default.
const LONGEST_QUEUE: u32 = 4_096;
/// The pause of a slow reader after each message.
const SLOW: Duration = Duration::from_millis(20);
