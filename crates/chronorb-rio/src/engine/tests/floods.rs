//! Slots under floods: their number is bounded, and they become free again.

use super::*;
use crate::driver::wire::Faults;

/// Makes the client request connections from these ports, and forget them.
fn flood(world: &World, ports: std::ops::Range<u16>) {
    let silent = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    for port in ports {
        let at = world.connect(port).expect("it is free");
        // The client's resets of the forgotten connections are lost.
        world.wire.disturb(Side::Left, silent, 0);
        world.engine(CLIENT).abort_all(world.now);
        assert_eq!(world.engine(CLIENT).used(), 0, "{at:?}");
        world.wire.disturb(Side::Left, Faults::default(), 0);
        let server = world.engine(SERVER);
        server
            .step(world.now, 10, Attendant::Nobody)
            .expect("a wire does not fail");
        // The client's answers to the retransmissions are lost too.
        world.wire.disturb(Side::Left, silent, 0);
        let client = world.engine(CLIENT);
        client
            .step(world.now, 10, Attendant::Nobody)
            .expect("a wire does not fail");
        world.wire.disturb(Side::Left, Faults::default(), 0);
    }
}

#[test]
fn half_open_connections_are_bounded_and_the_oldest_gives_way() {
    let mut world = World::new(&small());
    let listener = world.listen();
    flood(&world, 40_000..41_000);
    let server = world.engine(SERVER);
    assert_eq!((server.half_open(), server.used()), (4, 0));
    assert_eq!(
        server.counters.counts(server.path_counts(), 0).gave_way,
        996
    );
    // A peer that completes its handshake is accepted all the same.
    world.pair(listener, 50_000);
}

#[test]
fn half_open_connections_end_after_a_time() {
    let mut world = World::new(&small());
    world.listen();
    flood(&world, 40_000..40_003);
    assert_eq!(world.engine(SERVER).half_open(), 3);
    let silent = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    world.wire.disturb(Side::Left, silent, 0);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.engine(SERVER).half_open(), 0);
}

#[test]
fn connections_over_the_limit_are_not_begun_and_counted() {
    let mut world = World::new(&small());
    let listener = world.listen();
    // Each address has its share, and is busy.
    for number in 0..8 {
        let near = connect_from(&world, 10 + number / 2, 40_000 + u16::from(number));
        let far = world.until("it is connected", |world| world.accept(listener));
        assert_eq!(world.send(near, b"x"), Ok(1));
        world.pass(Duration::from_millis(1));
        assert_eq!(world.receive(far, &mut [0; 10]), Ok(1));
    }
    assert_eq!(
        world.connect(50_000).err(),
        Some(Busy::Slots),
        "the client has as many"
    );
    world.pass(Duration::from_millis(10));
    vanish(&world);
    let server = world.engine(SERVER);
    let counts = || server.counters.counts(server.path_counts(), server.used());
    let before = counts();
    connect_from(&world, 99, 50_000);
    server
        .step(world.now, 10, Attendant::Nobody)
        .expect("a wire does not fail");
    let after = counts();
    assert_eq!(after.connections_dropped, before.connections_dropped + 1);
    assert_eq!((after.slots, after.evicted, server.half_open()), (8, 0, 0));
}

#[test]
fn who_asks_where_nobody_listens_is_refused() {
    let mut world = World::new(&small());
    let at = world.connect_to(40_000, 99).expect("it is free");
    let outcome = world.until("it is refused", |world| world.is_connected(at));
    assert_eq!(outcome, Err(IoError::Closed));
    world.let_go(at);
    assert_eq!(world.engine(CLIENT).used(), 0);
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
        ClassEngine::new(&config, right.link(), path.expect("it is new")).expect("descriptors")
    };
    let (quiet, flooded) = (open(0, 1000), open(1, 2000));
    let path = left
        .open(class(0), &[Rule::all(class(0))], 512)
        .expect("it is the first");
    let client = ClassEngine::new(&config, left.link(), path).expect("descriptors");
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
    // Each SYN is followed by the reset that gives it up.
    let outcome = quiet
        .step(now, 100, Attendant::Nobody)
        .expect("a wire does not fail");
    assert_eq!(outcome.packets, 20);
    assert_eq!(quiet.path_counts().0.dropped, 0);
    let outcome = flooded
        .step(now, 100, Attendant::Nobody)
        .expect("a wire does not fail");
    assert_eq!(outcome.packets, 64, "its queue has no more room");
    assert_eq!(flooded.path_counts().0.dropped, 2 * 500 - 64);
}

#[test]
fn what_makes_no_sense_is_dropped_and_counted() {
    let world = World::new(&small());
    world.listen();
    let end = &world.hosts[CLIENT].end;
    let class = ClassId::new(5).expect("there are several");
    let mut path = end.open(class, &[], 16).expect("it is new");
    let server = world.engine(SERVER);
    let mut frame = Vec::new();
    frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 8, 0]);
    // IPv4 from the client to the server with TCP, whose header claims a length of 60 octets.
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
        .step(world.now, 10, Attendant::Nobody)
        .expect("a wire does not fail");
    let counts = server.counters.counts(server.path_counts(), server.used());
    // The wire classifies no malformed packets, so only the second one may arrive.
    assert_eq!(counts.packets, counts.malformed + counts.wrong_checksums);
    assert_eq!(counts.wrong_checksums, 1);
    assert_eq!(counts.slots, 0);
}

/// Makes the client forget its connections without notice to the server.
fn vanish(world: &World) {
    let silent = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    world.wire.disturb(Side::Left, silent, 0);
    world.engine(CLIENT).abort_all(world.now);
    world.wire.disturb(Side::Left, Faults::default(), 0);
}

/// Drops the server's handles of connections that have ended.
fn let_go_of_ended(world: &World, all: &mut Vec<At>) {
    all.retain(|at| {
        let ended = !matches!(
            world.receive(*at, &mut [0; 10]),
            Ok(_) | Err(IoError::WouldBlock)
        );
        if ended {
            world.let_go(*at);
        }
        !ended
    });
}

/// Fills the server with connections whose peers are silent from now on.
fn fill(world: &mut World, listener: usize, octets: &[u8]) -> Vec<At> {
    let mut all = Vec::new();
    for port in 0..8 {
        let (near, far) = world.pair(listener, 40_000 + port);
        if !octets.is_empty() {
            assert_eq!(world.send(near, octets), Ok(octets.len()));
            world.pass(Duration::from_millis(1));
            let mut room = [0; 10];
            assert_eq!(world.receive(far, &mut room), Ok(octets.len()));
        }
        all.push(far);
    }
    // Acknowledgements are not delayed longer than this.
    world.pass(Duration::from_millis(10));
    vanish(world);
    all
}

/// Starts to connect from another address of the client.
fn connect_from(world: &World, last: u8, port: u16) -> At {
    let flow = Flow {
        local: ([10, 0, 0, last], port).into(),
        remote: address(SERVER, PORT),
    };
    let ethernet = Ethernet {
        to: world.hosts[SERVER].end.link().hardware,
        from: world.hosts[CLIENT].end.link().hardware,
        vlan: None,
        kind: Ethernet::IPV4,
    };
    let slot = world.engine(CLIENT).connect(flow, ethernet, world.now);
    let slot = slot.expect("it is free");
    At { host: CLIENT, slot }
}

/// Returns whether a new peer is accepted, and gets an octet through, within a time.
fn comes_in(
    world: &mut World,
    near: At,
    listener: usize,
    all: &mut Vec<At>,
    time: Duration,
) -> bool {
    let end = world.now + time;
    let mut sent = false;
    let mut far = None;
    while world.now < end {
        let_go_of_ended(world, all);
        sent = sent || world.send(near, &[1]).is_ok();
        far = far.or_else(|| world.accept(listener));
        if far.is_some_and(|far| world.receive(far, &mut [0; 10]) == Ok(1)) {
            return true;
        }
        world.turn();
    }
    false
}

#[test]
fn new_peers_come_in_while_syns_of_forged_addresses_come_over_a_long_link() {
    // Answers to forged addresses are not for the client.
    let mut world = World::with_client_ports(&ClassConfig::default(), 40_000..=49_999);
    let listener = world.listen();
    let delay = Faults {
        delay: Duration::from_millis(10),
        ..Faults::default()
    };
    for side in BOTH {
        world.wire.disturb(side, delay, 0);
    }
    let class = ClassId::new(5).expect("there are several");
    let end = &world.hosts[CLIENT].end;
    let mut path = end.open(class, &[], 512).expect("it is new");
    let ethernet = Ethernet {
        to: world.hosts[SERVER].end.link().hardware,
        from: end.link().hardware,
        vlan: None,
        kind: Ethernet::IPV4,
    };
    let mut forged = 0;
    let mut clients = Vec::new();
    let mut taken_in = 0;
    // 40,000 in a second; a client every 20 ms.
    for tick in 0..2000 {
        for _ in 0..10 {
            let packet = syn_of(&flow_of(forged));
            forged += 1;
            let whole = ethernet.octets() + packet.len();
            let mut write = |frame: &mut [u8]| {
                let room = ethernet.write(frame).expect("there is room");
                room.copy_from_slice(&packet);
            };
            let transmitter = &mut path.transmitter;
            transmitter
                .transmit(whole, &mut write)
                .expect("there is room");
        }
        path.transmitter.flush().expect("a wire does not fail");
        if tick % 80 == 0 && clients.len() < 20 {
            clients.push(world.connect(40_000 + tick).expect("it is free"));
        }
        for host in [CLIENT, SERVER] {
            let outcome = world
                .engine(host)
                .step(world.now, usize::MAX, Attendant::Nobody);
            outcome.expect("a wire does not fail");
        }
        taken_in += usize::from(world.accept(listener).is_some());
        world.advance(world.now + Duration::from_micros(250));
    }
    assert_eq!(taken_in, 20);
    for near in clients {
        assert_eq!(world.is_connected(near), Some(Ok(())));
    }
    let server = world.engine(SERVER);
    let counts = server.counters.counts(server.path_counts(), server.used());
    assert!(counts.gave_way > 10_000, "{counts:?}");
    assert_eq!((counts.slots, counts.evicted), (20, 0));
}

#[test]
fn idle_connections_make_room() {
    for (octets, time) in [(&b""[..], 2), (b"x", 61)] {
        let mut world = World::new(&small());
        let listener = world.listen();
        let mut all = fill(&mut world, listener, octets);
        world.pass(Duration::from_secs(time));
        let near = world.connect(50_000).expect("it is free");
        let patience = Duration::from_secs(1);
        assert!(comes_in(&mut world, near, listener, &mut all, patience));
        assert_eq!(all.len(), 7, "one is enough");
        let server = world.engine(SERVER);
        assert_eq!(server.counters.counts(server.path_counts(), 0).evicted, 1);
    }
}

#[test]
fn connections_that_nobody_has_taken_in_make_room_at_once() {
    let mut world = World::new(&small());
    let listener = world.listen();
    for port in 0..8 {
        let near = world.connect(40_000 + port).expect("it is free");
        world
            .until("it is connected", |world| world.is_connected(near))
            .expect("it is");
    }
    world.pass(Duration::from_secs(2));
    vanish(&world);
    world.connect(50_000).expect("it is free");
    world.pass(Duration::from_millis(10));
    let ports: Vec<_> = std::iter::from_fn(|| world.accept(listener))
        .map(|at| {
            let slot = world.engine(SERVER).slot(at.slot);
            let remote = slot.connection.lock().remote();
            remote.expect("it has a peer").port()
        })
        .collect();
    assert_eq!(ports.len(), 8, "{ports:?}");
    assert!(
        ports.contains(&50_000) && !ports.contains(&40_000),
        "{ports:?}"
    );
}

#[test]
fn an_address_with_more_than_its_share_makes_room_for_others_only() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let mut all = fill(&mut world, listener, b"x");
    let patience = Duration::from_secs(1);
    // All are busy: no connection is evicted for another one of the same address.
    let near = world.connect(50_000).expect("it is free");
    assert!(!comes_in(&mut world, near, listener, &mut all, patience));
    assert_eq!(all.len(), 8);
    vanish(&world);
    let near = connect_from(&world, 77, 50_000);
    assert!(comes_in(&mut world, near, listener, &mut all, patience));
    assert_eq!(all.len(), 7);
}
