//! Groups on the loopback interface, which every Linux has. It has those of IPv4 only.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic};
use chronorb_transport::multicast::{Multicast, MulticastOptions};
use chronorb_transport::{
    AcceptError, Acceptor, Address, Carriage, ConnectError, Connection, Interest, IoError,
    ListenError, Messages, Reactor, Setup, Transport, parse_endpoints,
};

const GROUP: &str = "239.255.77.1";

/// A message: its length in the first four octets.
const MESSAGES: Messages = Messages {
    len: |octets| {
        let len = u32::from_be_bytes(*octets.first_chunk()?);
        Some(len as usize)
    },
    max: 1 << 20,
};

fn setup() -> Setup {
    Setup {
        messages: MESSAGES,
        ..Setup::default()
    }
}

fn message(len: usize) -> Vec<u8> {
    let mut message: Vec<_> = (0..len).map(|n| (n % 251) as u8).collect();
    message[..4].copy_from_slice(&(len as u32).to_be_bytes());
    message
}

fn transport(options: &str) -> Multicast {
    let options = format!("interface=lo&ttl=0&{options}");
    Multicast::new(MulticastOptions::parse(&options).expect("correct options"))
}

/// A port that no other test has.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = std::process::id() % 500;
    20_000 + process as u16 * 64 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn listen(transport: &Multicast, group: &str, port: u16) -> Box<dyn Acceptor> {
    let text = format!("miop://{group}:{port}");
    let endpoint = &parse_endpoints(&text).expect("an endpoint")[0];
    transport.check(endpoint).expect("it is correct");
    let acceptors = transport.listen(endpoint, setup());
    acceptors.expect("the loopback has groups").remove(0)
}

fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    acceptor.accept().expect("it is open").expect("the first")
}

fn connect(transport: &Multicast, group: &str, port: u16) -> Box<dyn Connection> {
    let address = Address::host(group, port);
    let connection = transport.connect(&address, setup(), soon());
    connection.expect("the loopback has groups")
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// The next message, received in rooms of this size.
fn receive(connection: &dyn Connection, room: usize) -> Vec<u8> {
    let mut message = vec![0; room];
    let mut len = connection.recv(&mut message, soon()).expect("it comes");
    let total = (MESSAGES.len)(&message).expect("it begins a message");
    message.resize(total.max(room), 0);
    while len < total {
        let end = total.min(len + room);
        len += connection
            .recv(&mut message[len..end], soon())
            .expect("it comes");
    }
    message.truncate(len);
    message
}

#[test]
fn every_listener_hears_what_is_sent_to_its_group() {
    let transport = transport("");
    let port = port();
    let acceptors = [(); 3].map(|()| listen(&transport, GROUP, port));
    let listeners = acceptors.each_ref().map(|a| accept(&**a));
    let sender = connect(&transport, GROUP, port);
    for len in [4, 100, 1440, 1441, 50_000] {
        sender.send_all(&message(len), soon()).expect("it is sent");
        for listener in &listeners {
            assert_eq!(receive(&**listener, 1 << 16), message(len));
        }
    }
    assert_eq!(transport.counts().delivered, 15);
}

#[test]
fn groups_at_one_port_are_kept_apart() {
    let transport = transport("");
    let port = port();
    let acceptors = ["239.255.77.1", "239.255.77.2"].map(|g| listen(&transport, g, port));
    let [one, other] = acceptors.each_ref().map(|a| accept(&**a));
    let to_other = connect(&transport, "239.255.77.2", port);
    to_other.send_all(&message(10), soon()).expect("it is sent");
    assert_eq!(receive(&*other, 100), message(10));
    assert_eq!(one.try_recv(&mut [0; 100]), Err(IoError::WouldBlock));
    // Nor is what comes to the port without a group.
    let stray = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sent = stray.send_to(&message(10), SocketAddr::from(([127, 0, 0, 1], port)));
    // The existence of a listener is reported later, if at all.
    assert_eq!(sent.expect("it is sent"), 10);
    assert_eq!(one.try_recv(&mut [0; 100]), Err(IoError::WouldBlock));
    assert_eq!(transport.counts().malformed, 0);
}

#[test]
fn two_pieces_are_one_message_and_several_messages_go_at_once() {
    let transport = transport("mtu=300");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let listener = accept(&*acceptor);
    let sender = connect(&transport, GROUP, port);
    let long = message(2000);
    for cut in [0, 4, 239, 240, 241, 1999, 2000] {
        let (first, second) = long.split_at(cut);
        sender.send_both(first, second, soon()).expect("it is sent");
        assert_eq!(receive(&*listener, 4000), long, "cut at {cut}");
        let mut sent = 0;
        while sent < long.len() {
            let (first, second) = if sent < cut {
                (&long[sent..cut], &long[cut..])
            } else {
                (&[][..], &long[sent..])
            };
            sent += sender.try_send_both(first, second).expect("there is room");
        }
        assert_eq!(receive(&*listener, 4000), long, "cut at {cut}");
    }
    let several = [message(5), message(700), message(6)].concat();
    sender.send_all(&several, soon()).expect("they are sent");
    for len in [5, 700, 6] {
        assert_eq!(receive(&*listener, 4000), message(len));
    }
}

#[test]
fn the_rest_of_a_message_that_is_longer_than_the_room_follows() {
    let transport = transport("");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let listener = accept(&*acceptor);
    let sender = connect(&transport, GROUP, port);
    for len in [100, 5000] {
        sender.send_all(&message(len), soon()).expect("it is sent");
        assert_eq!(receive(&*listener, 33), message(len));
    }
}

#[test]
fn a_message_that_is_too_long_is_refused_before_any_of_it_is_sent() {
    let transport = transport("max=1024");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let listener = accept(&*acceptor);
    let sender = connect(&transport, GROUP, port);
    let largest = 1024;
    let expected = Carriage::Messages {
        largest,
        many_peers: true,
    };
    assert_eq!(sender.carriage(), expected);
    let refused = sender.send_all(&message(largest + 1), soon());
    let refused = refused.expect_err("it is too long");
    assert_eq!((refused.sent, refused.cause), (0, IoError::TooLarge));
    assert_eq!(
        sender.try_send(&message(largest + 1)),
        Err(IoError::TooLarge)
    );
    sender
        .send_all(&message(largest), soon())
        .expect("it is not");
    assert_eq!(receive(&*listener, 2000), message(largest));
}

#[test]
fn a_message_larger_than_the_socket_buffers_comes_whole_at_a_pace() {
    let paced = transport("rate=1000000");
    let port = port();
    let acceptor = listen(&paced, GROUP, port);
    let listener = accept(&*acceptor);
    let sender = connect(&paced, GROUP, port);
    // Twice what a socket buffers by default.
    let long = message(400_000);
    let received = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&*listener, 1 << 20));
        // A reader that has no processor for long loses datagrams at any pace: then it hears a
        // later message.
        while !receiving.is_finished() {
            let begun = Monotonic::now();
            sender.send_all(&long, soon()).expect("it is sent");
            // A message of this length takes 400 ms at this pace.
            assert!(Monotonic::now().since(begun) >= Duration::from_millis(390));
        }
        receiving.join().expect("it does not panic")
    });
    assert!(received == long);
    let late = sender.send_all(&long, Deadline::after(Duration::ZERO));
    assert_eq!(late.expect_err("it takes time").cause, IoError::TimedOut);
}

#[test]
fn a_reactor_tells_of_each_message() -> io::Result<()> {
    let transport = transport("");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let reactor = Reactor::new()?;
    reactor.add(&acceptor, 1, Interest::Read)?;
    assert_eq!(reactor.wait(None)?.map(|event| event.token), Some(1));
    let listener = accept(&*acceptor);
    assert!(matches!(acceptor.accept(), Ok(None)), "there is one only");
    reactor.add(&listener, 2, Interest::Read)?;
    let sender = connect(&transport, GROUP, port);
    for _ in 0..3 {
        sender.send_all(&message(3000), soon()).expect("it is sent");
        let mut room = [0; 4000];
        let len = loop {
            let event = reactor.wait(Some(Duration::from_secs(60)))?;
            assert_eq!(event.map(|event| event.token), Some(2));
            match listener.try_recv(&mut room) {
                Ok(len) => break len,
                Err(error) => assert_eq!(error, IoError::WouldBlock, "a packet is missing"),
            }
        };
        assert_eq!(room[..len], message(3000));
        assert_eq!(listener.try_recv(&mut room), Err(IoError::WouldBlock));
    }
    Ok(())
}

#[test]
fn when_the_connection_is_over_there_is_another_one() -> io::Result<()> {
    let transport = transport("");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let reactor = Reactor::new()?;
    reactor.add(&acceptor, 1, Interest::Read)?;
    for _ in 0..3 {
        assert_eq!(reactor.wait(None)?.map(|event| event.token), Some(1));
        let listener = accept(&*acceptor);
        let sender = connect(&transport, GROUP, port);
        sender.send_all(&message(10), soon()).expect("it is sent");
        assert_eq!(receive(&*listener, 100), message(10));
        listener.shutdown();
        assert!(listener.is_stale());
        assert_eq!(listener.try_recv(&mut [0; 100]), Err(IoError::Ended));
        assert_eq!(listener.recv(&mut [0; 100], soon()), Err(IoError::Ended));
    }
    Ok(())
}

#[test]
fn a_shutdown_ends_the_wait() {
    let transport = transport("");
    let acceptor = listen(&transport, GROUP, port());
    let listener = accept(&*acceptor);
    let sender = connect(&transport, GROUP, port());
    for connection in [listener, sender] {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| connection.recv_until_interrupted(&mut [0; 100], None));
            connection.shutdown();
            let ended = waiting.join().expect("it does not panic");
            assert_eq!(ended, Err(IoError::Ended));
        });
    }
}

#[test]
fn waits_end_at_their_deadline() {
    let transport = transport("");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let listener = accept(&*acceptor);
    let sender = connect(&transport, GROUP, port);
    for connection in [listener, sender] {
        let deadline = Deadline::after(Duration::from_millis(20));
        assert_eq!(
            connection.recv(&mut [0; 9], deadline),
            Err(IoError::TimedOut)
        );
        assert!(deadline.has_passed());
        let limit = Some(Duration::from_millis(20));
        assert_eq!(
            connection.recv_until_interrupted(&mut [0; 9], limit),
            Ok(None)
        );
        connection.interrupt();
        assert_eq!(
            connection.recv_until_interrupted(&mut [0; 9], None),
            Ok(None)
        );
        connection.resume();
        assert!(!connection.is_stale());
    }
}

#[test]
fn garbage_and_half_collections_do_not_keep_messages_from_coming() {
    let transport = transport("");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let listener = accept(&*acceptor);
    // The flood comes from another host, as far as the listener can see.
    let flooding = UdpSocket::bind("127.0.0.2:0").expect("all of 127.0.0.0/8 is here");
    let group = SocketAddr::new(GROUP.parse().expect("an address"), port);
    flooding.connect(group).expect("a route");
    let sender = connect(&transport, GROUP, port);
    let mut half = b"MIOP\x10\0\0\x40\0\0\0\x01\0\0\0\x09\0\0\0\x04....".to_vec();
    half.resize(24 + 64, 0);
    let mut number: u32 = 0;
    for round in 0..50 {
        for _ in 0..100 {
            number += 1;
            half[20..24].copy_from_slice(&number.to_be_bytes());
            let datagram = if number.is_multiple_of(2) {
                &half
            } else {
                &half[..19]
            };
            flooding.send(datagram).expect("it is sent");
        }
        sender
            .send_all(&message(4000 + round), soon())
            .expect("it is sent");
        assert_eq!(receive(&*listener, 5000), message(4000 + round));
    }
    let counts = transport.counts();
    assert_eq!(counts.delivered, 50);
    assert_eq!(counts.malformed, 2500);
    assert!(
        counts.crowded_out + counts.expired >= 2500 - 64,
        "{counts:?}"
    );
}

#[test]
fn a_listener_gives_its_thread_back_while_it_is_sent_garbage() {
    let transport = transport("");
    let port = port();
    let acceptor = listen(&transport, GROUP, port);
    let listener = accept(&*acceptor);
    let flooding = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let group = SocketAddr::new(GROUP.parse().expect("an address"), port);
    flooding.connect(group).expect("a route");
    let sender = connect(&transport, GROUP, port);
    // What the socket's buffer holds at least.
    for _ in 0..200 {
        flooding.send(b"garbage").expect("it is sent");
    }
    sender.send_all(&message(10), soon()).expect("it is sent");
    for _ in 0..200 {
        flooding.send(b"garbage").expect("it is sent");
    }
    let mut room = [0; 100];
    let len = listener.try_recv(&mut room).expect("something is there");
    assert_eq!(room[..len], message(10));
    for _ in 0..200 {
        flooding.send(b"garbage").expect("it is sent");
    }
    assert_eq!(listener.try_recv(&mut room), Ok(0), "there may be more");
    assert_eq!(listener.try_recv(&mut room), Err(IoError::WouldBlock));
    assert_eq!(transport.counts().malformed, 600);
}

#[test]
fn what_is_no_group_is_refused_by_name() {
    let transport = transport("");
    for (text, problem) in [
        ("miop://10.0.0.1:5000", "224.0.0.0/4"),
        ("miop://239.255.1.1", "port"),
        ("miop://radar.example:5000", "address"),
        ("miop://239.255.1.1:5000/ttl=many", "ttl"),
        ("miop://239.255.1.1:5000/portspan=3", "portspan"),
    ] {
        let endpoint = &parse_endpoints(text).expect("an endpoint")[0];
        let error = transport.check(endpoint).expect_err(text).to_string();
        assert!(error.contains(problem), "{error}");
        assert!(matches!(
            transport.listen(endpoint, setup()),
            Err(ListenError::Endpoint(_))
        ));
    }
    let nobody = transport.connect(&Address::host("10.0.0.1", 5000), setup(), soon());
    assert!(matches!(nobody, Err(ConnectError::Refused { .. })));
    let nowhere = Multicast::new(MulticastOptions::parse("interface=none0").expect("options"));
    let nowhere = nowhere.connect(&Address::host(GROUP, 5000), setup(), soon());
    let error = nowhere.expect_err("there is no such interface").to_string();
    assert!(error.contains("none0"), "{error}");
}

#[test]
fn listeners_send_nothing() {
    let transport = transport("");
    let acceptor = listen(&transport, GROUP, port());
    let listener = accept(&*acceptor);
    assert!(matches!(listener.try_send(b"x"), Err(IoError::Broken(_))));
    let refused = listener
        .send_all(b"x", soon())
        .expect_err("there is no receiver");
    assert!(matches!(refused.cause, IoError::Broken(_)));
    assert_ne!(Err(AcceptError::Exhausted), acceptor.accept().map(drop));
}
