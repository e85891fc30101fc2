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
