//! Case 21: consumers and suppliers that are dead or stuck do not disturb others.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chronorb_events::{Filter, write_entries};
use chronorb_rt::Deadline;
use chronorb_rtec::idl::rtec_event_comm::{PushConsumer, PushSupplier};
use chronorb_rtec::{ChannelOptions, PeerPolicy};

use crate::support::{
    Clients, Fixture, LONG, RawConsumer, connect, data, event, everywhere, publish,
};

/// A channel that gives up a client after two failures.
fn impatient() -> Fixture {
    let options = ChannelOptions {
        peers: PeerPolicy {
            push_timeout: Duration::from_secs(2),
            check_timeout: Duration::from_secs(2),
            failures: 2,
            check_period: None,
        },
        ..ChannelOptions::default()
    };
    Fixture::new(Clients::Remote, options)
}

/// A reference to an object at a port.
fn at(f: &Fixture, port: u16) -> chronorb::Object {
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/Absent");
    f.client.string_to_object(&url).unwrap()
}

fn everything() -> Vec<chronorb_events::Entry> {
    write_entries(&Filter::Everything)
}

#[test]
fn case_21_a_consumer_whose_process_is_dead_is_disconnected() {
    let f = impatient();
    let (proxy, dead) = f.proxy_supplier();
    // Nothing listens at this port.
    let consumer = PushConsumer::unchecked_narrow(&at(&f, 1));
    connect(&proxy, Some(&consumer), &everything()).unwrap();
    let other = f.subscribe(&Filter::Everything);
    let supplier = f.supplier(&[(1, 20)]);

    f.push(&supplier, &[(1, 20), (1, 21), (1, 22)]);
    let deadline = Deadline::after(LONG);
    while let Some(state) = f.state_of(dead) {
        assert!(!state.has_answered && !deadline.has_passed());
        assert!(state.failures <= 2, "it is disconnected after the second");
        let is_told = state.failures == 0 || state.last_error.contains("TRANSIENT");
        assert!(is_told, "{}", state.last_error);
        thread::yield_now();
    }
    f.wait_for_evictions(1);
    assert_eq!(f.sets(&other), [[(1, 20)], [(1, 21)], [(1, 22)]]);
    let statistics = f.service.statistics();
    assert_eq!(
        (statistics.evicted, statistics.lost),
        (1, 3),
        "what was held"
    );
}

#[test]
fn case_21_a_consumer_that_does_not_read_is_disconnected() {
    let f = impatient();
    let stuck = TcpListener::bind("127.0.0.1:0").unwrap();
    let (release, answered) = mpsc::channel::<()>();
    let listener = stuck.try_clone().unwrap();
    let peer = thread::spawn(move || {
        let mut peer = RawConsumer::accept(&listener);
        peer.answer();
        // It reads nothing until the end of the test.
        let _ = answered.recv();
    });
    let (proxy, number) = f.proxy_supplier();
    let consumer = at(&f, stuck.local_addr().unwrap().port());
    let consumer = PushConsumer::unchecked_narrow(&consumer);
    connect(&proxy, Some(&consumer), &everything()).unwrap();
    let other = f.subscribe(&Filter::Everything);
    f.wait_until_reached(number);
    let supplier = f.supplier(&[(1, 20)]);

    // Its connection takes what fits into buffers of the kernel, and no more.
    let payload = vec![0; 256 << 10];
    let mut pushed = 0;
    while f.state_of(number).is_some() {
        let mut one = event(1, 20);
        one.data = data(&payload);
        supplier.proxy.push(&[one]).unwrap();
        f.expect(1);
        pushed += 1;
    }
    assert_eq!(f.sets(&other).len(), pushed);
    f.wait_for_evictions(1);
    let statistics = f.service.statistics();
    // What was sent was taken by the connection or is counted as lost. The last push may have found
    // it disconnected.
    let delivered = statistics.delivered - pushed as u64;
    let counted = delivered + statistics.lost;
    assert!(
        (pushed as u64 - 1..=pushed as u64).contains(&counted),
        "{counted} of {pushed}"
    );
    drop(release);
    peer.join().unwrap();
}

#[test]
fn case_21_idle_clients_that_do_not_exist_are_disconnected_by_the_check() {
    everywhere(|f| {
        let consumer = f.subscribe(&Filter::Everything);
        let other = f.subscribe(&Filter::Everything);
        let proxy = f.proxy_consumer();
        let (_, supplier) = f.disconnectable();
        publish(&proxy, Some(&supplier), &[(1, 20)]).unwrap();
        let root = f.client.root_poa().unwrap();
        for gone in [consumer.consumer.as_object(), supplier.as_object()] {
            let id = root.reference_to_id(gone).unwrap();
            root.deactivate_object(&id).unwrap();
        }
        // The first check finds out which clients are idle.
        f.service.check_clients();
        f.service.check_clients();
        f.wait_for_evictions(2);
        assert!(f.state_of(consumer.number).is_none());
        assert!(f.state_of(other.number).is_some());
        let statistics = f.service.statistics();
        assert_eq!(statistics.suppliers.len(), 0);
        assert_eq!(statistics.evicted, 2);
    });
}

#[test]
fn case_21_a_supplier_whose_process_is_dead_is_disconnected_after_some_checks() {
    let f = impatient();
    let text = {
        let other = Fixture::new(Clients::Remote, ChannelOptions::default());
        let (_, supplier) = other.disconnectable();
        other.client.object_to_string(supplier.as_object())
    };
    let supplier = PushSupplier::unchecked_narrow(&f.client.string_to_object(&text).unwrap());
    publish(&f.proxy_consumer(), Some(&supplier), &[(1, 20)]).unwrap();
    for _ in 0..2 {
        assert_eq!(f.service.statistics().suppliers.len(), 1);
        f.service.check_clients();
    }
    f.service.check_clients();
    assert_eq!(f.service.statistics().suppliers.len(), 0);
}
