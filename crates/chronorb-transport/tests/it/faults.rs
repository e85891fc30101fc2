//! A disturbed connection keeps the contract of connections, whatever is done to it.

use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, ThreadBuilder};
use chronorb_transport::faults::{FaultPlan, FaultPlans, Faulty};
use chronorb_transport::tcp::Tcp;
use chronorb_transport::{
    AcceptError, Acceptor, ConnectError, Connection, Interest, IoError, Reactor, Setup, Transport,
    parse_endpoints,
};

/// More than any buffer holds, without two equal parts.
const STREAM: usize = 3_000_000;

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn plan(text: &str) -> FaultPlan {
    let plans = FaultPlans::parse(text).expect("a plan");
    plans.of("iiop").expect("it is for all").clone()
}

fn octets() -> Vec<u8> {
    (0..STREAM / 4)
        .flat_map(|number| (number as u32).to_le_bytes())
        .collect()
}

fn listen(transport: &dyn Transport) -> Box<dyn Acceptor> {
    let endpoints = parse_endpoints("iiop://127.0.0.1:0").expect("an endpoint");
    let acceptors = transport.listen(&endpoints[0], Setup::default());
    acceptors
        .expect("it listens")
        .into_iter()
        .next()
        .expect("one")
}

/// A connection of two transports.
fn connect(
    near: &dyn Transport,
    far: &dyn Transport,
) -> (Box<dyn Connection>, Box<dyn Connection>) {
    let acceptor = listen(far);
    let near = near.connect(&acceptor.published()[0], Setup::default(), soon());
    let reactor = Reactor::new().expect("a set");
    reactor.add(&acceptor, 0, Interest::Read).expect("added");
    reactor.wait(None).expect("a connection");
    let far = acceptor.accept().expect("it can be taken in");
    (near.expect("it connects"), far.expect("it is there"))
}

/// The connection of a plain and a disturbed transport.
fn disturbed(faults: &str) -> (Box<dyn Connection>, Box<dyn Connection>) {
    connect(
        &Tcp,
        &Faulty::new(Box::new(Tcp) as Box<dyn Transport>, plan(faults)),
    )
}

/// Receives as a lane does: waits on a set, and reads until nothing is there or a read did not fill
/// its room.
fn receive_by_edges(connection: &dyn Connection) -> (Vec<u8>, IoError) {
    let reactor = Reactor::new().expect("a set");
    reactor.add(connection, 0, Interest::Read).expect("added");
    let mut all = Vec::new();
    let mut room = vec![0; 10_000];
    loop {
        let event = reactor.wait(Some(Duration::from_secs(60))).expect("waits");
        let Some(event) = event else {
            panic!("after {} octets it is silent", all.len());
        };
        loop {
            match connection.try_recv(&mut room) {
                Ok(n) => {
                    all.extend_from_slice(&room[..n]);
                    if n < room.len() && !event.hang_up {
                        break;
                    }
                }
                Err(IoError::WouldBlock) => break,
                Err(end) => return (all, end),
            }
        }
    }
}

/// Sends as a lane does: what does not fit when there is an event.
fn send_by_edges(connection: &dyn Connection, octets: &[u8]) -> Result<(), IoError> {
    let reactor = Reactor::new().expect("a set");
    reactor.add(connection, 0, Interest::Read).expect("added");
    let mut sent = 0;
    while sent < octets.len() {
        match connection.try_send(&octets[sent..]) {
            Ok(n) => {
                sent += n;
                continue;
            }
            Err(IoError::WouldBlock) => {}
            Err(other) => return Err(other),
        }
        reactor
            .rearm(connection, 0, Interest::ReadWrite)
            .expect("it is in the set");
        let event = reactor.wait(Some(Duration::from_secs(60))).expect("waits");
        assert!(event.is_some(), "after {sent} octets there is never room");
    }
    Ok(())
}

#[test]
fn all_octets_come_in_order_however_they_are_cut_and_delayed() {
    for faults in ["cut=1", "seed=3,cut=0.5,delay=0us..300us", "delay=1ms"] {
        let (near, far) = disturbed(faults);
        let sender = ThreadBuilder::new("sender").spawn(move || {
            near.send_all(&octets(), soon()).expect("it is taken");
        });
        let (all, end) = receive_by_edges(&*far);
        assert_eq!(end, IoError::Ended, "{faults}");
        assert!(all == octets(), "{faults}: {} octets", all.len());
        sender.expect("a thread").join().expect("it ends");

        let (near, far) = disturbed(faults);
        let receiver = ThreadBuilder::new("receiver").spawn(move || receive_by_edges(&*near));
        send_by_edges(&*far, &octets()[..500_000]).expect("it is taken");
        drop(far);
        let (all, _) = receiver.expect("a thread").join().expect("it ends");
        assert!(all == octets()[..500_000], "{faults}: {} octets", all.len());
    }
}

#[test]
fn who_waits_on_the_connection_itself_gets_them_too() {
    let (near, far) = disturbed("cut=1,delay=0us..200us");
    let sent = &octets()[..100_000];
    let sender = ThreadBuilder::new("sender")
        .spawn(move || near.send_both(&octets()[..40_000], &octets()[40_000..100_000], soon()));
    let mut all = Vec::new();
    let mut room = vec![0; 5000];
    while all.len() < sent.len() {
        let n = match all.len() % 2 {
            0 => far.recv(&mut room, soon()).expect("more comes"),
            // It may return without any, as after an interruption.
            _ => far
                .recv_until_interrupted(&mut room, None)
                .expect("more comes")
                .unwrap_or(0),
        };
        all.extend_from_slice(&room[..n]);
    }
    assert!(all == sent);
    sender
        .expect("a thread")
        .join()
        .expect("it ends")
        .expect("it is taken");
}

#[test]
fn a_delay_is_kept_on_either_side() {
    let (near, far) = disturbed("delay=30ms");
    let begun = Monotonic::now();
    near.send_all(b"request", soon()).expect("it is taken");
    let mut room = [0; 7];
    assert_eq!(far.recv(&mut room, soon()), Ok(7));
    assert!(Monotonic::now() - begun >= Duration::from_millis(30));
    let too_soon = Deadline::after(Duration::from_millis(5));
    let error = far
        .send_all(b"reply", too_soon)
        .expect_err("it takes longer");
    assert_eq!((error.sent, error.cause), (0, IoError::TimedOut));
}

#[test]
fn the_stream_ends_where_the_plan_says() {
    let (near, far) = disturbed("out.disconnect=100");
    let error = far.send_all(&[1; 300], soon()).map_err(|error| error.cause);
    let mut room = [0; 300];
    let mut come = 0;
    while let Ok(n) = near.recv(&mut room, soon()) {
        come += n;
    }
    assert_eq!(come, 100);
    assert_eq!(error, Err(IoError::Closed));

    let (near, far) = disturbed("in.disconnect=100");
    near.send_all(&[1; 300], soon()).expect("it is taken");
    let (all, end) = receive_by_edges(&*far);
    assert_eq!((all.len(), end), (100, IoError::Closed));
}

#[test]
fn garbage_is_the_same_for_the_same_seed() {
    let of = |faults: &str| {
        let (near, far) = disturbed(faults);
        near.send_all(&[0; 5000], soon()).expect("it is taken");
        drop(near);
        receive_by_edges(&*far).0
    };
    let once = of("seed=5,flip=1,insert=1,in.truncate=1");
    assert_eq!(once, of("seed=5,flip=1,insert=1,in.truncate=1"));
    assert_ne!(once, of("seed=6,flip=1,insert=1,in.truncate=1"));
    assert_eq!(
        of("in.flip=1").iter().filter(|octet| **octet != 0).count(),
        1
    );
    assert!((5001..=5016).contains(&of("in.insert=1").len()));
}

#[test]
fn silence_ends_at_the_deadline() {
    let (near, far) = disturbed("in.stall=1");
    near.send_all(b"request", soon()).expect("it is taken");
    let deadline = Deadline::after(Duration::from_millis(20));
    assert_eq!(far.recv(&mut [0; 7], deadline), Err(IoError::TimedOut));
    assert_eq!(far.try_recv(&mut [0; 7]), Err(IoError::WouldBlock));
    drop(near);
    assert_eq!(
        far.recv(&mut [0; 7], soon()),
        Err(IoError::Ended),
        "that is heard"
    );
}

#[test]
fn connects_are_refused_and_descriptors_run_out() {
    let faulty = Faulty::new(
        Box::new(Tcp) as Box<dyn Transport>,
        plan("refuse=1,exhaust=1"),
    );
    let acceptor = listen(&faulty);
    let refused = faulty.connect(&acceptor.published()[0], Setup::default(), soon());
    assert!(
        matches!(refused, Err(ConnectError::Refused { .. })),
        "{refused:?}"
    );
    assert!(matches!(acceptor.accept(), Err(AcceptError::Exhausted)));
}

#[test]
fn what_only_messages_can_meet_is_refused_for_streams() {
    let faulty = Faulty::new(Box::new(Tcp) as Box<dyn Transport>, plan("loss=0.01"));
    let acceptor = listen(&Tcp);
    let refused = faulty.connect(&acceptor.published()[0], Setup::default(), soon());
    let error = refused.expect_err("it is a stream").to_string();
    assert!(error.contains("loss") && error.contains("diop:"), "{error}");
}
