//! The ends of connections, classes and subsystems: what remains, and what they do not wait for.

use crate::driver::wire::{Faults, Side};
use crate::engine::{
    Class, ClassConfig, ClassProcessing, ConnectFault, Listener, Stream, Subsystem,
};
use chronorb_rt::Deadline;
use chronorb_transport::{AcceptError, Interest, IoError, Reactor};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::tests::support::rig::{RigHost, wired};

fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// A class with few connections.
fn config(processing: ClassProcessing) -> ClassConfig {
    ClassConfig {
        processing,
        connections: 2,
        backlog: 2,
        silence: Duration::from_millis(300),
        linger: Duration::from_millis(300),
        ..ClassConfig::default()
    }
}

fn on_demand() -> ClassConfig {
    config(ClassProcessing::OnDemand { cap: None })
}

/// Creates a host with one class.
fn host(host: &RigHost, config: ClassConfig) -> (Subsystem, Arc<Class>) {
    let subsystem = host.subsystem();
    let class = subsystem.open(config).expect("it is the first");
    (subsystem, class)
}

fn listen(class: &Arc<Class>, at: &RigHost) -> Listener {
    let address = SocketAddr::new(at.address(), 0);
    class.listen(address).expect("any port will do")
}

/// Accepts the next connection by a reactor with the listener.
fn accept(reactor: &Reactor, listener: &Listener) -> Stream {
    loop {
        if let Some(stream) = listener.accept().expect("a descriptor is left") {
            return stream;
        }
        let told = reactor.wait(Some(Duration::from_secs(60)));
        assert!(
            told.expect("it is whole").is_some(),
            "no connection has come"
        );
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
        let near = near.expect("a socket listens");
        let far = accept(&reactor, &listener);
        let added = reactor.add(&far, round, Interest::Read);
        added.unwrap_or_else(|error| panic!("connection {round}: {error}"));
        near.send(&[1; 10], &[], patience()).expect("it is open");
        while reactor.wait(None).expect("it is whole").map(|it| it.token) != Some(round) {}
        assert_eq!(far.try_receive(&mut [0; 20]), Ok(10));
    }
}

/// Drops a subsystem, which must not block forever.
fn end(subsystem: Subsystem) {
    let (tell, told) = std::sync::mpsc::channel();
    let going = thread::spawn(move || {
        drop(subsystem);
        tell.send(()).expect("a thread waits");
    });
    told.recv_timeout(Duration::from_secs(60)).expect("it goes");
    going.join().expect("no panic");
}

#[test]
fn a_subsystem_ends_though_a_peer_owes_something_to_a_class_whose_lane_does_nothing_any_more() {
    let (wire, hosts) = wired();
    let (_left, client) = host(&hosts[0], on_demand());
    let (right, server) = host(&hosts[1], config(ClassProcessing::OnArrival));
    let listener = listen(&server, &hosts[1]);
    let reactor = Reactor::new().expect("a descriptor is left");
    let added = reactor.add(&listener, 0, Interest::Read);
    added.expect("it is not there");
    let at = listener.address();
    let near = thread::spawn(move || client.connect(at, patience()));
    let far = accept(&reactor, &listener);
    let _near = near.join().expect("no panic").expect("a socket listens");
    let silent = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    wire.disturb(Side::Right, silent, 0);
    assert_eq!(far.try_send(&[1; 100], &[]), Ok(100));
    end(right);
    let error = far.try_send(&[1], &[]);
    assert!(matches!(error, Err(IoError::Broken(_))), "{error:?}");
    assert!(matches!(listener.accept(), Err(AcceptError::Failed(_))));
}

#[test]
fn who_waits_for_a_connection_of_a_subsystem_that_ends_is_told() {
    let (_wire, hosts) = wired();
    let (left, client) = host(&hosts[0], on_demand());
    let (_right, server) = host(&hosts[1], on_demand());
    let listener = listen(&server, &hosts[1]);
    let near = client.connect(listener.address(), patience());
    let near = near.expect("a socket listens");
    let waiting = thread::spawn(move || near.receive(&mut [0; 10], patience()));
    end(left);
    assert_eq!(waiting.join().expect("no panic"), Err(IoError::Closed));
    let late = client.connect(listener.address(), patience());
    assert!(matches!(late, Err(ConnectFault::Ended)), "{late:?}");
}

#[test]
fn a_subsystem_ends_as_soon_as_a_peer_has_what_was_sent_though_somebody_still_has_the_connection() {
    let (wire, hosts) = wired();
    let (left, client) = host(&hosts[0], on_demand());
    let (_right, server) = host(&hosts[1], on_demand());
    let listener = listen(&server, &hosts[1]);
    let near = client.connect(listener.address(), patience());
    let near = near.expect("a socket listens");
    let reactor = Reactor::new().expect("a descriptor is left");
    let added = reactor.add(&listener, 0, Interest::Read);
    added.expect("it is not there");
    let far = accept(&reactor, &listener);
    let lost = Faults {
        loss: 1.0,
        ..Faults::default()
    };
    wire.disturb(Side::Left, lost, 0);
    assert_eq!(near.try_send(&[1; 100], &[]), Ok(100));
    wire.disturb(Side::Left, Faults::default(), 0);
    // The FIN is retransmitted after a while, and acknowledged.
    end(left);
    assert_eq!(far.receive(&mut [0; 200], patience()), Ok(100));
}
