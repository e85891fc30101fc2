//! A message in two pieces goes out as one stream, wherever the transport stops taking it.

use std::thread;
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::tcp::Tcp;
use chronorb_transport::{Acceptor, Connection, IoError, Setup, Transport, parse_endpoints};

/// Both ends of a connection.
fn pair() -> (Box<dyn Connection>, Box<dyn Connection>) {
    let endpoints = parse_endpoints("iiop://127.0.0.1:0").expect("an endpoint");
    let setup = Setup::default();
    let acceptors = Tcp.listen(&endpoints[0], setup).expect("a free port");
    let client = Tcp.connect(&acceptors[0].published()[0], setup, patience());
    (client.expect("it listens"), accept(&*acceptors[0]))
}

fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    loop {
        if let Some(connection) = acceptor.accept().expect("a descriptor is left") {
            return connection;
        }
        thread::yield_now();
    }
}

fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

fn receive(connection: &dyn Connection, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    let mut received = 0;
    while received < len {
        let n = connection.recv(&mut octets[received..], patience());
        received += n.expect("more comes");
    }
    octets
}

#[test]
fn pieces_of_any_length_arrive_one_after_the_other() {
    let (sender, receiver) = pair();
    // More than any buffer of the kernel on the way.
    for lengths in [(0, 5), (5, 0), (16, 16), (16, 20 << 20), (20 << 20, 16)] {
        let (first, second) = (vec![1; lengths.0], vec![2; lengths.1]);
        let octets = thread::scope(|scope| {
            let received = scope.spawn(|| receive(&*receiver, lengths.0 + lengths.1));
            let sent = sender.send_both(&first, &second, patience());
            sent.expect("the peer reads");
            received.join().expect("no panic")
        });
        assert!(octets == [first, second].concat(), "{lengths:?}");
    }
}

#[test]
fn what_does_not_fit_is_left_without_waiting() {
    let (sender, receiver) = pair();
    let (first, second) = (vec![1; 16], vec![2; 64 << 20]);
    let sent = sender
        .try_send_both(&first, &second)
        .expect("some of it fits");
    assert!((1..first.len() + second.len()).contains(&sent));
    let whole = [first, second].concat();
    assert!(receive(&*receiver, sent) == whole[..sent]);
}

#[test]
fn a_peer_that_takes_nothing_ends_the_wait_at_the_deadline() {
    let (sender, _receiver) = pair();
    let octets = vec![0; 64 << 20];
    let deadline = Deadline::after(Duration::from_millis(50));
    let error = sender.send_both(&[1; 16], &octets, deadline);
    let error = error.expect_err("nobody reads");
    assert_eq!(error.cause, IoError::TimedOut);
    assert!(error.sent >= 16);
}
