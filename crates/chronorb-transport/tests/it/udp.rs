//! The contract of UDP alone: slots for peers, and datagrams that cannot be used.

use std::net::UdpSocket;
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::udp::{self, LARGEST_IPV4, LARGEST_IPV6, Udp};
use chronorb_transport::{
    Acceptor, Address, Carriage, Connection, IoError, ListenError, Messages, Setup, SocketOptions,
    Transport, parse_endpoints,
};
use rustix::event::{PollFd, PollFlags, poll};

/// Messages begin with their length, in two octets.
const SETUP: Setup = Setup {
    options: SocketOptions {
        no_delay: true,
        keep_alive: true,
        peer_timeout: None,
        dont_route: false,
        dscp: None,
        priority: None,
        send_buffer: None,
        receive_buffer: None,
    },
    messages: Messages {
        len: |octets| {
            Some(usize::from(u16::from_be_bytes([
                *octets.first()?,
                *octets.get(1)?,
            ])))
        },
        max: 1 << 20,
    },
    urgency: None,
};

fn message(len: u16, content: u8) -> Vec<u8> {
    let mut octets = vec![content; len.into()];
    octets[..2].copy_from_slice(&len.to_be_bytes());
    octets
}

fn try_listen(endpoint: &str, setup: Setup) -> Result<Box<dyn Acceptor>, ListenError> {
    let endpoints = parse_endpoints(endpoint).expect("an endpoint");
    Udp.check(&endpoints[0]).expect("a right endpoint");
    let acceptors = Udp.listen(&endpoints[0], setup)?;
    Ok(acceptors.into_iter().next().expect("one acceptor"))
}

fn listen(endpoint: &str) -> Box<dyn Acceptor> {
    try_listen(endpoint, SETUP).expect("it opens")
}

fn port(acceptor: &dyn Acceptor) -> u16 {
    let (_, port) = acceptor.published()[0].as_host().expect("it has a port");
    port
}

fn connect(host: &str, port: u16) -> Box<dyn Connection> {
    let connection = Udp.connect(&Address::host(host, port), SETUP, patience());
    connection.expect("UDP does not ask")
}

/// A socket that any datagram can be sent by.
fn raw(acceptor: &dyn Acceptor) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let peer = ("127.0.0.1", port(acceptor));
    socket.connect(peer).expect("UDP does not ask");
    socket
}

fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    loop {
        poll(&mut [PollFd::new(&acceptor, PollFlags::IN)], None).expect("it waits");
        if let Some(connection) = acceptor.accept().expect("it is open") {
            return connection;
        }
    }
}

fn receive(connection: &dyn Connection) -> Vec<u8> {
    let mut room = vec![0; 1 << 16];
    let mut received = 0;
    loop {
        let n = connection.recv(&mut room[received..], patience());
        received += n.expect("a message comes");
        let len = usize::from(u16::from_be_bytes([room[0], room[1]]));
        if received >= len {
            assert_eq!(received, len, "one message");
            room.truncate(len);
            return room;
        }
    }
}

fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(20))
}

#[test]
fn what_was_sent_before_a_peer_has_a_place_comes_by_it_in_order() {
    let acceptor = listen("diop://127.0.0.1:0");
    let [one, other] = [raw(&*acceptor), raw(&*acceptor)];
    for number in 0..50 {
        one.send(&message(100, number)).expect("it is sent");
        other.send(&message(90, 100 + number)).expect("it is sent");
    }
    let first = accept(&*acceptor);
    let second = acceptor.accept().expect("it is open");
    let second = second.expect("its messages have come as well");
    assert!(acceptor.accept().expect("it is open").is_none());
    for (connection, len, base) in [(first, 100, 0), (second, 90, 100)] {
        let mut room = [0; 5000];
        let mut received = Vec::new();
        while received.len() < 50 * usize::from(len) {
            let n = connection.recv(&mut room, patience());
            received.extend_from_slice(&room[..n.expect("more comes")]);
        }
        let sent = (0..50).flat_map(|number| message(len, base + number));
        assert!(received.iter().copied().eq(sent));
    }
}

#[test]
fn who_sends_no_message_gets_no_place() {
    let acceptor = listen("diop://127.0.0.1:0");
    let noise = raw(&*acceptor);
    let before = udp::dropped();
    for wrong in [
        &b""[..],
        b"x",
        &message(100, 1)[..99],
        &[message(50, 1), vec![0]].concat(),
        &[message(50, 1), message(50, 2)].concat(),
    ] {
        noise.send(wrong).expect("it is sent");
        let accepted = acceptor.accept().expect("it is open");
        assert!(accepted.is_none(), "{wrong:?}");
    }
    assert!(udp::dropped() >= before + 5);
    noise.send(&message(20, 1)).expect("it is sent");
    assert_eq!(receive(&*accept(&*acceptor)), message(20, 1));
}

#[test]
fn others_noise_does_not_disturb_who_has_a_place() {
    let acceptor = listen("diop://127.0.0.1:0");
    let near = connect("127.0.0.1", port(&*acceptor));
    near.send_all(&message(20, 1), patience()).expect("sent");
    let far = accept(&*acceptor);
    assert_eq!(receive(&*far), message(20, 1));
    let noise = raw(&*acceptor);
    for number in 0..200 {
        // More than the acceptor's socket takes.
        for _ in 0..20 {
            let _ = noise.send(&[0; 1400]);
        }
        near.send_all(&message(30, number), patience())
            .expect("sent");
        assert_eq!(receive(&*far), message(30, number));
        far.send_all(&message(40, number), patience())
            .expect("sent");
        assert_eq!(receive(&*near), message(40, number));
    }
    // Nor does it end what the acceptor is for.
    while acceptor.accept().expect("it is open").is_some() {}
    let late = connect("127.0.0.1", port(&*acceptor));
    late.send_all(&message(20, 9), patience()).expect("sent");
    assert_eq!(receive(&*accept(&*acceptor)), message(20, 9));
}

#[test]
fn a_peer_that_is_gone_is_told_of_and_the_acceptor_goes_on() {
    let acceptor = listen("diop://127.0.0.1:0");
    let near = connect("127.0.0.1", port(&*acceptor));
    near.send_all(&message(20, 1), patience()).expect("sent");
    let far = accept(&*acceptor);
    assert_eq!(receive(&*far), message(20, 1));
    drop(near);
    far.send_all(&message(20, 2), patience()).expect("sent");
    assert_eq!(far.recv(&mut [0; 9], patience()), Err(IoError::Closed));
    assert!(acceptor.accept().expect("it is open").is_none());

    let port = port(&*acceptor);
    drop((acceptor, far));
    let near = connect("127.0.0.1", port);
    near.send_all(&message(20, 1), patience()).expect("sent");
    assert_eq!(near.recv(&mut [0; 9], patience()), Err(IoError::Closed));
}

#[test]
fn a_peer_whose_place_was_closed_gets_another() {
    let acceptor = listen("diop://127.0.0.1:0");
    let near = connect("127.0.0.1", port(&*acceptor));
    for number in 1..20 {
        near.send_all(&message(20, number), patience())
            .expect("sent");
        let far = accept(&*acceptor);
        assert_eq!(receive(&*far), message(20, number));
        far.send_all(&message(20, number), patience())
            .expect("sent");
        assert_eq!(receive(&*near), message(20, number));
    }
}

#[test]
fn answers_come_from_the_address_that_was_asked() {
    for endpoint in ["diop://", "diop://0.0.0.0:0"] {
        let acceptor = listen(endpoint);
        for host in ["127.0.0.1", "127.0.0.2", "127.1.2.3"] {
            let near = connect(host, port(&*acceptor));
            near.send_all(&message(20, 1), patience()).expect("sent");
            let far = accept(&*acceptor);
            far.send_all(&receive(&*far), patience()).expect("sent");
            assert_eq!(receive(&*near), message(20, 1), "{endpoint} {host}");
        }
    }
}

#[test]
fn a_port_has_one_owner() {
    let acceptor = listen("diop://127.0.0.1:0");
    let near = connect("127.0.0.1", port(&*acceptor));
    near.send_all(&message(20, 1), patience()).expect("sent");
    let _far = accept(&*acceptor);
    for host in ["127.0.0.1", "0.0.0.0", ""] {
        let endpoint = format!("diop://{host}:{}", port(&*acceptor));
        let error = try_listen(&endpoint, SETUP).expect_err("it is taken");
        assert!(error.to_string().contains("in use"), "{error}");
    }
    let spanned = format!("diop://127.0.0.1:{}/portspan=50", port(&*acceptor));
    assert_ne!(port(&*listen(&spanned)), port(&*acceptor));
}

#[test]
fn an_endpoint_may_bound_what_is_sent() {
    let acceptor = listen("diop://127.0.0.1:0/max=600");
    let near = connect("127.0.0.1", port(&*acceptor));
    near.send_all(&message(1000, 1), patience()).expect("sent");
    let far = accept(&*acceptor);
    assert_eq!(receive(&*far), message(1000, 1), "others may send more");
    let largest = Carriage::Messages {
        largest: 600,
        many_peers: false,
    };
    assert_eq!(far.carriage(), largest);
    assert_eq!(far.try_send(&message(601, 1)), Err(IoError::TooLarge));
    far.send_all(&message(600, 1), patience()).expect("sent");
    assert_eq!(receive(&*near), message(600, 1));
}

#[test]
fn both_families_carry_as_much_as_they_can() {
    let mut families = vec![("127.0.0.1", LARGEST_IPV4)];
    if UdpSocket::bind("[::1]:0").is_ok() {
        families.push(("::1", LARGEST_IPV6));
    } else {
        eprintln!("NOT TESTED: IPv6, which this machine does not have.");
    }
    let acceptor = listen("diop://");
    for (host, largest) in families {
        let near = connect(host, port(&*acceptor));
        let longest = message(u16::try_from(largest).expect("it fits"), 1);
        near.send_all(&longest, patience()).expect("sent");
        let far = accept(&*acceptor);
        assert!(receive(&*far) == longest);
        far.send_all(&longest, patience()).expect("sent");
        assert!(receive(&*near) == longest);
        let refused = far.try_send(&vec![0; largest + 1]);
        assert_eq!(refused, Err(IoError::TooLarge), "{host}");
    }
}

#[test]
fn both_ends_have_the_properties_that_were_chosen() {
    let setup = Setup {
        options: SocketOptions {
            dscp: Some(46),
            priority: Some(3),
            dont_route: true,
            send_buffer: Some(30_000),
            receive_buffer: Some(20_000),
            ..SETUP.options
        },
        ..SETUP
    };
    let acceptor = try_listen("diop://127.0.0.1:0", setup).expect("it opens");
    let address = &acceptor.published()[0];
    let near = Udp.connect(address, setup, patience());
    let near = near.expect("UDP does not ask");
    near.send_all(&message(20, 1), patience()).expect("sent");
    let far = accept(&*acceptor);
    for end in [near, far] {
        let held = end.options().expect("it is open");
        assert_eq!((held.dscp, held.priority), (Some(46), Some(3)));
        assert!(held.dont_route);
        // The kernel doubles them, for its own book-keeping.
        assert_eq!(held.send_buffer, Some(60_000));
        assert_eq!(held.receive_buffer, Some(40_000));
    }
}

#[test]
fn noise_from_the_peer_itself_ends_no_wait_early_and_none_too_late() {
    let acceptor = listen("diop://127.0.0.1:0");
    let peer = raw(&*acceptor);
    peer.send(&message(20, 1)).expect("it is sent");
    let far = accept(&*acceptor);
    assert_eq!(receive(&*far), message(20, 1));
    for _ in 0..10 {
        peer.send(b"noise").expect("it is sent");
    }
    let nothing = far.recv(&mut [0; 99], soon());
    assert_eq!(nothing, Err(IoError::TimedOut));
    for _ in 0..10 {
        peer.send(b"noise").expect("it is sent");
    }
    peer.send(&message(20, 2)).expect("it is sent");
    assert_eq!(receive(&*far), message(20, 2));
}
