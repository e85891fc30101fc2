//! Allocation: a class allocates all of its memory when it opens.

use chronorb_rt::{CountingAllocator, forbid};

use super::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn after_a_class_is_open_nothing_is_allocated() {
    let mut world = World::new(&small());
    let listener = world.listen();
    let octets = vec![5; 100_000];
    let mut room = vec![0; 100_000];
    forbid(|| {
        for port in 0..30 {
            let (near, far) = world.pair(listener, 40_000 + port);
            let (mut sent, mut received) = (0, 0);
            world.until("all has arrived", |world| {
                sent += world.send(near, &octets[sent..]).unwrap_or(0);
                received += world.receive(far, &mut room).unwrap_or(0);
                (received == octets.len()).then_some(())
            });
            world.let_go(far);
            world.let_go(near);
        }
        // No host has this address.
        let at = world.connect_to(50_000, 99).expect("it is free");
        world
            .until("it is refused", |world| world.is_connected(at))
            .expect_err("it is refused");
        world.let_go(at);
    });
}
