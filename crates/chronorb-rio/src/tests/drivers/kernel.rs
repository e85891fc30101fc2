//! Requirements of drivers that share the interface with the kernel.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;

use crate::class::Rule;
use crate::driver::guard::Guard;
use crate::driver::tap::Tap;
use crate::driver::{Driver, DriverError};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};

use super::subject::{Open, Subject, class, numbers, ports};
use crate::tests::support::name_of;

/// The environment variable that tells another process of this test which driver to open.
const PART: &str = "CHRONORB_TEST_DRIVER";
/// The driver without a test network.
const TAP: &str = "tap";

pub(crate) fn connections_of_the_kernel_go_on(subject: &Subject) {
    let mut path = subject.open(1, 2001);
    let network = subject.network.as_ref().expect("it has one");
    for to in [
        Layout::default().b.v4.into(),
        std::net::IpAddr::from(Layout::default().b.v6),
    ] {
        let octets: Vec<u8> = (0..1_000_000_u32).map(|n| (n / 7) as u8).collect();
        assert!(echo(network, SocketAddr::new(to, 2002), &octets) == octets);
    }
    let sent = subject.send(&subject.frame(2001));
    assert_eq!(numbers(&mut *path.receiver, 1), [sent]);
    assert_eq!(path.receiver.counts().frames, 1);
}

pub(crate) fn datagrams_in_fragments_reach_the_kernel(subject: &Subject) {
    let mut path = subject.open_with(1, &[Rule::all(class(1))], 64);
    let network = subject.network.as_ref().expect("it has one");
    let bind = |host| {
        let socket = || UdpSocket::bind("0.0.0.0:2002").expect("it is free");
        network.host(host).enter(socket)
    };
    let (from, to) = (bind(Host::A), bind(Host::B));
    let datagram = [7; 5000];
    let sent = from.send_to(&datagram, SocketAddr::from((Layout::default().b.v4, 2002)));
    assert_eq!(sent.expect("there is a route"), 5000);
    let mut room = [0; 6000];
    assert_eq!(to.recv(&mut room).expect("it is whole"), 5000);
    let sent = subject.send(&subject.frame(2001));
    assert_eq!(numbers(&mut *path.receiver, 1), [sent]);
}

pub(crate) fn a_killed_process_leaves_nothing(subject: &Subject, name: &str) {
    let network = subject.network.as_ref().expect("it has one");
    for _ in 0..2 {
        // It is opened beside the driver of this process, which is on the interface of the other
        // host.
        run_and_kill(network, name, || ());
        // The kernel gets all packets again, including those of the class.
        let address = SocketAddr::from((Layout::default().a.v4, 2001));
        assert_eq!(echo_from(network, Host::B, address, b"again"), b"again");
    }
}

pub(crate) fn a_killed_process_leaves_no_tap_interface_and_no_guard(network: &Network) {
    let address = SocketAddr::from((Layout::default().a.v4, 2001));
    let host = network.host(Host::A);
    let is_there = || host.netlink().expect("it is told").link("tap").is_ok();
    let is_free = || host.enter(|| TcpListener::bind(address)).is_ok();
    run_and_kill(network, TAP, || assert!(is_there() && !is_free()));
    assert!(!is_there() && is_free());
}

/// Lets another process on host A open a driver, calls `look` while it runs, and kills the process.
fn run_and_kill(network: &Network, part: &str, look: impl FnOnce()) {
    let mut command = Command::new(env::current_exe().expect("it runs"));
    command
        .args([
            "--exact",
            name_of(super::the_process_that_is_killed),
            "--nocapture",
        ])
        .env(PART, part)
        .stdout(Stdio::piped());
    let child = network.host(Host::A).spawn(&mut command);
    let mut child = child.expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut lines = output.lines().map(|line| line.expect("a text"));
    assert!(lines.any(|line| line.contains("OPEN")), "it has opened");
    look();
    child.kill().expect("it has not ended");
    child.wait().expect("it was started here");
}

/// Runs in the other process until it is killed. Without the environment variable, it does nothing.
pub(crate) fn open_until_killed(drivers: &[(&str, Open)]) {
    let Ok(name) = env::var(PART) else {
        return;
    };
    let driver = drivers.iter().find(|(its, _)| *its == name);
    let opened = match driver {
        Some((_, open)) => open(INTERFACE),
        None => open_tap(),
    };
    let driver = opened.expect("the interface is there");
    let path = driver.open(class(1), &[ports(1, 2001..=2001)], 64);
    let _path = path.expect("nothing else is open");
    let guard = Guard::new((Layout::default().a.v4, 2001).into());
    let _guard = guard.expect("it is free");
    println!("\nOPEN");
    loop {
        thread::park();
    }
}

fn open_tap() -> Result<Box<dyn Driver>, DriverError> {
    let tap = Tap::create("tap", [2, 0, 0, 0, 0, 9], Vec::new())?;
    Ok(Box::new(tap))
}

/// Sends octets from host A to host B by the kernels' TCP, and returns the echo.
fn echo(network: &Network, to: SocketAddr, octets: &[u8]) -> Vec<u8> {
    echo_from(network, Host::A, to, octets)
}

fn echo_from(network: &Network, from: Host, to: SocketAddr, octets: &[u8]) -> Vec<u8> {
    let server = match from {
        Host::A => Host::B,
        Host::B => Host::A,
    };
    let listen = || TcpListener::bind(to).expect("the address is the host's");
    let listener = network.host(server).enter(listen);
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the client connects");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("the client ends");
        stream.write_all(&received).expect("the client takes it");
    });
    let connect = || TcpStream::connect(to).expect("the server listens");
    let mut stream = network.host(from).enter(connect);
    stream.write_all(octets).expect("the server takes it");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("it is connected");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server ends");
    server.join().expect("it does not panic");
    answer
}
