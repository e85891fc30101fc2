//! A driver under test, and the other end of its interface.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::time::Duration;

use crate::class::{ClassId, Rule};
use crate::driver::packet::Packet;
use crate::driver::tap::Tap;
use crate::driver::wire::{self, End, Faults, FaultyDriver};
use crate::driver::{Driver, DriverError, Link};
use crate::path::{Path, Receiver, Transmitter};
use chronorb_net::NetworkNamespace;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::tests::support::frames::{TestFrame, number_of};

/// A driver under test, called near, and the far end.
pub(crate) struct Subject {
    pub(crate) near: Box<dyn Driver>,
    far: Box<dyn Driver>,
    transmitter: RefCell<Box<dyn Transmitter>>,
    receiver: RefCell<Box<dyn Receiver>>,
    next: Cell<u32>,
    pub(crate) network: Option<Network>,
    /// The owner of the drivers' resources, as a network namespace; dropped after the drivers.
    _around: Box<dyn Any>,
}

/// Opens a driver.
pub(crate) type Open = fn(&str) -> Result<Box<dyn Driver>, DriverError>;

impl Subject {
    /// Creates a wire in memory.
    pub(crate) fn of_wire() -> Option<Self> {
        Some(Self::of_wire_with(|end| Box::new(end)))
    }

    /// Creates a wire in memory, with a fault injector without faults around the driver.
    pub(crate) fn of_faulty_wire() -> Option<Self> {
        Some(Self::of_wire_with(|end| {
            Box::new(FaultyDriver::new(end, Faults::default(), 1))
        }))
    }

    fn of_wire_with(near: fn(End) -> Box<dyn Driver>) -> Self {
        let link = |host: u8| Link {
            name: format!("wire{host}"),
            index: host.into(),
            hardware: [2, 0, 0, 0, 0, host],
            mtu: 1500,
            addresses: vec![
                ([10, 0, 0, host].into(), 24),
                ([0xfd79, 0, 0, 0, 0, 0, 0, host.into()].into(), 64),
            ],
        };
        let (wire, end, far) = wire::join(link(2), link(1), 64);
        Self::new(near(end), Box::new(far), None, Box::new(wire))
    }

    /// Creates a TAP interface in its own network namespace.
    pub(crate) fn of_tap() -> Option<Self> {
        let home = rights(NetworkNamespace::create())?;
        let enter = || {
            let addresses = vec![
                ([10, 79, 0, 2].into(), 24),
                ([0xfd79, 0, 0, 0, 0, 0, 0, 2].into(), 64),
            ];
            let near = Tap::create("tap", [2, 0, 0, 0, 0, 2], addresses)?;
            let mut netlink = chronorb_net::Netlink::open()?;
            let index = near.link().index;
            netlink.add_address(index, [10, 79, 0, 1].into(), 24)?;
            netlink.add_address(index, [0xfd79, 0, 0, 0, 0, 0, 0, 1].into(), 64)?;
            netlink.set_up(index, true)?;
            Ok::<_, DriverError>((near, Packet::open("tap")?))
        };
        let (near, far) = home
            .enter(enter)
            .expect("it was made by this process")
            .expect("a process with namespaces may make an interface");
        Some(Self::new(
            Box::new(near),
            Box::new(far),
            None,
            Box::new(home),
        ))
    }

    /// Opens an interface of a host of a test network.
    pub(crate) fn of_network(open: Open, layout: &Layout) -> Option<Self> {
        let network = Network::build_for_test(layout)?;
        let near = network.host(Host::B).enter(|| open(INTERFACE));
        let near = near.expect("the interface is there");
        let far = network.host(Host::A).enter(|| Packet::open(INTERFACE));
        let far = Box::new(far.expect("the interface is there"));
        let subject = Self::new(near, far, Some(network), Box::new(()));
        subject.await_carrier();
        Some(subject)
    }

    /// Waits until the interfaces have a carrier, which takes a moment after they are up.
    fn await_carrier(&self) {
        let probe = self.open(1, 2000);
        let mut tries = 0;
        while !is_readable_within(&*probe.receiver, Duration::from_millis(10)) {
            assert!(tries < 2000, "nothing comes through");
            tries += 1;
            self.send(&self.frame(2000));
        }
    }

    fn new(
        near: Box<dyn Driver>,
        far: Box<dyn Driver>,
        network: Option<Network>,
        around: Box<dyn Any>,
    ) -> Self {
        // Packets that two processors send may overtake each other in the kernel.
        let mut processor = CpuSet::new();
        processor.set(rustix::thread::sched_getcpu());
        sched_setaffinity(None, &processor).expect("it is there");
        let class = class(0);
        let far_path = far.open(class, &[Rule::all(class)], 1024);
        let Path {
            receiver,
            transmitter,
        } = far_path.expect("nothing else is open");
        Self {
            near,
            far,
            transmitter: transmitter.into(),
            receiver: receiver.into(),
            next: Cell::new(1),
            network,
            _around: around,
        }
    }

    /// Returns an IPv4 frame from the far end to the near one.
    pub(crate) fn frame(&self, port: u16) -> TestFrame {
        self.frame_of(port, IpAddr::is_ipv4)
    }

    pub(crate) fn frame_of(&self, port: u16, family: fn(&IpAddr) -> bool) -> TestFrame {
        TestFrame::between(
            end(self.far.link(), family),
            end(self.near.link(), family),
            port,
        )
    }

    /// Returns a frame from the near end to the far one.
    pub(crate) fn frame_back(&self, port: u16, family: fn(&IpAddr) -> bool) -> TestFrame {
        TestFrame::between(
            end(self.near.link(), family),
            end(self.far.link(), family),
            port,
        )
    }

    /// Sends a frame from the far end, and returns its number.
    pub(crate) fn send(&self, frame: &TestFrame) -> u32 {
        let number = self.next.replace(self.next.get() + 1);
        self.send_octets(&frame.octets(number));
        number
    }

    pub(crate) fn send_many(&self, frame: &TestFrame, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.send(frame)).collect()
    }

    pub(crate) fn send_octets(&self, octets: &[u8]) {
        send(&mut **self.transmitter.borrow_mut(), octets);
    }

    /// Returns the next frame at the far end, whose class gets all TCP packets.
    pub(crate) fn far_frame(&self) -> Vec<u8> {
        next(&mut **self.receiver.borrow_mut()).octets
    }

    /// Opens a class at the near end for a port.
    pub(crate) fn open(&self, number: usize, port: u16) -> Path {
        self.open_with(number, &[ports(number, port..=port)], 64)
    }

    /// Opens a class at the far end for a port.
    pub(crate) fn open_far(&self, number: usize, port: u16) -> Path {
        let path = self
            .far
            .open(class(number), &[ports(number, port..=port)], 64);
        path.expect("the class is not open")
    }

    pub(crate) fn open_with(&self, number: usize, rules: &[Rule], queue: usize) -> Path {
        let path = self.near.open(class(number), rules, queue);
        path.expect("the class is not open")
    }

    /// Sends one further packet to each receiver at its port, and receives exactly these. All
    /// packets that were sent before have then arrived or are lost.
    pub(crate) fn expect_nothing_more(&self, receivers: &mut [(&mut dyn Receiver, u16)]) {
        for (receiver, port) in receivers {
            let last = self.send(&self.frame(*port));
            assert_eq!(numbers(*receiver, 1), [last], "at port {port}");
        }
    }
}

/// A received frame.
pub(crate) struct ReceivedFrame {
    pub(crate) octets: Vec<u8>,
    pub(crate) is_checked: bool,
}

/// Returns the next frame, which must arrive.
pub(crate) fn next(receiver: &mut dyn Receiver) -> ReceivedFrame {
    loop {
        let mut arrived = None;
        let is_there = receiver
            .receive(&mut |frame| {
                arrived = Some(ReceivedFrame {
                    octets: frame.octets.to_vec(),
                    is_checked: frame.is_checked,
                });
            })
            .expect("the interface is there");
        assert_eq!(is_there, arrived.is_some());
        match arrived {
            Some(arrived) => return arrived,
            None => assert!(is_readable_within(receiver, LONG), "nothing has come"),
        }
    }
}

/// Returns the numbers of the next frames, which must arrive.
pub(crate) fn numbers(receiver: &mut dyn Receiver, count: usize) -> Vec<u32> {
    let number = |_| number_of(&next(receiver).octets).expect("it has a number");
    (0..count).map(number).collect()
}

/// As [`numbers`] for frames of several flows, sorted, since one flow may overtake another.
pub(crate) fn numbers_of_flows(receiver: &mut dyn Receiver, count: usize) -> Vec<u32> {
    let mut numbers = numbers(receiver, count);
    numbers.sort_unstable();
    numbers
}

pub(crate) fn is_readable(receiver: &dyn Receiver) -> bool {
    is_readable_within(receiver, Duration::ZERO)
}

fn is_readable_within(receiver: &dyn Receiver, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).expect("it is short");
    let mut fds = [PollFd::new(&receiver, PollFlags::IN)];
    poll(&mut fds, Some(&limit)).expect("it is a descriptor") == 1
}

/// Sends a frame at once.
pub(crate) fn send(transmitter: &mut dyn Transmitter, octets: &[u8]) {
    transmitter
        .transmit(octets.len(), &mut |room| room.copy_from_slice(octets))
        .expect("there is room");
    transmitter.flush().expect("the interface is there");
}

pub(crate) fn class(number: usize) -> ClassId {
    ClassId::new(number).expect("there are so many")
}

/// Returns a rule for TCP packets to these ports.
pub(crate) fn ports(number: usize, ports: std::ops::RangeInclusive<u16>) -> Rule {
    Rule {
        ports: Some(ports),
        ..Rule::all(class(number))
    }
}

/// Skips a test for a missing right.
fn rights<T>(done: std::io::Result<T>) -> Option<T> {
    match done {
        Ok(done) => Some(done),
        Err(error) => {
            println!("NOT RUN: there are no network namespaces: {error}");
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {error}");
            None
        }
    }
}

fn end(link: &Link, family: fn(&IpAddr) -> bool) -> ([u8; 6], IpAddr) {
    let is_wide = |address: &IpAddr| match address {
        IpAddr::V6(address) => !address.is_unicast_link_local(),
        IpAddr::V4(_) => true,
    };
    let mut addresses = link.addresses.iter().map(|(address, _)| *address);
    let address = addresses.find(|address| family(address) && is_wide(address));
    (
        link.hardware,
        address.expect("it has addresses of both families"),
    )
}

/// Longer than any operation takes.
const LONG: Duration = Duration::from_secs(60);
