//! Closing of connections, with the ends in any order.

use super::*;
use crate::driver::wire::Faults;

const SILENT: Faults = Faults {
    loss: 1.0,
    duplication: 0.0,
    reordering: 0.0,
    corruption: 0.0,
    delay: Duration::ZERO,
    rate: 0,
};

fn is_over(world: &World) -> bool {
    [CLIENT, SERVER]
        .into_iter()
        .all(|host| world.engine(host).used() == 0)
}

#[test]
fn slots_are_free_again_after_either_end_has_gone_first() {
    for first in [0, 1] {
        for between in [Duration::ZERO, Duration::from_millis(100)] {
            let mut world = World::new(&small());
            let listener = world.listen();
            let (near, far) = world.pair(listener, 40_000);
            let ends = [near, far];
            world.let_go(ends[first]);
            world.pass(between);
            world.let_go(ends[1 - first]);
            world.pass(Duration::from_secs(3));
            assert!(
                is_over(&world),
                "{first} first, the other {between:?} later"
            );
        }
    }
}

#[test]
fn the_end_comes_after_all_that_was_sent() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    let octets = vec![3; 60_000];
    assert_eq!(world.send(near, &octets), Ok(octets.len()));
    world.let_go(near);
    let mut received = 0;
    let error = world.until("it has ended", |world| {
        match world.receive(far, &mut [0; 7000]) {
            Ok(n) => received += n,
            Err(IoError::WouldBlock) => {}
            Err(error) => return Some(error),
        }
        None
    });
    assert_eq!((received, error), (octets.len(), IoError::Ended));
    world.let_go(far);
    world.pass(Duration::from_secs(3));
    assert!(is_over(&world));
}

#[test]
fn after_its_end_an_end_can_still_be_received_from() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    world.shut_down(near);
    assert_eq!(world.send(near, &[1]), Err(IoError::Closed));
    world.pass(Duration::from_millis(10));
    assert_eq!(world.receive(far, &mut [0; 10]), Err(IoError::Ended));
    assert_eq!(world.send(far, &[1; 5]), Ok(5));
    world.pass(Duration::from_millis(10));
    assert_eq!(world.receive(near, &mut [0; 10]), Ok(5));
    assert_eq!(world.receive(near, &mut [0; 10]), Err(IoError::Ended));
}

#[test]
fn who_sends_to_an_end_that_is_gone_hears_of_it() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    world.let_go(near);
    world.pass(Duration::from_millis(10));
    assert_eq!(world.send(far, &[1; 5]), Ok(5), "it may not know yet");
    let error = world.until("it is told", |world| world.send(far, &[1; 5]).err());
    assert_eq!(error, IoError::Closed);
    assert_eq!(world.receive(far, &mut [0; 5]), Err(IoError::Ended));
}

#[test]
fn an_end_that_goes_with_something_unread_says_so() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    assert_eq!(world.send(near, &[1; 5]), Ok(5));
    world.pass(Duration::from_millis(1));
    world.let_go(far);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.receive(near, &mut [0; 5]), Err(IoError::Closed));
    assert_eq!(world.engine(SERVER).used(), 0);
}

#[test]
fn a_peer_that_is_dead_breaks_the_connection_only_where_it_owes_something() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    world.wire.disturb(Side::Right, SILENT, 0);
    world.pass(Duration::from_secs(600));
    assert_eq!(world.receive(near, &mut [0; 5]), Err(IoError::WouldBlock));
    assert_eq!(world.send(near, &[1; 5]), Ok(5));
    world.pass(Duration::from_secs(19));
    assert_eq!(world.receive(near, &mut [0; 5]), Err(IoError::WouldBlock));
    world.pass(Duration::from_secs(2));
    let timed_out = IoError::Broken(rustix::io::Errno::TIMEDOUT);
    assert_eq!(world.receive(near, &mut [0; 5]), Err(timed_out));
    assert_eq!(world.send(near, &[1; 5]), Err(timed_out));
    world.pass(Duration::from_millis(1));
    assert_eq!(world.receive(far, &mut [0; 5]), Ok(5));
    assert_eq!(
        world.receive(far, &mut [0; 5]),
        Err(IoError::Closed),
        "it was told"
    );
}

#[test]
fn an_idle_peer_that_is_dead_breaks_a_connection_that_keeps_alive() {
    let config = ClassConfig {
        keep_alive: Some(Duration::from_secs(60)),
        ..small()
    };
    let mut world = World::new(&config);
    let listener = world.listen();
    let (near, _far) = world.pair(listener, 40_000);
    world.pass(Duration::from_secs(600));
    assert_eq!(world.receive(near, &mut [0; 5]), Err(IoError::WouldBlock));
    world.wire.disturb(Side::Right, SILENT, 0);
    world.pass(Duration::from_secs(61));
    let timed_out = IoError::Broken(rustix::io::Errno::TIMEDOUT);
    assert_eq!(world.receive(near, &mut [0; 5]), Err(timed_out));
}

#[test]
fn a_peer_that_never_ends_holds_a_slot_for_a_bounded_time() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    world.let_go(near);
    world.pass(Duration::from_secs(6));
    assert_eq!(world.engine(CLIENT).used(), 0);
    assert_eq!(world.receive(far, &mut [0; 5]), Err(IoError::Ended));
}

#[test]
fn a_port_can_be_used_again_while_its_last_connection_is_waited_out() {
    let mut world = World::new(&small());
    let listener = world.listen();
    for _ in 0..20 {
        let (near, far) = world.pair(listener, 40_000);
        // The server closes first, so that its slot is in TIME-WAIT.
        world.let_go(far);
        world.pass(Duration::from_millis(1));
        world.let_go(near);
        world.pass(Duration::from_millis(1));
    }
}

#[test]
fn slots_that_only_wait_give_way_to_new_connections() {
    let mut world = World::new(&small());
    let listener = world.listen();
    for port in 0..100 {
        let (near, far) = world.pair(listener, 40_000 + port);
        for end in [near, far] {
            world.let_go(end);
            world.pass(Duration::from_micros(10));
        }
    }
}

#[test]
fn who_stops_listening_refuses_who_waits() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let near = world.connect(40_000).expect("it is free");
    world
        .until("it is connected", |world| world.is_connected(near))
        .expect("it is");
    world.engine(SERVER).stop_listening(listener, world.now);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.receive(near, &mut [0; 5]), Err(IoError::Closed));
    assert_eq!(world.engine(SERVER).used(), 0);
}
