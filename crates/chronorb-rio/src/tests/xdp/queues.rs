//! Interfaces with several receive queues.

use std::net::TcpListener;
use std::time::Duration;
use std::{io, thread};

use crate::driver::xdp::XdpOptions;
use chronorb_net::set_queues;
use chronorb_rt::Deadline;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};

use super::bench::{
    Bench, MODES, OTHER, PORT, QUEUES, class, empty, is_empty, numbers, open, receive, wait,
};

#[test]
fn packets_of_all_queues_reach_their_class_each_flow_in_order() {
    for mut bench in Bench::of_queues(QUEUES) {
        assert_eq!(bench.driver.receive_queues(), QUEUES);
        let mut path = bench.open(1, PORT, 64);
        let flows = bench.flows(1, PORT);
        empty(&mut *path.receiver);
        let before = bench.matched_by_queues(class(1));
        let parts = || [0..30, 30..60, 60..90, 90..120].into_iter().zip(&flows);
        let sent = 30 * flows.len();
        for (part, flow) in parts() {
            bench.send(flow, part);
        }
        bench.await_matched(1, before.iter().sum::<u64>() + sent as u64);
        let after = bench.matched_by_queues(class(1));
        for queue in 0..flows.len() {
            assert_eq!(after[queue] - before[queue], 30, "one flow has come by it");
        }
        assert_eq!(path.receiver.waiting(), sent);
        let numbers = numbers(&receive(&mut *path.receiver, sent));
        for (part, _) in parts() {
            let of_flow = numbers.iter().copied().filter(|it| part.contains(it));
            assert!(of_flow.eq(part.clone()), "{numbers:?}");
        }
        assert!(is_empty(&mut *path.receiver));
        assert_eq!(path.receiver.waiting(), 0);
        let counts = path.receiver.counts();
        assert_eq!((counts.dropped, counts.failed), (0, 0));
        assert_eq!(bench.driver.strayed(class(1)), 0);
    }
}

#[test]
fn a_flood_by_one_queue_does_not_hold_up_another() {
    for mut bench in Bench::of_queues(QUEUES) {
        let mut path = bench.open(1, PORT, 64);
        let mut other = bench.open(2, OTHER, 64);
        let flows = bench.flows(1, PORT);
        let others = bench.flows(2, OTHER);
        empty(&mut *path.receiver);
        empty(&mut *other.receiver);
        for flooded in 0..flows.len() {
            let before = path.receiver.counts();
            let matched = bench.driver.matched(class(1));
            bench.send(&flows[flooded], 0..200);
            bench.await_matched(1, matched + 200);
            let quiet = (0..flows.len()).filter(|queue| *queue != flooded);
            for (number, queue) in (1000..).zip(quiet.clone()) {
                bench.send(&flows[queue], number..number + 1);
            }
            let quiet = quiet.count();
            bench.await_matched(1, matched + 200 + quiet as u64);
            // Each queue has its turn: one frame of the flood comes before the others at most.
            let mut first = numbers(&receive(&mut *path.receiver, 1 + quiet));
            first.sort_unstable();
            assert!(
                first
                    .into_iter()
                    .eq([0].into_iter().chain((1000..).take(quiet)))
            );
            let rest = numbers(&receive(&mut *path.receiver, 63));
            assert!(rest.into_iter().eq(1..64));
            assert!(is_empty(&mut *path.receiver));
            let counts = path.receiver.counts();
            assert_eq!(counts.frames - before.frames, 64 + quiet as u64);
            assert_eq!(counts.dropped - before.dropped, 200 - 64);
            // Other classes have rings and frames of their own at this queue too.
            bench.send(&others[flooded], 0..40);
            let came = numbers(&receive(&mut *other.receiver, 40));
            assert!(came.into_iter().eq(0..40));
        }
        assert_eq!(other.receiver.counts().dropped, 0);
    }
}

#[test]
fn who_waits_is_woken_by_each_queue() {
    for mut bench in Bench::of_queues(QUEUES) {
        let mut path = bench.open(1, PORT, 64);
        let flows = bench.flows(1, PORT);
        empty(&mut *path.receiver);
        for (number, flow) in (0..).zip(flows.iter().chain(&flows)) {
            let receiver = &mut path.receiver;
            let woken = thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    assert!(wait(&**receiver), "by queue {number}");
                    numbers(&receive(&mut **receiver, 1))
                });
                bench.send(flow, number..number + 1);
                waiting.join().expect("it is woken")
            });
            assert_eq!(woken, [number]);
        }
    }
}

#[test]
fn frames_of_all_queues_are_there_again_when_classes_close() {
    for mut bench in Bench::of_queues(QUEUES) {
        let flows = {
            let _path = bench.open(1, PORT, 64);
            bench.flows(1, PORT)
        };
        // Several times as many packets as the interface has room for, so that all sources of
        // buffers are exhausted.
        for turn in 0..3 {
            let mut path = bench.open(1, PORT, 1024);
            for flow in &flows {
                let matched = bench.driver.matched(class(1));
                bench.send(flow, 0..1000);
                bench.await_matched(1, matched + 1000);
            }
            assert_eq!(path.receiver.waiting(), 1000 * flows.len());
            receive(&mut *path.receiver, 1000 * turn);
            let counts = path.receiver.counts();
            assert_eq!((counts.dropped, counts.failed), (0, 0));
        }
    }
}

/// Sets by how many queues host B receives, which has four; the switch sends by as many.
fn set_queues_of_b(network: &Network, queues: u32) -> io::Result<()> {
    // The kernel has a socket at a queue for one that sends, too.
    let at_b = |queues| {
        let set = || set_queues(INTERFACE, queues, queues);
        network.host(Host::B).enter(set)
    };
    let at_switch = |queues| {
        let set = || set_queues(Host::B.port(), 1, queues);
        (network.switch().enter(set)).expect("a process that builds networks may enter them")
    };
    // If XDP runs in the driver, a host may not send by more queues than the other receives by.
    at_switch(1)?;
    at_b(queues)?;
    at_switch(queues)
}

#[test]
fn what_comes_by_queues_that_are_new_is_counted_and_goes_to_the_kernel() {
    for mode in MODES {
        let layout = Layout {
            queues: QUEUES,
            ..Layout::default()
        };
        let Some(network) = Network::build_for_test(&layout) else {
            return;
        };
        set_queues_of_b(&network, 2).expect("it has four");
        let options = XdpOptions { mode, packets: 64 };
        let driver = open(&network, options).expect("the interface can do it");
        assert_eq!(driver.receive_queues(), 2);
        set_queues_of_b(&network, QUEUES).expect("it has four");

        let mut bench = Bench::around(network, driver);
        let mut path = bench.open(1, PORT, 64);
        let address = (bench.network.host(Host::B).addresses().v4, PORT);
        let listen = || TcpListener::bind(address).expect("it is free");
        let _listener = bench.network.host(Host::B).enter(listen);
        let (mut known, mut strayed) = (0, 0);
        for source_port in 5000..5200 {
            let mut at_a = bench.open_at_a_with(1, source_port);
            let syn = bench
                .frame(PORT, false)
                .flags(0x02)
                .source_port(source_port);
            bench.send(&syn, known..known + 1);
            bench.await_matched(1, u64::from(known + 2 * strayed) + 1);
            if bench.driver.strayed(class(1)) > u64::from(2 * strayed) {
                // The kernel listens, and answers, which the kernel of A has not expected and
                // resets.
                let answer = &receive(&mut *at_a.receiver, 1)[0];
                assert_eq!(answer[34..36], PORT.to_be_bytes());
                strayed += 1;
                bench.await_matched(1, u64::from(known + 2 * strayed));
            } else {
                assert_eq!(numbers(&receive(&mut *path.receiver, 1)), [known]);
                known += 1;
            }
            if known > 3 && strayed > 3 {
                break;
            }
        }
        assert!(known > 3 && strayed > 3, "{known} and {strayed}");
        assert!(is_empty(&mut *path.receiver));
        assert_eq!(path.receiver.counts().failed, u64::from(2 * strayed));
        assert_eq!(bench.driver.matched_by(class(1), 3), 0);
        // A reopened class does not count the losses of the former path.
        drop(path);
        let path = bench.open(1, PORT, 64);
        assert_eq!(path.receiver.counts().failed, 0);
    }
}

#[test]
fn the_kernel_does_not_take_queues_away_that_are_open() {
    for bench in Bench::of_queues(QUEUES) {
        let fewer = || set_queues(INTERFACE, 2, 1);
        let at_switch = || set_queues(Host::B.port(), 1, 2);
        (bench.network.switch().enter(at_switch))
            .expect("a process that builds networks may enter them")
            .expect("no program takes packets there");
        let refused = bench.network.host(Host::B).enter(fewer).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
        let Bench {
            driver, network, ..
        } = bench;
        drop(driver);
        // The kernel takes its time to release the closed sockets.
        let deadline = Deadline::after(Duration::from_secs(60));
        while network.host(Host::B).enter(fewer).is_err() {
            assert!(!deadline.has_passed(), "they are lost");
            thread::yield_now();
        }
    }
}
