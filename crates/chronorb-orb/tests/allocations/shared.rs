//! Connections that threads share cost locks, but no allocation.

use chronorb_orb::ConnectionStrategy;
use chronorb_rt::{ThreadCounts, counts_of_others};

use crate::alone;
use crate::support::raw_server::{Peer, object_at, raw_server};
use crate::support::{add, orb_with};

#[test]
fn a_call_by_a_shared_connection_allocates_nothing() {
    let _alone = alone();
    for (strategy, own_locks, others_locks) in [
        (ConnectionStrategy::Leader, 5, 0),
        (ConnectionStrategy::Thread, 6, 1),
        #[cfg(feature = "baselines")]
        (ConnectionStrategy::Active, 6, 6),
    ] {
        // Its threads are not counted.
        let server = raw_server(Peer::answer_all);
        let client = orb_with(|config| config.client_connection = strategy);
        let object = object_at(&client, server.address);
        for i in 0..100 {
            assert_eq!(add(&object, i, 1), Ok(i + 1));
        }
        let others = counts_of_others();
        let own = ThreadCounts::of_this_thread();
        for i in 0..1000 {
            assert_eq!(add(&object, i, 1), Ok(i + 1));
        }
        let own = ThreadCounts::of_this_thread() - own;
        let others = counts_of_others() - others;
        let (of_own, of_others) = (own.lock_operations, others.lock_operations);
        println!("{strategy:?}: {of_own} and {of_others} lock operations in 1000 calls");
        assert_eq!(own.allocations, 0, "{strategy:?}");
        assert_eq!(others.allocations, 0, "{strategy:?}");
        assert!(of_own <= 1000 * own_locks, "{strategy:?}: {of_own}");
        // The last call before may complete its work during the first one.
        let most = 1000 * others_locks + others_locks;
        assert!(of_others <= most, "{strategy:?}: {of_others}");
    }
}
