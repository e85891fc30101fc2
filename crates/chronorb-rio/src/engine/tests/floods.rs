//! Whatever peers do, slots are bounded and come free again.

use super::*;
use crate::driver::wire::Faults;

/// Has the client wish for connections from so many ports, and forget about them.
fn flood(world: &World, ports: std::ops::Range<u16>) {
    let silent = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    for port in ports {
        let at = world.connect(port).expect("it is free");
        // What it would say when it hears of the connection again is lost.
        world.wire.disturb(Side::Left, silent, 0);
        world.protocol(CLIENT).abort_all(world.now);
        assert_eq!(world.protocol(CLIENT).used(), 0, "{at:?}");
        world.wire.disturb(Side::Left, Faults::default(), 0);
        let server = world.protocol(SERVER);
        server
            .step(world.now, 10, None)
            .expect("a wire does not fail");
        // The client's answers to that are lost too.
        world.wire.disturb(Side::Left, silent, 0);
        let client = world.protocol(CLIENT);
        client
            .step(world.now, 10, None)
            .expect("a wire does not fail");
        world.wire.disturb(Side::Left, Faults::default(), 0);
    }
}

#[test]
fn half_open_connections_are_bounded_and_the_oldest_gives_way() {
    let mut world = World::new(&small());
    let listener = world.listen(4);
    flood(&world, 40_000..41_000);
    let server = world.protocol(SERVER);
    assert_eq!(server.used(), 4);
    assert_eq!(
        server.counters.counts(server.path_counts(), 0).gave_way,
        996
    );
    // Who means it comes in all the same.
    world.pair(listener, 50_000);
}

#[test]
fn half_open_connections_end_after_a_time() {
    let mut world = World::new(&small());
    world.listen(4);
    flood(&world, 40_000..40_003);
    assert_eq!(world.protocol(SERVER).used(), 3);
    let silent = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    world.wire.disturb(Side::Left, silent, 0);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.protocol(SERVER).used(), 0);
}

#[test]
fn connections_over_the_limit_are_not_begun_and_counted() {
    let mut world = World::new(&small());
    let listener = world.listen(4);
    let pairs: Vec<_> = (0..8)
        .map(|port| world.pair(listener, 40_000 + port))
        .collect();
    assert_eq!(
        world.connect(50_000).err(),
        Some(Busy::Slots),
        "the client has as many"
    );
    let (near, _) = pairs[0];
    world
        .protocol(CLIENT)
        .with(near.slot, world.now, |it| it.abort(world.now));
    // The server hears nothing of that.
    let faults = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    world.wire.disturb(Side::Left, faults, 0);
    world.turn();
    world.wire.disturb(Side::Left, Faults::default(), 0);
    let server = world.protocol(SERVER);
    let dropped = || {
        server
            .counters
            .counts(server.path_counts(), 0)
            .connections_dropped
    };
    let before = dropped();
    let _ = world.connect(50_000);
    server
        .step(world.now, 10, None)
        .expect("a wire does not fail");
    assert!(server.used() == 8);
    assert!(dropped() >= before);
}

#[test]
fn who_asks_where_nobody_listens_is_refused() {
    let mut world = World::new(&small());
    let at = world.connect_to(40_000, 99).expect("it is free");
    let outcome = world.until("it is refused", |world| world.is_connected(at));
    assert_eq!(outcome, Err(IoError::Closed));
    world.let_go(at);
    assert_eq!(world.protocol(CLIENT).used(), 0);
}

#[test]
fn a_flood_of_one_class_takes_nothing_from_another() {
    let (_wire, left, right) = wire::join(link(CLIENT, 1500), link(SERVER, 1500), 4096);
    let config = small();
    let class = |number| ClassId::new(number).expect("there are several");
    let rule = |number, port| Rule {
        ports: Some(port..=port),
        ..Rule::all(class(number))
    };
    let now = Monotonic::from_nanos(1);
    let open = |number, port| {
        let path = right.open(class(number), &[rule(number, port)], 64);
        Protocol::new(&config, right.link(), path.expect("it is new")).expect("descriptors")
    };
    let (quiet, flooded) = (open(0, 1000), open(1, 2000));
    let path = left
        .open(class(0), &[Rule::all(class(0))], 512)
        .expect("it is the first");
    let client = Protocol::new(&config, left.link(), path).expect("descriptors");
    let ethernet = Ethernet {
        to: right.link().hardware,
        from: left.link().hardware,
        vlan: None,
        kind: Ethernet::IPV4,
    };
    let wish = |from: u16, to: u16| {
        let flow = Flow {
            local: address(CLIENT, from),
            remote: address(SERVER, to),
        };
        client.connect(flow, ethernet, now).expect("a slot is free");
        client.abort_all(now);
    };
    for port in 0..500 {
        wish(40_000 + port, 2000);
    }
    for port in 0..10 {
        wish(50_000 + port, 1000);
    }
    // Each comes with the reset that gives it up.
    let outcome = quiet.step(now, 100, None).expect("a wire does not fail");
    assert_eq!(outcome.packets, 20);
    assert_eq!(quiet.path_counts().0.dropped, 0);
    let outcome = flooded.step(now, 100, None).expect("a wire does not fail");
    assert_eq!(outcome.packets, 64, "its queue has no more room");
    assert_eq!(flooded.path_counts().0.dropped, 2 * 500 - 64);
}

#[test]
fn what_makes_no_sense_is_dropped_and_counted() {
    let world = World::new(&small());
    world.listen(4);
    let end = &world.hosts[CLIENT].end;
    let class = ClassId::new(5).expect("there are several");
    let mut path = end.open(class, &[], 16).expect("it is new");
    let server = world.protocol(SERVER);
    let mut frame = Vec::new();
    frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 8, 0]);
    // IPv4 from the client to the server with TCP, whose header claims to have 60 octets.
    frame.extend([
        0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend([
        0x9c, 0x40, 0x0a, 0xf9, 0, 0, 0, 1, 0, 0, 0, 0, 0xf0, 2, 1, 0, 0, 0, 0, 0,
    ]);
    let transmit = |frame: &[u8], path: &mut crate::path::Path| {
        let transmitter = &mut path.transmitter;
        transmitter
            .transmit(frame.len(), &mut |room| room.copy_from_slice(frame))
            .expect("there is room");
        transmitter.flush().expect("a wire does not fail");
    };
    transmit(&frame, &mut path);
    frame[46] = 0x50;
    transmit(&frame, &mut path);
    server
        .step(world.now, 10, None)
        .expect("a wire does not fail");
    let counts = server.counters.counts(server.path_counts(), server.used());
    // The wire has no class for what is malformed, so that at most the second comes by.
    assert_eq!(counts.packets, counts.malformed + counts.wrong_checksums);
    assert_eq!(counts.wrong_checksums, 1);
    assert_eq!(counts.slots, 0);
}
