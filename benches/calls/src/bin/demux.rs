//! Serves requests to objects and operations drawn at random, without a socket, and prints the time
//! of one from the octets of its message to its skeleton and back.
//!
//! Usage: `calls-demux serve|copy ENTRIES REQUESTS`. There are so many POAs; one of them has so
//! many objects, of an interface of so many operations. `copy` only prepares the messages, so that
//! the difference of both is the cost of the requests.

use std::error::Error;
use std::fmt::Write;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use chronorb_orb::codegen::v1::{
    Call, Decoder, OperationTable, ReplyWriter, Skeleton, SystemException, bad_operation,
};
use chronorb_orb::poa::ObjectId;
use chronorb_orb::stages::{Frame, Stages};
use chronorb_orb::{Object, Orb, OrbConfig, RealTimeMode, parse_endpoints};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mode, entries, requests] = &arguments[..] else {
        return Err("usage: calls-demux serve|copy ENTRIES REQUESTS".into());
    };
    let (entries, requests): (usize, usize) = (entries.parse()?, requests.parse()?);
    let serves = mode == "serve";
    let mut config = OrbConfig::default();
    config.orb_id = "demux".to_owned();
    config.listen_endpoints = parse_endpoints("iiop://127.0.0.1:0")?;
    config.threads = 1.into();
    config.real_time = RealTimeMode::Off;
    let orb = Orb::with_config(config)?;
    let root = orb.root_poa()?;
    root.manager().activate()?;
    let mut poas = vec![root.clone()];
    for number in 1..entries {
        let name = format!("adapter_{number}");
        poas.push(root.create_poa(&name, Some(root.manager()), &[])?);
    }
    let names: Vec<String> = (0..entries).map(name).collect();
    let table = table(&names)?;
    let poa = &poas[poas.len() / 2];
    let activate = |_| -> Result<[u8; 8], Box<dyn Error>> {
        let id = poa.activate_object(Empty(table))?;
        Ok(id.as_bytes().try_into()?)
    };
    let ids: Vec<[u8; 8]> = (0..entries).map(activate).collect::<Result<_, _>>()?;
    let first = poa.id_to_reference(&ObjectId::new(ids[0]))?;
    let mut stages = Stages::new(&first);
    let message = MessageTemplate::new(&stages, &first, &ids[0])?;
    let mut random = Random(1);
    let mut frames: Vec<Frame> = (0..BATCH).map(|_| Frame::new(FRAME, FRAME)).collect();
    let mut times = Vec::with_capacity(requests / BATCH);
    for _ in 0..requests / BATCH {
        for frame in &mut frames {
            // The number of the object says nothing of the operation.
            let (object, operation) = (random.below(entries), random.below(entries));
            message.write(frame, &ids[object], operation)?;
        }
        let start = Instant::now();
        if serves {
            let is_served = frames.iter_mut().map(|frame| stages.serve(frame));
            let served = is_served.filter(|is_served| *is_served).count();
            assert_eq!(served, BATCH, "a request has found nothing");
        }
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    println!("{:.1} ns", times.get(times.len() / 2).unwrap_or(&0.0));
    orb.shutdown(true)?;
    Ok(())
}

/// Returns the name of an operation. All have the same length.
fn name(number: usize) -> String {
    format!("operation_{number:05}")
}

/// A message whose object and operation are replaced. A table of all messages would displace the
/// tables of the server from the cache, which messages from a socket do not.
struct MessageTemplate {
    octets: Vec<u8>,
    id: Range<usize>,
    digits: Range<usize>,
}

impl MessageTemplate {
    fn new(stages: &Stages, object: &Object, id: &[u8; 8]) -> Result<Self, Box<dyn Error>> {
        let mut frame = Frame::new(FRAME, FRAME);
        let name = name(0);
        stages.write_request(&mut frame, object, &name)?;
        let octets = frame.as_slice().to_vec();
        let end_of = |part: &[u8]| {
            let place = octets
                .windows(part.len())
                .rposition(|octets| octets == part);
            place
                .map(|place| place + part.len())
                .ok_or("it is not in the message")
        };
        let (id_end, name_end) = (end_of(id)?, end_of(name.as_bytes())?);
        Ok(Self {
            id: id_end - id.len()..id_end,
            digits: name_end - DIGITS..name_end,
            octets,
        })
    }

    fn write(
        &self,
        frame: &mut Frame,
        id: &[u8; 8],
        operation: usize,
    ) -> Result<(), Box<dyn Error>> {
        frame.clear();
        frame.extend_from_slice(&self.octets[..self.id.start])?;
        frame.extend_from_slice(id)?;
        frame.extend_from_slice(&self.octets[self.id.end..self.digits.start])?;
        let mut rest = operation;
        let mut digits = [b'0'; DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        frame.extend_from_slice(&digits)?;
        frame.extend_from_slice(&self.octets[self.digits.end..])?;
        Ok(())
    }
}

/// Returns the table of operations that the compiler would generate. It stays for the life of the
/// program, like a generated one.
fn table(names: &[String]) -> Result<&'static OperationTable, Box<dyn Error>> {
    let hash = chronorb_build::perfect_hash(names).ok_or("too many operations")?;
    let slots = hash.places(names).into_iter();
    let slots: Vec<_> = slots
        .map(|slot| slot.unwrap_or(OperationTable::EMPTY))
        .collect();
    let mut text = String::new();
    for name in names {
        text.write_str(name)?;
    }
    let (displacements, slots) = (hash.displacements.leak(), slots.leak());
    let table = OperationTable::new(hash.seed, displacements, slots, text.leak());
    Ok(Box::leak(Box::new(table)))
}

/// A skeleton that finds the operation, and does nothing else.
struct Empty(&'static OperationTable);

impl Skeleton for Empty {
    fn repository_id(&self) -> &'static str {
        "IDL:chronorb/Demux/Empty:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        _: &mut Decoder<'a>,
        _: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let found = black_box(self.0.find(operation));
        found.map(drop).ok_or_else(bad_operation)
    }
}

/// Numbers drawn at random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// The number of requests between two readings of the clock.
const BATCH: usize = 64;
/// The capacity for one request.
const FRAME: usize = 512;
/// The digits in the name of an operation.
const DIGITS: usize = 5;
