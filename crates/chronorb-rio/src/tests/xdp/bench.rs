//! Common parts of AF_XDP tests: two hosts, one of which sends.

use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use crate::class::{ClassId, Rule};
use crate::driver::bpf::Attachment;
use crate::driver::packet::Packet;
use crate::driver::xdp::{Xdp, XdpMode, XdpOptions};
use crate::driver::{Driver, DriverError};
use crate::path::{Path, Receiver, TransmitError, Transmitter};
use chronorb_rt::Deadline;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::tests::support::frames::{TestFrame, number_of};

pub(crate) const PORT: u16 = 2809;
pub(crate) const OTHER: u16 = 2810;
/// The number of receive queues of an interface with several.
pub(crate) const QUEUES: u32 = 4;
pub(crate) const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];

/// Two hosts: A sends by a packet socket, B receives by AF_XDP.
pub(crate) struct Bench {
    pub(crate) sender: Path,
    pub(crate) driver: Xdp,
    pub(crate) network: Network,
    pub(crate) mtu: usize,
}

impl Bench {
    pub(crate) fn new(mtu: u32, options: XdpOptions) -> Option<Self> {
        let layout = Layout {
            mtu,
            ..Layout::default()
        };
        Self::of(&layout, options)
    }

    pub(crate) fn of(layout: &Layout, options: XdpOptions) -> Option<Self> {
        let network = Network::build_for_test(layout)?;
        let driver = open(&network, options).expect("the interface can do it");
        Some(Self::around(network, driver))
    }

    /// Creates a bench with a driver that is open on host B.
    pub(crate) fn around(network: Network, driver: Xdp) -> Self {
        let open_sender = || Packet::open(INTERFACE)?.open(class(0), &[], 256);
        let sender = network.host(Host::A).enter(open_sender);
        Self {
            sender: sender.expect("a process that builds networks may have packet sockets"),
            mtu: driver.link().mtu,
            driver,
            network,
        }
    }

    /// Returns benches in both modes, with one receive queue and with several.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [1, QUEUES].into_iter().flat_map(Self::of_queues)
    }

    /// Returns benches in both modes.
    pub(crate) fn of_queues(queues: u32) -> impl Iterator<Item = Self> {
        let layout = Layout {
            queues,
            ..Layout::default()
        };
        let of = |mode| XdpOptions {
            mode,
            packets: 1024,
        };
        (MODES.into_iter()).filter_map(move |mode| Self::of(&layout, of(mode)))
    }

    pub(crate) fn open(&self, number: usize, port: u16, queue: usize) -> Path {
        let opened = self.try_open(number, &[to(number, port)], queue);
        opened.expect("there is room, and it is not open")
    }

    pub(crate) fn try_open(
        &self,
        number: usize,
        rules: &[Rule],
        queue: usize,
    ) -> Result<Path, DriverError> {
        let open = || self.driver.open(class(number), rules, queue);
        self.network.host(Host::B).enter(open)
    }

    /// Waits until this many packets were classified as the class.
    pub(crate) fn await_matched(&self, number: usize, count: u64) {
        let deadline = Deadline::after(Duration::from_secs(60));
        while self.driver.matched(class(number)) < count {
            assert!(!deadline.has_passed(), "they do not come through");
            thread::yield_now();
        }
    }

    /// Opens a path at host A that receives packets to this port by a packet socket.
    pub(crate) fn open_at_a(&self, port: u16) -> Path {
        self.open_at_a_with(0, port)
    }

    pub(crate) fn open_at_a_with(&self, number: usize, port: u16) -> Path {
        let open = || Packet::open(INTERFACE)?.open(class(number), &[to(number, port)], 1024);
        let opened = self.network.host(Host::A).enter(open);
        opened.expect("a process that builds networks may have packet sockets")
    }

    /// As [`frame`](Self::frame) with IPv4, from B to A.
    pub(crate) fn answer(&self, port: u16) -> TestFrame {
        let there = self.frame(port, false);
        let [b, a] = there.hardware;
        TestFrame::between((b, there.to), (a, there.from), port)
    }

    /// Returns a frame from A to B, with IPv4 or IPv6.
    pub(crate) fn frame(&self, port: u16, is_v6: bool) -> TestFrame {
        let end = |host| {
            let link = self.network.host(host).link().expect("it has one");
            let addresses = self.network.host(host).addresses();
            let address: IpAddr = if is_v6 {
                addresses.v6.into()
            } else {
                addresses.v4.into()
            };
            (link.hardware.expect("it is Ethernet"), address)
        };
        TestFrame::between(end(Host::A), end(Host::B), port)
    }

    /// Returns frames to this port of a class that use each of the receive queues in turn, one flow
    /// for each. They are found by trial, and the class receives the trial frames. In the kernel's
    /// stack, the last queue of a virtual interface gets no packets: they appear at the queue
    /// before the one of the sender.
    pub(crate) fn flows(&mut self, number: usize, port: u16) -> Vec<TestFrame> {
        let class = class(number);
        let reached = match self.driver.attachment() {
            Attachment::Native => QUEUES,
            Attachment::Generic => QUEUES - 1,
        };
        let mut flows = vec![None; reached as usize];
        for source_port in 5000..5200 {
            let before: Vec<_> = self.matched_by_queues(class);
            let frame = self.frame(port, false).source_port(source_port);
            self.send(&frame, 0..1);
            self.await_matched(number, before.iter().sum::<u64>() + 1);
            let after = self.matched_by_queues(class);
            let queue = (0..flows.len()).find(|queue| after[*queue] > before[*queue]);
            flows[queue.expect("it came by one")].get_or_insert(frame);
            if flows.iter().all(Option::is_some) {
                break;
            }
        }
        let found = flows.into_iter().collect::<Option<_>>();
        found.expect("200 flows leave none of the queues out")
    }

    pub(crate) fn matched_by_queues(&self, class: ClassId) -> Vec<u64> {
        let queues = 0..self.driver.receive_queues();
        queues
            .map(|queue| self.driver.matched_by(class, queue))
            .collect()
    }

    pub(crate) fn send(&mut self, frame: &TestFrame, numbers: std::ops::Range<u32>) {
        for number in numbers {
            send(&mut *self.sender.transmitter, &frame.octets(number));
        }
    }
}

pub(crate) fn open(network: &Network, options: XdpOptions) -> Result<Xdp, DriverError> {
    let open = || Xdp::open(INTERFACE, options);
    network.host(Host::B).enter(open)
}

pub(crate) fn class(number: usize) -> ClassId {
    ClassId::new(number).expect("there are so many")
}

pub(crate) fn to(number: usize, port: u16) -> Rule {
    Rule {
        ports: Some(port..=port),
        ..Rule::all(class(number))
    }
}

pub(crate) fn send(transmitter: &mut dyn Transmitter, octets: &[u8]) {
    loop {
        let queued = transmitter.transmit(octets.len(), &mut |room| room.copy_from_slice(octets));
        transmitter.flush().expect("the interface is there");
        match queued {
            Ok(()) => return,
            Err(TransmitError::Full) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits for a frame; returns `false` if none arrives for a long time.
pub(crate) fn wait(receiver: &dyn Receiver) -> bool {
    let descriptor = receiver.as_fd();
    let long = Timespec::try_from(Duration::from_secs(5)).expect("it is short");
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&long)).expect("it can be polled") == 1
}

/// Receives the next `count` frames.
pub(crate) fn receive(receiver: &mut dyn Receiver, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count {
        let mut take = |frame: crate::path::Frame<'_>| frames.push(frame.octets.to_vec());
        if !receiver.receive(&mut take).expect("the interface is there") {
            assert!(
                wait(receiver),
                "{} frames of {count} have come",
                frames.len()
            );
        }
    }
    frames
}

pub(crate) fn numbers(frames: &[Vec<u8>]) -> Vec<u32> {
    frames.iter().filter_map(|frame| number_of(frame)).collect()
}

/// Receives all waiting frames.
pub(crate) fn empty(receiver: &mut dyn Receiver) {
    while !is_empty(receiver) {}
}

pub(crate) fn is_empty(receiver: &mut dyn Receiver) -> bool {
    !receiver
        .receive(&mut |_| ())
        .expect("the interface is there")
}
