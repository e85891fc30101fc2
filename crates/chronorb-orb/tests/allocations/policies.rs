//! Law 1 with client policies on every level: after explicit binding, calls at all priorities of
//! the bands allocate nothing and take no lock at the client, from the first one on.

use chronorb_orb::Object;
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{ClientPolicy, SetOverride};
use chronorb_rt::{allocations, lock_operations};
use std::time::Duration;

use crate::alone;
use crate::support::laned::{LANES, LanedServer, PROPAGATED, Pool, bands, corba, laned};
use crate::support::{PATIENCE, add};

/// Returns the calling thread's allocations and lock operations during calls at these priorities.
fn counts(s: &LanedServer, object: &Object, priorities: &[i16]) -> (u64, u64) {
    let mut counts = (0, 0);
    for value in priorities {
        s.raise(*value);
        let before = (allocations(), lock_operations());
        assert_eq!(add(object, 40, 2), Ok(42));
        counts.0 += allocations() - before.0;
        counts.1 += lock_operations() - before.1;
    }
    counts
}

#[test]
fn policies_cost_the_request_path_neither_allocation_nor_lock() {
    let _alone = alone();
    let s = laned(
        Pool::Lanes,
        &[Policy::PriorityModel(PROPAGATED, corba(LANES[0]))],
    );
    let time_out = |seconds| {
        let time = PATIENCE + Duration::from_secs(seconds);
        [ClientPolicy::RelativeRoundtripTimeout(time)]
    };
    let manager = s.client.policy_manager();
    manager
        .set_policy_overrides(&time_out(1), SetOverride::Set)
        .expect("it is one");
    s.at(Some(LANES[0]), || {
        let current = s.client.policy_current();
        current
            .set_policy_overrides(&time_out(2), SetOverride::Set)
            .expect("it is one");
        let policies = [
            ClientPolicy::PrivateConnection,
            ClientPolicy::PriorityBandedConnection(bands(&[(0, 15), (16, 40)])),
        ];
        let object = s.object.with_policy_overrides(&policies, SetOverride::Set);
        let object = object.expect("one of each kind");
        assert_eq!(object.validate_connection(), Ok(()));
        assert_eq!(counts(&s, &object, &LANES), (0, 0), "the first calls");
        // Other priorities of a band are looked up on first use, but do not connect.
        let others = [1, 12, 17, 25, 40];
        let connections = s.connections();
        counts(&s, &object, &others);
        assert_eq!(s.connections(), connections);
        for _ in 0..100 {
            assert_eq!(counts(&s, &object, &others), (0, 0));
            assert_eq!(counts(&s, &object, &LANES), (0, 0));
        }
    });
}
