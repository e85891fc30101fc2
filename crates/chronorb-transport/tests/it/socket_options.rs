//! Tests of socket options, which are read back from the kernel.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::tcp::Tcp;
use chronorb_transport::{
    Acceptor, Address, ConnectError, Connection, ListenError, SocketOptions, Transport,
    parse_endpoints,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, sockopt};

/// Each different from what the kernel does by itself.
const CHOSEN: SocketOptions = SocketOptions {
    no_delay: false,
    keep_alive: true,
    peer_timeout: Some(Duration::from_secs(9)),
    dont_route: true,
    dscp: Some(EXPEDITED),
    priority: Some(3),
    send_buffer: Some(30_000),
    receive_buffer: Some(20_000),
};
/// Expedited forwarding, for which the kernel would choose another priority than 3.
const EXPEDITED: u8 = 46;

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn listen(host: &str, options: SocketOptions) -> Result<Box<dyn Acceptor>, ListenError> {
    let endpoints = parse_endpoints(&format!("iiop://{host}:0")).expect("an endpoint");
    let acceptors = Tcp.listen(&endpoints[0], options.into())?;
    Ok(acceptors.into_iter().next().expect("one address"))
}

fn connect(
    host: &str,
    port: u16,
    options: SocketOptions,
) -> Result<Box<dyn Connection>, ConnectError> {
    let host = host.to_owned();
    Tcp.connect(&Address::host(host, port), options.into(), soon())
}

fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    loop {
        poll(&mut [PollFd::new(&acceptor, PollFlags::IN)], None).expect("it waits");
        if let Some(connection) = acceptor.accept().expect("it is open") {
            return connection;
        }
    }
}

/// Both ends of a connection, with these options at both.
fn pair(listening: &str, connecting: &str, options: SocketOptions) -> [Box<dyn Connection>; 2] {
    let acceptor = listen(listening, options).expect("it opens");
    let (_, port) = acceptor.published()[0].as_host().expect("it has a port");
    let near = connect(connecting, port, options).expect("there is a listener");
    let far = accept(&*acceptor);
    [near, far]
}

/// The address families of this machine, as where to listen and where to connect.
fn families() -> Vec<(&'static str, &'static str)> {
    let mut families = vec![("127.0.0.1", "127.0.0.1"), ("", "127.0.0.1")];
    if TcpListener::bind("[::1]:0").is_ok() {
        // The empty host is one socket for both.
        families.extend([("[::1]", "::1"), ("", "::1")]);
    } else {
        eprintln!("NOT TESTED: IPv6, which this machine does not have.");
    }
    families
}

#[test]
fn what_is_chosen_holds_at_both_ends() {
    for (listening, connecting) in families() {
        for end in pair(listening, connecting, CHOSEN) {
            let held = end.options().expect("it is open");
            // The kernel doubles buffers, for its own book-keeping.
            let expected = SocketOptions {
                send_buffer: Some(60_000),
                receive_buffer: Some(40_000),
                ..CHOSEN
            };
            assert_eq!(held, expected, "{listening} {connecting}");
        }
    }
}

#[test]
fn what_is_not_chosen_is_left_to_the_kernel() {
    for (listening, connecting) in families() {
        for end in pair(listening, connecting, SocketOptions::default()) {
            let held = end.options().expect("it is open");
            assert!(held.no_delay && held.keep_alive && !held.dont_route);
            assert_eq!((held.dscp, held.priority), (Some(0), Some(0)));
            assert!(held.send_buffer > Some(0) && held.receive_buffer > Some(0));
        }
    }
}

#[test]
fn what_is_off_is_off_at_both_ends() {
    let options = SocketOptions {
        no_delay: false,
        keep_alive: false,
        ..SocketOptions::default()
    };
    for end in pair("127.0.0.1", "127.0.0.1", options) {
        let held = end.options().expect("it is open");
        assert!(!held.no_delay && !held.keep_alive);
    }
}

#[test]
fn a_listening_socket_has_the_options_for_its_first_packets() {
    for (host, _) in families() {
        let acceptor = listen(host, CHOSEN).expect("it opens");
        let octet = EXPEDITED << 2;
        assert_eq!(sockopt::ip_tos(acceptor.as_fd()), Ok(octet));
        if sockopt::socket_domain(acceptor.as_fd()) == Ok(AddressFamily::INET6) {
            assert_eq!(sockopt::ipv6_tclass(acceptor.as_fd()), Ok(octet.into()));
        }
        assert_eq!(
            sockopt::socket_recv_buffer_size(acceptor.as_fd()),
            Ok(40_000)
        );
        assert_eq!(
            chronorb_transport::packet_priority(acceptor.as_fd()).ok(),
            Some(3)
        );
    }
}

#[test]
fn every_code_point_is_possible_and_no_other_number() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it opens");
    let port = listener.local_addr().map(|local: SocketAddr| local.port());
    let port = port.expect("it is bound");
    let with = |dscp| SocketOptions {
        dscp: Some(dscp),
        ..SocketOptions::default()
    };
    for dscp in 0..=63 {
        let connection = connect("127.0.0.1", port, with(dscp)).expect("there is a listener");
        assert_eq!(connection.options().expect("it is open").dscp, Some(dscp));
    }
    for dscp in [64, 255] {
        let refused = connect("127.0.0.1", port, with(dscp)).expect_err("no such code point");
        assert!(refused.to_string().contains("IP_TOS"), "{refused}");
        let refused = listen("127.0.0.1", with(dscp)).expect_err("no such code point");
        assert!(refused.to_string().contains("IP_TOS"), "{refused}");
    }
}

#[test]
fn a_refused_option_is_an_error_that_names_it() {
    let options = SocketOptions {
        priority: Some(u32::MAX),
        ..SocketOptions::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("it opens");
    let port = listener.local_addr().expect("it is bound").port();
    let refused = connect("127.0.0.1", port, options).expect_err("no such priority");
    assert!(refused.to_string().contains("SO_PRIORITY"), "{refused}");
    let refused = listen("127.0.0.1", options).expect_err("no such priority");
    assert!(refused.to_string().contains("SO_PRIORITY"), "{refused}");
}
