//! Hostile peers: the resources that they use are bounded and counted, other classes are not
//! affected, and the attacked class still serves other peers.

mod peculiar;
mod segments;

use std::env;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::class::{ClassId, MAX_CLASSES, Rule};
use crate::driver::DriverChoice;
use crate::driver::guard::Guard;
use crate::driver::wire::{Side, Wire};
use crate::engine::{
    Class, ClassConfig, ClassCounts, ClassProcessing, ConnectFault, Listener, Stream, Subsystem,
};
use crate::path::{Path, TransmitError};
use crate::tests::support::frames::checksum;
use crate::tests::support::rig::{Place, RigHost, networked, wired};
use chronorb_rt::{Deadline, PiMutex, PiMutexGuard, Wake, live_octets};
use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, poll};
use segments::{ACK, Answer, FIN, PSH, RST, SYN, Segment, read};

/// Runs the tests of this module in another process, because they measure the memory of the
/// process.
#[test]
fn hostile_peers() {
    let mut program = Command::new(env::current_exe().expect("it runs"));
    let module = "tests::hostile::";
    let output = program
        .args([module, "--ignored", "--test-threads=1"])
        .output()
        .expect("it starts again");
    let told = String::from_utf8_lossy(&output.stdout);
    print!("{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    assert!(
        told.contains("test result: ok. 14 passed"),
        "all of them ran"
    );
}

/// Serializes the tests, which measure the memory of the process.
static TURN: PiMutex<()> = PiMutex::new(());
/// The maximum allocation by the test itself and by the test runner meanwhile.
const NOISE: i64 = 512 << 10;
/// Longer than any successful operation takes.
const PATIENCE: Duration = Duration::from_secs(60);
const CONNECTIONS: usize = 8;
/// The number of frames after which a paced attacker waits for its target, whose queue is longer.
const PACE: usize = 128;
/// The port that the hostile peers attack.
const TARGET: u16 = 4710;
/// A port of another class.
const OTHER: u16 = 4711;
/// The ports of the hostile peers.
const HOSTILE_PORTS: std::ops::RangeInclusive<u16> = 7000..=7999;

/// A server with two classes, a well-behaved peer, and the hostile peers' own path.
struct Scene {
    target: Arc<Class>,
    _other: Arc<Class>,
    well_meaning: Arc<Class>,
    server_at: IpAddr,
    attacker: Attacker,
    servers: Vec<Server>,
    began_with: i64,
    // Dropped last, in this order.
    _subsystems: [Subsystem; 2],
    _hosts: [RigHost; 2],
    /// Prevents that the hostile peer's kernel resets its connections.
    _guard: Option<Guard>,
    _turn: PiMutexGuard<'static, ()>,
}

impl Scene {
    /// Creates the scene. `turn` is taken before the hosts are created, which allocates too.
    fn new(
        turn: PiMutexGuard<'static, ()>,
        [client, server]: [RigHost; 2],
        processing: ClassProcessing,
    ) -> Self {
        let config = |name: &str, processing| ClassConfig {
            name: name.to_owned(),
            processing,
            connections: CONNECTIONS,
            backlog: 4,
            buffer: 16 << 10,
            handshake_time: Duration::from_secs(2),
            silence: Duration::from_secs(3),
            linger: Duration::from_millis(300),
            ..ClassConfig::default()
        };
        let (near, far) = (client.subsystem(), server.subsystem());
        let on_demand = ClassProcessing::OnDemand { cap: None };
        let open = |of: &Subsystem, name, processing| {
            let class = of.open(config(name, processing));
            class.expect("there are classes left")
        };
        let target = open(&far, "target", processing);
        let other = open(&far, "other", on_demand);
        let server_at = server.address();
        let servers = [(&target, TARGET), (&other, OTHER)];
        let servers = servers.map(|(class, port)| Server::start(class, (server_at, port).into()));
        let well_meaning = ClassConfig {
            connections: 64,
            ..config("client", on_demand)
        };
        let guard = guard(&client, *HOSTILE_PORTS.start());
        let mut scene = Self {
            well_meaning: near.open(well_meaning).expect("there are classes left"),
            attacker: Attacker::new(&client, &server),
            servers: servers.into(),
            server_at,
            target,
            _other: other,
            began_with: 0,
            _subsystems: [near, far],
            _hosts: [client, server],
            _guard: guard,
            _turn: turn,
        };
        // The first call allocates memory that is kept.
        scene.assert_serves(TARGET);
        scene.assert_serves(OTHER);
        scene.began_with = live_octets() as i64;
        scene
    }

    fn connect(&self, port: u16, patience: Duration) -> Result<Stream, ConnectFault> {
        let at = SocketAddr::new(self.server_at, port);
        self.well_meaning.connect(at, Deadline::after(patience))
    }

    /// Asserts that a well-behaved peer is served.
    fn assert_serves(&self, port: u16) {
        let stream = self.connect(port, PATIENCE).expect("it is taken in");
        assert_echoes(&stream);
    }

    /// Waits until the target has processed or dropped this many further packets.
    fn wait_for_packets(&self, before: &ClassCounts, sent: u64) {
        let seen = |counts: &ClassCounts| counts.packets + counts.received.dropped;
        until("all packets are dealt with", || {
            seen(&self.target.counts()) >= seen(before) + sent
        });
    }

    /// Sends frames to the target, no faster than it takes them. Each is processed or left to the
    /// kernel; returns the number of processed packets.
    fn send_paced(&mut self, wire: &Wire, frames: &[Vec<u8>]) -> u64 {
        let counts = || wire.counts(Side::Left);
        let (before, passed_on) = (self.target.counts(), counts().to_kernel);
        for frames in frames.chunks(PACE) {
            frames.iter().for_each(|frame| self.attacker.send(frame));
            // Other packets may be processed meanwhile: those that frames have caused.
            until("all frames are taken", || counts().waiting == 0);
        }
        let sent = frames.len() as u64;
        until("all frames are dealt with", || {
            let processed = self.target.counts().packets - before.packets;
            processed + counts().to_kernel - passed_on >= sent
        });
        let after = self.target.counts();
        assert_eq!(after.received.dropped, before.received.dropped);
        after.packets - before.packets
    }

    /// Asserts that neither connections nor memory are left.
    fn assert_nothing_is_left(&self) {
        until("all connections are over", || {
            self.target.counts().slots == 0
        });
        let more = live_octets() as i64 - self.began_with;
        assert!(more < NOISE, "{more} octets more than at the beginning");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for server in self.servers.drain(..) {
            server.stop();
        }
    }
}

/// Keeps the kernel of a host, if it has one, silent about a port.
fn guard(host: &RigHost, port: u16) -> Option<Guard> {
    let Place::Network(network, at) = &host.place else {
        return None;
    };
    let address = (host.address(), port).into();
    let guard = network.host(*at).enter(|| Guard::new(address));
    Some(guard.expect("the port is free"))
}

fn assert_echoes(stream: &Stream) {
    let octets: Vec<u8> = (0..5000_u32).map(|n| n as u8).collect();
    let deadline = Deadline::after(PATIENCE);
    stream.send(&octets, &[], deadline).expect("it is open");
    let mut received = vec![0; octets.len()];
    let mut count = 0;
    while count < received.len() {
        let more = stream.receive(&mut received[count..], deadline);
        count += more.expect("all of it comes back");
    }
    assert!(received == octets);
}

/// Waits for a state; a test that gets stuck fails here.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: not in time");
        thread::sleep(Duration::from_millis(1));
    }
}

/// An echo server with a thread for each peer.
struct Server {
    stop: Arc<Wake>,
    thread: JoinHandle<()>,
    taken: Receiver<Weak<Stream>>,
}

impl Server {
    fn start(class: &Arc<Class>, at: SocketAddr) -> Self {
        let listener = class.listen(at).expect("the port is free");
        let stop = Arc::new(Wake::new().expect("there are descriptors"));
        let stopped = stop.clone();
        let (tell, taken) = channel();
        let thread = thread::spawn(move || serve(&listener, &stopped, &tell));
        Self {
            stop,
            thread,
            taken,
        }
    }

    fn stop(self) {
        self.stop.notify();
        while let Ok(stream) = self.taken.try_recv() {
            stream.upgrade().inspect(|stream| stream.shut_down());
        }
        // An error has been reported by a panic already.
        let _ = self.thread.join();
    }
}

fn serve(listener: &Listener, stop: &Wake, tell: &Sender<Weak<Stream>>) {
    let mut threads = Vec::new();
    while !stop.drain() {
        while let Some(stream) = listener.accept().expect("there are descriptors") {
            let stream = Arc::new(stream);
            let _ = tell.send(Arc::downgrade(&stream));
            threads.push(thread::spawn(move || echo(&stream)));
            threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
        }
        let mut both = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        poll(&mut both, None).expect("no signal comes here");
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn echo(stream: &Stream) {
    let mut room = [0; 4096];
    let patience = || Deadline::after(PATIENCE);
    while let Ok(len) = stream.receive(&mut room, patience()) {
        if stream.send(&room[..len], &[], patience()).is_err() {
            return;
        }
    }
}

/// A sender of raw frames.
struct Attacker {
    path: Path,
    hardware: [[u8; 6]; 2],
    own: [u8; 4],
    server: [u8; 4],
}

impl Attacker {
    fn new(from: &RigHost, to: &RigHost) -> Self {
        let octets = |host: &RigHost| match host.address() {
            IpAddr::V4(address) => address.octets(),
            IpAddr::V6(_) => unreachable!("it is by IPv4"),
        };
        let class = ClassId::new(MAX_CLASSES - 1).expect("it is the last");
        let answers = Rule {
            ports: Some(HOSTILE_PORTS),
            ..Rule::all(class)
        };
        let path = from.driver.open(class, &[answers], 512);
        Self {
            path: path.expect("the last class is free"),
            hardware: [to.driver.link().hardware, from.driver.link().hardware],
            own: octets(from),
            server: octets(to),
        }
    }

    /// Returns a SYN from one of the hostile peers' own ports.
    fn syn(&self, from: u16) -> Segment {
        let from = SocketAddrV4::new(self.own.into(), from);
        let to = SocketAddrV4::new(self.server.into(), TARGET);
        Segment::new(self.hardware, from, to)
    }

    fn send(&mut self, frame: &[u8]) {
        loop {
            let transmitter = &mut self.path.transmitter;
            let outcome =
                transmitter.transmit(frame.len(), &mut |room| room.copy_from_slice(frame));
            self.path
                .transmitter
                .flush()
                .expect("the interface is there");
            match outcome {
                Ok(()) => return,
                Err(TransmitError::Full) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Returns the next answer to a hostile peer.
    fn answer(&mut self) -> Answer {
        let mut answer = None;
        until("an answer", || {
            let mut take = |frame: crate::path::Frame<'_>| answer = read(frame.octets);
            let receiver = &mut self.path.receiver;
            receiver.receive(&mut take).expect("the interface is there");
            answer.is_some()
        });
        answer.expect("it was waited for")
    }

    /// Establishes a connection, and returns the segment with which the peer continues.
    fn connect(&mut self, from: u16, window: u16) -> Segment {
        let syn = Segment {
            window,
            ..self.syn(from)
        };
        self.connect_by(syn)
    }

    /// Establishes a connection by this SYN.
    fn connect_by(&mut self, syn: Segment) -> Segment {
        let from = syn.from.port();
        self.send(&syn.frame());
        let answer = loop {
            let answer = self.answer();
            if answer.to.port() == from {
                break answer;
            }
        };
        assert_eq!(answer.flags & (SYN | ACK), SYN | ACK);
        let next = syn.after(&answer);
        self.send(&next.frame());
        next
    }
}

/// The kinds of classes under attack.
const KINDS: [ClassProcessing; 3] = [
    ClassProcessing::OnArrival,
    ClassProcessing::OnDemand { cap: None },
    ClassProcessing::Periodic {
        period: Duration::from_millis(1),
        budget: 32,
    },
];

/// Runs a test against each kind of class.
fn against_each(test: impl Fn(&mut Scene, &Wire)) {
    for processing in KINDS {
        let turn = TURN.lock();
        let (wire, hosts) = wired();
        let mut scene = Scene::new(turn, hosts, processing);
        test(&mut scene, &wire);
        scene.assert_serves(OTHER);
        scene.assert_serves(TARGET);
        scene.assert_nothing_is_left();
    }
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn syns_from_everywhere_take_no_more_than_the_backlog() {
    against_each(|scene, _| flood_with_syns(scene));
}

/// Requests connections from addresses that no host has.
fn flood_with_syns(scene: &mut Scene) {
    let before = scene.target.counts();
    const FLOOD: u32 = 10_000;
    for number in 0..FLOOD {
        let from = SocketAddrV4::new(
            (0xc633_6400 + number % 256).into(),
            (1024 + number / 4) as u16,
        );
        let syn = Segment {
            from,
            ..scene.attacker.syn(0)
        };
        scene.attacker.send(&syn.frame());
        if number % 2500 == 0 {
            scene.assert_serves(OTHER);
            assert!(scene.target.counts().slots <= CONNECTIONS);
        }
    }
    scene.wait_for_packets(&before, FLOOD.into());
    let after = scene.target.counts();
    assert!(after.gave_way > before.gave_way, "{after:?}");
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn wishes_beyond_the_limit_take_nothing_from_connections_that_are_used() {
    against_each(|scene, wire| {
        let mut held = Vec::new();
        // As many connections as the client's own class has.
        for _ in 0..CONNECTIONS {
            held.push(scene.connect(TARGET, PATIENCE).expect("there is room"));
        }
        // The server has them too.
        held.iter().for_each(assert_echoes);
        let before = scene.target.counts();
        let frames: Vec<_> = (0..100)
            .map(|number| scene.attacker.syn(7000 + number).frame())
            .collect();
        assert!(scene.send_paced(wire, &frames) >= 100);
        let after = scene.target.counts();
        assert_eq!((after.evicted, after.slots), (before.evicted, CONNECTIONS));
        held.iter().for_each(assert_echoes);
        drop(held);
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn rubbish_at_the_right_port_is_counted_and_nothing_else() {
    against_each(|scene, wire| {
        let mut random = Rng::with_seed(1);
        let before = scene.target.counts();
        let to_kernel = wire.counts(Side::Left).to_kernel;
        let mut frames = Vec::new();
        for number in 0..5000 {
            let whole = scene.attacker.syn(7000 + number % 1000).payload(b"GIOP");
            let whole = whole.flags(random.u8(..)).frame();
            let mut frame = whole.clone();
            match number % 3 {
                // The peer has written it wrongly: only the segment's header is unchanged.
                0 => {
                    for octet in &mut frame[14 + 20 + 4..] {
                        *octet = random.u8(..);
                    }
                }
                // A bit flipped on the way.
                1 => {
                    let at = 14 + 20 + 4 + random.usize(..frame.len() - 14 - 20 - 4);
                    frame[at] ^= 1 << random.usize(..8);
                }
                // Cut within the header.
                _ => {
                    let len = 20 + 4 + random.usize(..16);
                    frame[16..18].copy_from_slice(&(len as u16).to_be_bytes());
                    let sum = ipv4_checksum(&frame[14..34]);
                    frame[24..26].copy_from_slice(&sum);
                }
            }
            frames.push(frame);
        }
        scene.send_paced(wire, &frames);
        scene.assert_serves(OTHER);
        // Frames that are not TCP packets are not counted here.
        let wrong = |counts: &ClassCounts| counts.malformed + counts.wrong_checksums;
        let sent = frames.len() as u64;
        until("most is counted", || {
            let counted = wrong(&scene.target.counts()) - wrong(&before);
            let passed_on = wire.counts(Side::Left).to_kernel - to_kernel;
            assert!(counted + passed_on <= sent);
            // The bit may be in the padding of a frame.
            counted > 0 && passed_on > 0 && counted + passed_on >= sent * 9 / 10
        });
    });
}

fn ipv4_checksum(header: &[u8]) -> [u8; 2] {
    let mut header = header.to_vec();
    header[10..12].fill(0);
    checksum(&[&header])
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn fragments_are_none_of_its_business() {
    for processing in KINDS {
        let turn = TURN.lock();
        let (wire, hosts) = wired();
        let mut scene = Scene::new(turn, hosts, processing);
        let left = Side::Left;
        let (packets, to_kernel) = (scene.target.counts().packets, wire.counts(left).to_kernel);
        for number in 0..1000 {
            for fragment in [0x2000, 0x2003, 0x0003] {
                let piece = Segment {
                    fragment,
                    ..scene.attacker.syn(7000 + number % 1000)
                };
                scene.attacker.send(&piece.frame());
            }
        }
        assert_eq!(wire.counts(left).to_kernel, to_kernel + 3000);
        // Except for packets of the call before.
        assert!(scene.target.counts().packets < packets + 10);
        scene.assert_serves(TARGET);
        scene.assert_nothing_is_left();
    }
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn whoever_guesses_the_ends_of_a_connection_does_not_end_it() {
    against_each(|scene, wire| {
        let stream = scene.connect(TARGET, PATIENCE).expect("there is room");
        assert_echoes(&stream);
        let mut random = Rng::with_seed(2);
        let ports: Vec<u16> = (49_152..49_152 + 32).collect();
        let mut frames = Vec::new();
        for _ in 0..50 {
            for port in &ports {
                for flags in [RST, FIN | ACK, RST | ACK, SYN, SYN | ACK] {
                    let guess = Segment {
                        // Far from any window.
                        sequence: random.u32(..) | 1 << 31,
                        acknowledgement: random.u32(..),
                        ..scene.attacker.syn(*port)
                    };
                    // The probability that a guess hits the window is 2^-18.
                    frames.push(guess.flags(flags).frame());
                }
            }
        }
        let processed = scene.send_paced(wire, &frames);
        assert!(processed >= frames.len() as u64, "{processed}");
        assert_echoes(&stream);
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn segments_that_overlap_or_lie_beyond_the_window_do_no_harm() {
    against_each(|scene, _| send_anything_anywhere(scene));
}

/// A connection whose peer sends random octets at random positions.
fn send_anything_anywhere(scene: &mut Scene) {
    let mut next = scene.attacker.connect(7000, 60_000);
    let before = scene.target.counts();
    let first = next.sequence;
    let mut random = Rng::with_seed(3);
    let mut sent = 0;
    for _ in 0..3000 {
        let octets: Vec<u8> = (0..random.usize(..1400)).map(|_| random.u8(..)).collect();
        let places = [
            first.wrapping_add(random.u32(..20_000)),
            first.wrapping_sub(1000),
            random.u32(..),
        ];
        next.sequence = places[random.usize(..3)];
        let segment = next.clone().flags(ACK | PSH).payload(&octets);
        scene.attacker.send(&segment.frame());
        sent += 1;
    }
    scene.wait_for_packets(&before, sent);
    scene.assert_serves(OTHER);
    scene.assert_serves(TARGET);
    next.sequence = first;
    // The peer never acknowledges the answers, so the connection times out.
    until("it is given up", || scene.target.counts().slots == 0);
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn a_peer_that_never_reads_holds_its_slot_and_nobody_else() {
    against_each(|scene, _| {
        // The peer's window is zero.
        let mut next = scene.attacker.connect(7000, 0);
        for _ in 0..20 {
            let segment = next.clone().flags(ACK | PSH).payload(&[7; 1000]);
            next.sequence = next.sequence.wrapping_add(1000);
            scene.attacker.send(&segment.frame());
        }
        scene.assert_serves(OTHER);
        scene.assert_serves(TARGET);
        until("only that of the peer without reads is in use", || {
            scene.target.counts().slots == 1
        });
        let reset = next.flags(RST);
        scene.attacker.send(&reset.frame());
    });
}

#[test]
#[ignore = "run by `hostile_peers`, in a process of its own"]
fn floods_are_survived_by_each_driver() {
    for choice in [DriverChoice::Xdp, DriverChoice::Packet] {
        for attack in [flood_with_syns, send_anything_anywhere] {
            let turn = TURN.lock();
            let Some(hosts) = networked(choice, Arc::from) else {
                return;
            };
            let mut scene = Scene::new(turn, hosts, ClassProcessing::OnDemand { cap: None });
            attack(&mut scene);
            scene.assert_serves(OTHER);
            scene.assert_serves(TARGET);
            scene.assert_nothing_is_left();
        }
    }
}
