//! A channel whose consumer's host has vanished: packets are dropped without a word.

use std::sync::Arc;
use std::time::Duration;

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb_events::{Filter, write_entries};
use chronorb_rt::Deadline;
use chronorb_rtec::idl::rtec_event_channel_admin::{EventChannel, SupplierQOS};
use chronorb_rtec::idl::rtec_event_comm::{PushConsumer, PushConsumerSkeleton};
use chronorb_rtec::{ChannelOptions, EventServer, PeerPolicy, keep_order};
use chronorb_testnet::{Host, Layout, Network};

use crate::support::{LONG, Recorder, connect, dispatchings, event};

/// Returns an ORB that listens on a host, and notices within a second that a peer has vanished.
fn orb_on(network: &Network, host: Host) -> Orb {
    let endpoint = format!("iiop://{}:0", network.host(host).addresses().v4);
    let options = ["-ORBListenEndpoints", &endpoint, "-ORBPeerTimeout", "1000"];
    let mut config = OrbConfig::read(&mut options.map(str::to_owned).to_vec()).unwrap();
    keep_order(&mut config);
    Orb::with_config(config).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Deadline::after(LONG);
    while !is_so() {
        assert!(!deadline.has_passed(), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_channel_notices_that_a_host_has_vanished_and_pushes_by_a_new_connection_when_it_is_back() {
    for options in dispatchings() {
        let Some(network) = Network::build_for_test(&Layout::default()) else {
            return;
        };
        // No client is asked whether it exists, so only the connection shows the loss.
        let peers = PeerPolicy {
            check_period: None,
            failures: u32::MAX,
            ..PeerPolicy::default()
        };
        let options = ChannelOptions { peers, ..options };
        let (server, service) = network.host(Host::A).enter(|| {
            let server = orb_on(&network, Host::A);
            let poa = server.root_poa().unwrap();
            let service = EventServer::new().options(options).serve_in(&poa).unwrap();
            poa.manager().activate().unwrap();
            (server, service)
        });
        let reference = server.object_to_string(service.channel());
        let recorder = Arc::<Recorder>::default();
        let client = network.host(Host::B).enter(|| {
            let client = orb_on(&network, Host::B);
            let poa = client.root_poa().unwrap();
            let skeleton = PushConsumerSkeleton::from_arc(recorder.clone());
            let consumer = PushConsumer::unchecked_narrow(&poa.serve(skeleton).unwrap());
            poa.manager().activate().unwrap();
            let object = client.string_to_object(&reference).unwrap();
            let channel = EventChannel::narrow(&object).unwrap().unwrap();
            let admin = channel.for_consumers().unwrap().unwrap();
            let proxy = admin.obtain_push_supplier().unwrap().unwrap();
            let entries = write_entries(&Filter::Everything);
            connect(&proxy, Some(&consumer), &entries).unwrap();
            client
        });
        let supplier = service.supplier(&SupplierQOS::default()).unwrap();
        let failures = || service.statistics().consumers[0].failures;
        supplier.push(&[event(1, 20)]);
        assert_eq!(recorder.sets(1)[0], [(1, 20)]);

        network.plug(Host::B, false).unwrap();
        until("the loss is never noticed", || {
            supplier.push(&[event(1, 21)]);
            // The rate of a supplier, so that not too many events wait.
            std::thread::sleep(Duration::from_millis(1));
            failures() > 0
        });
        network.plug(Host::B, true).unwrap();
        until("the consumer is not reached again", || failures() == 0);
        supplier.push(&[event(1, 22)]);
        until("nothing arrives", || {
            recorder.sets(0).contains(&vec![(1, 22)])
        });
        assert_eq!(service.statistics().evicted, 0);
        drop(supplier);
        client.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
    }
}
