//! The wire in memory: the effects of its faults, and their reproducibility.

use crate::class::{ClassId, Rule};
use crate::driver::wire::{self, FaultCounts, Faults, FaultyDriver, Side, Wire};
use crate::driver::{Driver, Link};
use crate::path::{Path, Receiver, Transmitter};
use chronorb_rt::Monotonic;
use std::time::Duration;

use crate::tests::support::frames::{TestFrame, number_of};

const FRAMES: u32 = 10_000;

#[test]
fn without_faults_all_arrive_in_order() {
    let mut bench = Bench::new();
    assert_eq!(bench.send(FRAMES), (0..FRAMES).collect::<Vec<_>>());
}

#[test]
fn so_many_are_lost_as_are_counted() {
    let mut bench = Bench::new();
    let counts = bench.disturb_and_send(Faults {
        loss: 0.1,
        ..Faults::default()
    });
    assert!((800..1200).contains(&counts.lost), "{counts:?}");
    assert_eq!(bench.arrived.len() as u64, counts.sent - counts.lost);
    assert!(bench.arrived.is_sorted());
}

#[test]
fn a_double_comes_with_its_frame() {
    let mut bench = Bench::new();
    let counts = bench.disturb_and_send(Faults {
        duplication: 0.1,
        ..Faults::default()
    });
    assert!((800..1200).contains(&counts.duplicated), "{counts:?}");
    let doubles = bench.arrived.windows(2).filter(|pair| pair[0] == pair[1]);
    assert_eq!(doubles.count() as u64, counts.duplicated);
}

#[test]
fn who_is_overtaken_comes_after_at_most_eight_others() {
    let mut bench = Bench::new();
    let counts = bench.disturb_and_send(Faults {
        reordering: 0.05,
        ..Faults::default()
    });
    assert!((400..600).contains(&counts.overtaken), "{counts:?}");
    assert!(!bench.arrived.is_sorted());
    for (place, number) in bench.arrived.iter().enumerate() {
        assert!(place.abs_diff(*number as usize) <= 8, "{number} at {place}");
    }
}

#[test]
fn a_corrupted_frame_differs_in_one_octet_behind_the_header() {
    let mut bench = Bench::new();
    let counts = bench.disturb_and_send(Faults {
        corruption: 0.1,
        ..Faults::default()
    });
    assert!((800..1200).contains(&counts.corrupted), "{counts:?}");
    // Some have a changed address or port.
    let to_kernel = bench.wire.counts(Side::Left).to_kernel;
    assert_eq!(bench.octets.len() as u64 + to_kernel, u64::from(FRAMES));
    let mut changed = 0;
    for octets in &bench.octets {
        let number = number_of(octets).expect("rules have let it through");
        let sent = bench.frame.octets(number);
        let differ = (0..sent.len()).filter(|place| sent[*place] != octets[*place]);
        let differ: Vec<_> = differ.collect();
        // If the number has changed, all octets derived from it differ.
        if differ.len() == 1 {
            assert!(differ[0] >= 14);
        }
        changed += u64::from(!differ.is_empty());
    }
    assert!(changed > 0 && changed + to_kernel <= counts.corrupted);
}

#[test]
fn the_same_seed_does_the_same() {
    let all = Faults {
        loss: 0.05,
        duplication: 0.05,
        reordering: 0.05,
        corruption: 0.05,
        ..Faults::default()
    };
    let run = |seed| {
        let mut bench = Bench::new();
        bench.wire.disturb(Side::Left, all, seed);
        bench.send(FRAMES);
        bench.octets
    };
    assert!(run(1) == run(1));
    assert!(run(1) != run(2));
}

#[test]
fn a_frame_arrives_when_its_time_has_come() {
    let mut bench = Bench::new();
    let delay = Duration::from_millis(5);
    let faults = Faults {
        delay,
        // A frame of 100 octets takes a millisecond.
        rate: 800_000,
        ..Faults::default()
    };
    bench.wire.disturb(Side::Left, faults, 0);
    assert_eq!(bench.wire.next(), None);
    assert_eq!(bench.send(3), []);
    let at = |milliseconds| Monotonic::from_nanos(milliseconds * 1_000_000);
    for (number, due) in [6, 7, 8].into_iter().enumerate() {
        assert_eq!(bench.wire.next(), Some(at(due)));
        assert_eq!(bench.wire.counts(Side::Left).in_flight, 3 - number as u64);
        bench
            .wire
            .advance(Monotonic::from_nanos(due * 1_000_000 - 1));
        assert_eq!(bench.take().len(), number);
        bench.wire.advance(at(due));
        assert_eq!(bench.take().len(), number + 1);
    }
    assert_eq!(bench.wire.next(), None);
}

#[test]
fn what_finds_no_room_on_the_way_waits_before_it() {
    let mut bench = Bench::new();
    let faults = Faults {
        delay: Duration::from_millis(1),
        ..Faults::default()
    };
    bench.wire.disturb(Side::Left, faults, 0);
    bench.send(100);
    let in_flight = bench.wire.counts(Side::Left).in_flight;
    assert!((1..=16).contains(&in_flight), "{in_flight}");
    let mut now = Monotonic::from_nanos(0);
    for _ in 0..100 {
        now = now + Duration::from_millis(1);
        bench.wire.advance(now);
        bench.sender.flush().expect("a wire does not fail");
        bench.take();
    }
    assert_eq!(bench.arrived, (0..100).collect::<Vec<_>>());
}

#[test]
fn both_ends_can_be_on_one_thread_and_answer_while_they_take() {
    let (_, left, right) = wire::join(link(1), link(2), 16);
    let mut here = open(&left);
    let mut there = open(&right);
    send(&mut *here.transmitter, &frame(1, 2).octets(7));
    let answer = frame(2, 1).octets(8);
    let transmitter = &mut there.transmitter;
    let came = there
        .receiver
        .receive(&mut |_| send(&mut **transmitter, &answer));
    assert!(came.expect("a wire does not fail"));
    assert_eq!(take(&mut *here.receiver), [answer]);
}

#[test]
fn a_driver_can_be_made_faulty() {
    let faults = Faults {
        loss: 0.1,
        duplication: 0.1,
        reordering: 0.05,
        ..Faults::default()
    };
    let (_, left, right) = wire::join(link(1), link(2), 16);
    let left = FaultyDriver::new(left, faults, 1);
    let mut here = open(&left);
    let mut there = open(&right);
    let mut arrived = 0;
    for number in 0..FRAMES {
        send(&mut *here.transmitter, &frame(1, 2).octets(number));
        arrived += take(&mut *there.receiver).len() as u64;
    }
    let counts = left.counts();
    assert_eq!(counts.sent, u64::from(FRAMES));
    assert!(counts.lost > 800 && counts.duplicated > 800 && counts.overtaken > 400);
    // Some frames may still wait to be overtaken.
    let expected = counts.sent - counts.lost + counts.duplicated;
    assert!((expected - 8..=expected).contains(&arrived), "{arrived}");
}

/// A sender at the left end, and a receiver at the right one.
struct Bench {
    wire: Wire,
    frame: TestFrame,
    sender: Box<dyn Transmitter>,
    receiver: Box<dyn Receiver>,
    arrived: Vec<u32>,
    octets: Vec<Vec<u8>>,
}

impl Bench {
    fn new() -> Self {
        let (wire, left, right) = wire::join(link(1), link(2), 16);
        Self {
            wire,
            frame: frame(1, 2),
            sender: open(&left).transmitter,
            receiver: open(&right).receiver,
            arrived: Vec::new(),
            octets: Vec::new(),
        }
    }

    /// Sends frames numbered from 0, and returns the numbers of all frames that have arrived.
    fn send(&mut self, frames: u32) -> &[u32] {
        for number in 0..frames {
            send(&mut *self.sender, &self.frame.octets(number));
            self.take();
        }
        &self.arrived
    }

    fn disturb_and_send(&mut self, faults: Faults) -> FaultCounts {
        self.wire.disturb(Side::Left, faults, 1);
        self.send(FRAMES);
        // Releases the frames that wait to be overtaken.
        self.wire.disturb(Side::Left, Faults::default(), 1);
        let counts = self.wire.counts(Side::Left).faults;
        while self.wire.counts(Side::Left).in_flight > 0 {
            send(
                &mut *self.sender,
                &self.frame.clone().protocol(17).octets(0),
            );
        }
        self.take();
        counts
    }

    fn take(&mut self) -> &[u32] {
        let octets = take(&mut *self.receiver);
        self.arrived
            .extend(octets.iter().filter_map(|octets| number_of(octets)));
        self.octets.extend(octets);
        &self.arrived
    }
}

fn link(host: u8) -> Link {
    Link {
        name: format!("wire{host}"),
        index: host.into(),
        hardware: [2, 0, 0, 0, 0, host],
        mtu: 1500,
        addresses: vec![([10, 0, 0, host].into(), 24)],
    }
}

fn frame(from: u8, to: u8) -> TestFrame {
    let host = |host| ([2, 0, 0, 0, 0, host], [10, 0, 0, host].into());
    TestFrame::between(host(from), host(to), 2809)
}

fn open(end: &impl Driver) -> Path {
    let class = ClassId::new(3).expect("there are so many");
    let rule = Rule {
        class,
        to: None,
        ports: Some(2809..=2809),
        dscp: None,
        vlan_priority: None,
    };
    end.open(class, &[rule], 128).expect("nothing else is open")
}

fn send(transmitter: &mut dyn Transmitter, octets: &[u8]) {
    transmitter
        .transmit(octets.len(), &mut |room| room.copy_from_slice(octets))
        .expect("there is room");
    transmitter.flush().expect("a wire does not fail");
}

fn take(receiver: &mut dyn Receiver) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    while receiver
        .receive(&mut |frame| taken.push(frame.octets.to_vec()))
        .expect("a wire does not fail")
    {}
    taken
}
