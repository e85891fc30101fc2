//! Connections that threads share cost locks, but no allocation.

mod support;

use chronorb_orb::ConnectionStrategy;
use chronorb_rt::{CountingAllocator, allocations, lock_operations};
use support::{add, orb_with, served};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_call_by_a_shared_connection_allocates_nothing() {
    for (strategy, locks_at_most) in [
        (ConnectionStrategy::Leader, 5),
        // Those of the connection's thread are its own.
        (ConnectionStrategy::Thread, 6),
        (ConnectionStrategy::Active, 6),
    ] {
        let s = served();
        let client = orb_with(|config| config.client_connection = strategy);
        let text = s.server.object_to_string(&s.object);
        let object = client.string_to_object(&text).expect("the reference reads");
        for i in 0..100 {
            assert_eq!(add(&object, i, 1), Ok(i + 1));
        }
        let before = (allocations(), lock_operations());
        for i in 0..1000 {
            assert_eq!(add(&object, i, 1), Ok(i + 1));
        }
        let after = (allocations(), lock_operations());
        let locks = after.1 - before.1;
        println!("{strategy:?}: {locks} lock operations in 1000 calls");
        assert_eq!(after.0, before.0, "{strategy:?}");
        assert!(locks <= 1000 * locks_at_most, "{strategy:?}: {locks}");
    }
}
