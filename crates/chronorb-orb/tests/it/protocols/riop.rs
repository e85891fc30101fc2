//! IIOP by the real-time I/O subsystem, between two hosts: lanes and priorities keep separate
//! paths, and octets that are not GIOP do no more harm than with other transports.

use chronorb_giop::{Component, IiopProfile, TAG_INTERNET_IOP};
use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{MappingKind, NativePriority};
use chronorb_orb::{
    Object, Orb, OrbConfig, RioDriver, SystemExceptionKind, ThreadCount, parse_endpoints,
};
use chronorb_rt::Scheduling;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use crate::support::laned::{LANES, PROPAGATED, Pool, corba, laned_by};
use crate::support::{add, orb_with, priority, served_by};

const DRIVERS: [RioDriver; 2] = [RioDriver::Xdp, RioDriver::Packet];

/// Returns the two hosts; `None` if they are not available.
pub(super) fn network() -> Option<Network> {
    match Network::build(&Layout::default()) {
        Ok(network) => Some(network),
        Err(why) => {
            println!("NOT RUN: {why}");
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {why}");
            None
        }
    }
}

/// Returns an ORB that listens on the second host only by RIO.
fn server(network: &Network, driver: RioDriver, configure: impl FnOnce(&mut OrbConfig)) -> Orb {
    let address = network.host(Host::B).addresses().v4;
    orb_with(|config| {
        let endpoint = format!("riop://{address}:0/driver={driver}");
        config.listen_endpoints = parse_endpoints(&endpoint).expect("an endpoint");
        configure(config);
    })
}

/// Returns an ORB of the first host that calls only by RIO.
fn client(driver: RioDriver) -> Orb {
    orb_with(|config| {
        config.listen_endpoints.clear();
        config.protocols = vec!["riop".to_owned()];
        config.rio.interface = Some(INTERFACE.to_owned());
        config.rio.driver = driver;
        config.priority_mapping = MappingKind::Direct;
    })
}

fn profile(object: &Object) -> IiopProfile {
    let profile = &object.ior().profiles[0];
    assert_eq!(profile.tag, TAG_INTERNET_IOP);
    IiopProfile::decode(&profile.data).expect("our own")
}

/// Returns the scheduling of the classes' threads whose names begin like this.
fn scheduled(names: &str) -> Vec<Scheduling> {
    let threads = chronorb_rt::list().into_iter();
    let threads = threads.filter(|thread| thread.name.starts_with(names));
    threads.map(|thread| thread.scheduling).collect()
}

#[test]
fn each_lane_and_each_priority_of_callers_has_a_class_as_urgent_as_itself() {
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let serve = || {
            let server = server(&network, driver, |config| {
                config.priority_mapping = MappingKind::Direct;
            });
            let model = Policy::PriorityModel(PROPAGATED, corba(LANES[0]));
            laned_by(server, Pool::Lanes, &[model])
        };
        let laned = network.host(Host::B).enter(serve);
        let (server, object) = (&laned.server, &laned.object);
        let range = server.rt().native_priority_range();
        let expected = |value: i16| match &range {
            Some(range) if range.contains(&(value as NativePriority)) => {
                Scheduling::fifo(value as NativePriority)
            }
            _ => Scheduling::OTHER,
        };
        let classes = scheduled("rio-port");
        for lane in LANES {
            assert!(classes.contains(&expected(lane)), "{lane}: {classes:?}");
        }
        let lanes = profile(object).components.into_iter();
        let lanes = lanes.filter_map(|component| match component.typed() {
            Ok(Component::TaoEndpoints(lanes)) => Some(lanes.len()),
            _ => None,
        });
        assert_eq!(
            lanes.sum::<usize>(),
            LANES.len(),
            "each has a port of its own"
        );

        let text = server.object_to_string(object);
        network.host(Host::A).enter(|| {
            let client = client(driver);
            let object = client.string_to_object(&text).expect("it reads");
            for value in [LANES[0], LANES[2]] {
                let current = client.rt_current();
                current
                    .set_priority(corba(value))
                    .expect("it is granted, or told");
                let (served_at, _) = priority(&object).expect("it is served");
                assert_eq!(served_at, value);
                let classes = scheduled("rio-to");
                assert!(classes.contains(&expected(value)), "{value}: {classes:?}");
            }
            client.shutdown(true).expect("it ends");
        });
    }
}

#[test]
fn an_address_of_one_link_is_called_by_who_knows_the_interface() {
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let address: std::net::Ipv6Addr = "fe80::79:2".parse().expect("an address");
        let own = ["fe80::79:1".parse().expect("an address"), address];
        for (host, address) in Host::BOTH.into_iter().zip(own) {
            let host = network.host(host);
            let index = host.link().expect("it is there").index;
            let mut netlink = host.netlink().expect("it opens");
            let added = netlink.add_address(index, address.into(), 64);
            added.expect("it has no such address");
        }
        let endpoint = format!("riop://[{address}%{INTERFACE}]:0/driver={driver}");
        let serve = || {
            served_by(server(&network, driver, |config| {
                config.listen_endpoints = parse_endpoints(&endpoint).expect("an endpoint");
            }))
        };
        let served = network.host(Host::B).enter(serve);
        let IiopProfile { host, port, .. } = profile(&served.object);
        assert_eq!(host, address.to_string(), "no zone of the server's");
        let text = served.server.object_to_string(&served.object);
        network.host(Host::A).enter(|| {
            let client = client(driver);
            let object = client.string_to_object(&text).expect("it reads");
            assert_eq!(add(&object, 1, 2), Ok(3));
            let url = format!("corbaloc::[{address}%{INTERFACE}]:{port}/missing");
            let nobody = client.string_to_object(&url).expect("it reads");
            let error = add(&nobody, 1, 2).expect_err("it serves no such object");
            assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
            client.shutdown(true).expect("it ends");
        });
    }
}

#[test]
fn calls_of_many_clients_are_served_by_threads_that_process_packets_on_arrival() {
    for (driver, threads) in [
        (RioDriver::Xdp, 1),
        (RioDriver::Xdp, 3),
        (RioDriver::Packet, 1),
    ] {
        let Some(network) = network() else { return };
        let address = network.host(Host::B).addresses().v4;
        let endpoint = format!("riop://{address}:0/driver={driver}&processing=arrival");
        let serve = || {
            served_by(server(&network, driver, |config| {
                config.listen_endpoints = parse_endpoints(&endpoint).expect("an endpoint");
                config.threads = ThreadCount::new(threads, threads).expect("it is a number");
            }))
        };
        let served = network.host(Host::B).enter(serve);
        let text = served.server.object_to_string(&served.object);
        network.host(Host::A).enter(|| {
            // With the kernel's TCP; each thread has a connection of its own.
            let client = orb_with(|config| config.listen_endpoints.clear());
            let object = client.string_to_object(&text).expect("it reads");
            thread::scope(|scope| {
                for caller in 0..8 {
                    let object = &object;
                    scope.spawn(move || {
                        for call in 0..100 {
                            assert_eq!(add(object, caller, call), Ok(caller + call));
                        }
                    });
                }
            });
            client.shutdown(true).expect("it ends");
        });
    }
}

#[test]
fn octets_that_are_no_giop_end_their_connection_and_nothing_else() {
    for driver in DRIVERS {
        let Some(network) = network() else { return };
        let served = network
            .host(Host::B)
            .enter(|| served_by(server(&network, driver, |_| {})));
        let profile = profile(&served.object);
        let text = served.server.object_to_string(&served.object);
        network.host(Host::A).enter(|| {
            let client = client(driver);
            let object = client.string_to_object(&text).expect("it reads");
            assert_eq!(add(&object, 1, 2), Ok(3));
            let rubbish: [&[u8]; 4] = [
                b"GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n",
                b"GIOP\x01\x02\x00\x00\xff\xff\xff\xff",
                b"GIOP\x09\x09\x00\x00\x00\x00\x00\x10",
                &[0xff; 3000],
            ];
            for octets in rubbish.into_iter().cycle().take(100) {
                let at = (profile.host.as_str(), profile.port);
                let mut stream = TcpStream::connect(at).expect("it listens");
                let patience = Some(crate::support::PATIENCE);
                stream.set_read_timeout(patience).expect("not zero");
                stream.write_all(octets).expect("there is room");
                // A word of GIOP, and the end.
                let mut answer = Vec::new();
                let ended = stream.read_to_end(&mut answer);
                assert!(ended.is_ok() || answer.is_empty(), "{ended:?}");
            }
            assert_eq!(add(&object, 3, 4), Ok(7));
            client.shutdown(true).expect("it ends");
        });
    }
}
