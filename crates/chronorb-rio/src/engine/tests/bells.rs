//! Notification of holders: once for each event, again for the next, and not without one.

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

/// Returns whether the bell of a connection has rung since it was drained.
fn has_rung(world: &World, at: At) -> bool {
    let bell = world.engine(at.host).slot(at.slot).bell();
    poll(
        &mut [PollFd::new(&*bell, PollFlags::IN)],
        Some(&Timespec::default()),
    ) == Ok(1)
}

/// Receives as the holder of the connection does. Drains the bell if there is nothing.
fn receive(world: &World, at: At, room: &mut [u8]) -> Result<usize, IoError> {
    let engine = world.engine(at.host);
    let bell = engine.slot(at.slot).bell();
    engine.with(at.slot, world.now, |it| {
        it.receive(room, || {
            bell.drain();
        })
    })
}

fn connected() -> (World, usize, At) {
    let mut world = World::new(&small());
    let listener = world.listen();
    let near = world.connect(40_000).expect("it is free");
    world
        .until("it is connected", |world| world.is_connected(near))
        .expect("a socket listens");
    let slot = world.engine(CLIENT).slot(near.slot);
    slot.open_bell().expect("there are descriptors");
    (world, listener, near)
}

fn accept(world: &World, listener: usize) -> Option<At> {
    let server = world.engine(SERVER);
    let taken = server.accept(
        listener,
        world.now,
        super::super::connection::Slot::open_bell,
    );
    let (slot, _) = taken.expect("there are descriptors")?;
    Some(At { host: SERVER, slot })
}

#[test]
fn what_came_before_a_connection_was_taken_in_rings() {
    let (mut world, listener, near) = connected();
    world.send(near, &[1; 10]).expect("it is open");
    world.pass(Duration::from_millis(1));
    let far = accept(&world, listener).expect("it waits");
    assert!(has_rung(&world, far));
    assert_eq!(receive(&world, far, &mut [0; 20]), Ok(10));
    assert_eq!(receive(&world, far, &mut [0; 20]), Err(IoError::WouldBlock));
    assert!(!has_rung(&world, far));
}

#[test]
fn each_input_after_the_edge_rings_and_the_end_does() {
    let (mut world, listener, near) = connected();
    let far = accept(&world, listener).expect("it waits");
    assert!(!has_rung(&world, far));
    for _ in 0..3 {
        world.send(near, &[1; 10]).expect("it is open");
        world.pass(Duration::from_millis(1));
        assert!(has_rung(&world, far));
        assert_eq!(receive(&world, far, &mut [0; 20]), Ok(10));
        assert_eq!(receive(&world, far, &mut [0; 20]), Err(IoError::WouldBlock));
        assert!(!has_rung(&world, far));
    }
    world.let_go(near);
    world.pass(Duration::from_millis(1));
    assert!(has_rung(&world, far));
    assert_eq!(receive(&world, far, &mut [0; 20]), Err(IoError::Ended));
}

#[test]
fn room_rings_for_who_found_none() {
    let (mut world, listener, near) = connected();
    let far = accept(&world, listener).expect("it waits");
    let octets = [7; 65_536];
    while world.send(near, &octets).is_ok() {
        world.pass(Duration::from_millis(1));
    }
    assert_eq!(
        receive(&world, near, &mut [0; 20]),
        Err(IoError::WouldBlock)
    );
    assert!(!has_rung(&world, near));
    while receive(&world, far, &mut [0; 8192]).is_ok() {
        world.pass(Duration::from_millis(1));
    }
    assert!(has_rung(&world, near));
    world.send(near, &octets).expect("there is room");
}

/// Takes steps of the server as the thread of a listener does until it gets tokens.
fn tokens(world: &mut World, listener: usize) -> Vec<u64> {
    let ready = InputTokens::default();
    for _ in 0..10 {
        let attendant = Attendant::AtListener(listener, &ready);
        let taken = world.engine(SERVER).step(world.now, usize::MAX, attendant);
        taken.expect("a wire does not fail");
        let taken: Vec<_> = std::iter::from_fn(|| ready.pop()).collect();
        if !taken.is_empty() {
            return taken;
        }
        world.advance(world.now + Duration::from_micros(100));
    }
    Vec::new()
}

#[test]
fn the_thread_of_the_listener_gets_input_by_a_token_and_the_bell_rings_for_others() {
    let (mut world, listener, near) = connected();
    let far = accept(&world, listener).expect("it waits");
    let second = world.connect(40_001).expect("it is free");
    world.pass(Duration::from_millis(1));
    let other = accept(&world, listener).expect("it waits");
    for (at, token) in [(far, 7), (other, 8)] {
        slot_of(&world, at).set_token(token);
    }

    world.send(near, &[1; 10]).expect("it is open");
    assert_eq!(tokens(&mut world, listener), [7]);
    assert!(!has_rung(&world, far));
    assert_eq!(receive(&world, far, &mut [0; 20]), Ok(10));

    // Another one that has no token needs its bell.
    let third = world.connect(40_002).expect("it is free");
    world.pass(Duration::from_millis(1));
    let bare = accept(&world, listener).expect("it waits");
    for at in [near, second, third] {
        world.send(at, &[1; 10]).expect("it is open");
    }
    world.advance(world.now + Duration::from_millis(1));
    let mut found = tokens(&mut world, listener);
    found.sort_unstable();
    assert_eq!(found, [7, 8]);
    let rung = [far, other, bare].map(|at| has_rung(&world, at));
    assert_eq!(rung, [false, false, true]);
}

#[test]
fn bells_ring_for_connections_beyond_the_room_for_tokens() {
    let config = ClassConfig {
        connections: 20,
        ..small()
    };
    let mut world = World::new(&config);
    let listener = world.listen();
    let ends: Vec<_> = (0..20)
        .map(|number| {
            let near = world.connect(40_000 + number).expect("it is free");
            world.pass(Duration::from_millis(1));
            let far = accept(&world, listener).expect("it waits");
            slot_of(&world, far).set_token(number.into());
            (near, far)
        })
        .collect();
    for (near, _) in &ends {
        world.send(*near, &[1; 10]).expect("it is open");
    }
    world.advance(world.now + Duration::from_millis(1));
    let found = tokens(&mut world, listener);
    assert_eq!(found.len(), 16);
    for (number, (_, far)) in (0..).zip(&ends) {
        assert_ne!(found.contains(&number), has_rung(&world, *far), "{number}");
    }
}

#[test]
fn only_the_listener_of_a_connection_gets_its_token() {
    let (mut world, listener, near) = connected();
    let far = accept(&world, listener).expect("it waits");
    slot_of(&world, far).set_token(7);
    world.send(near, &[1; 10]).expect("it is open");
    world.advance(world.now + Duration::from_millis(1));
    assert_eq!(tokens(&mut world, listener + 1), []);
    assert!(has_rung(&world, far));

    // The holder is gone, and its token with it.
    assert_eq!(receive(&world, far, &mut [0; 20]), Ok(10));
    slot_of(&world, far).close_bell();
    world.send(near, &[1; 10]).expect("it is open");
    world.advance(world.now + Duration::from_millis(1));
    assert_eq!(tokens(&mut world, listener), []);
}

fn slot_of(world: &World, at: At) -> &super::super::connection::Slot {
    world.engine(at.host).slot(at.slot)
}
