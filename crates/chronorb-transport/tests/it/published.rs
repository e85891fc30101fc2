//! The addresses at which endpoints are bound, and those that they publish.

use std::env;
use std::error::Error;
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::process::Command;

use chronorb_transport::tcp::Tcp;
use chronorb_transport::{Acceptor, Address, Endpoint, Setup, Transport, parse_endpoints};

fn endpoint(text: &str) -> Endpoint {
    parse_endpoints(text).expect("it is one").remove(0)
}

fn open(text: &str) -> Vec<Box<dyn Acceptor>> {
    let opened = Tcp.listen(&endpoint(text), Setup::default());
    opened.expect("a port is free")
}

#[test]
fn a_name_is_bound_at_all_its_addresses_and_published_once() {
    let acceptors = open("iiop://localhost:0");
    let Some((host, port)) = acceptors[0].published()[0].as_host() else {
        panic!("it has a host");
    };
    assert_eq!(host, "localhost");
    let all: Vec<_> = ("localhost", port)
        .to_socket_addrs()
        .expect("it has")
        .collect();
    for address in &all {
        TcpStream::connect(address).expect("each address is bound");
    }
    for acceptor in &acceptors {
        assert_eq!(acceptor.published(), [Address::host("localhost", port)]);
    }
}

#[test]
fn every_interface_is_one_socket() {
    for host in ["", "*"] {
        let acceptors = open(&format!("iiop://{host}:0"));
        assert_eq!(acceptors.len(), 1, "{host:?}");
        let published = acceptors[0].published();
        assert!(
            published
                .iter()
                .all(|address| address.as_host().is_some_and(|it| it.1 > 0))
        );
    }
}

#[test]
fn published_hosts_may_have_ports_of_their_own() {
    let text = "iiop://127.0.0.1:0/hostname_in_ior=gw.example:12809,10.0.0.7,[2001:db8::7]:9,::1";
    let acceptors = open(text);
    let addresses: Vec<_> = acceptors[0]
        .published()
        .iter()
        .map(Address::as_host)
        .collect();
    let [
        Some(gateway),
        Some((near, bound)),
        Some(six),
        Some((last, _)),
    ] = addresses[..]
    else {
        panic!("{addresses:?}");
    };
    assert_eq!(gateway, ("gw.example", 12_809));
    assert_eq!((near, last), ("10.0.0.7", "::1"));
    assert_eq!(six, ("2001:db8::7", 9));
    TcpStream::connect(("127.0.0.1", bound)).expect("it is the bound port");
}

#[test]
fn hosts_that_clients_cannot_reach_are_refused() {
    for host in [
        "0.0.0.0",
        "[::]:9",
        ":2809",
        "a b",
        "gw.example:x",
        "gw:99999",
        "a,,b",
        "gw:+9",
    ] {
        let text = format!("iiop://127.0.0.1:0/hostname_in_ior={host}");
        let refused = Tcp.check(&endpoint(&text));
        assert!(refused.is_err(), "{host}");
    }
}

/// Runs the next test in a process with a server of names that is silent.
#[test]
fn an_endpoint_at_a_name_whose_server_is_silent_is_refused_in_time() {
    const SILENT: &str = "127.43.53.53";
    let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
    let Ok(_server) = UdpSocket::bind((SILENT, 53)) else {
        println!("NOT RUN: it needs the port of names");
        return assert!(!required, "CHRONORB_PEERS=required");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("resolv.conf");
    // The resolver itself would wait much longer.
    let text = format!("nameserver {SILENT}\noptions timeout:30 attempts:5\n");
    std::fs::write(&settings, text).expect("it can be written");
    let bind = "mount --bind \"$0\" /etc/resolv.conf || exit 77; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", bind])
        .arg(&settings)
        .arg(env::current_exe().expect("this program"))
        .args([
            "published::the_silent_server_of_names",
            "--exact",
            "--ignored",
        ])
        .output();
    let output = output.expect("unshare is a part of each Linux");
    if !output.status.success() && !output.stdout.starts_with(b"\nrunning 1 test") {
        println!("NOT RUN: it needs a mount namespace");
        return assert!(!required, "CHRONORB_PEERS=required");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "the test above runs it in a process of its own"]
fn the_silent_server_of_names() {
    chronorb_transport::look_up_aside();
    let refused = Tcp.listen(&endpoint("iiop://radar.example:0"), Setup::default());
    let refused = refused.expect_err("the name does not resolve");
    let cause = refused.source().expect("the resolver's").to_string();
    assert_eq!(cause, "no server of names answered in time");
    // Addresses and names of the file of hosts need no server.
    open("iiop://127.0.0.1:0");
    open("iiop://localhost:0");
}
