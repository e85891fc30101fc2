//! Link-local addresses with their interfaces, at both sides.

use std::net::{IpAddr, Ipv6Addr};
use std::thread;
use std::time::Duration;

use chronorb_rio::{DriverChoice, DriverOptions, Riop, RiopSettings};
use chronorb_rt::Deadline;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use chronorb_transport::{Acceptor, Address, Connection, Setup, Transport, parse_endpoints};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The address of A; that of B is the next.
const OF_A: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x79, 1);
const OF_B: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x79, 2);
const DRIVERS: [DriverChoice; 3] = [
    DriverChoice::Packet,
    DriverChoice::Xdp,
    DriverChoice::Kernel,
];

/// Returns two hosts that can reach each other by link-local addresses.
fn network() -> Option<Network> {
    let network = Network::build_for_test(&Layout::default())?;
    for (host, address) in [(Host::A, OF_A), (Host::B, OF_B)] {
        let host = network.host(host);
        let index = host.link().expect("it is there").index;
        let mut netlink = host.netlink().expect("it opens");
        let added = netlink.add_address(index, address.into(), 64);
        added.expect("it has no such address");
    }
    Some(network)
}

fn settings(driver: DriverChoice, interface: Option<&str>) -> RiopSettings {
    RiopSettings {
        interface: interface.map(str::to_owned),
        driver: DriverOptions {
            driver,
            ..DriverOptions::default()
        },
        ..RiopSettings::default()
    }
}

fn listen(riop: &Riop, endpoint: &str) -> Result<Box<dyn Acceptor>, String> {
    let endpoints = parse_endpoints(endpoint).expect("it is one");
    let acceptors = riop.listen(&endpoints[0], Setup::default());
    let acceptors = acceptors.map_err(|error| error.to_string());
    acceptors.map(|mut acceptors| acceptors.remove(0))
}

fn connect(riop: &Riop, host: &str, port: u16) -> Result<Box<dyn Connection>, String> {
    let (address, soon) = (Address::host(host, port), Deadline::after(PATIENCE));
    let connection = riop.connect(&address, Setup::default(), soon);
    connection.map_err(|error| error.to_string())
}

fn accept(acceptor: &dyn Acceptor) -> Box<dyn Connection> {
    let patience = Timespec::try_from(PATIENCE).expect("it is short");
    loop {
        let come = poll(
            &mut [PollFd::new(&acceptor, PollFlags::IN)],
            Some(&patience),
        );
        assert_eq!(come, Ok(1), "no connection has come");
        if let Some(connection) = acceptor.accept().expect("a descriptor is left") {
            return connection;
        }
    }
}

#[test]
fn both_sides_know_the_link_by_a_zone_or_by_their_interface() {
    let Some(network) = network() else { return };
    let [a, b] = Host::BOTH.map(|host| network.host(host));
    let number = a.link().expect("it is there").index;
    for driver in DRIVERS {
        let server = Riop::new(settings(driver, None));
        let endpoint = format!("riop://[{OF_B}%{INTERFACE}]:0");
        let acceptor = b.enter(|| listen(&server, &endpoint)).expect("it opens");
        // References are read on other hosts, whose interfaces have other names.
        let (host, port) = acceptor.published()[0].as_host().expect("it is a host");
        assert_eq!(host.parse(), Ok(IpAddr::V6(OF_B)));

        for (interface, host) in [
            (Some(INTERFACE), OF_B.to_string()),
            (Some(INTERFACE), format!("{OF_B}%{INTERFACE}")),
            (None, format!("{OF_B}%{INTERFACE}")),
            (None, format!("{OF_B}%{number}")),
        ] {
            let client = Riop::new(settings(driver, interface));
            thread::scope(|scope| {
                let far = scope.spawn(|| accept(&*acceptor));
                let near = a.enter(|| connect(&client, &host, port));
                let near = near.unwrap_or_else(|error| panic!("{driver:?}, {host}: {error}"));
                let soon = || Deadline::after(PATIENCE);
                near.send_all(b"ping", soon()).expect("it is taken");
                let far = far.join().expect("it does not panic");
                let mut octets = [0; 4];
                let received = far.recv(&mut octets, soon()).expect("it comes");
                assert_eq!(&octets[..received], b"ping");
            });
        }
    }
}

#[test]
fn a_server_finds_the_interface_by_the_address_if_no_other_has_it() {
    let Some(network) = network() else { return };
    let b = network.host(Host::B);
    let server = Riop::new(settings(DriverChoice::Packet, None));
    let endpoint = format!("riop://[{OF_B}]:0");
    drop(b.enter(|| listen(&server, &endpoint)).expect("it opens"));

    let mut netlink = b.netlink().expect("it opens");
    netlink
        .create_link("other0", "bridge")
        .expect("there are bridges");
    let index = netlink.link("other0").expect("it is there").index;
    netlink.set_up(index, true).expect("it can be up");
    let added = netlink.add_address(index, OF_B.into(), 64);
    added.expect("it is another link");
    let refused = b
        .enter(|| listen(&server, &endpoint))
        .map(drop)
        .unwrap_err();
    for word in [INTERFACE, "other0", "say which"] {
        assert!(refused.contains(word), "{refused}");
    }
    let by_option = format!("{endpoint}/interface={INTERFACE}");
    let by_zone = format!("riop://[{OF_B}%{INTERFACE}]:0");
    for endpoint in [by_option, by_zone] {
        drop(
            b.enter(|| listen(&server, &endpoint))
                .expect("it says which"),
        );
    }
    let other = format!("riop://[{OF_B}%other0]:0/interface={INTERFACE}");
    let refused = b.enter(|| listen(&server, &other)).map(drop).unwrap_err();
    assert!(refused.contains("other0 is another interface"), "{refused}");
}

#[test]
fn who_connects_without_knowing_the_link_is_told_what_is_missing() {
    let Some(network) = network() else { return };
    let a = network.host(Host::A);
    for driver in DRIVERS {
        let client = Riop::new(settings(driver, None));
        let host = OF_B.to_string();
        let refused = a.enter(|| connect(&client, &host, 2809)).map(drop);
        let refused = refused.unwrap_err();
        assert!(refused.contains("-ORBRioInterface"), "{refused}");
        let client = Riop::new(settings(driver, Some(INTERFACE)));
        let refused = a.enter(|| connect(&client, &format!("{OF_B}%lo"), 2809));
        let refused = refused.map(drop).unwrap_err();
        assert!(refused.contains("another interface"), "{refused}");
        let refused = a.enter(|| connect(&client, &format!("fd79::2%{INTERFACE}"), 2809));
        let refused = refused.map(drop).unwrap_err();
        assert!(refused.contains("only link-local addresses"), "{refused}");
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
