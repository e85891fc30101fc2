//! The processes of the systems that need no other program.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, PiMutex, sleep_until};
use chronorb_rtec::idl::rtec_event_comm::EventSet;
use chronorb_rtec::{ConsumerOptions, EventRingReader, Filter, RingDelivery, RingError};
use chronorb_transport::shm::fan_out::{FanOutError, FanOutOptions, Publisher, Reader, Reading};
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use super::peers::{PeerSystem, WARM_UP};
use super::site::{ChannelOrder, Client, Receiver, ServedChannel, TakenCount, made_now, push_now};
use crate::error::LabError;
use crate::process::{self, Begin, Parent, Ready};

/// A process of a system.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum PeerPart {
    /// The channel.
    Channel,
    /// The supplier, or the channel with its supplier.
    Supply {
        address: String,
        warm_up: u32,
        events: u32,
        period_ns: u64,
    },
    /// All consumers.
    Consume {
        address: String,
        consumers: u32,
        events: u32,
    },
}

impl PeerPart {
    /// Returns the arguments of a program of another system.
    pub(super) fn arguments(&self) -> Vec<String> {
        match self {
            Self::Channel => vec!["channel".to_owned()],
            Self::Supply {
                address,
                warm_up,
                events,
                period_ns,
            } => {
                let numbers = [warm_up.to_string(), events.to_string()];
                let [warm_up, events] = numbers;
                let period = period_ns.to_string();
                vec![
                    "supply".to_owned(),
                    address.clone(),
                    warm_up,
                    events,
                    period,
                ]
            }
            Self::Consume {
                address,
                consumers,
                events,
            } => {
                let [consumers, events] = [consumers.to_string(), events.to_string()];
                vec!["consume".to_owned(), address.clone(), consumers, events]
            }
        }
    }
}

/// Is the channel, the supplier or the consumers of a system.
pub(crate) fn peers_main(order: &str) -> Result<(), LabError> {
    let (system, part): (PeerSystem, PeerPart) = process::order(order)?;
    let parent = Parent::or_exit();
    match part {
        PeerPart::Channel => {
            let served = ServedChannel::serve(&ChannelOrder::default())?;
            parent.conclude(&served.reference())?;
            served.end()
        }
        PeerPart::Supply {
            address,
            warm_up,
            events,
            period_ns,
        } => {
            let pace = Pace {
                warm_up,
                events,
                period: Duration::from_nanos(period_ns),
            };
            match system {
                PeerSystem::RawTcp => supply_tcp(&parent, &pace),
                PeerSystem::RawRing => supply_ring(&parent, &pace),
                PeerSystem::ChronorbCollocated => supply_collocated(&parent, &pace),
                PeerSystem::ChronorbRing => supply_event_ring(&parent, &pace),
                _ => supply(&parent, &address, &pace),
            }
        }
        PeerPart::Consume {
            address,
            consumers,
            events,
        } => {
            let all = u64::from(consumers) * u64::from(events);
            match system {
                PeerSystem::RawTcp => consume_tcp(&parent, &address, consumers, all),
                PeerSystem::RawRing => consume_ring(&parent, &address, consumers, all),
                PeerSystem::ChronorbRing => consume_event_ring(&parent, &address, consumers, all),
                _ => consume(&parent, &address, consumers, events),
            }
        }
    }
}

/// The events of a supplier, and the time between them.
struct Pace {
    warm_up: u32,
    events: u32,
    period: Duration,
}

impl Pace {
    /// Pushes events at their times. Those of the warm-up have the stamp 0.
    fn run(&self, mut push: impl FnMut(u64) -> Result<(), LabError>) -> Result<(), LabError> {
        let begin = Monotonic::now();
        for number in 0..self.warm_up + self.events {
            sleep_until(begin + self.period * number);
            let is_timed = number >= self.warm_up;
            push(if is_timed {
                Monotonic::now().as_nanos()
            } else {
                0
            })?;
        }
        Ok(())
    }
}

fn supply(parent: &Parent, address: &str, pace: &Pace) -> Result<(), LabError> {
    let client = Client::start(address, None)?;
    let supplier = client.supplier(TYPE)?;
    process::tell(&address)?;
    let Begin {} = parent.hear()?;
    // The consumers leave out the warm-up.
    pace.run(|_| push_now(&supplier, TYPE, &[7; PAYLOAD]))?;
    Ok(parent.conclude(&Ready {})?)
}

/// The supplier and the channel in one process: a push is a call within it.
fn supply_collocated(parent: &Parent, pace: &Pace) -> Result<(), LabError> {
    let served = ServedChannel::serve(&ChannelOrder::default())?;
    let reference = served.reference();
    let supplier = served.supplier(TYPE)?;
    process::tell(&reference)?;
    let Begin {} = parent.hear()?;
    pace.run(|_| {
        supplier.push(&[made_now(TYPE, &[7; PAYLOAD])]);
        Ok(())
    })?;
    parent.conclude(&Ready {})?;
    drop(supplier);
    served.end()
}

fn consume(parent: &Parent, address: &str, consumers: u32, events: u32) -> Result<(), LabError> {
    let client = Client::start(address, None)?;
    let group = client.group()?;
    let (filter, options) = (Filter::of_type(TYPE), ConsumerOptions::default());
    let receivers = (0..consumers).map(|_| {
        let receiver = Receiver::timed(WARM_UP + events);
        let taking = receiver.clone();
        let take = move |events: EventSet<'_>| taking.take(events);
        let consumer = group.subscribe(&filter, &options, take);
        Ok((receiver, consumer.map_err(LabError::work(SUBSCRIBING))?))
    });
    let receivers = receivers.collect::<Result<Vec<_>, LabError>>()?;
    process::tell(&Ready {})?;
    let Begin {} = parent.hear()?;
    let limit = Deadline::after(LAST_ONES);
    let mut latencies = Vec::new();
    for (receiver, _) in &receivers {
        receiver.await_until((WARM_UP + events).into(), limit);
        let all = receiver.latencies();
        latencies.extend_from_slice(all.get(WARM_UP as usize..).unwrap_or_default());
    }
    for (_, consumer) in receivers {
        consumer.disconnect().map_err(super::site::calling)?;
    }
    Ok(parent.conclude(&latencies)?)
}

/// The latencies of consumers without an ORB.
#[derive(Default)]
struct Latencies {
    all: PiMutex<Vec<u64>>,
    taken: TakenCount,
}

impl Latencies {
    fn take(&self, event: &[u8]) {
        let now = Monotonic::now().as_nanos();
        let stamp = event.first_chunk().map_or(0, |of| u64::from_ne_bytes(*of));
        if stamp != 0 {
            self.all.lock().push(now.saturating_sub(stamp));
            self.taken.add(1);
        }
    }

    /// Waits for so many after the supplier has ended, and tells those that came.
    fn conclude(&self, parent: &Parent, number: u64) -> Result<(), LabError> {
        process::tell(&Ready {})?;
        let Begin {} = parent.hear()?;
        let limit = Deadline::after(LAST_ONES);
        self.taken.await_until(number, limit);
        Ok(parent.conclude(&*self.all.lock())?)
    }
}

fn payload(stamp: u64) -> [u8; PAYLOAD] {
    let mut payload = [7; PAYLOAD];
    payload[..8].copy_from_slice(&stamp.to_ne_bytes());
    payload
}

fn supply_tcp(parent: &Parent, pace: &Pace) -> Result<(), LabError> {
    let failed = LabError::work(RAW);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(&failed)?;
    process::tell(&listener.local_addr().map_err(&failed)?)?;
    // All connections are there before the first event, in the queue of the listener.
    let Begin {} = parent.hear()?;
    listener.set_nonblocking(true).map_err(&failed)?;
    let mut consumers = Vec::new();
    while let Ok((consumer, _)) = listener.accept() {
        consumer.set_nodelay(true).map_err(&failed)?;
        consumer.set_nonblocking(false).map_err(&failed)?;
        consumers.push(consumer);
    }
    pace.run(|stamp| {
        let event = payload(stamp);
        let mut all = consumers.iter_mut();
        all.try_for_each(|consumer| consumer.write_all(&event))
            .map_err(&failed)
    })?;
    Ok(parent.conclude(&Ready {})?)
}

fn consume_tcp(parent: &Parent, address: &str, consumers: u32, all: u64) -> Result<(), LabError> {
    let latencies = Arc::new(Latencies::default());
    for _ in 0..consumers {
        let socket = TcpStream::connect(address).map_err(LabError::work(RAW))?;
        let (mut socket, latencies) = (socket, latencies.clone());
        // It ends with the process.
        thread::spawn(move || {
            let mut event = [0; PAYLOAD];
            while socket.read_exact(&mut event).is_ok() {
                latencies.take(&event);
            }
        });
    }
    latencies.conclude(parent, all)
}

fn supply_ring(parent: &Parent, pace: &Pace) -> Result<(), LabError> {
    let failed = LabError::work(RAW);
    let mut publisher = Publisher::create(RING).map_err(LabError::work(RAW))?;
    let path = socket_path();
    let listener = UnixListener::bind(&path).map_err(&failed)?;
    process::tell(&path)?;
    let offer = publisher.offer();
    // It ends with the process.
    thread::spawn(move || {
        let mut sockets = Vec::new();
        while let Ok((socket, _)) = listener.accept() {
            if offer.send(&socket).is_ok() {
                sockets.push(socket);
            }
        }
    });
    let Begin {} = parent.hear()?;
    pace.run(|stamp| {
        publisher
            .publish(&[&payload(stamp)])
            .map_err(LabError::work(RAW))
    })?;
    fs::remove_file(&path).map_err(&failed)?;
    Ok(parent.conclude(&Ready {})?)
}

fn consume_ring(parent: &Parent, address: &str, consumers: u32, all: u64) -> Result<(), LabError> {
    let socket = UnixStream::connect(address).map_err(LabError::work(RAW))?;
    let reader = Reader::receive(socket.into()).map_err(LabError::work(RAW))?;
    let mut cursors: Vec<_> = (0..consumers).map(|_| reader.clone()).collect();
    let latencies = Arc::new(Latencies::default());
    let taken = latencies.clone();
    // It ends with the ring.
    thread::spawn(move || -> Result<(), FanOutError> {
        loop {
            for cursor in &mut cursors {
                while let Some(reading) = cursor.poll()? {
                    if let Reading::Message(event) = reading {
                        taken.take(event);
                    }
                }
            }
            if let Some(cursor) = cursors.first() {
                cursor.wait(Deadline::after(PATIENCE))?;
            }
        }
    });
    latencies.conclude(parent, all)
}

/// The supplier and the channel in one process, and a ring as its consumer.
fn supply_event_ring(parent: &Parent, pace: &Pace) -> Result<(), LabError> {
    let served = ServedChannel::serve(&ChannelOrder::default())?;
    let client = Client::of(&served)?;
    let supplier = served.supplier(TYPE)?;
    let path = socket_path();
    let ring = client.open_ring(TYPE, &path)?;
    process::tell(&path)?;
    let Begin {} = parent.hear()?;
    pace.run(|stamp| {
        supplier.push(&[made_now(TYPE, &payload(stamp))]);
        Ok(())
    })?;
    parent.conclude(&Ready {})?;
    drop((supplier, ring, served));
    // It shuts down the ORB.
    drop(client);
    Ok(())
}

fn consume_event_ring(
    parent: &Parent,
    address: &str,
    consumers: u32,
    all: u64,
) -> Result<(), LabError> {
    let reader = EventRingReader::join(Path::new(address)).map_err(LabError::work(RAW))?;
    let mut cursors: Vec<_> = (0..consumers).map(|_| reader.clone()).collect();
    let latencies = Arc::new(Latencies::default());
    let taken = latencies.clone();
    // It ends with the ring.
    thread::spawn(move || -> Result<(), RingError> {
        loop {
            let mut wait = PATIENCE;
            for cursor in &mut cursors {
                // The first one waits, and the others take what came meanwhile.
                let limit = std::mem::take(&mut wait);
                cursor.next_with(limit, |delivery| {
                    if let RingDelivery::Set([event]) = delivery {
                        taken.take(event.data.payload);
                    }
                })?;
            }
        }
    });
    latencies.conclude(parent, all)
}

fn socket_path() -> PathBuf {
    std::env::temp_dir().join(format!("chronorb-peer-{}", std::process::id()))
}

const TYPE: i32 = 20;
/// The octets of the payload of an event.
const PAYLOAD: usize = 64;
const RING: FanOutOptions = FanOutOptions {
    slots: 4096,
    octets: 256,
};
/// The time in which the last events arrive after the last push.
const LAST_ONES: Duration = Duration::from_secs(2);
const SUBSCRIBING: &str = "connecting a consumer";
const RAW: &str = "using a raw transport";
