//! Notification of holders: once for each event, again for the next, and not without one.

use std::cell::Cell;

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

/// Takes steps of the server as the thread of a listener does until it gets a token.
fn token(world: &mut World, listener: usize) -> Option<u64> {
    let ready = Cell::new(None);
    for _ in 0..10 {
        let attendant = Attendant::AtListener(listener, &ready);
        let taken = world.engine(SERVER).step(world.now, usize::MAX, attendant);
        taken.expect("a wire does not fail");
        if ready.get().is_some() {
            break;
        }
        world.advance(world.now + Duration::from_micros(100));
    }
    ready.get()
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
    assert_eq!(token(&mut world, listener), Some(7));
    assert!(!has_rung(&world, far));
    assert_eq!(receive(&world, far, &mut [0; 20]), Ok(10));

    // One connection is served at once; another one needs its bell.
    for at in [near, second] {
        world.send(at, &[1; 10]).expect("it is open");
    }
    world.advance(world.now + Duration::from_millis(1));
    let first = token(&mut world, listener).expect("there is input");
    let rung = [far, other].map(|at| has_rung(&world, at));
    assert_eq!(rung, [first == 8, first == 7]);
}

#[test]
fn only_the_listener_of_a_connection_gets_its_token() {
    let (mut world, listener, near) = connected();
    let far = accept(&world, listener).expect("it waits");
    slot_of(&world, far).set_token(7);
    world.send(near, &[1; 10]).expect("it is open");
    world.advance(world.now + Duration::from_millis(1));
    assert_eq!(token(&mut world, listener + 1), None);
    assert!(has_rung(&world, far));

    // The holder is gone, and its token with it.
    assert_eq!(receive(&world, far, &mut [0; 20]), Ok(10));
    slot_of(&world, far).close_bell();
    world.send(near, &[1; 10]).expect("it is open");
    world.advance(world.now + Duration::from_millis(1));
    assert_eq!(token(&mut world, listener), None);
}

fn slot_of(world: &World, at: At) -> &super::super::connection::Slot {
    world.engine(at.host).slot(at.slot)
}
