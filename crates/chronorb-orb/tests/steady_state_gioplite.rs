//! Calls by GIOPlite allocate no more than those by GIOP: by a connection that threads share nothing, and nothing for
//! an asynchronous call.

mod support;

use chronorb_orb::{ConnectionStrategy, Object};
use chronorb_rt::{CountingAllocator, ThreadCounts, counts_of_others};
use support::asynchronous::{STRATEGIES, begin_add};
use support::raw_server::{Peer, object_at, raw_server};
use support::relay::{Relay, messages};
use support::{add, orb_with, set_lite};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The allocations of this thread and those of connections while calls are made.
fn allocations_of(calls: impl Fn()) -> u64 {
    let others = counts_of_others();
    let own = ThreadCounts::of_this_thread();
    calls();
    let own = ThreadCounts::of_this_thread() - own;
    let others = counts_of_others() - others;
    own.allocations + others.allocations
}

fn call_and_wait(object: &Object) {
    for i in 0..500 {
        assert_eq!(add(object, i, 1), Ok(i + 1));
    }
}

fn begin_and_wait(object: &Object) {
    for i in 0..500 {
        let pending = begin_add(object, i, 1).expect("it begins");
        assert_eq!(pending.wait(), Ok(i + 1));
    }
}

#[test]
fn a_call_by_gioplite_allocates_nothing() {
    // Its threads are not counted.
    let server = raw_server(Peer::answer_all_by_either);
    for strategy in STRATEGIES {
        for (way, calls) in [
            ("waiting", &call_and_wait as &dyn Fn(&Object)),
            ("asynchronous", &begin_and_wait),
        ] {
            let client = orb_with(|config| {
                config.client_connection = strategy;
                set_lite(config, true);
            });
            let object = object_at(&client, server.address);
            calls(&object);
            let allocations = allocations_of(|| calls(&object));
            assert_eq!(allocations, 0, "{strategy:?}, {way}");
        }
    }
}

#[test]
fn the_server_of_these_tests_speaks_gioplite() {
    let server = raw_server(Peer::answer_all_by_either);
    let relay = Relay::to(server.address);
    let client = orb_with(|config| {
        config.client_connection = ConnectionStrategy::Leader;
        set_lite(config, true);
    });
    let object = object_at(&client, relay.address);
    for i in 0..3 {
        assert_eq!(add(&object, i, 1), Ok(i + 1));
    }
    let octets = &relay.records()[0].to_server;
    let lite = messages(octets).into_iter();
    let lite = lite.filter(|(_, message)| !message.starts_with(b"GIOP"));
    assert_eq!(lite.count(), 2);
}
