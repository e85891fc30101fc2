//! Long streams arrive unchanged, through each kind of class and in both directions, though frames
//! are lost, reordered, duplicated and corrupted.
//!
//! A stream has 4 MiB, or the size in `CHRONORB_RIO_MIB`; `cargo xtask rio-streams` sets it to
//! 1024.

use crate::class::{ClassId, Rule, Unknown};
use crate::driver::wire::{FaultCounts, Faults, FaultyDriver, Side};
use crate::driver::{Driver, DriverChoice, DriverError, Link};
use crate::engine::{Class, ClassConfig, ClassOutput, ClassProcessing, Stream, Subsystem};
use crate::path::Path;
use chronorb_rt::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::tests::support::rig::{networked, wired};

/// The faults in both directions.
const FAULTS: Faults = Faults {
    loss: 0.005,
    duplication: 0.005,
    reordering: 0.01,
    corruption: 0.005,
    delay: Duration::ZERO,
    rate: 0,
};
const PORT: u16 = 4710;
/// Longer than any successful operation takes. On a busy machine round trips are long, so a frame
/// that is lost twice is sent again only after many seconds.
const PATIENCE: Duration = Duration::from_secs(300);

/// Returns the length of a stream in octets.
fn size() -> u64 {
    let mebibytes = match std::env::var("CHRONORB_RIO_MIB") {
        Ok(text) => text.parse().expect("CHRONORB_RIO_MIB is a number"),
        Err(_) => 4,
    };
    mebibytes << 20
}

/// Fills `room` with the octets of a stream from a position on. They are derived from the stream's
/// number.
fn fill(stream: u64, place: u64, room: &mut [u8]) {
    for (at, octet) in (place..).zip(room) {
        let word = (at / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ stream.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (word ^ (word >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *octet = mixed.to_be_bytes()[(at % 8) as usize];
    }
}

fn send(stream: &Stream, number: u64, size: u64) {
    let mut room = [0; PIECE];
    let mut sent = 0;
    while sent < size {
        let len = (size - sent).min(PIECE as u64) as usize;
        fill(number, sent, &mut room[..len]);
        let outcome = stream.send(&room[..len], &[], Deadline::after(PATIENCE));
        outcome.unwrap_or_else(|error| panic!("after {sent} octets: {error}"));
        sent += len as u64;
    }
}

fn receive(stream: &Stream, number: u64, size: u64) {
    let (mut room, mut expected) = ([0; PIECE], [0; PIECE]);
    let mut received = 0;
    while received < size {
        let most = (size - received).min(PIECE as u64) as usize;
        let outcome = stream.receive(&mut room[..most], Deadline::after(PATIENCE));
        let len = outcome.unwrap_or_else(|error| panic!("after {received} octets: {error}"));
        fill(number, received, &mut expected[..len]);
        assert!(room[..len] == expected[..len], "at {received}");
        received += len as u64;
    }
}

const PIECE: usize = 32 << 10;

/// Accepts one connection, receives a stream and sends one back.
fn serve(class: &Arc<Class>, at: SocketAddr, size: u64, listening: impl FnOnce()) {
    let listener = class.listen(at).expect("the port is free");
    listening();
    let stream = loop {
        if let Some(stream) = listener.accept().expect("there are descriptors") {
            break stream;
        }
        let mut listener = [PollFd::new(&listener, PollFlags::IN)];
        poll(&mut listener, None).expect("no signal comes here");
    };
    receive(&stream, 1, size);
    send(&stream, 2, size);
    // Waits until the peer has received all of it.
    let end = stream.receive(&mut [0; 1], Deadline::after(PATIENCE));
    assert_eq!(end, Err(chronorb_transport::IoError::Ended));
}

/// Transfers a stream in each direction between two hosts.
fn carry(server: &Subsystem, client: &Subsystem, config: &ClassConfig, size: u64) -> Duration {
    let address = server.link().addresses[0].0;
    let at = SocketAddr::new(address, PORT);
    let class = server.open(config.clone()).expect("the class opens");
    let (told, listening) = std::sync::mpsc::channel();
    let served =
        thread::spawn(move || serve(&class, at, size, || told.send(()).expect("it waits")));
    listening.recv().expect("it listens");
    let began = Instant::now();
    let class = client.open(ClassConfig {
        name: "client".to_owned(),
        ..config.clone()
    });
    let class = class.expect("the class opens");
    let stream = class.connect(at, Deadline::after(PATIENCE));
    let stream = stream.expect("a socket listens");
    send(&stream, 1, size);
    receive(&stream, 2, size);
    drop(stream);
    served.join().expect("all has arrived");
    began.elapsed()
}

/// The kinds of classes, each with its name.
fn kinds() -> [(&'static str, ClassConfig); 4] {
    let periodic = ClassProcessing::Periodic {
        period: Duration::from_millis(1),
        budget: 256,
    };
    let of = |name: &'static str, processing, output| {
        let config = ClassConfig {
            name: name.to_owned(),
            processing,
            output,
            connections: 2,
            silence: PATIENCE,
            ..ClassConfig::default()
        };
        (name, config)
    };
    [
        of("arrival", ClassProcessing::OnArrival, ClassOutput::Sender),
        of(
            "demand",
            ClassProcessing::OnDemand { cap: None },
            ClassOutput::Sender,
        ),
        of("periodic", periodic, ClassOutput::Sender),
        of("scheduled", periodic, ClassOutput::Scheduled),
    ]
}

fn tell(what: &str, kind: &str, size: u64, took: Duration, faults: [FaultCounts; 2]) {
    for (direction, counts) in ["there", "back"].into_iter().zip(faults) {
        println!(
            "{what}, {kind}, {direction}: {} MiB intact through {} frames, of which {} were lost, \
            {} overtaken, {} doubled, {} changed",
            size >> 20,
            counts.sent,
            counts.lost,
            counts.overtaken,
            counts.duplicated,
            counts.corrupted
        );
        assert!(
            counts.lost > 0
                && counts.overtaken > 0
                && counts.duplicated > 0
                && counts.corrupted > 0
        );
    }
    println!("{what}, {kind}: both in {:.1} s", took.as_secs_f64());
}

#[test]
fn streams_arrive_intact_over_a_wire_in_memory() {
    let size = size();
    for (kind, config) in kinds() {
        let (wire, [left, right]) = wired();
        wire.disturb(Side::Left, FAULTS, 1);
        wire.disturb(Side::Right, FAULTS, 2);
        let (client, server) = (left.subsystem(), right.subsystem());
        let took = carry(&server, &client, &config, size);
        let faults = [Side::Left, Side::Right].map(|side| wire.counts(side).faults);
        tell("a wire in memory", kind, size, took, faults);
    }
}

/// A driver that is already open.
#[derive(Debug)]
struct OpenDriver(Box<dyn Driver>);

impl Driver for OpenDriver {
    fn link(&self) -> &Link {
        self.0.link()
    }

    fn open(&self, class: ClassId, rules: &[Rule], queue: usize) -> Result<Path, DriverError> {
        self.0.open(class, rules, queue)
    }

    fn add(&self, rule: &Rule) -> Result<(), DriverError> {
        self.0.add(rule)
    }

    fn remove(&self, rule: &Rule) {
        self.0.remove(rule);
    }

    fn set_unknown(&self, unknown: Unknown) -> Result<(), DriverError> {
        self.0.set_unknown(unknown)
    }
}

#[test]
fn streams_arrive_intact_by_each_driver() {
    let size = size();
    for choice in [DriverChoice::Xdp, DriverChoice::Packet] {
        for (kind, config) in kinds() {
            let mut faulty = Vec::new();
            let hosts = networked(choice, |driver| {
                let seed = faulty.len() as u64 + 1;
                let made = Arc::new(FaultyDriver::new(OpenDriver(driver), FAULTS, seed));
                faulty.push(made.clone());
                made
            });
            let Some([left, right]) = hosts else { return };
            let (client, server) = (left.subsystem(), right.subsystem());
            let took = carry(&server, &client, &config, size);
            let faults = [faulty[0].counts(), faulty[1].counts()];
            tell(&format!("the driver {choice}"), kind, size, took, faults);
        }
    }
}
