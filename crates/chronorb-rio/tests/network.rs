//! The test network, and the kernel's network as rtnetlink shows it.

mod support;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use chronorb_rio::network::{Host, INTERFACE, Layout, Network};
use support::network;

/// Lets host A send so many octets to host B by TCP; returns what has come.
fn send(network: &Network, to: IpAddr, octets: usize) -> usize {
    let listen = || TcpListener::bind(SocketAddr::new(to, 0)).expect("the address is B's");
    let listener = network.host(Host::B).enter(listen);
    let address = listener.local_addr().expect("it is bound");
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("A connects");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("A closes");
        received.len()
    });
    let connect = || TcpStream::connect(address).expect("B listens");
    let mut stream = network.host(Host::A).enter(connect);
    stream.write_all(&vec![7; octets]).expect("B receives");
    drop(stream);
    receiver.join().expect("it does not panic")
}

#[test]
fn two_hosts_reach_each_other_by_both_protocols() {
    for mtu in [1500, 9000] {
        let layout = Layout {
            mtu,
            ..Layout::default()
        };
        let Some(network) = network(&layout) else {
            return;
        };
        assert_eq!(send(&network, layout.b.v4.into(), 100_000), 100_000);
        assert_eq!(send(&network, layout.b.v6.into(), 100_000), 100_000);
    }
}

#[test]
fn a_host_tells_its_interface() {
    let layout = Layout {
        mtu: 9000,
        ..Layout::default()
    };
    let Some(network) = network(&layout) else {
        return;
    };
    let link = network.host(Host::A).link().expect("it has one");
    assert_eq!(link.name, INTERFACE);
    assert_eq!(link.mtu, 9000);
    for address in [IpAddr::from(layout.a.v4), layout.a.v6.into()] {
        assert!(
            link.addresses.iter().any(|(its, _)| *its == address),
            "{link:?}"
        );
    }
    let other = network.host(Host::B).link().expect("it has one");
    assert_ne!(link.hardware, other.hardware);
}

#[test]
fn a_program_is_started_on_a_host() {
    let Some(network) = network(&Layout::default()) else {
        return;
    };
    let mut command = Command::new("cat");
    command.arg("/proc/net/dev").stdout(Stdio::piped());
    let child = network
        .host(Host::A)
        .spawn(&mut command)
        .expect("cat is there");
    let output = child.wait_with_output().expect("it ends");
    let devices = String::from_utf8(output.stdout).expect("a text");
    assert!(devices.contains(INTERFACE), "{devices}");
    assert!(!devices.contains("eth0"), "{devices}");
}
