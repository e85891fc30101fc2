//! The test network, and the kernel's network as rtnetlink shows it.

use chronorb_net::{
    LinkInfo, LinkSocket, Neighbour, Netlink, NetlinkError, ResolveError, VethEnd, Watch,
    receive_queues, resolve,
};
use chronorb_rt::{Deadline, Monotonic};
use chronorb_testnet::{Host, INTERFACE, Layout, Network, remove_abandoned};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The name of a test, by which this program runs it alone (`--exact`) when it starts itself.
fn name_of<T>(_test: T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").expect("it is in a crate").1
}

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
        let Some(network) = Network::build_for_test(&layout) else {
            return;
        };
        assert_eq!(send(&network, layout.b.v4.into(), 100_000), 100_000);
        assert_eq!(send(&network, layout.b.v6.into(), 100_000), 100_000);
    }
}

#[test]
fn a_host_without_a_cable_is_not_reached_and_is_reached_with_one_again() {
    let layout = Layout::default();
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let address = SocketAddr::new(layout.b.v4.into(), 4711);
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300));
    let attempt = || network.host(Host::A).enter(connect).map_err(|e| e.kind());
    let refused = Some(io::ErrorKind::ConnectionRefused);
    assert_eq!(attempt().err(), refused, "nothing listens there");
    network.plug(Host::B, false).expect("it is permitted");
    assert_ne!(attempt().err(), refused);
    let link = network.host(Host::B).link().expect("it is there");
    assert!(link.is_running, "the host is not told");
    network.plug(Host::B, true).expect("it is permitted");
    let deadline = Deadline::after(Duration::from_secs(60));
    while attempt().err() != refused {
        assert!(!deadline.has_passed());
    }
}

#[test]
fn a_host_tells_its_interface() {
    let layout = Layout {
        mtu: 9000,
        ..Layout::default()
    };
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let link = network.host(Host::A).link().expect("it has one");
    assert_eq!(link.name, INTERFACE);
    assert_eq!(link.mtu, 9000);
    let mut netlink = network.host(Host::A).netlink().expect("it opens");
    let addresses = netlink.addresses(link.index).expect("they are listed");
    for address in [IpAddr::from(layout.a.v4), layout.a.v6.into()] {
        assert!(
            addresses.iter().any(|(its, _)| *its == address),
            "{addresses:?}"
        );
    }
    let other = network.host(Host::B).link().expect("it has one");
    assert_ne!(link.hardware, other.hardware);
}

#[test]
fn interfaces_receive_by_as_many_queues_as_they_shall() {
    for queues in [1, 4] {
        let layout = Layout {
            queues,
            ..Layout::default()
        };
        let Some(network) = Network::build_for_test(&layout) else {
            return;
        };
        for host in Host::BOTH {
            let asked = network.host(host).enter(|| receive_queues(INTERFACE));
            assert_eq!(asked.expect("it tells"), queues);
        }
        assert_eq!(send(&network, layout.b.v4.into(), 100_000), 100_000);
    }
}

#[test]
fn a_program_is_started_on_a_host() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
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

#[test]
fn a_neighbour_is_found_by_both_protocols() {
    let layout = Layout::default();
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let a = network.host(Host::A);
    let index = a.link().expect("it has one").index;
    let hardware = network.host(Host::B).link().expect("it has one").hardware;
    let hardware = hardware.expect("it is Ethernet");
    for address in [IpAddr::from(layout.b.v4), layout.b.v6.into()] {
        let mut netlink = a.netlink().expect("it opens");
        let before = netlink.neighbour(index, address).expect("it answers");
        assert_eq!(before, Neighbour::Unknown);
        let found = a.enter(|| resolve(index, address, patience()));
        assert_eq!(found.expect("B answers"), hardware);
        let after = netlink.neighbour(index, address).expect("it answers");
        assert_eq!(after, Neighbour::Known(hardware));
    }
}

#[test]
fn a_neighbour_that_is_not_there_is_given_up() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let a = network.host(Host::A);
    let index = a.link().expect("it has one").index;
    let nobody = "10.79.0.99".parse().expect("an address");
    let silent = a.enter(|| resolve(index, nobody, patience())).unwrap_err();
    assert!(
        matches!(silent, ResolveError::Silent(address) if address == nobody),
        "{silent}"
    );
    let nobody = "10.79.0.98".parse().expect("an address");
    let soon = Deadline::after(Duration::from_millis(1));
    let late = a.enter(|| resolve(index, nobody, soon)).unwrap_err();
    assert!(matches!(late, ResolveError::Late(_)), "{late}");
}

#[test]
fn the_way_to_a_host_leads_there_or_by_a_router() {
    let layout = Layout::default();
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let a = network.host(Host::A);
    let index = a.link().expect("it has one").index;
    let mut netlink = a.netlink().expect("it opens");
    let far = [
        IpAddr::from([192, 0, 2, 1]),
        "2001:db8::1".parse().expect("an address"),
    ];
    let near = [
        (IpAddr::from(layout.a.v4), IpAddr::from(layout.b.v4)),
        (layout.a.v6.into(), layout.b.v6.into()),
    ];
    let all = [IpAddr::from([0; 4]), IpAddr::from([0_u16; 8])];
    for ((far, (own, router)), all) in far.into_iter().zip(near).zip(all) {
        let direct = netlink.route_to(router, Some(index)).expect("it is there");
        assert_eq!(
            (direct.index, direct.gateway, direct.source),
            (index, None, Some(own))
        );
        let nowhere = netlink.route_to(far, None).unwrap_err();
        assert!(nowhere.to_string().contains("unreachable"), "{nowhere}");
        netlink
            .add_route((all, 0), router, index)
            .expect("the router is there");
        let by_router = netlink.route_to(far, Some(index)).expect("it is there");
        assert_eq!((by_router.index, by_router.gateway), (index, Some(router)));
    }
}

#[test]
fn a_refusal_says_what_the_kernel_says() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let mut netlink = network.host(Host::A).netlink().expect("it opens");
    let error = netlink.create_link("x", "no-such-kind").unwrap_err();
    let NetlinkError::Refused { text: Some(_), .. } = &error else {
        panic!("the kernel says nothing: {error:?}");
    };
    assert!(
        error.to_string().contains("create the no-such-kind"),
        "{error}"
    );
    let absent = netlink.link("no-such-one").unwrap_err();
    assert!(absent.is_absent(), "{absent}");
    for name in ["", "a-name-too-long-for-the-kernel", &"x".repeat(1 << 16)] {
        netlink.create_link(name, "bridge").unwrap_err();
    }
}

#[test]
fn a_rate_is_held_by_the_switch_both_ways() {
    let layout = Layout {
        rate: Some(100_000_000),
        ..Layout::default()
    };
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    assert_eq!(send(&network, layout.b.v4.into(), 1_000_000), 1_000_000);
    let ports = network.switch().enter(Netlink::open);
    let mut ports = ports.expect("it can be entered").expect("it opens");
    let mut sent = |host: Host| {
        let index = ports.link(host.port()).expect("it is there").index;
        let disciplines = ports.disciplines(index).expect("they are listed");
        let [queue] = &disciplines[..] else {
            panic!("one is enough: {disciplines:?}");
        };
        assert_eq!(queue.kind, "tbf");
        queue.sent
    };
    let there = sent(Host::B);
    assert!(there.octets > 1_000_000, "{there:?}");
    assert!(there.over_rate > 0, "nothing was held back: {there:?}");
    let back = sent(Host::A);
    assert!((1..100_000).contains(&back.octets), "{back:?}");
}

#[test]
fn a_delay_is_kept_in_both_directions() {
    let layout = Layout {
        delay: Duration::from_millis(20),
        rate: Some(1_000_000_000),
        mtu: 9000,
        ..Layout::default()
    };
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    for to in [IpAddr::from(layout.b.v4), layout.b.v6.into()] {
        let listen = || TcpListener::bind(SocketAddr::new(to, 0)).expect("the address is B's");
        let listener = network.host(Host::B).enter(listen);
        let address = listener.local_addr().expect("it is bound");
        let start = Monotonic::now();
        let connect = || TcpStream::connect(address).expect("B listens");
        drop(network.host(Host::A).enter(connect));
        // There and back; that it cannot be less is no question of how busy the machine is.
        assert!(Monotonic::now().since(start) >= 2 * layout.delay);
        assert_eq!(send(&network, to, 1_000_000), 1_000_000);
    }
}

#[test]
fn a_delay_goes_with_no_offloads() {
    let layout = Layout {
        delay: Duration::from_millis(1),
        offloads: true,
        ..Layout::default()
    };
    let refused = Network::build(&layout).unwrap_err();
    assert!(refused.to_string().contains("offloads"), "{refused}");
}

#[test]
fn a_frame_with_a_vlan_tag_passes_the_switch() {
    for delay in [Duration::ZERO, Duration::from_millis(1)] {
        let layout = Layout {
            delay,
            ..Layout::default()
        };
        let Some(network) = Network::build_for_test(&layout) else {
            return;
        };
        let [a, b] = Host::BOTH.map(|host| {
            let host = network.host(host);
            let link = host.link().expect("it has one");
            (
                host.enter(|| LinkSocket::open(link.index))
                    .expect("it opens"),
                link,
            )
        });
        let hardware = |link: &LinkInfo| link.hardware.expect("it is Ethernet");
        let mut frame = [hardware(&b.1), hardware(&a.1)].concat();
        // The tag, with priority 5 and number 7; then a kind without a receiver.
        frame.extend([0x81, 0x00, 0xa0, 0x07, 0x88, 0xb5]);
        frame.extend([7; 60]);
        a.0.send(&frame).expect("the interface is up");
        let mut room = [0; 2000];
        let received = loop {
            match b.0.receive(&mut room) {
                Ok(len) if room[len - 60..len] == [7; 60] => break &room[..len],
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(&b.0, PollFlags::IN)];
                    poll(&mut fds, None).expect("it is a socket");
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(received, frame);
    }
}

#[test]
fn without_rights_it_is_said_which_are_missing() {
    if Network::build_for_test(&Layout::default()).is_none() {
        return;
    }
    // Rights are a thread's own.
    let denied = thread::spawn(|| {
        let mut rights = capabilities(None).expect("they can be asked for");
        rights.effective = CapabilitySet::empty();
        set_capabilities(None, rights).expect("rights can always be given up");
        let mut netlink = Netlink::open().expect("that needs no right");
        let link = netlink.create_link("rio-denied", "bridge").unwrap_err();
        (Network::build(&Layout::default()).unwrap_err(), link)
    });
    let (network, link) = denied.join().expect("it does not panic");
    for right in ["CAP_SYS_ADMIN", "CAP_NET_ADMIN", "setcap"] {
        assert!(network.to_string().contains(right), "{network}");
    }
    assert!(link.to_string().contains("CAP_NET_ADMIN"), "{link}");
}

#[test]
fn without_rights_what_is_left_behind_cannot_be_told_from_what_others_have_made() {
    if Network::build_for_test(&Layout::default()).is_none() {
        return;
    }
    // Of a process that cannot be.
    let name = format!("chronorb-{}", 4_100_000_000 + std::process::id());
    let network = Network::build_named(&Layout::default(), Some(&name), &mut |_| Ok(()));
    let network = network.expect("the name is free");
    let denied = thread::spawn(|| {
        let mut rights = capabilities(None).expect("they can be asked for");
        rights.effective = CapabilitySet::empty();
        set_capabilities(None, rights).expect("rights can always be given up");
        remove_abandoned(None).unwrap_err()
    });
    let denied = denied.join().expect("it does not panic");
    assert!(denied.to_string().contains("CAP_SYS_ADMIN"), "{denied}");
    let removed = remove_abandoned(None).expect("it may");
    let ours = ["-a", "-b", "-switch"].map(|suffix| format!("{name}{suffix}"));
    assert!(ours.iter().all(|it| removed.contains(it)), "{removed:?}");
    drop(network);
}

/// The part of a process that is killed; on its own it does nothing.
#[test]
fn a_part() {
    if env::var_os(PART).is_none() {
        return;
    }
    // A cable leads out of the network, so that it can be seen when it is gone.
    let network = Network::build(&Layout::default()).expect("this is started with the rights");
    let end = |name, namespace| VethEnd {
        name,
        namespace,
        queues: 1,
    };
    let a = network.host(Host::A).namespace().as_fd();
    let mut netlink = Netlink::open().expect("it opens");
    netlink
        .create_veth(end(CABLE, None), end(CABLE, Some(a)))
        .expect("the names are free");
    println!("{BUILT}");
    io::stdin()
        .read_to_end(&mut Vec::new())
        .expect("it is held open");
}

#[test]
fn nothing_is_left_of_a_network_whose_process_is_killed() {
    let Some(outside) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let here = outside.host(Host::A);
    let mut program = Command::new(env::current_exe().expect("it runs"));
    program
        .args(["--exact", name_of(a_part), "--nocapture"])
        .env(PART, "build")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = here.spawn(&mut program).expect("it starts again");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let is_built = output.lines().any(|line| line.expect("a text") == BUILT);
    assert!(is_built, "it ended before it had built anything");
    let mut netlink = here.netlink().expect("it opens");
    netlink
        .link(CABLE)
        .expect("it is there as long as the network");

    let watch = here.enter(Watch::links).expect("it opens");
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    while netlink.link(CABLE).is_ok() {
        assert!(
            watch.wait(patience()).expect("it hears"),
            "it is still there"
        );
    }
}

const PART: &str = "CHRONORB_TEST_PART";
const BUILT: &str = "BUILT";
const CABLE: &str = "cable";

fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}
