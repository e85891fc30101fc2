//! Interoperation of RIO and the kernel's TCP between two hosts, by each driver and processing
//! mode.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::driver::xdp::{self, Xdp, XdpMode};
use crate::driver::{self, DriverChoice};
use crate::engine::{ClassConfig, ClassProcessing, Listener, Stream, Subsystem};
use chronorb_rt::Deadline;
use chronorb_testnet::{Host, INTERFACE, Layout, Network, TestHost};
use chronorb_transport::{AcceptError, Interest, IoError, Reactor};
use rustix::event::{PollFd, PollFlags, poll};

const DRIVERS: [DriverChoice; 2] = [DriverChoice::Packet, DriverChoice::Xdp];

fn subsystem(host: &TestHost, driver: DriverChoice) -> Subsystem {
    host.enter(|| {
        let options = driver::DriverOptions {
            driver,
            ..driver::DriverOptions::default()
        };
        let driver = driver::open(INTERFACE, options).expect("the test has the rights");
        Subsystem::of_host(driver.into()).expect("the namespace is there")
    })
}

fn patience() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn addresses(network: &Network, host: Host) -> [IpAddr; 2] {
    let addresses = network.host(host).addresses();
    [addresses.v4.into(), addresses.v6.into()]
}

/// Waits for a connection as a reactor does.
fn accept(listener: &Listener) -> Stream {
    loop {
        poll(&mut [PollFd::new(listener, PollFlags::IN)], None).expect("it is open");
        if let Some(stream) = listener.accept().expect("a descriptor is left") {
            return stream;
        }
    }
}

/// Echoes all input until the end.
fn echo(stream: &Stream) {
    let mut room = vec![0; 1 << 16];
    loop {
        match stream.receive(&mut room, patience()) {
            Ok(n) => stream
                .send(&room[..n], &[], patience())
                .expect("the peer reads"),
            Err(IoError::Ended | IoError::Closed) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Sends octets of several lengths, and reads them back.
fn talk(mut write: impl Write + Send, mut read: impl Read) {
    let lengths = [1, 7, 1000, 1460, 5000, 100_000, 1 << 20];
    let octets = |len: usize| (0..len).map(|at| (at * 31 + len) as u8).collect::<Vec<_>>();
    thread::scope(|scope| {
        scope.spawn(move || {
            for len in lengths {
                write.write_all(&octets(len)).expect("it is taken");
            }
        });
        for len in lengths {
            let mut room = vec![0; len];
            read.read_exact(&mut room).expect("it comes back");
            assert!(room == octets(len), "of {len} octets");
        }
    });
}

/// A stream with the traits of the standard library.
struct Standard<'s>(&'s Stream);

impl Read for Standard<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let received = self.0.receive(room, patience());
        received.map_err(std::io::Error::other)
    }
}

impl Write for Standard<'_> {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        let sent = self.0.send(octets, &[], patience());
        sent.map(|()| octets.len()).map_err(std::io::Error::other)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn clients_of_the_kernel_are_served() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let ways = [
        ClassProcessing::OnArrival,
        ClassProcessing::OnDemand { cap: None },
        ClassProcessing::Periodic {
            period: Duration::from_millis(1),
            budget: 64,
        },
    ];
    for driver in DRIVERS {
        let server = subsystem(network.host(Host::B), driver);
        for processing in ways {
            let config = ClassConfig {
                processing,
                connections: 8,
                ..ClassConfig::default()
            };
            let class = server.open(config).expect("it can be had");
            for address in addresses(&network, Host::B) {
                let listener = class.listen(SocketAddr::new(address, 0));
                let listener = listener.expect("any port will do");
                thread::scope(|scope| {
                    // The acceptor must live as long as its connections.
                    scope.spawn(|| echo(&accept(&listener)));
                    let connect = || TcpStream::connect(listener.address());
                    let client = network.host(Host::A).enter(connect);
                    let client = client.expect("a socket listens");
                    talk(&client, &client);
                });
            }
            let counts = class.counts();
            assert_eq!((counts.malformed, counts.wrong_checksums), (0, 0));
            assert_eq!(counts.connections, 2);
        }
    }
}

/// Serves connections as a lane does: one thread waits for all of them and for the acceptor,
/// edge-triggered.
fn serve_as_a_lane_does(listener: &Listener, clients: usize) {
    let reactor = Reactor::new().expect("a descriptor is left");
    reactor.add(listener, 0, Interest::Read).expect("it is new");
    let (mut streams, mut ended) = (Vec::new(), HashSet::new());
    let mut room = [0; 4096];
    while ended.len() < clients {
        let event = reactor.wait(Some(Duration::from_secs(60)));
        let event = event.expect("it is whole").expect("something happens");
        if event.token == 0 {
            while let Some(stream) = listener.accept().expect("descriptors are left") {
                streams.push(stream);
                let stream = streams.last().expect("it is new");
                let token = streams.len() as u64;
                reactor
                    .add(stream, token, Interest::Read)
                    .expect("it is new");
            }
            continue;
        }
        let stream = &streams[event.token as usize - 1];
        loop {
            match stream.try_receive(&mut room) {
                Ok(n) => stream.send(&room[..n], &[], patience()).expect("it reads"),
                Err(IoError::WouldBlock) => break,
                Err(IoError::Ended) => {
                    ended.insert(event.token);
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn one_thread_serves_many_connections() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let ways = [
        ClassProcessing::OnArrival,
        ClassProcessing::OnDemand { cap: None },
    ];
    for (driver, processing) in DRIVERS
        .iter()
        .flat_map(|driver| ways.map(|way| (*driver, way)))
    {
        let server = subsystem(network.host(Host::B), driver);
        let config = ClassConfig {
            processing,
            ..ClassConfig::default()
        };
        let class = server.open(config).expect("it can be had");
        let [address, _] = addresses(&network, Host::B);
        let listener = class.listen(SocketAddr::new(address, 0));
        let listener = listener.expect("any port will do");
        call(&network, &listener);
    }
}

#[test]
fn one_thread_serves_connections_by_whichever_receive_queue_they_come() {
    let layout = Layout {
        queues: 4,
        ..Layout::default()
    };
    let Some(network) = Network::build_for_test(&layout) else {
        return;
    };
    let ways = [
        ClassProcessing::OnArrival,
        ClassProcessing::OnDemand { cap: None },
        ClassProcessing::Periodic {
            period: Duration::from_millis(1),
            budget: 64,
        },
    ];
    let host = network.host(Host::B);
    let options = xdp::XdpOptions {
        mode: XdpMode::Native,
        ..xdp::XdpOptions::default()
    };
    let driver = host.enter(|| Xdp::open(INTERFACE, options));
    let driver = Arc::new(driver.expect("the test has the rights"));
    let server = host.enter(|| Subsystem::of_host(driver.clone()));
    let server = server.expect("the namespace is there");
    for processing in ways {
        let config = ClassConfig {
            processing,
            queue: 1024,
            connections: 2 * CLIENTS,
            ..ClassConfig::default()
        };
        let class = server.open(config).expect("it can be had");
        let [address, _] = addresses(&network, Host::B);
        let listener = class.listen(SocketAddr::new(address, 0));
        let listener = listener.expect("any port will do");
        let by_queues = || [0, 1, 2, 3].map(|queue| driver.matched_by(class.id(), queue));
        let before = by_queues();
        let are_all_used = || by_queues().iter().zip(before).all(|(now, it)| *now > it);
        // Repeated while no flow of the random ports uses one of the queues.
        for _ in 0..20 {
            call(&network, &listener);
            if are_all_used() {
                break;
            }
        }
        assert!(are_all_used(), "{:?}", by_queues());
        let counts = class.counts();
        assert_eq!((counts.malformed, counts.wrong_checksums), (0, 0));
    }
}

/// Makes clients of the kernel's TCP call a server many times, and one at a time.
fn call(network: &Network, listener: &Listener) {
    thread::scope(|scope| {
        scope.spawn(|| serve_as_a_lane_does(listener, CLIENTS));
        for _ in 0..CLIENTS {
            let connect = || TcpStream::connect(listener.address());
            let mut client = network.host(Host::A).enter(connect).expect("it listens");
            scope.spawn(move || {
                for number in 0..200_u8 {
                    client.write_all(&[number; 100]).expect("the peer reads");
                    let mut room = [0; 100];
                    client.read_exact(&mut room).expect("it comes back");
                    assert_eq!(room, [number; 100]);
                }
            });
        }
    });
}

const CLIENTS: usize = 10;

#[test]
fn connections_go_on_when_their_acceptor_is_gone() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let server = subsystem(network.host(Host::B), DriverChoice::Packet);
    let config = ClassConfig {
        processing: ClassProcessing::OnArrival,
        ..ClassConfig::default()
    };
    let class = server.open(config).expect("it can be had");
    let [address, _] = addresses(&network, Host::B);
    let listener = class.listen(SocketAddr::new(address, 0));
    let listener = listener.expect("any port will do");
    let at = listener.address();
    let connect = || TcpStream::connect(at);
    thread::scope(|scope| {
        let client = scope.spawn(|| network.host(Host::A).enter(connect));
        let stream = accept(&listener);
        let client = client.join().expect("no panic").expect("it listens");
        drop(listener);
        // No thread waits for an acceptor that does the protocol work.
        scope.spawn(move || echo(&stream));
        talk(&client, &client);
        drop(client);
    });
}

#[test]
fn servers_of_the_kernel_are_connected_to() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    for driver in DRIVERS {
        let client = subsystem(network.host(Host::A), driver);
        let class = client.open(ClassConfig::default()).expect("it can be had");
        for address in addresses(&network, Host::B) {
            let listen = || TcpListener::bind((address, 0));
            let listener = network.host(Host::B).enter(listen).expect("it is free");
            let server = listener.local_addr().expect("it is bound");
            thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut stream, _) = listener.accept().expect("a peer connects");
                    let mut back = stream.try_clone().expect("a descriptor is left");
                    std::io::copy(&mut stream, &mut back).expect("it goes back");
                });
                let stream = class.connect(server, patience());
                let stream = stream.expect("a socket listens");
                talk(Standard(&stream), Standard(&stream));
            });
            drop(listener);
            let refused = class.connect(server, patience());
            refused.expect_err("no socket listens any more");
        }
    }
}

#[test]
fn who_listens_at_an_interface_that_is_removed_is_told() {
    // AF_XDP sockets are not notified; they find it with the next packet or timer.
    for processing in [
        ClassProcessing::OnArrival,
        ClassProcessing::OnDemand { cap: None },
    ] {
        let Some(network) = Network::build_for_test(&Layout::default()) else {
            return;
        };
        let server = subsystem(network.host(Host::B), DriverChoice::Packet);
        let config = ClassConfig {
            processing,
            ..ClassConfig::default()
        };
        let class = server.open(config).expect("it can be had");
        let [address, _] = addresses(&network, Host::B);
        let listener = class.listen(SocketAddr::new(address, 0));
        let listener = listener.expect("any port will do");
        let mut netlink = network.host(Host::B).netlink().expect("it is here");
        netlink
            .delete_link(server.link().index)
            .expect("it is there");
        let error = loop {
            poll(&mut [PollFd::new(&listener, PollFlags::IN)], None).expect("it is open");
            match listener.accept() {
                Ok(none) => assert!(none.is_none()),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, AcceptError::Failed(_)), "{error}");
    }
}

#[test]
fn a_port_that_is_given_up_is_refused_by_the_kernel_again() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let server = subsystem(network.host(Host::B), DriverChoice::Packet);
    let [address, _] = addresses(&network, Host::B);
    let class = server.open(ClassConfig::default()).expect("it can be had");
    let listener = class.listen(SocketAddr::new(address, 0));
    let listener = listener.expect("any port will do");
    let at = listener.address();
    drop((listener, class, server));
    let connect = || TcpStream::connect(at);
    let refused = network.host(Host::A).enter(connect);
    let error = refused.expect_err("no socket listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    let bind = || TcpListener::bind(at);
    network.host(Host::B).enter(bind).expect("the port is free");
}
