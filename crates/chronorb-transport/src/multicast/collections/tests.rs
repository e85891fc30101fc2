use std::collections::HashSet;

use proptest::prelude::*;

use super::super::packet::unique_id;
use super::*;

/// A message format with the length in the first two octets; the text `no` is invalid.
const MESSAGES: Messages = Messages {
    len: |octets| match octets {
        [b'n', b'o', ..] => None,
        [high, low, ..] => Some(usize::from(u16::from_be_bytes([*high, *low]))),
        _ => None,
    },
    max: usize::MAX,
};

const LIMITS: Limits = Limits {
    collections: 4,
    octets: 20_000,
    message: 4000,
    age: Duration::from_millis(100),
};

/// Collections in virtual time.
struct Bench {
    collections: Collections,
    counters: Counters,
    now: Monotonic,
}

impl Bench {
    fn new() -> Self {
        Self {
            collections: Collections::new(LIMITS, MESSAGES),
            counters: Counters::default(),
            now: Monotonic::from_nanos(0),
        }
    }

    fn push(&mut self, sender: &str, packet: Packet<'_>) -> Option<Vec<u8>> {
        let sender = sender.parse().expect("a socket address");
        let whole = self
            .collections
            .push(sender, packet, self.now, &self.counters);
        let whole = whole.map(<[u8]>::to_vec);
        assert!(self.collections.len() <= LIMITS.collections);
        assert!(self.collections.octets() <= LIMITS.octets);
        let sum = self.collections.open.iter().map(Collection::octets).sum();
        assert_eq!(self.collections.octets(), sum);
        whole
    }

    fn counts(&self) -> super::super::Counts {
        self.counters.counts()
    }
}

fn message(len: u16) -> Vec<u8> {
    let mut message: Vec<_> = (0..len).map(|n| (n % 251) as u8).collect();
    message[..2].copy_from_slice(&len.to_be_bytes());
    message
}

/// Packets of a message with so many octets each.
fn packets<'a>(id: &'a [u8], message: &'a [u8], each: usize) -> Vec<Packet<'a>> {
    let parts = message.chunks(each);
    let total = Some(parts.len() as u32);
    let packet = |(number, data)| Packet {
        number: number as u32,
        total,
        id,
        data,
    };
    parts.enumerate().map(packet).collect()
}

const A: &str = "10.0.0.1:1000";
const B: &str = "10.0.0.2:1000";

#[test]
fn a_message_in_one_packet_is_not_kept() {
    let mut bench = Bench::new();
    let message = message(100);
    let whole = bench.push(A, packets(b"id", &message, 100)[0]);
    assert_eq!(whole, Some(message));
    assert!(bench.collections.is_empty());
    assert_eq!(bench.collections.octets(), 0);
}

#[test]
fn packets_of_several_senders_are_kept_apart_though_their_ids_are_the_same() {
    let mut bench = Bench::new();
    let (long, short) = (message(300), message(200));
    let (of_a, of_b) = (packets(b"id", &long, 150), packets(b"id", &short, 100));
    assert_eq!(bench.push(A, of_a[0]), None);
    assert_eq!(bench.push(B, of_b[1]), None);
    assert_eq!(bench.push(A, of_a[1]), Some(long.clone()));
    assert_eq!(bench.push(B, of_b[0]), Some(short.clone()));
    assert_eq!(bench.counts().delivered, 2);
}

#[test]
fn a_packet_that_comes_twice_is_dropped_once() {
    let mut bench = Bench::new();
    let message = message(300);
    let packets = packets(b"id", &message, 150);
    assert_eq!(bench.push(A, packets[0]), None);
    assert_eq!(bench.push(A, packets[0]), None);
    assert_eq!(bench.push(A, packets[1]), Some(message.clone()));
    assert_eq!(bench.counts().duplicates, 1);
}

#[test]
fn the_number_of_packets_may_come_with_the_last_one_only() {
    let mut bench = Bench::new();
    let message = message(450);
    let mut packets = packets(b"id", &message, 150);
    packets[0].total = None;
    packets[1].total = None;
    assert_eq!(bench.push(A, packets[2]), None);
    assert_eq!(bench.push(A, packets[0]), None);
    assert_eq!(bench.push(A, packets[1]), Some(message.clone()));
}

#[test]
fn packets_that_contradict_each_other_end_their_collection() {
    let long = message(450);
    let of = packets(b"id", &long, 150);
    let other_total = Packet {
        total: Some(4),
        ..of[1]
    };
    let other_data = Packet {
        data: b"something else",
        ..of[0]
    };
    let beyond_the_last = Packet {
        number: 2,
        total: None,
        ..of[1]
    };
    let last_before_others = Packet {
        number: 1,
        total: Some(2),
        ..of[1]
    };
    for (first, second) in [
        (of[0], other_total),
        (of[0], other_data),
        (last_before_others, beyond_the_last),
        (beyond_the_last, last_before_others),
    ] {
        let mut bench = Bench::new();
        assert_eq!(bench.push(A, first), None);
        assert_eq!(bench.push(A, second), None);
        assert_eq!(bench.counts().contradicting, 1, "{first:?} {second:?}");
        assert!(bench.collections.is_empty());
    }
}

#[test]
fn what_is_no_message_is_dropped_as_soon_as_that_shows() {
    let mut bench = Bench::new();
    let none = [b"no message", &[0; 200][..]].concat();
    let of = packets(b"id", &none, 105);
    assert_eq!(bench.push(A, of[0]), None);
    assert_eq!(bench.counts().no_message, 1);
    assert!(bench.collections.is_empty());

    assert_eq!(bench.push(A, packets(b"id", &none, 300)[0]), None);
    assert_eq!(bench.counts().no_message, 2);

    let mut with_more = message(200);
    with_more.push(0);
    for packet in packets(b"id", &with_more, 100) {
        assert_eq!(bench.push(A, packet), None);
    }
    assert_eq!(bench.counts().no_message, 3);
    assert!(bench.collections.is_empty());
}

#[test]
fn what_is_too_large_is_dropped_at_its_first_packet_or_when_there_is_too_much_of_it() {
    let mut bench = Bench::new();
    let long = message(4001);
    let of = packets(b"id", &long, 1000);
    assert_eq!(bench.push(A, of[0]), None);
    assert_eq!(bench.counts().no_message, 1);
    for packet in &of[1..] {
        assert_eq!(bench.push(A, *packet), None);
    }
    let further = Packet {
        number: 0,
        data: &long[..1000],
        ..of[1]
    };
    assert_eq!(bench.push(A, further), None);
    assert!(bench.collections.is_empty());
}

#[test]
fn a_collection_that_takes_too_long_is_dropped() {
    let mut bench = Bench::new();
    let message = message(300);
    let of = packets(b"id", &message, 150);
    assert_eq!(bench.push(A, of[0]), None);
    bench.now = bench.now + LIMITS.age;
    assert_eq!(bench.push(A, of[0]), None);
    bench.now = bench.now + Duration::from_nanos(1);
    assert_eq!(bench.push(A, of[1]), None);
    assert_eq!(bench.counts().expired, 1);
    assert_eq!(bench.push(A, of[0]), Some(message.clone()), "in good time");
}

#[test]
fn a_sender_that_begins_many_pushes_out_its_own_oldest_only() {
    let mut bench = Bench::new();
    let message = message(300);
    let of_b = packets(b"patient", &message, 150);
    assert_eq!(bench.push(B, of_b[0]), None);
    let ids: Vec<_> = (0..100).map(|n| unique_id(1, n)).collect();
    for id in &ids {
        assert_eq!(bench.push(A, packets(id, &message, 150)[0]), None);
    }
    assert_eq!(bench.counts().crowded_out, 97);
    assert_eq!(bench.push(B, of_b[1]), Some(message.clone()));
    // The latest of the other are there, too.
    let last = packets(&ids[99], &message, 150);
    assert_eq!(bench.push(A, last[1]), Some(message.clone()));
}

#[test]
fn a_sender_with_large_collections_pushes_out_its_own() {
    let mut bench = Bench::new();
    let small = message(300);
    let of_b = packets(b"patient", &small, 150);
    assert_eq!(bench.push(B, of_b[0]), None);
    let large = message(4000);
    let ids: Vec<_> = (0..20).map(|n| unique_id(1, n)).collect();
    for id in &ids {
        let of_a = packets(id, &large, 40);
        for packet in &of_a[1..] {
            assert_eq!(bench.push(A, *packet), None);
        }
    }
    assert!(bench.counts().crowded_out > 0);
    assert_eq!(bench.push(B, of_b[1]), Some(small.clone()));
}

#[test]
fn senders_of_one_host_share_what_it_may_have() {
    let mut bench = Bench::new();
    let message = message(300);
    let of_b = packets(b"patient", &message, 150);
    assert_eq!(bench.push(B, of_b[0]), None);
    for n in 0..100 {
        let sender = format!("10.0.0.1:{}", 2000 + n);
        let id = unique_id(1, n);
        assert_eq!(bench.push(&sender, packets(&id, &message, 150)[0]), None);
    }
    assert_eq!(bench.push(B, of_b[1]), Some(message.clone()));
}

/// The disturbances of the packets of some messages.
#[derive(Clone, Debug)]
struct Way {
    /// Lengths of the messages, and of their packets' data.
    messages: Vec<(u16, usize)>,
    /// The order of the packets, some of them twice.
    order: Vec<prop::sample::Index>,
    lost: Vec<prop::sample::Index>,
}

fn ways() -> impl Strategy<Value = Way> {
    let index = || any::<prop::sample::Index>();
    let messages = prop::collection::vec((2..600u16, 20..200usize), 1..4);
    let order = prop::collection::vec(index(), 0..40);
    let lost = prop::collection::vec(index(), 0..2);
    (messages, order, lost).prop_map(|(messages, order, lost)| Way {
        messages,
        order,
        lost,
    })
}

proptest! {
    #[test]
    fn messages_come_whole_or_not_at_all_and_those_without_loss_do(way in ways()) {
        let messages: Vec<_> = way.messages.iter().map(|(len, _)| message(*len)).collect();
        let ids: Vec<_> = (0..3).map(|n| unique_id(1, n)).collect();
        let mut sent: Vec<(usize, Packet<'_>)> = Vec::new();
        for (n, message) in messages.iter().enumerate() {
            sent.extend(packets(&ids[n], message, way.messages[n].1).into_iter().map(|p| (n, p)));
        }
        let mut lossy = HashSet::new();
        for lost in &way.lost {
            if sent.len() > 1 {
                lossy.insert(sent.remove(lost.index(sent.len())).0);
            }
        }
        for pair in way.order.chunks(2).filter(|pair| pair.len() == 2) {
            let (a, b) = (pair[0].index(sent.len()), pair[1].index(sent.len()));
            sent.swap(a, b);
        }
        let mut bench = Bench::new();
        let mut come = vec![0; messages.len()];
        for (n, packet) in &sent {
            if let Some(whole) = bench.push(A, *packet) {
                prop_assert_eq!(&whole, &messages[*n]);
                come[*n] += 1;
            }
        }
        for (n, come) in come.into_iter().enumerate() {
            prop_assert_eq!(come, u32::from(!lossy.contains(&n)), "message {}", n);
        }
    }

    #[test]
    fn any_packets_are_held_within_the_limits(
        packets in prop::collection::vec(
            (
                0..3u8, 0..9u8, 0..6u32, prop::option::of(1..6u32),
                prop::collection::vec(any::<u8>(), 1..900), 0..30u64,
            ),
            0..200,
        ),
    ) {
        let mut bench = Bench::new();
        for (sender, id, number, total, data, passed) in packets {
            let number = total.map_or(number, |total| number % total);
            bench.now = bench.now + Duration::from_millis(passed);
            let packet = Packet { number, total, id: &[id], data: &data };
            if let Some(whole) = bench.push(&format!("10.0.0.{sender}:1"), packet) {
                prop_assert_eq!((MESSAGES.len)(&whole), Some(whole.len()));
            }
        }
    }
}
