//! Both ends of a wire in one thread, with a time that only tests advance.

mod bells;
mod budgets;
mod egress;
mod endings;
mod floods;
mod idle;
mod memory;
mod status;
mod transfers;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use chronorb_rt::Monotonic;
use chronorb_transport::IoError;

use super::arrivals::Arrivals;
use super::class::{Busy, ClassEngine};
use super::config::ClassConfig;
use super::connection::{Attendant, Connection, InputTokens, Patience};
use super::device::Envelope;
use super::handshakes::{self, Handshakes};
use super::table::Flow;
use crate::class::{ClassId, Rule};
use crate::driver::wire::{self, End, Side, Wire};
use crate::driver::{Driver, Link};
use crate::frame::Ethernet;

/// Two hosts, each with a class for all packets.
struct World {
    wire: Wire,
    now: Monotonic,
    hosts: [Host; 2],
}

struct Host {
    end: End,
    engine: ClassEngine,
}

/// A connection of one of the hosts.
#[derive(Clone, Copy, Debug)]
struct At {
    host: usize,
    slot: usize,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;
const PORT: u16 = 2809;

impl World {
    fn new(config: &ClassConfig) -> Self {
        Self::of_mtu(config, 1500)
    }

    fn of_mtu(config: &ClassConfig, mtu: usize) -> Self {
        Self::of(config, mtu, None)
    }

    /// Creates a world in which the client's class has only packets to these ports.
    fn with_client_ports(config: &ClassConfig, ports: RangeInclusive<u16>) -> Self {
        Self::of(config, 1500, Some(ports))
    }

    fn of(config: &ClassConfig, mtu: usize, mut ports: Option<RangeInclusive<u16>>) -> Self {
        let (wire, left, right) = wire::join(link(CLIENT, mtu), link(SERVER, mtu), 4096);
        let hosts = [left, right].map(|end| {
            let class = ClassId::new(0).expect("it is the first");
            let rule = Rule {
                ports: ports.take(),
                ..Rule::all(class)
            };
            let path = end.open(class, &[rule], config.queue);
            let path = path.expect("it is the first");
            let engine = ClassEngine::new(config, end.link(), path);
            let engine = engine.expect("there are descriptors");
            Host { end, engine }
        });
        Self {
            wire,
            now: Monotonic::from_nanos(1_000_000_000),
            hosts,
        }
    }

    fn engine(&self, host: usize) -> &ClassEngine {
        &self.hosts[host].engine
    }

    fn listen(&self) -> usize {
        let arrivals = Arc::new(Arrivals::new().expect("there are descriptors"));
        let listener = self.engine(SERVER).listen(address(SERVER, PORT), arrivals);
        listener.expect("it is the first")
    }

    fn connect(&self, port: u16) -> Result<At, Busy> {
        self.connect_to(port, PORT)
    }

    fn connect_to(&self, from: u16, to: u16) -> Result<At, Busy> {
        let flow = Flow {
            local: address(CLIENT, from),
            remote: address(SERVER, to),
        };
        let ethernet = Ethernet {
            to: self.hosts[SERVER].end.link().hardware,
            from: self.hosts[CLIENT].end.link().hardware,
            vlan: None,
            kind: Ethernet::IPV4,
        };
        let slot = self.engine(CLIENT).connect(flow, ethernet, self.now)?;
        Ok(At { host: CLIENT, slot })
    }

    fn accept(&self, listener: usize) -> Option<At> {
        let taken = self
            .engine(SERVER)
            .accept(listener, self.now, |_| Ok::<_, Infallible>(()));
        let Ok(taken) = taken;
        let (slot, ()) = taken?;
        Some(At { host: SERVER, slot })
    }

    /// Returns both ends of a new connection.
    fn pair(&mut self, listener: usize, port: u16) -> (At, At) {
        let near = self.connect(port).expect("it is free");
        let far = self.until("it is connected", |world| world.accept(listener));
        assert_eq!(self.is_connected(near), Some(Ok(())));
        (near, far)
    }

    fn is_connected(&self, at: At) -> Option<Result<(), IoError>> {
        let slot = self.engine(at.host).slot(at.slot);
        slot.connection.lock().is_connected()
    }

    fn send(&self, at: At, octets: &[u8]) -> Result<usize, IoError> {
        self.engine(at.host)
            .with(at.slot, self.now, |it| it.send(octets, &[]))
    }

    fn receive(&self, at: At, room: &mut [u8]) -> Result<usize, IoError> {
        self.engine(at.host)
            .with(at.slot, self.now, |it| it.receive(room, || ()))
    }

    fn let_go(&self, at: At) {
        self.engine(at.host).let_go(at.slot, self.now);
    }

    fn shut_down(&self, at: At) {
        let engine = self.engine(at.host);
        let _ = engine.with(at.slot, self.now, |it| it.shut_down());
    }

    /// Lets both hosts do their pending work, and advances the time to the next event.
    fn turn(&mut self) {
        let packets = [CLIENT, SERVER].map(|host| {
            let outcome = self
                .engine(host)
                .step(self.now, usize::MAX, Attendant::Nobody);
            outcome.expect("a wire does not fail").packets
        });
        if packets == [0, 0] {
            let due = self.hosts.each_ref().map(|host| host.engine.due());
            let next = due.into_iter().chain([self.wire.next()]).flatten().min();
            let next = next.unwrap_or(self.now + Duration::from_secs(1));
            self.advance(next.max(self.now + Duration::from_micros(1)));
        }
    }

    fn advance(&mut self, now: Monotonic) {
        self.now = now;
        self.wire.advance(now);
    }

    /// Advances the time.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.turn();
        }
    }

    /// Takes turns until `look` returns something, for an hour at most.
    fn until<R>(&mut self, what: &str, mut look: impl FnMut(&Self) -> Option<R>) -> R {
        let end = self.now + Duration::from_secs(3600);
        while self.now < end {
            if let Some(found) = look(self) {
                return found;
            }
            self.turn();
        }
        panic!("it is not so within an hour that {what}");
    }
}

fn link(host: usize, mtu: usize) -> Link {
    Link {
        name: format!("wire{host}"),
        index: host as u32 + 1,
        hardware: [2, 0, 0, 0, 0, host as u8],
        mtu,
        addresses: match host {
            // The client can have several addresses.
            CLIENT => [1, 10, 11, 12, 13, 77, 99]
                .map(|last| ([10, 0, 0, last].into(), 24))
                .into(),
            _ => vec![(address(host, 0).ip(), 24)],
        },
    }
}

fn address(host: usize, port: u16) -> SocketAddr {
    ([10, 0, 0, host as u8 + 1], port).into()
}

/// Returns one of many flows.
pub(super) fn flow_of(number: u32) -> Flow {
    let remote = SocketAddr::new((0x0b00_0000 + number / 1000).to_be_bytes().into(), 1024);
    Flow {
        local: address(SERVER, PORT),
        remote: SocketAddr::new(remote.ip(), 1024 + (number % 1000) as u16),
    }
}

/// Returns the packet with which a peer requests a connection.
fn syn_of(flow: &Flow) -> Vec<u8> {
    handshakes::tests::syn_of(flow)
}

/// Creates a table of handshakes.
pub(super) fn handshakes(most: usize, patience: Duration) -> Handshakes {
    let patient = Patience {
        acknowledgement: patience,
        life: None,
        end: patience,
    };
    let ethernet = Ethernet {
        to: [0; 6],
        from: [0; 6],
        vlan: None,
        kind: Ethernet::IPV4,
    };
    let responder = Connection::new(Envelope { ethernet, dscp: 0 }, 1500, 2048, patient);
    Handshakes::new(most, patience, responder, 1500)
}

/// Returns the configuration of a small class.
fn small() -> ClassConfig {
    ClassConfig {
        connections: 8,
        backlog: 4,
        ..ClassConfig::default()
    }
}

const BOTH: [Side; 2] = [Side::Left, Side::Right];
