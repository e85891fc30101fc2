//! Oneways in each scope, with and without end times, allocate nothing on either side.
//!
//! Each is served before the next request. A server copies messages that arrive in one receive, as
//! those of a batch do, so for batches the client is counted alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronorb_orb::rtcorba::{ClientPolicy, OnewayBuffering, SetOverride, SyncScope};
use chronorb_orb::{ConnectionStrategy, Operation, ThreadpoolStrategy};
use chronorb_rt::{ThreadCounts, counts_of_others};

use crate::alone;
use crate::support::{PATIENCE, Probe, ProbeSkeleton, add, orb_with};

/// The scopes, and whether requests are kept to be sent together.
const SCOPES: [(SyncScope, bool); 5] = [
    (SyncScope::None, false),
    (SyncScope::None, true),
    (SyncScope::WithTransport, false),
    (SyncScope::WithServer, false),
    (SyncScope::WithTarget, false),
];

#[test]
fn oneways_of_each_scope_allocate_nothing() {
    let _alone = alone();
    for pool in [
        ThreadpoolStrategy::LeaderFollowers,
        ThreadpoolStrategy::HalfSyncHalfAsync,
    ] {
        let server = orb_with(|config| {
            config.threadpool_strategy = pool;
            // The first request of each thread allocates, and that of a second one may come late.
            config.threads = "1".parse().expect("a number");
        });
        let root = server.root_poa().expect("the endpoint opens");
        let probe = Arc::new(Probe::default());
        let object = root.serve(ProbeSkeleton(probe.clone()));
        let object = object.expect("it activates");
        root.manager().activate().expect("it was not deactivated");
        let text = server.object_to_string(&object);
        for connection in [
            ConnectionStrategy::Exclusive,
            ConnectionStrategy::Leader,
            ConnectionStrategy::Thread,
        ] {
            let client = orb_with(|config| config.client_connection = connection);
            let object = client.string_to_object(&text).expect("it reads");
            for (scope, is_kept) in SCOPES {
                for has_end in [false, true] {
                    let mut policies = vec![ClientPolicy::SyncScope(scope)];
                    if is_kept {
                        policies.push(ClientPolicy::OnewayBuffering(OnewayBuffering {
                            octets: 16 << 10,
                            requests: 4,
                            delay: Duration::from_millis(1),
                        }));
                    }
                    if has_end {
                        policies.push(ClientPolicy::RelativeRequestTimeout(PATIENCE));
                    }
                    let object = object.with_policy_overrides(&policies, SetOverride::Set);
                    let object = object.expect("one of each kind");
                    let rounds = |number: i32| {
                        for i in 0..number {
                            let note = Operation::oneway("note");
                            let number = if is_kept { 6 } else { 1 };
                            let notes = || probe.notes.load(Ordering::Relaxed);
                            let served = notes() + number;
                            for _ in 0..number {
                                assert_eq!(object.invoke_oneway(&note, &|_| Ok(())), Ok(()));
                            }
                            while !is_kept && notes() < served {
                                std::thread::yield_now();
                            }
                            assert_eq!(add(&object, i, 1), Ok(i + 1));
                            while notes() < served {
                                std::thread::yield_now();
                            }
                        }
                    };
                    // The first calls connect, and start threads.
                    rounds(50);
                    let others = counts_of_others();
                    let own = ThreadCounts::of_this_thread();
                    rounds(100);
                    let own = ThreadCounts::of_this_thread() - own;
                    let others = counts_of_others() - others;
                    let what = format!("{pool:?} {connection:?} {scope:?} {is_kept} {has_end}");
                    assert_eq!(own.allocations, 0, "{what}, the client");
                    if !is_kept {
                        assert_eq!(others.allocations, 0, "{what}, other threads");
                    }
                }
            }
            client.shutdown(true).expect("no servant calls it");
        }
        server.shutdown(true).expect("no servant calls it");
    }
}
