//! Endpoints and connections by the kernel's own TCP: the effects of a plan that the kernel
//! enforces on their sockets.

use chronorb_net::{LinkSocket, TrafficCounts, Undo};
use chronorb_rio::frame::Headers;
use chronorb_rio::kernel::{EnforcedPlan, Ways};
use chronorb_rio::plan::{DriverKind, Interface, Output, Policy, Processing, Reservation};
use chronorb_rio::{DriverChoice, DriverOptions, Riop, RiopSettings};
use chronorb_rt::{Deadline, Scheduling};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use chronorb_transport::tcp::{Tcp, TcpByInterface};
use chronorb_transport::{
    Acceptor, Address, ConnectError, Connection, ListenError, Setup, SocketOptions, Transport,
    parse_endpoints,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::io;
use std::thread;
use std::time::Duration;

const VOICE: u8 = 46;
const BUFFER: usize = 32 << 10;
const OCTETS: usize = 100_000;
const PORT: u16 = 4711;

fn interface() -> Interface {
    Interface {
        name: INTERFACE.to_owned(),
        rate: Some(100_000_000),
        mtu: 1500,
        driver: DriverKind::Kernel,
    }
}

/// Returns a class with half of the interface, for marked packets.
fn voice() -> Reservation {
    Reservation {
        name: "voice".to_owned(),
        policy: Policy::Fifo,
        priority: 20,
        processing: Processing::Periodic {
            period: Duration::from_millis(10),
            budget: 40,
        },
        dscp: Some(VOICE),
        buffer: BUFFER,
        connections: 2,
        ..Reservation::default()
    }
}

/// Returns a class for packets to or from a port, without a reservation.
fn quotes() -> Reservation {
    Reservation {
        name: "quotes".to_owned(),
        policy: Policy::Fifo,
        priority: 10,
        ports: vec![PORT..=PORT],
        ..Reservation::default()
    }
}

/// A class without rules; only its sockets can assign packets to it.
fn quiet() -> Reservation {
    Reservation {
        name: "quiet".to_owned(),
        policy: Policy::Fifo,
        priority: 5,
        ..Reservation::default()
    }
}

fn plan() -> [Reservation; 3] {
    [voice(), quotes(), quiet()]
}

fn settings(plan: &[Reservation], driver: DriverChoice) -> RiopSettings {
    RiopSettings {
        interface: Some(INTERFACE.to_owned()),
        driver: DriverOptions {
            driver,
            ..DriverOptions::default()
        },
        plan: plan.to_vec(),
        reserved_on: Some(interface()),
        ..RiopSettings::default()
    }
}

/// Two hosts, one of which listens; the other connects.
struct Hosts {
    network: Network,
    plan: Vec<Reservation>,
    driver: DriverChoice,
}

impl Hosts {
    fn new(driver: DriverChoice) -> Option<Self> {
        let network = Network::build_for_test(&Layout::default())?;
        Some(Self {
            network,
            plan: plan().into(),
            driver,
        })
    }

    fn keep(&self, host: Host) -> EnforcedPlan {
        let keep = || EnforcedPlan::keep(&interface(), &plan(), Ways::Out, &mut |_: &Undo| Ok(()));
        let kept = self.network.host(host).enter(keep);
        kept.expect("the plan can be kept")
    }

    fn riop(&self, host: Host) -> Riop {
        let open = || Riop::open(settings(&self.plan, self.driver));
        let riop = self.network.host(host).enter(open);
        riop.expect("the interface is there")
    }

    fn listen(&self, riop: &Riop, endpoint: &str) -> Result<Box<dyn Acceptor>, ListenError> {
        let endpoint = parse_endpoints(endpoint).expect("it is one").remove(0);
        riop.check(&endpoint)?;
        let listen = || riop.listen(&endpoint, Setup::default());
        let acceptors = self.network.host(Host::B).enter(listen);
        Ok(acceptors?.remove(0))
    }

    fn connect(
        &self,
        riop: &Riop,
        to: &Address,
        urgency: Scheduling,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let setup = Setup {
            urgency: Some(urgency),
            ..Setup::default()
        };
        let connect = || riop.connect(to, setup, Deadline::after(Duration::from_secs(60)));
        self.network.host(Host::A).enter(connect)
    }

    /// Returns the number of octets that a class of a host has sent.
    fn sent(&self, host: Host, kept: &EnforcedPlan, class: &str) -> TrafficCounts {
        let here = self.network.host(host);
        let index = here.link().expect("it is there").index;
        let mut netlink = here.netlink().expect("it opens");
        let all = netlink.classes(index).expect("they are listed");
        let mut branches = kept.tree().branches.iter();
        let handle = branches.find(|it| it.name == class).map(|it| it.handle);
        let found = all.into_iter().find(|it| Some(it.handle) == handle);
        found.expect("it is there").sent
    }
}

fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    loop {
        poll(&mut [PollFd::new(&acceptor, PollFlags::IN)], None).expect("it can be waited for");
        if let Some(connection) = acceptor.accept().expect("it goes on") {
            return connection;
        }
    }
}

/// Sends octets each way.
fn exchange(client: &dyn Connection, server: &dyn Connection) {
    let deadline = || Deadline::after(Duration::from_secs(60));
    for (from, to) in [(client, server), (server, client)] {
        thread::scope(|scope| {
            scope.spawn(|| from.send_all(&[7; OCTETS], deadline()).expect("it is read"));
            let (mut room, mut received) = ([0; 4096], 0);
            while received < OCTETS {
                received += to.recv(&mut room, deadline()).expect("it is sent");
            }
        });
    }
}

fn end(hosts: &Hosts, kept: [(Host, EnforcedPlan); 2]) {
    for (host, kept) in kept {
        let ended = hosts.network.host(host).enter(|| kept.end());
        ended.expect("it can be undone");
    }
}

const VOICE_URGENCY: Scheduling = Scheduling::fifo(20);
const QUIET_URGENCY: Scheduling = Scheduling::fifo(5);

#[test]
fn octets_of_a_class_go_by_its_share_with_its_code_point_and_buffers() {
    let Some(hosts) = Hosts::new(DriverChoice::Kernel) else {
        return;
    };
    let kept = Host::BOTH.map(|host| (host, hosts.keep(host)));
    let (client, server) = (hosts.riop(Host::A), hosts.riop(Host::B));
    let acceptor = hosts.listen(&server, "riop://10.79.0.2:0/driver=kernel&class=voice");
    let acceptor = acceptor.expect("its plan is kept");
    let watches = Host::BOTH.map(|host| {
        let here = hosts.network.host(host);
        let index = here.link().expect("it is there").index;
        here.enter(|| LinkSocket::open(index)).expect("root may")
    });
    let to = &acceptor.published()[0];
    let (_, port) = to.as_host().expect("it is one");
    let near = hosts.connect(&client, to, VOICE_URGENCY);
    let near = near.expect("its plan is kept here too");
    let far = accept(&*acceptor);
    exchange(&*near, &*far);

    for ((host, kept), end) in kept.iter().zip([&near, &far]) {
        let voice = hosts.sent(*host, kept, "voice");
        assert!(voice.octets > OCTETS as u64, "{host:?}: {voice:?}");
        for other in ["quotes", "quiet", "others"] {
            // Includes neighbour discovery.
            let other = hosts.sent(*host, kept, other);
            assert!(other.octets < 10_000, "{host:?}: {other:?}");
        }
        let options = end.options().expect("it is there");
        let handle = kept.tree().branches[0].handle;
        let expected = SocketOptions {
            dscp: Some(VOICE),
            priority: Some(handle.0),
            // The kernel includes its own overhead.
            send_buffer: Some(2 * BUFFER as u32),
            receive_buffer: Some(2 * BUFFER as u32),
            ..SocketOptions::default()
        };
        assert_eq!(options, expected);
    }
    for watch in watches {
        assert_eq!(code_points(&watch, port), [VOICE]);
    }
    end(&hosts, kept);
}

/// Returns the code points of received packets to or from a port.
fn code_points(watch: &LinkSocket, port: u16) -> Vec<u8> {
    let (mut room, mut found) = ([0; 2000], Vec::new());
    loop {
        let len = match watch.receive(&mut room) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            len => len.expect("it is on"),
        };
        if let Ok(headers) = Headers::read(&room[..len])
            && let Some(tcp) = headers.tcp
            && [tcp.from, tcp.to].contains(&port)
        {
            found.push(headers.dscp);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn packets_that_nothing_tells_apart_are_of_the_class_that_their_socket_names() {
    for driver in [DriverChoice::Kernel, DriverChoice::Packet] {
        let Some(hosts) = Hosts::new(driver) else {
            return;
        };
        let kept = Host::BOTH.map(|host| (host, hosts.keep(host)));
        let (client, server) = (hosts.riop(Host::A), hosts.riop(Host::B));
        // By its port alone it would belong to another class.
        let endpoint = format!("riop://10.79.0.2:{PORT}/class=quiet");
        let acceptor = hosts.listen(&server, &endpoint).expect("its plan is kept");
        let near = hosts.connect(&client, &acceptor.published()[0], QUIET_URGENCY);
        let near = near.expect("its plan is kept here too");
        let far = accept(&*acceptor);
        exchange(&*near, &*far);
        for (host, kept) in &kept {
            let quiet = hosts.sent(*host, kept, "quiet");
            assert!(quiet.octets > OCTETS as u64, "{driver} {host:?}: {quiet:?}");
            let quotes = hosts.sent(*host, kept, "quotes");
            assert_eq!(quotes.octets, 0, "{driver} {host:?}");
        }
        end(&hosts, kept);
    }
}

#[test]
fn who_may_not_name_a_class_has_it_where_its_packets_tell() {
    let Some(hosts) = Hosts::new(DriverChoice::Kernel) else {
        return;
    };
    let kept = [(Host::B, hosts.keep(Host::B))];
    let server = hosts.riop(Host::B);
    thread::scope(|scope| {
        // Capabilities belong to a thread.
        let unprivileged = scope.spawn(|| {
            hosts.network.host(Host::B).enter(|| {
                let mut rights = capabilities(None).expect("they are told");
                rights.effective = CapabilitySet::SYS_ADMIN;
                set_capabilities(None, rights).expect("fewer are always granted");
                let open = |endpoint| {
                    let endpoint = parse_endpoints(endpoint).expect("it is one").remove(0);
                    server.listen(&endpoint, Setup::default())
                };
                let known = open("riop://10.79.0.2:4711/class=quotes");
                assert_eq!(known.expect("its port tells").len(), 1);
                let known = open("riop://10.79.0.2:0/class=voice");
                assert_eq!(known.expect("its code point tells").len(), 1);
                let unknown = open("riop://10.79.0.2:4711/class=quiet").expect_err("nothing tells");
                let said = unknown.to_string();
                assert!(said.contains("CAP_NET_ADMIN"), "{said}");
            });
        });
        unprivileged.join().expect("it does not panic");
    });
    for (host, kept) in kept {
        let ended = hosts.network.host(host).enter(|| kept.end());
        ended.expect("it can be undone");
    }
}

#[test]
fn without_shares_there_are_priorities_alone_and_no_promise_is_made() {
    let Some(hosts) = Hosts::new(DriverChoice::Kernel) else {
        return;
    };
    let (client, server) = (hosts.riop(Host::A), hosts.riop(Host::B));
    let acceptor = hosts.listen(&server, &format!("riop://10.79.0.2:{PORT}"));
    let acceptor = acceptor.expect("nothing is promised");
    let to = &acceptor.published()[0];
    // In the class of its urgency, and in none.
    for (urgency, priority) in [(QUIET_URGENCY, 6), (Scheduling::OTHER, 0)] {
        let near = hosts.connect(&client, to, urgency);
        let near = near.expect("nothing is promised");
        let far = accept(&*acceptor);
        let options = [&near, &far].map(|it| it.options().expect("it is there").priority);
        assert_eq!(options, [Some(priority), Some(6)]);
    }
    let refused = hosts.listen(&server, "riop://10.79.0.2:0/class=voice");
    let refused = refused.expect_err("nothing enforces it").to_string();
    assert!(refused.contains("chronorb rio setup --kernel"), "{refused}");
    let refused = hosts.connect(&client, to, VOICE_URGENCY);
    let refused = refused.expect_err("nothing enforces it").to_string();
    assert!(refused.contains("chronorb rio setup --kernel"), "{refused}");
}

#[test]
fn what_the_kernel_does_not_keep_is_refused() {
    let Some(mut hosts) = Hosts::new(DriverChoice::Kernel) else {
        return;
    };
    let kept = hosts.keep(Host::B);
    let changed = |change: fn(&mut Reservation)| {
        let mut class = quiet();
        change(&mut class);
        class
    };
    let refusals = [
        (changed(|it| it.output = Output::Scheduled), "output"),
        (changed(|it| it.cpu = Some(0)), "cpu"),
        (changed(|it| it.vlan_priority = Some(3)), "vlan_priority"),
        (changed(|it| it.buffer = 1 << 30), "net.core.wmem_max"),
        (
            changed(|it| {
                (it.policy, it.priority) = (Policy::Deadline, 0);
                it.processing = voice().processing;
            }),
            "deadline",
        ),
        // The kernel enforces a plan, in which the class has no ceiling.
        (
            changed(|it| it.processing = voice().processing),
            "another plan",
        ),
    ];
    for (class, word) in refusals {
        hosts.plan[2] = class;
        let server = hosts.riop(Host::B);
        let refused = hosts.listen(&server, "riop://10.79.0.2:0/class=quiet");
        let refused = refused.expect_err(word).to_string();
        assert!(refused.contains(word), "{word}: {refused}");
    }
    hosts.plan[2] = quiet();
    let server = hosts.riop(Host::B);
    let elsewhere = hosts.listen(&server, "riop://127.0.0.1:0/interface=rio0&class=quiet");
    let elsewhere = elsewhere.expect_err("it is another's").to_string();
    assert!(elsewhere.contains("127.0.0.1 is no address"), "{elsewhere}");
    let ended = hosts.network.host(Host::B).enter(|| kept.end());
    ended.expect("it can be undone");
}

#[test]
fn a_class_has_as_many_connections_as_the_plan_says() {
    let Some(hosts) = Hosts::new(DriverChoice::Kernel) else {
        return;
    };
    let kept = Host::BOTH.map(|host| (host, hosts.keep(host)));
    let (client, server) = (hosts.riop(Host::A), hosts.riop(Host::B));
    let acceptor = hosts.listen(&server, "riop://10.79.0.2:0/class=voice");
    let acceptor = acceptor.expect("its plan is kept");
    let to = &acceptor.published()[0];
    let connect = |urgency| hosts.connect(&client, to, urgency);
    let near = [(); 2].map(|()| connect(VOICE_URGENCY).expect("there are two"));
    let far = [(); 2].map(|()| accept(&*acceptor));
    let refused = connect(VOICE_URGENCY).expect_err("it is the third");
    assert!(refused.to_string().contains("2 connections"), "{refused}");

    // A further connection is closed at once.
    let other = connect(QUIET_URGENCY).expect("the kernel has taken it");
    poll(&mut [PollFd::new(&acceptor, PollFlags::IN)], None).expect("it can be waited for");
    assert!(acceptor.accept().expect("it goes on").is_none());
    let deadline = Deadline::after(Duration::from_secs(60));
    assert!(other.recv(&mut [0], deadline).is_err(), "it has ended");

    drop((near, far));
    let _near = connect(VOICE_URGENCY).expect("there is room again");
    accept(&*acceptor);
    end(&hosts, kept);
}

#[test]
fn an_endpoint_is_of_its_interface_alone() {
    let Some(hosts) = Hosts::new(DriverChoice::Kernel) else {
        return;
    };
    let server = hosts.riop(Host::B);
    let text = format!("riop://10.79.0.2:{PORT}");
    let acceptor = hosts.listen(&server, &text).expect("nothing is promised");
    // The address and port are free on the loopback, but not on all interfaces.
    let endpoint = parse_endpoints(&text).expect("it is one").remove(0);
    let listen = |tcp: &dyn Transport| {
        let listen = || tcp.listen(&endpoint, Setup::default());
        hosts.network.host(Host::B).enter(listen)
    };
    let _other = listen(&TcpByInterface { index: 1 }).expect("it is another one");
    let refused = listen(&Tcp).expect_err("it has these").to_string();
    assert!(refused.contains("in use"), "{refused}");
    let client = hosts.riop(Host::A);
    let _near = hosts.connect(&client, &acceptor.published()[0], QUIET_URGENCY);
    accept(&*acceptor);
}
