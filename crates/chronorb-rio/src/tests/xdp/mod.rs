//! AF_XDP on the test network: classification, counters, and cleanup.

mod bench;
mod queues;

use crate::class::{MAX_RULES, Rule, Unknown};
use crate::driver::bpf::Attachment;
use crate::driver::xdp::{Xdp, XdpMode, XdpOptions};
use crate::driver::{Driver, DriverError};
use crate::path::{Path, ReceiveCounts, TransmitError};
use bench::{Bench, MODES, OTHER, PORT, QUEUES, class, is_empty, numbers, open, receive, send, to};
use chronorb_net::Offloads;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use crate::tests::support::frames::{TestFrame, number_of};
use crate::tests::support::name_of;

#[test]
fn frames_arrive_at_their_class_in_each_mode() {
    for mut bench in Bench::all() {
        let [mut first, mut second] =
            [(1, PORT), (2, OTHER)].map(|(n, port)| bench.open(n, port, 64));
        let mut sent = Vec::new();
        for (turn, is_v6) in [(0, false), (1, true)] {
            for port in [PORT, OTHER] {
                let frame = bench.frame(port, is_v6);
                bench.send(&frame, turn * 20..turn * 20 + 20);
                sent.push(frame.octets(turn * 20));
            }
        }
        for (path, sent) in [
            (&mut first, [&sent[0], &sent[2]]),
            (&mut second, [&sent[1], &sent[3]]),
        ] {
            let mut frames = receive(&mut *path.receiver, 40);
            // Flows of one family may overtake those of the other.
            frames.sort_by_key(|frame| number_of(frame));
            assert_eq!(numbers(&frames), (0..40).collect::<Vec<_>>());
            assert_eq!([&frames[0], &frames[20]], sent);
            assert!(is_empty(&mut *path.receiver));
            let counts = path.receiver.counts();
            assert_eq!((counts.frames, counts.dropped, counts.failed), (40, 0, 0));
            assert_eq!(counts.octets, 40 * 100);
        }
        assert_eq!(bench.driver.matched(class(1)), 40);
    }
}

#[test]
fn the_mode_is_the_one_that_was_asked_for() {
    let of = |mode| Bench::new(1500, XdpOptions { mode, packets: 256 });
    let Some(native) = of(XdpMode::Native) else {
        return;
    };
    assert_eq!(native.driver.attachment(), Attachment::Native);
    let Some(auto) = of(XdpMode::Auto) else {
        return;
    };
    assert_eq!(auto.driver.attachment(), Attachment::Native);
    let Some(generic) = of(XdpMode::Generic) else {
        return;
    };
    assert_eq!(generic.driver.attachment(), Attachment::Generic);
}

#[test]
fn all_other_traffic_reaches_the_kernel_undisturbed() {
    for bench in Bench::all() {
        let mut path = bench.open(1, PORT, 64);
        let (a, b) = (bench.network.host(Host::A), bench.network.host(Host::B));
        for address in [IpAddr::from(b.addresses().v4), b.addresses().v6.into()] {
            // Resolves the neighbour, as a connection would do before.
            let listener = b.enter(|| TcpListener::bind(SocketAddr::new(address, 0)));
            let listener = listener.expect("the address is B's");
            let to = listener.local_addr().expect("it is bound");
            let echo = thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("A connects");
                let mut octets = vec![0; 100_000];
                stream.read_exact(&mut octets).expect("A sends");
                stream.write_all(&octets).expect("A receives");
            });
            let mut stream = a.enter(|| TcpStream::connect(to)).expect("B listens");
            stream.write_all(&vec![7; 100_000]).expect("B receives");
            let mut echoed = vec![0; 100_000];
            stream.read_exact(&mut echoed).expect("B answers");
            assert_eq!(echoed, vec![7; 100_000]);
            echo.join().expect("it does not panic");

            // Datagrams to the port whose TCP packets belong to the class.
            let there = b.enter(|| UdpSocket::bind(SocketAddr::new(address, PORT)));
            let there = there.expect("no datagrams are taken");
            let any: IpAddr = if address.is_ipv4() {
                [0; 4].into()
            } else {
                [0; 16].into()
            };
            let here = a
                .enter(|| UdpSocket::bind((any, 0)))
                .expect("there are ports");
            here.send_to(b"ping", (address, PORT))
                .expect("it can be reached");
            let mut room = [0; 16];
            let (len, from) = there.recv_from(&mut room).expect("it comes");
            assert_eq!(&room[..len], b"ping");
            there.send_to(b"pong", from).expect("it can be reached");
            let (len, _) = here.recv_from(&mut room).expect("it comes");
            assert_eq!(&room[..len], b"pong");
        }
        assert!(is_empty(&mut *path.receiver));
        assert_eq!(bench.driver.matched(class(1)), 0);
    }
}

#[test]
fn a_flood_of_one_class_is_counted_and_leaves_the_others_alone() {
    for mut bench in Bench::all() {
        let mut quiet = bench.open(1, PORT, 64);
        let mut flooded = bench.open(2, OTHER, 64);
        let (flood, frame) = (bench.frame(OTHER, false), bench.frame(PORT, false));
        for turn in 0..20 {
            bench.send(&flood, 0..200);
            bench.send(&frame, turn..turn + 1);
            // Packets are awaited one by one, because the interface itself has no room for more.
            bench.await_matched(1, u64::from(turn) + 1);
        }
        let frames = receive(&mut *quiet.receiver, 20);
        assert_eq!(numbers(&frames), (0..20).collect::<Vec<_>>());
        assert_eq!(quiet.receiver.counts().dropped, 0);
        let frames = receive(&mut *flooded.receiver, 64);
        assert_eq!(numbers(&frames), (0..64).collect::<Vec<_>>());
        assert!(is_empty(&mut *flooded.receiver));
        assert_eq!(flooded.receiver.counts().dropped, 4000 - 64);
        assert_eq!(bench.driver.matched(class(2)), 4000);
    }
}

#[test]
fn classes_open_and_close_while_packets_come() {
    for mut bench in Bench::all() {
        let mut steady = bench.open(0, PORT, 256);
        let (frame, other) = (bench.frame(PORT, false), bench.frame(OTHER, false));
        let mut received = 0;
        // The kernel takes its time to close each socket.
        for turn in 0..50 / bench.driver.receive_queues() {
            let mut path = bench.open(1, OTHER, 64);
            bench.send(&other, turn..turn + 40);
            bench.send(&frame, 20 * turn..20 * turn + 20);
            let frames = receive(&mut *path.receiver, 10);
            assert_eq!(numbers(&frames), (turn..turn + 10).collect::<Vec<_>>());
            if turn % 2 == 0 {
                send(&mut *path.transmitter, &other.octets(0));
            }
            // Closed with frames in its rings.
            drop(path);
            let frames = receive(&mut *steady.receiver, 20);
            let numbers = numbers(&frames);
            assert_eq!(numbers, (received..received + 20).collect::<Vec<_>>());
            received += 20;
        }
        assert_eq!(steady.receiver.counts().dropped, 0);
        // No frame is lost from the pool.
        let queues = [256, 256, 128, 128].into_iter().enumerate();
        let _paths: Vec<_> = queues
            .map(|(n, queue)| bench.open(n + 2, 3000, queue))
            .collect();
        let refused = bench.try_open(9, &[], 64).unwrap_err();
        assert!(
            matches!(refused, DriverError::NoRoom { asked: 64, left: 0 }),
            "{refused}"
        );
    }
}

#[test]
fn what_is_transmitted_arrives_at_the_peer() {
    for bench in Bench::all() {
        let mut path = bench.open(1, PORT, 64);
        let mut there = bench.open_at_a(PORT);
        let frame = bench.answer(PORT);
        for number in 0..1000 {
            let octets = frame.clone().len(60 + number as usize).octets(number);
            send(&mut *path.transmitter, &octets);
            assert_eq!(receive(&mut *there.receiver, 1), [octets]);
        }
        let counts = path.transmitter.counts();
        assert_eq!(counts.frames, 1000);
        let refused = path.transmitter.transmit(1519, &mut |_| ()).unwrap_err();
        assert!(
            matches!(refused, TransmitError::TooLong { max: 1518, .. }),
            "{refused}"
        );
    }
}

#[test]
fn a_full_queue_is_told_and_empties_when_it_is_flushed() {
    for bench in Bench::all() {
        let mut path = bench.open(1, PORT, 64);
        let octets = bench.frame(PORT, false).octets(0);
        let mut write = |room: &mut [u8]| room.copy_from_slice(&octets);
        for _ in 0..64 {
            assert!(path.transmitter.has_room());
            path.transmitter
                .transmit(octets.len(), &mut write)
                .expect("there is room");
        }
        assert!(!path.transmitter.has_room());
        let refused = path
            .transmitter
            .transmit(octets.len(), &mut write)
            .unwrap_err();
        assert!(matches!(refused, TransmitError::Full), "{refused}");
        path.transmitter.flush().expect("the interface is there");
        while !path.transmitter.has_room() {
            thread::yield_now();
        }
        let counts = path.transmitter.counts();
        assert_eq!((counts.frames, counts.full), (64, 1));
    }
}

#[test]
fn long_frames_come_and_go_in_pieces() {
    for mode in MODES {
        for (mtu, queues) in [(3000, 1), (9000, 1), (16_000, 1), (9000, QUEUES)] {
            let layout = Layout {
                mtu,
                queues,
                ..Layout::default()
            };
            let options = XdpOptions { mode, packets: 128 };
            let Some(mut bench) = Bench::of(&layout, options) else {
                return;
            };
            let mut path = bench.open(1, PORT, 64);
            let longest = bench.mtu + 14;
            let frame = bench.frame(PORT, false);
            let lens = [60, 1514, 2000, longest - 1, longest];
            for (number, len) in (0..).zip(lens.into_iter().cycle().take(200)) {
                // Flows over all of the queues.
                let flow = frame.clone().source_port(5000 + number as u16);
                let octets = flow.len(len).octets(number);
                send(&mut *bench.sender.transmitter, &octets);
                let came = receive(&mut *path.receiver, 1);
                assert!(
                    came[0] == octets,
                    "{len} octets have come as {}",
                    came[0].len()
                );
            }
            let answer = bench.answer(PORT);
            let mut there = bench.open_at_a(PORT);
            for (number, len) in (0..).zip(lens.into_iter().cycle().take(200)) {
                let octets = answer.clone().len(len).octets(number);
                send(&mut *path.transmitter, &octets);
                let came = receive(&mut *there.receiver, 1);
                assert!(
                    came[0] == octets,
                    "{len} octets have gone as {}",
                    came[0].len()
                );
            }
        }
    }
}

#[test]
fn rules_are_added_and_taken_away_between_packets() {
    for mut bench in Bench::all() {
        let mut path = bench.open(1, PORT, 64);
        let (frame, other) = (bench.frame(PORT, false), bench.frame(OTHER, false));
        let more = to(1, OTHER);
        bench.driver.add(&more).expect("there is room for rules");
        bench.send(&other, 0..1);
        assert_eq!(numbers(&receive(&mut *path.receiver, 1)), [0]);
        bench.driver.remove(&more);
        bench.send(&other, 1..2);
        bench.send(&frame, 2..3);
        assert_eq!(numbers(&receive(&mut *path.receiver, 1)), [2]);
        bench
            .driver
            .set_unknown(Unknown::Class(class(1)))
            .expect("it is open");
        bench.send(&other, 3..4);
        assert_eq!(numbers(&receive(&mut *path.receiver, 1)), [3]);
        let refused = bench.driver.add(&to(5, PORT)).unwrap_err();
        assert!(matches!(refused, DriverError::Closed(_)), "{refused}");
        let refused = bench.try_open(1, &[], 64).unwrap_err();
        assert!(matches!(refused, DriverError::Open(_)), "{refused}");
    }
}

#[test]
fn tags_tell_classes_apart() {
    for mut bench in Bench::all() {
        let urgent = Rule {
            vlan_priority: Some(5),
            ..to(1, PORT)
        };
        let expedited = Rule {
            dscp: Some(46),
            ..to(2, PORT)
        };
        let mut first = bench.try_open(1, &[urgent], 64).expect("there is room");
        let mut second = bench.try_open(2, &[expedited], 64).expect("there is room");
        let frame = bench.frame(PORT, false);
        bench.send(&frame.clone().vlan(4, 0), 0..1);
        bench.send(&frame.clone().vlan(5, 0), 1..2);
        bench.send(&frame.clone().dscp(46), 2..3);
        bench.send(&frame, 3..4);
        let came = receive(&mut *first.receiver, 1);
        assert_eq!(came, [frame.clone().vlan(5, 0).octets(1)]);
        assert_eq!(numbers(&receive(&mut *second.receiver, 1)), [2]);
        assert!(is_empty(&mut *first.receiver) && is_empty(&mut *second.receiver));
    }
}

#[test]
fn who_closes_all_can_open_again_at_once() {
    for mode in MODES {
        let options = XdpOptions { mode, packets: 256 };
        let Some(mut bench) = Bench::new(1500, options) else {
            return;
        };
        for turn in 0..5 {
            let mut path = bench.open(1, PORT, 64);
            let frame = bench.frame(PORT, false);
            bench.send(&frame, turn..turn + 1);
            assert_eq!(numbers(&receive(&mut *path.receiver, 1)), [turn]);
            drop(path);
            let Bench {
                network,
                sender,
                driver,
                mtu,
            } = bench;
            drop(driver);
            let driver = open(&network, options).expect("it is free");
            bench = Bench {
                network,
                sender,
                driver,
                mtu,
            };
        }
    }
}

#[test]
fn a_second_program_on_the_interface_is_refused_as_such() {
    for bench in Bench::all() {
        for mode in [XdpMode::Native, XdpMode::Generic, XdpMode::Auto] {
            let refused = open(&bench.network, XdpOptions { mode, packets: 64 }).unwrap_err();
            assert!(matches!(refused, DriverError::Taken), "{refused}");
        }
    }
}

#[test]
fn an_interface_that_is_not_there_is_told() {
    let Some(bench) = Bench::all().next() else {
        return;
    };
    let nowhere = || Xdp::open("nowhere0", XdpOptions::default());
    let refused = bench.network.host(Host::B).enter(nowhere).unwrap_err();
    assert!(matches!(refused, DriverError::NoInterface(_)), "{refused}");
}

#[test]
fn an_interface_that_goes_away_is_told_by_both_halves() {
    for mut bench in Bench::all() {
        let mut path = bench.open(1, PORT, 64);
        let frame = bench.frame(PORT, false);
        bench.send(&frame, 0..1);
        assert_eq!(numbers(&receive(&mut *path.receiver, 1)), [0]);
        let index = bench.driver.link().index;
        let mut netlink = bench
            .network
            .host(Host::B)
            .netlink()
            .expect("it can be had");
        netlink.delete_link(index).expect("it is there");
        while path.receiver.receive(&mut |_| ()).is_ok() {}
        assert!(path.receiver.receive(&mut |_| ()).is_err());
        path.transmitter
            .transmit(60, &mut |_| ())
            .expect("there is room");
        assert!(path.transmitter.flush().is_err());
    }
}

#[test]
fn classes_share_frames_while_each_has_threads_of_its_own() {
    const FRAMES: u32 = 20_000;
    for bench in Bench::all() {
        let paths: Vec<Path> = (0..4)
            .map(|n| bench.open(n, PORT + n as u16, 128))
            .collect();
        let mut there: Vec<Path> = (0..4)
            .map(|n| bench.open_at_a_with(n, PORT + n as u16))
            .collect();
        let frames: Vec<[TestFrame; 2]> = (0..4)
            .map(|n| [bench.frame(PORT + n, false), bench.answer(PORT + n)])
            .collect();
        let sending = AtomicUsize::new(there.len());
        thread::scope(|scope| {
            for (path, frames) in there.iter_mut().zip(&frames) {
                let (transmitter, sending) = (&mut path.transmitter, &sending);
                scope.spawn(move || {
                    for number in 0..FRAMES {
                        send(&mut **transmitter, &frames[0].octets(number));
                    }
                    sending.fetch_sub(1, Ordering::Relaxed);
                });
            }
            for (number, (path, frames)) in paths.into_iter().zip(&frames).enumerate() {
                let (driver, sending) = (&bench.driver, &sending);
                scope.spawn(move || {
                    let counts = both_ways(path, frames, FRAMES, |counts| {
                        let all = counts.frames + counts.dropped + counts.failed;
                        sending.load(Ordering::Relaxed) == 0 && all == driver.matched(class(number))
                    });
                    assert!(counts.frames > 0 && counts.failed == 0, "{counts:?}");
                });
            }
        });
        // No frame is lost from the pool.
        let _path = bench.open(5, 4000, 1024);
    }
}

/// Receives and sends at once, until this many frames are sent and `is_over` holds.
fn both_ways(
    mut path: Path,
    frames: &[TestFrame; 2],
    count: u32,
    is_over: impl Fn(ReceiveCounts) -> bool,
) -> ReceiveCounts {
    let mut last = None;
    let mut sent = 0;
    loop {
        // Received frames are in order and intact, though some may be lost.
        let mut take = |frame: crate::path::Frame<'_>| {
            let number = number_of(frame.octets).expect("it is one of A's");
            assert_eq!(frame.octets, frames[0].octets(number));
            assert!(last < Some(number));
            last = Some(number);
        };
        let came = path.receiver.receive(&mut take).expect("it is there");
        if sent < count {
            let octets = frames[1].octets(sent);
            let mut write = |room: &mut [u8]| room.copy_from_slice(&octets);
            match path.transmitter.transmit(octets.len(), &mut write) {
                Ok(()) => sent += 1,
                Err(TransmitError::Full) => {}
                Err(error) => panic!("{error}"),
            }
            path.transmitter.flush().expect("it is there");
        } else if !came && is_over(path.receiver.counts()) {
            return path.receiver.counts();
        }
    }
}

#[test]
fn what_may_not_be_done_is_told_with_the_capabilities_that_it_takes() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let refused = network.host(Host::B).enter(|| {
        // Only the rights of this thread, which ends here.
        let open = || {
            let mut sets = capabilities(None).expect("they can be read");
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).expect("fewer is no question");
            Xdp::open(INTERFACE, XdpOptions::default()).unwrap_err()
        };
        thread::spawn(open).join().expect("it does not panic")
    });
    assert!(matches!(refused, DriverError::Denied { .. }), "{refused}");
    assert!(
        refused
            .to_string()
            .contains("cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw"),
        "{refused}"
    );
}

#[test]
fn the_capabilities_that_are_told_are_enough_and_none_is_too_many() {
    const NEEDED: [CapabilitySet; 4] = [
        CapabilitySet::BPF,
        CapabilitySet::PERFMON,
        CapabilitySet::NET_ADMIN,
        CapabilitySet::NET_RAW,
    ];
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let open_with = |rights: CapabilitySet| {
        // Only the rights of a thread, which ends here.
        let open = move || {
            let mut sets = capabilities(None).expect("they can be read");
            (sets.effective, sets.permitted) = (rights, rights);
            set_capabilities(None, sets).expect("fewer is no question");
            // Few enough to need no right to lock memory.
            let options = XdpOptions {
                packets: 64,
                ..XdpOptions::default()
            };
            let driver = Xdp::open(INTERFACE, options)?;
            let own: Vec<_> = driver
                .link()
                .addresses
                .iter()
                .map(|(own, _)| *own)
                .collect();
            let rules: Vec<_> = (0..MAX_RULES as u16)
                .map(|number| Rule {
                    to: Some(own[usize::from(number) % own.len()]),
                    ports: Some(1000 + number..=2000 + 3 * number),
                    dscp: Some(number as u8 % 64),
                    vlan_priority: Some(number as u8 % 8),
                    ..Rule::all(class(1))
                })
                .collect();
            driver.open(class(1), &rules, 64).map(|_| ())
        };
        let opened = network.host(Host::B).enter(|| thread::spawn(open).join());
        opened.expect("it does not panic")
    };
    open_with(NEEDED.into_iter().collect()).expect("these are enough");
    for missing in NEEDED {
        let others = NEEDED.into_iter().filter(|it| *it != missing);
        let refused = open_with(others.collect()).unwrap_err();
        assert!(matches!(refused, DriverError::Denied { .. }), "{refused}");
    }
}

#[test]
fn where_the_kernel_puts_packets_together_they_have_no_room_and_that_is_told() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let merge = || Offloads::set_generic_receive(INTERFACE, true);
    (network.host(Host::B).enter(merge)).expect("a process that builds networks may");
    let of = |mode| XdpOptions { mode, packets: 64 };
    let refused = open(&network, of(XdpMode::Generic)).unwrap_err();
    assert!(
        refused.to_string().contains("ethtool -K rio0 gro off"),
        "{refused}"
    );
    // The interface's driver receives packets unmerged.
    open(&network, of(XdpMode::Auto)).expect("the interface can do it");
}

/// The body of the process that is killed. It does nothing in the test's own process.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let driver = Xdp::open(INTERFACE, XdpOptions::default()).expect("the interface can do it");
    let _path = driver
        .open(class(1), &[to(1, PORT)], 64)
        .expect("there is room");
    println!("{READY}");
    loop {
        thread::park();
    }
}

#[test]
fn a_process_that_is_killed_leaves_nothing() {
    let Some(network) = Network::build_for_test(&Layout::default()) else {
        return;
    };
    let b = network.host(Host::B);
    for _ in 0..3 {
        let mut command = Command::new(env::current_exe().expect("it is known"));
        let command = command
            .args(["--exact", name_of(child), "--nocapture"])
            .env(CHILD, "1");
        let mut child = b.spawn(command.stdout(Stdio::piped())).expect("it starts");
        let mut said = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        while !said.contains(READY) {
            let mut room = [0; 256];
            let len = output.read(&mut room).expect("it can be read");
            assert_ne!(len, 0, "it has ended: {said}");
            said.push_str(&String::from_utf8_lossy(&room[..len]));
        }
        let refused = open(&network, XdpOptions::default()).unwrap_err();
        assert!(matches!(refused, DriverError::Taken), "{refused}");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let driver = open(&network, XdpOptions::default()).expect("it is free");
        drop(driver);
    }
}

const CHILD: &str = "CHRONORB_TEST_CHILD";
const READY: &str = "the class is open";
