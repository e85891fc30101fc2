//! What connections, classes and subsystems leave behind, and what they do not wait for.

#[path = "support/rig.rs"]
mod rig;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chronorb_rio::engine::{Class, ClassConfig, Listener, Processing, Stream, Subsystem};
use chronorb_rt::{Deadline, Monotonic};
use chronorb_transport::{Interest, Reactor};
use rig::{RigHost, wired};

fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

/// A class with few connections.
fn config(processing: Processing) -> ClassConfig {
    ClassConfig {
        processing,
        connections: 2,
        backlog: 2,
        linger: Duration::from_millis(100),
        ..ClassConfig::default()
    }
}

fn on_demand() -> ClassConfig {
    config(Processing::OnDemand { cap: None })
}

/// A host with one class.
fn host(host: &RigHost, config: ClassConfig) -> (Subsystem, Arc<Class>) {
    let subsystem = host.subsystem();
    let class = subsystem.open(config).expect("it is the first");
    (subsystem, class)
}

fn listen(class: &Arc<Class>, at: &RigHost) -> Listener {
    let address = SocketAddr::new(at.address(), 0);
    class.listen(address).expect("any port will do")
}

/// The next connection, by a reactor that has the listener.
fn accept(reactor: &Reactor, listener: &Listener) -> Stream {
    loop {
        if let Some(stream) = listener.accept().expect("a descriptor is left") {
            return stream;
        }
        let told = reactor.wait(Some(Duration::from_secs(20)));
        assert!(told.expect("it is whole").is_some(), "nobody has come");
    }
}

#[test]
fn a_reactor_takes_connections_in_whose_slots_others_had_before() {
    let (_wire, hosts) = wired();
    let (_left, client) = host(&hosts[0], on_demand());
    let (_right, server) = host(&hosts[1], on_demand());
    let listener = listen(&server, &hosts[1]);
    let reactor = Reactor::new().expect("a descriptor is left");
    let added = reactor.add(&listener, 0, Interest::Read);
    added.expect("it is not there");
    for round in 1..10 {
        let near = client.connect(listener.address(), patience());
        let near = near.expect("somebody listens");
        let far = accept(&reactor, &listener);
        let added = reactor.add(&far, round, Interest::Read);
        added.unwrap_or_else(|error| panic!("connection {round}: {error}"));
        near.send(&[1; 10], &[], patience()).expect("it is open");
        while reactor.wait(None).expect("it is whole").map(|it| it.token) != Some(round) {}
        assert_eq!(far.try_receive(&mut [0; 20]), Ok(10));
    }
}
