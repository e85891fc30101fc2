//! The cost of a step with many idle connections, which must not grow with their number.

use super::*;

/// Returns how many times a class reads in an exchange, beside this many idle connections.
fn times_read(idle: usize) -> usize {
    let config = ClassConfig {
        connections: 512,
        buffer: 2048,
        // All of them have a timer.
        keep_alive: Some(Duration::from_secs(24 * 3600)),
        ..ClassConfig::default()
    };
    let mut world = World::new(&config);
    let listener = world.listen();
    for port in 0..idle {
        world.pair(listener, 40_000 + port as u16);
    }
    let (near, far) = world.pair(listener, 50_000);
    let before = world.engine(SERVER).times_read();
    let mut room = [0; 1000];
    for _ in 0..20 {
        assert_eq!(world.send(near, &[7; 1000]), Ok(1000));
        world.until("it has come", |world| world.receive(far, &mut room).ok());
        // The acknowledgement is delayed, which sets a timer of this connection.
        world.advance(world.now + Duration::from_millis(20));
        for host in [SERVER, CLIENT] {
            let outcome = world
                .engine(host)
                .step(world.now, usize::MAX, Attendant::Nobody);
            outcome.expect("a wire does not fail");
        }
    }
    world.engine(SERVER).times_read() - before
}

#[test]
fn a_step_does_not_look_at_idle_connections() {
    let [few, many] = [8, 400].map(times_read);
    assert!(few > 0, "no time has come");
    assert!(many <= 2 * few, "{few} beside 8, {many} beside 400");
}
