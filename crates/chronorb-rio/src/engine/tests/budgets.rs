//! Bounds of the work for any number of arriving packets.

use super::super::thread::Account;
use super::*;

#[test]
fn a_step_takes_in_at_most_its_budget() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    world.send(near, &[1; 45 * 1400]).expect("it is open");
    let server = world.engine(SERVER);
    // 43 frames of 1460 octets each, and one more.
    for budget in [8, 8, 20] {
        let outcome = server
            .step(world.now, budget, Attendant::Nobody)
            .expect("a wire does not fail");
        assert_eq!(outcome.packets, budget);
        assert!(outcome.has_more);
    }
    let outcome = server
        .step(world.now, 20, Attendant::Nobody)
        .expect("a wire does not fail");
    assert_eq!(outcome.packets, 8);
    assert!(!outcome.has_more);
    assert_eq!(world.receive(far, &mut [0; 70_000]), Ok(45 * 1400));
}

#[test]
fn what_a_budget_leaves_over_holds_the_sender_back() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    let octets = vec![1; 1 << 20];
    let (mut sent, mut received, mut periods) = (0, 0, 0);
    let mut room = vec![0; 1 << 16];
    // 8 packets in each period of 10 ms, for a second.
    while periods < 100 {
        while let Ok(n) = world.send(near, &octets) {
            sent += n;
        }
        let server = world.engine(SERVER);
        let outcome = server
            .step(world.now, 8, Attendant::Nobody)
            .expect("a wire does not fail");
        assert!(outcome.packets <= 8);
        while let Ok(n) = world.receive(far, &mut room) {
            received += n;
        }
        let now = world.now + Duration::from_millis(10);
        world.advance(now);
        let client = world.engine(CLIENT);
        client
            .step(world.now, 100, Attendant::Nobody)
            .expect("a wire does not fail");
        periods += 1;
    }
    let of_full_frames = 100 * 8 * 1460;
    assert!(
        received > of_full_frames * 98 / 100,
        "{received} of {of_full_frames}"
    );
    assert!(received <= of_full_frames);
    let counts = world.engine(SERVER).path_counts().0;
    assert_eq!(counts.dropped, 0, "the windows fit into the queue");
    assert!(
        sent - received <= 3 * 65_536,
        "the rest waits with the sender"
    );
}

#[test]
fn a_cap_is_used_to_the_full_though_its_thread_wakes_late() {
    const CAP: usize = 10;
    const BLOCK: usize = 8000;
    const PERIOD: Duration = Duration::from_millis(10);
    let config = ClassConfig {
        buffer: 4 * CAP * BLOCK,
        ..small()
    };
    let mut world = World::of_mtu(&config, BLOCK + 40);
    let listener = world.listen();
    let (near, far) = world.pair(listener, 40_000);
    let octets = vec![1; 1 << 20];
    let mut room = vec![0; 1 << 16];
    let mut account = Account::new(CAP, PERIOD, world.now);
    let (mut received, mut packets) = (0, 0);
    for period in 0..100 {
        // The first packets of a period are there when it begins; others arrive during it.
        loop {
            while world.send(near, &octets).is_ok() {}
            let budget = account.left(world.now).min(4);
            let server = world.engine(SERVER);
            let outcome = server.step(world.now, budget, Attendant::Nobody);
            let taken = outcome.expect("a wire does not fail").packets;
            packets += taken;
            account.take(taken);
            while let Ok(n) = world.receive(far, &mut room) {
                received += n;
            }
            world.advance(world.now + Duration::from_micros(100));
            let client = world.engine(CLIENT);
            let outcome = client.step(world.now, 100, Attendant::Nobody);
            outcome.expect("a wire does not fail");
            if account.left(world.now) == 0 {
                break;
            }
        }
        let late = Duration::from_millis(period % 9);
        world.advance(account.end() + late);
    }
    assert_eq!(packets, 100 * CAP);
    let most = packets * BLOCK;
    assert!(received >= most * 99 / 100, "{received} of {most}");
}
