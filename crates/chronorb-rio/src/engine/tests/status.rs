//! The published counters of a class.

use std::process;

use super::transfers::exchange;
use super::*;
use crate::driver::wire::Faults;
use crate::engine::publisher::StatusPublisher;
use crate::status::{self, ClassSnapshot, Count, Level, Page, Snapshot};

/// Creates a world whose server publishes its counters on the page of an interface.
fn publishing(interface: &str) -> World {
    let mut world = World::new(&small());
    let page = Page::create(interface).expect("there is memory");
    let class = ClassId::new(0).expect("it is the first");
    let counters = page.open(class, &(&small()).into());
    world.hosts[SERVER].engine.publisher = Some(StatusPublisher::new(counters, small().queue));
    world
}

/// Reads the counters of the only class of an interface.
fn seen(interface: &str) -> ClassSnapshot {
    let looked = status::find(Some(process::id())).expect("this process is there");
    let pages = looked.found.iter().flat_map(|found| &found.pages);
    let mut snapshots = pages.filter_map(|page| Snapshot::read(&page.file).ok());
    let mut found = snapshots.find(|snapshot| snapshot.interface == interface);
    let classes = found.as_mut().map(|snapshot| &mut snapshot.classes);
    classes.expect("there is a page").remove(0)
}

#[test]
fn connections_and_packets_are_shown() {
    let mut world = publishing("shown-0");
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    exchange(&mut world, [near, far], 100_000);
    let class = seen("shown-0");
    let server = world.engine(SERVER);
    let (received, transmitted) = server.path_counts();
    assert_eq!(class.count(Count::PacketsIn), received.frames);
    assert_eq!(class.count(Count::OctetsIn), received.octets);
    assert_eq!(class.count(Count::PacketsOut), transmitted.frames);
    assert_eq!(class.count(Count::OctetsOut), transmitted.octets);
    assert_eq!(class.count(Count::Established), 1);
    assert_eq!(class.level(Level::Open).now, 1);
    assert_eq!(class.level(Level::HalfOpen).most, 1);
    assert_eq!(class.latencies.count(), received.frames);
    assert_eq!(class.count(Count::Retransmissions), 0);
    assert_eq!(class.drops(), 0);
}

#[test]
fn segments_that_were_lost_and_sent_again_are_shown() {
    let mut world = publishing("shown-1");
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    let faults = Faults {
        loss: 0.1,
        ..Faults::default()
    };
    world.wire.disturb(Side::Right, faults, 7);
    exchange(&mut world, [near, far], 100_000);
    let lost = world.wire.counts(Side::Right).faults;
    assert!(
        seen("shown-1").count(Count::Retransmissions) > 0,
        "{lost:?}"
    );
}

#[test]
fn what_a_budget_leaves_is_shown_as_waiting() {
    let mut world = publishing("shown-3");
    let listener = world.listen();
    let (near, _) = world.pair(listener, 40_000);
    world.pass(Duration::from_millis(10));
    let frames = |world: &World| world.engine(CLIENT).path_counts().1.frames;
    let before = frames(&world);
    world.send(near, &[7; 65_536]).expect("there is room");
    world.wire.advance(world.now);
    let sent = frames(&world) - before;
    for taken in [0, 8, 16] {
        let outcome = world.engine(SERVER).step(world.now, 8, Attendant::Nobody);
        assert_eq!(outcome.expect("a wire does not fail").packets, 8);
        let seen = seen("shown-3");
        assert_eq!(seen.level(Level::Queue).now, sent - taken);
        assert_eq!(seen.level(Level::LeftOver).now, sent - taken - 8);
        assert_eq!(
            seen.level(Level::Queue).most,
            sent,
            "what was there at a time"
        );
    }
}

#[test]
fn packets_of_no_connection_are_shown() {
    let mut world = publishing("shown-2");
    let _ = world.connect(40_000);
    world.turn();
    world.turn();
    let class = seen("shown-2");
    assert_eq!(class.count(Count::NoConnection), 1);
    assert_eq!(class.drops(), 1);
}
