//! Transfers under faults: all data arrives.

use proptest::prelude::*;

use super::*;
use crate::driver::wire::Faults;

/// Sends this many octets from each end to the other at the same time, and checks that each
/// arrives.
pub(super) fn exchange(world: &mut World, ends: [At; 2], len: usize) {
    let octet = |from: usize, at: usize| (at * 31 + at / 251 + from * 7) as u8;
    let data = [0, 1].map(|from| (0..len).map(|at| octet(from, at)).collect::<Vec<_>>());
    let (mut sent, mut received) = ([0; 2], [0; 2]);
    let mut room = vec![0; 10_000];
    world.until("all has arrived", |world| {
        for (from, end) in ends.into_iter().enumerate() {
            while sent[from] < len {
                match world.send(end, &data[from][sent[from]..]) {
                    Ok(n) => sent[from] += n,
                    Err(IoError::WouldBlock) => break,
                    Err(error) => panic!("it is open, but: {error}"),
                }
            }
            let other = 1 - from;
            loop {
                match world.receive(end, &mut room) {
                    Ok(n) => {
                        let at = received[from];
                        assert!(room[..n] == data[other][at..at + n], "at {at}");
                        received[from] += n;
                    }
                    Err(IoError::WouldBlock) => break,
                    Err(error) => panic!("it is open, but: {error}"),
                }
            }
        }
        (received == [len; 2]).then_some(())
    });
}

#[test]
fn octets_go_both_ways() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    exchange(&mut world, [near, far], 3 << 20);
}

#[test]
fn octets_go_in_frames_of_any_length() {
    for mtu in [576, 1280, 1500, 3498, 9000] {
        let mut world = World::of_mtu(&small(), mtu);
        let listener = world.listen();
        let (near, far) = world.pair(listener, 40_000);
        exchange(&mut world, [near, far], 300_000);
    }
}

#[test]
fn windows_larger_than_sixteen_bits_are_used() {
    let config = ClassConfig {
        buffer: 1 << 20,
        queue: 2048,
        ..small()
    };
    let mut world = World::new(&config);
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    let octets = vec![7; 1 << 20];
    assert_eq!(world.send(near, &octets), Ok(octets.len()));
    world.pass(Duration::from_millis(50));
    let mut room = vec![0; 1 << 20];
    // Windows of this size are advertised in steps of 32 octets.
    let n = world.receive(far, &mut room).expect("it has come");
    assert!(n > octets.len() - 32, "{n}");
}

#[test]
fn a_peer_that_takes_nothing_is_asked_until_it_does() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    let octets = vec![7; 65_536];
    assert_eq!(world.send(near, &octets), Ok(65_536));
    world.pass(Duration::from_millis(50));
    let second = world.send(near, &octets).expect("what went out made room");
    // In a minute with a closed window, nothing is lost or given up.
    world.pass(Duration::from_secs(60));
    assert_eq!(world.send(near, &octets), Err(IoError::WouldBlock));
    let mut left = 65_536 + second;
    world.until("all has arrived", |world| {
        while let Ok(n) = world.receive(far, &mut [0; 5000]) {
            left -= n;
        }
        (left == 0).then_some(())
    });
}

/// Lets both ends send with these faults.
fn disturbed(faults: Faults, seed: u64, len: usize) {
    let mut world = World::new(&small());
    let listener = world.listen();
    for side in BOTH {
        world.wire.disturb(side, faults, seed ^ side as u64);
    }
    let (near, far) = world.pair(listener, 40_000);
    exchange(&mut world, [near, far], len);
}

#[test]
fn megabytes_arrive_through_everything_that_can_happen() {
    let faults = Faults {
        loss: 0.01,
        duplication: 0.01,
        reordering: 0.02,
        corruption: 0.01,
        delay: Duration::from_micros(500),
        rate: 0,
    };
    disturbed(faults, 7, 2 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn octets_arrive_through_loss_reordering_duplication_and_corruption(
        seed in any::<u64>(),
        loss in 0.0..0.05,
        duplication in 0.0..0.05,
        reordering in 0.0..0.1,
        corruption in 0.0..0.02,
        delay in 0..5_u64,
    ) {
        let faults = Faults {
            loss,
            duplication,
            reordering,
            corruption,
            delay: Duration::from_millis(delay),
            rate: 0,
        };
        disturbed(faults, seed, 200_000);
    }
}
