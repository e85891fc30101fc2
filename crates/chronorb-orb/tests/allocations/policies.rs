//! Law 1 with client policies on every level: after explicit binding, calls at all priorities of
//! the bands allocate nothing and take no lock at the client, from the first one on.

use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{ClientPolicy, SetOverride, SyncScope};
use chronorb_orb::{Object, Operation, SystemException};
use chronorb_rt::{allocations, lock_operations};
use std::time::{Duration, SystemTime};

use crate::alone;
use crate::support::laned::{LANES, LanedServer, PROPAGATED, Pool, bands, corba, laned};
use crate::support::{PATIENCE, add, served};

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

/// The calling thread's allocations and lock operations during a call.
fn cost(call: impl FnOnce() -> Result<(), SystemException>) -> (u64, u64) {
    let before = (allocations(), lock_operations());
    assert_eq!(call(), Ok(()));
    (allocations() - before.0, lock_operations() - before.1)
}

#[test]
fn scopes_and_end_times_cost_the_client_neither_allocation_nor_lock() {
    let _alone = alone();
    let s = served();
    let scopes = [
        SyncScope::None,
        SyncScope::WithTransport,
        SyncScope::WithServer,
        SyncScope::WithTarget,
    ];
    let end = SystemTime::now() + PATIENCE;
    let ends = [
        vec![],
        vec![ClientPolicy::RequestEndTime(end)],
        vec![
            ClientPolicy::ReplyEndTime(end),
            ClientPolicy::RelativeRequestTimeout(PATIENCE),
        ],
    ];
    for (scope, ends) in scopes
        .iter()
        .flat_map(|scope| ends.iter().map(move |e| (scope, e)))
    {
        let mut policies = ends.clone();
        policies.push(ClientPolicy::SyncScope(*scope));
        let object = s.object.with_policy_overrides(&policies, SetOverride::Set);
        let object = object.expect("one of each kind");
        let note = || object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()));
        let sum = || add(&object, 40, 2).map(|sum| assert_eq!(sum, 42));
        for _ in 0..3 {
            assert_eq!((note(), sum()), (Ok(()), Ok(())), "the first calls bind");
        }
        for _ in 0..50 {
            assert_eq!(cost(note), (0, 0), "{policies:?}");
            assert_eq!(cost(sum), (0, 0), "{policies:?}");
        }
    }
}
