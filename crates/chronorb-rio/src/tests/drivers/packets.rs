//! Requirements of packet sockets, and of guards, which they need.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::driver::guard::{Guard, GuardError};
use crate::driver::packet::Packet;
use crate::driver::tap::Tap;
use crate::driver::{DriverChoice, DriverError, DriverOptions, open};
use chronorb_net::{Discipline, Handle, Share};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::packet;
use super::subject::{Subject, next, ports, send};
use crate::tests::support::frames::{TestFrame, number_of};

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const RST: u8 = 0x04;

#[test]
fn what_was_put_together_comes_whole() {
    let layout = Layout {
        offloads: true,
        ..Layout::default()
    };
    let Some(subject) = Subject::of_network(packet, &layout) else {
        return;
    };
    let network = subject.network.as_ref().expect("it has one");
    let mut path = subject.open_with(1, &[ports(1, 2002..=2002)], 1024);
    let octets: Vec<u8> = (0..2_000_000_u32).map(|n| (n / 7) as u8).collect();
    let address = SocketAddr::from((layout.b.v4, 2002));
    let listener = network.host(Host::B).enter(|| TcpListener::bind(address));
    let listener = listener.expect("the address is the host's");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the client connects");
        let mut room = Vec::new();
        stream.read_to_end(&mut room).expect("the client ends");
        room.len()
    });
    let stream = network.host(Host::A).enter(|| TcpStream::connect(address));
    let mut stream = stream.expect("the server listens");
    let mut seen = vec![false; octets.len()];
    let mut start = None;
    let mut longest = 0;
    // The kernel's own connection is received here as well, with all of its data.
    let mut receive_all = |has_ended: bool| {
        while super::subject::is_readable(&*path.receiver) {
            let arrived = next(&mut *path.receiver);
            let frame = arrived.octets;
            longest = longest.max(frame.len());
            let sequence = u32::from_be_bytes(*frame[38..].first_chunk().expect("it is TCP"));
            let payload = &frame[34 + usize::from(frame[46] >> 4) * 4..];
            let start = *start.get_or_insert_with(|| sequence.wrapping_add(1));
            let place = sequence.wrapping_sub(start) as usize;
            let is_syn = frame[47] & SYN != 0;
            let len = usize::from(u16::from_be_bytes([frame[16], frame[17]])) + 34 - 20;
            assert_eq!(
                frame.len().max(60),
                len.max(60),
                "a frame of {} octets",
                frame.len()
            );
            if !is_syn && !payload.is_empty() && place < octets.len() {
                assert!(payload == &octets[place..place + payload.len()]);
                seen[place..place + payload.len()].fill(true);
            }
            // The packet has not left the machine, so its checksums were never computed. The kernel
            // may compute those of an acknowledgement for a socket that has ended.
            assert!(arrived.is_checked || has_ended && payload.is_empty());
        }
    };
    for piece in octets.chunks(100_000) {
        stream.write_all(piece).expect("the server takes it");
        receive_all(false);
    }
    drop(stream);
    assert_eq!(server.join().expect("it does not panic"), octets.len());
    // The driver had each packet before the server did.
    receive_all(true);
    let counts = path.receiver.counts();
    assert_eq!((counts.dropped, counts.failed), (0, 0), "{counts:?}");
    assert!(longest > 1514, "{longest}");
    assert!(seen.iter().all(|seen| *seen));
}

#[test]
fn what_was_checked_by_nobody_is_told_so() {
    let Some(subject) = Subject::of_network(packet, &Layout::default()) else {
        return;
    };
    let mut path = subject.open(1, 2001);
    subject.send(&subject.frame(2001));
    assert!(!next(&mut *path.receiver).is_checked);
}

#[test]
fn the_queues_of_the_interface_order_frames_by_their_class() {
    let Some(subject) = Subject::of_network(packet, &Layout::default()) else {
        return;
    };
    let network = subject.network.as_ref().expect("it has one");
    let mut netlink = network.host(Host::B).netlink().expect("it is told");
    let index = subject.near.link().index;
    let (tree, slow, fast) = (Handle::new(1, 0), Handle::new(1, 2), Handle::new(1, 3));
    // Other packets of the host's kernel, such as router solicitations.
    let rest = Handle::new(1, 4);
    netlink
        .set_discipline(
            index,
            Handle::ROOT,
            tree,
            &Discipline::Classes { default: 4 },
        )
        .expect("the kernel has it");
    let plenty = 100_000_000;
    for (class, rate, priority) in [(slow, 1000, 1), (fast, plenty, 0), (rest, plenty, 2)] {
        let share = Share {
            rate,
            ceiling: rate,
            burst: 1600,
            priority,
            quantum: 1600,
        };
        let made = netlink.set_class(index, tree, class, &share);
        made.expect("the discipline has classes");
    }
    let mut paths = [(1, slow), (2, fast)].map(|(number, queue)| {
        let mut path = subject.open_with(number, &[], 64);
        let set = path.transmitter.set_priority(queue.0);
        set.expect("the process has all rights");
        path
    });
    let frame = subject.frame_back(2001, IpAddr::is_ipv4).len(1514);
    for number in 0..64 {
        send(&mut *paths[0].transmitter, &frame.octets(number));
    }
    send(&mut *paths[1].transmitter, &frame.octets(100));
    let mut before = 0;
    while number_of(&subject.far_frame()) != Some(100) {
        before += 1;
    }
    assert!(before < 60, "{before} frames of the slow class were first");
    let classes = netlink.classes(index).expect("they are told");
    let of_fast = classes.iter().find(|class| class.handle == fast);
    assert_eq!(of_fast.expect("it was made").sent.packets, 1);
}

#[test]
fn the_kernel_is_quiet_about_a_guarded_port() {
    let Some(subject) = Subject::of_network(packet, &Layout::default()) else {
        return;
    };
    let network = subject.network.as_ref().expect("it has one");
    let mut path = subject.open(1, 2001);
    for family in [IpAddr::is_ipv4, IpAddr::is_ipv6] {
        let frame = |port, flags| subject.frame_of(port, family).flags(flags);
        let guard = SocketAddr::new(frame(2001, 0).to, 2001);
        let guard = network.host(Host::B).enter(|| Guard::new(guard));
        let guard = guard.expect("it is free");
        for flags in [SYN, ACK, SYN | ACK, ACK | 0x01] {
            subject.send(&frame(2001, flags));
            assert!(number_of(&next(&mut *path.receiver).octets).is_some());
        }
        // No socket listens there: the kernel's first packet is a reset.
        subject.send(&frame(2002, ACK));
        let answer = subject.far_frame();
        assert_eq!(
            (port_of(&answer, family), flags_of(&answer, family)),
            (2002, RST)
        );
        drop(guard);
        subject.send(&frame(2001, ACK));
        let answer = subject.far_frame();
        assert_eq!(
            (port_of(&answer, family), flags_of(&answer, family)),
            (2001, RST)
        );
    }
}

#[test]
fn a_guarded_port_is_taken_for_all_others() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    network.host(Host::B).enter(|| {
        for address in [
            Layout::default().b.v4.into(),
            IpAddr::from(Layout::default().b.v6),
        ] {
            let address = SocketAddr::new(address, 2001);
            let guard = Guard::new(address).expect("it is free");
            assert_eq!(guard.address(), address);
            let any: IpAddr = if address.is_ipv4() {
                [0; 4].into()
            } else {
                [0_u16; 8].into()
            };
            for ip in [address.ip(), any] {
                let foreign = TcpListener::bind(SocketAddr::new(ip, 2001));
                assert!(foreign.is_err_and(|it| it.kind() == std::io::ErrorKind::AddrInUse));
            }
            drop(guard);
            TcpListener::bind(address).expect("it is free again");
        }
        let elsewhere = Guard::new("192.0.2.1:2001".parse().expect("an address"));
        assert!(
            matches!(elsewhere, Err(GuardError::NotHere(_))),
            "{elsewhere:?}"
        );
    });
}

#[test]
fn a_port_is_taken_until_the_last_connection_there_has_ended() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let [a, b] = Host::BOTH.map(|host| network.host(host));
    for ip in [
        Layout::default().b.v4.into(),
        IpAddr::from(Layout::default().b.v6),
    ] {
        let address = SocketAddr::new(ip, 2001);
        // The unspecified IPv6 address accepts IPv4 too.
        let any = if ip.is_ipv4() { [0_u16; 8].into() } else { ip };
        let listen = || TcpListener::bind(SocketAddr::new(any, 2001));
        let listener = b.enter(listen).expect("it is free");
        let far = a.enter(|| TcpStream::connect(address)).expect("B listens");
        let (near, _) = listener.accept().expect("A connects");
        drop(listener);
        let refused = b.enter(|| Guard::new(address)).unwrap_err();
        assert!(matches!(refused, GuardError::Taken(_)), "{refused}");
        // The end that closes first keeps the connection in TIME-WAIT.
        drop(near);
        drop(far);
        b.enter(|| Guard::new(address)).expect("it has ended");
    }
}

#[test]
fn a_missing_right_is_named() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    network.host(Host::B).enter(|| {
        // Capabilities belong to a thread.
        thread::spawn(|| {
            let mut rights = capabilities(None).expect("they are told");
            rights.effective = CapabilitySet::empty();
            rights.permitted = CapabilitySet::empty();
            set_capabilities(None, rights).expect("fewer are always granted");
            let refused = Packet::open(INTERFACE).expect_err("it has no right");
            assert!(matches!(refused, DriverError::Denied { .. }), "{refused:?}");
            assert!(refused.to_string().contains("cap_net_raw"), "{refused}");
            for driver in [DriverChoice::Auto, DriverChoice::Xdp, DriverChoice::Packet] {
                let options = DriverOptions {
                    driver,
                    ..DriverOptions::default()
                };
                let refused = open(INTERFACE, options).expect_err("it has no right");
                let names = |capability| refused.to_string().contains(capability);
                assert_eq!(
                    names("cap_bpf"),
                    driver != DriverChoice::Packet,
                    "{refused}"
                );
                assert!(names("cap_net_raw"), "{refused}");
            }
            let refused = Tap::create("tap", [2, 0, 0, 0, 0, 2], Vec::new());
            let refused = refused.expect_err("it has no right");
            assert!(refused.to_string().contains("cap_net_admin"), "{refused}");
        })
        .join()
        .expect("it does not panic");
    });
}

#[test]
fn the_best_driver_that_there_is_is_opened() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    network.host(Host::B).enter(|| {
        let driver = open(INTERFACE, DriverOptions::default()).expect("it can have each");
        assert!(format!("{driver:?}").starts_with("Xdp"), "{driver:?}");
        // Only one of these drivers can open an interface, and a second interface exists.
        let driver = open(INTERFACE, DriverOptions::default()).expect("it can have each");
        assert!(format!("{driver:?}").starts_with("Packet"), "{driver:?}");
    });
    let refused = open("chronorb-none", DriverOptions::default()).expect_err("there is none");
    let text = refused.to_string();
    assert_eq!(text.matches("chronorb-none").count(), 1, "{text}");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let refused = Packet::open("chronorb-none").expect_err("there is none");
    assert!(
        matches!(refused, DriverError::NoInterface(_)),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("chronorb-none"), "{refused}");
}

#[test]
fn an_interface_that_goes_is_an_error() {
    let Some(subject) = Subject::of_tap() else {
        return;
    };
    // The far end of a TAP interface is a packet socket.
    let mut path = subject.open_far(2, 2002);
    assert!(!path.receiver.receive(&mut |_| ()).expect("it is there"));
    let frame: TestFrame = subject.frame(2001);
    drop(subject);
    let gone = path
        .receiver
        .receive(&mut |_| ())
        .and_then(|_| path.receiver.receive(&mut |_| ()));
    assert!(gone.is_err(), "{gone:?}");
    let octets = frame.octets(1);
    let write = &mut |room: &mut [u8]| room.copy_from_slice(&octets);
    path.transmitter
        .transmit(octets.len(), write)
        .expect("there is room");
    assert!(path.transmitter.flush().is_err());
}

fn header(family: fn(&IpAddr) -> bool) -> usize {
    if family(&[0; 4].into()) {
        14 + 20
    } else {
        14 + 40
    }
}

/// The source port of a frame.
fn port_of(frame: &[u8], family: fn(&IpAddr) -> bool) -> u16 {
    let at = header(family);
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// The flags in the frame's TCP header, without the acknowledgement.
fn flags_of(frame: &[u8], family: fn(&IpAddr) -> bool) -> u8 {
    frame[header(family) + 13] & !ACK
}
