//! Properties of values that were read.

use std::fmt::Write as _;
use std::sync::Arc;

use chronorb_cdr::{
    Any, AnyBuf, Arena, Cdr, CdrError, Decoder, Encoder, Endian, Frame, TypeCode, TypeCodeBuf,
    Value,
};
use chronorb_rt::allocated_octets;

use super::{Item, Message};
use crate::idl::hostile::{Base, Chain, Choice, Text, Tree};

/// Reads a message as one that begins with `item`, and the parts behind it.
pub(super) fn check(message: &Message, item: Item) -> Result<(), CdrError> {
    let mut octets = message.octets.clone();
    let arena = Arena::new(ARENA.min((64 << 10) + 64 * octets.len()));
    let d = Decoder::new(&mut octets, message.position, message.endian, &arena);
    let mut d = d.with_text(message.text);
    let mut items = message.items.iter().skip_while(|other| **other != item);
    items.try_for_each(|item| read(message, *item, &mut d))
}

fn read<'a>(message: &Message, item: Item, d: &mut Decoder<'a>) -> Result<(), CdrError> {
    let arena = d.arena();
    let cost = Cost { message, arena };
    match item {
        Item::Any => {
            let read = cost.of(|| Any::decode(d))?;
            type_code(&cost, read.type_code())?;
            any(&cost, &read)
        }
        Item::TypeCode => type_code(&cost, &cost.of(|| TypeCode::decode(d))?),
        Item::Base => {
            let read = cost.of(|| d.read_value::<dyn Base>())?;
            value(message, read.as_ref(), |d| d.read_value::<dyn Base>())
        }
        Item::Chain => {
            let read = cost.of(|| d.read_value::<dyn Chain>())?;
            value(message, read.as_ref(), |d| d.read_value::<dyn Chain>())
        }
        Item::Text => {
            let read = cost.of(|| d.read_value::<Text>())?;
            value(message, read.as_ref(), |d| d.read_value::<Text>())
        }
        Item::Unknown => cost.of(|| d.read_value::<dyn Value>()).map(drop),
        Item::Trees => {
            let trees = cost.of(|| d.read_seq::<Tree<'_>>())?;
            again(
                message,
                |e| e.write_seq(trees),
                |d| {
                    assert_eq!(d.read_seq::<Tree<'_>>()?, trees);
                    Ok(())
                },
            )
        }
        Item::Choice => {
            let choice = cost.of(|| Choice::decode(d))?;
            let _ = cost.of(|| choice.to_owned());
            again(
                message,
                |e| choice.encode(e),
                |d| Choice::decode(d).map(drop),
            )
        }
    }
}

fn any(cost: &Cost<'_, '_>, any: &Any<'_>) -> Result<(), CdrError> {
    let message = cost.message;
    let _ = any.extract::<i32>();
    let _ = any.extract::<&str>();
    let _ = any.extract::<&[Tree<'_>]>();
    let _ = any.extract::<Choice<'_>>();
    let own = cost.of(|| any.to_owned());
    assert_eq!(own.type_code(), any.type_code());
    assert_eq!(own, own.clone());
    again(message, |e| any.encode(e), |d| same_any(&own, d))?;
    again(message, |e| own.encode(e), |d| same_any(&own, d))
}

fn same_any(own: &AnyBuf, d: &mut Decoder<'_>) -> Result<(), CdrError> {
    let other = Any::decode(d)?.to_owned();
    assert_eq!(other.type_code(), own.type_code());
    if other == *own {
        return Ok(());
    }
    // A copy that met a bound, as that of the stack, is kept as the error.
    for any in [own, &other] {
        any.encode(&mut encoder(&mut Frame::new(0, MAX_FRAME)))?;
    }
    panic!("another value of the type {own:?}");
}

fn encoder(frame: &mut Frame) -> Encoder<'_> {
    Encoder::new(frame, Endian::NATIVE)
}

fn type_code(cost: &Cost<'_, '_>, type_code: &TypeCode<'_>) -> Result<(), CdrError> {
    let own = cost.of(|| TypeCodeBuf::from(type_code));
    assert_eq!(own.as_view(), type_code);
    assert!(own.as_view().equivalent(type_code));
    let mut text = String::new();
    write!(text, "{type_code}").expect("strings take all");
    again(
        cost.message,
        |e| type_code.encode(e),
        |d| {
            assert_eq!(TypeCode::decode(d)?, *type_code);
            Ok(())
        },
    )
}

/// The value itself is not compared, since it need not be of the type that is asked for.
fn value<V: chronorb_cdr::ValueType + ?Sized>(
    message: &Message,
    value: Option<&Arc<V>>,
    read: impl Fn(&mut Decoder<'_>) -> Result<Option<Arc<V>>, CdrError>,
) -> Result<(), CdrError> {
    again(
        message,
        |e| e.write_value(value),
        |d| {
            let again = read(d)?;
            match (value, &again) {
                (Some(value), Some(again)) if !value.has_state_of(again) => {
                    // A copy of an any that met a bound is kept as the error.
                    encoder(&mut Frame::new(0, MAX_FRAME)).write_value(Some(again))?;
                    panic!("another value");
                }
                (value, again) => assert_eq!(value.is_some(), again.is_some()),
            }
            Ok(())
        },
    )
}

/// Writes what was read, and reads that.
fn again(
    message: &Message,
    write: impl Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    read: impl Fn(&mut Decoder<'_>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    for endian in [Endian::Big, Endian::Little] {
        let mut frame = Frame::new(0, MAX_FRAME);
        let mut e = Encoder::new(&mut frame, endian).with_text(message.text);
        if !has_room(write(&mut e)) {
            return Ok(());
        }
        let arena = Arena::new(ARENA.min((64 << 10) + 64 * frame.len()));
        let octets = frame.as_mut_slice();
        let mut d = Decoder::new(octets, 0, endian, &arena).with_text(message.text);
        has_room(read(&mut d));
    }
    Ok(())
}

/// Whether it was done; `false` where one of the bounds was reached, which are not the same for
/// readers and writers.
fn has_room(done: Result<(), CdrError>) -> bool {
    match done {
        Ok(()) => true,
        Err(
            CdrError::ArenaFull | CdrError::FrameFull | CdrError::TooDeep | CdrError::TooMuchWork,
        ) => false,
        // Exceptions of omniORB's form without members have no octets, and a sequence may not have
        // more of them than the message has octets behind it.
        Err(CdrError::LengthOverflow) => false,
        Err(error) => panic!("what was read cannot be written and read again: {error}"),
    }
}

/// The message and the arena that memory and work are proportional to.
struct Cost<'m, 'a> {
    message: &'m Message,
    arena: &'a Arena,
}

impl Cost<'_, '_> {
    /// Does something that asks for memory in proportion to what came, and to what was made of it
    /// in the arena, and takes steps in proportion to what came.
    fn of<T>(&self, work: impl FnOnce() -> T) -> T {
        let (asked, steps) = (allocated_octets(), self.arena.work());
        let done = work();
        let asked = allocated_octets() - asked;
        let measure = (self.message.octets.len() + self.arena.used()) as u64;
        let most = MOST + MOST_PER_OCTET * measure;
        assert!(asked <= most, "{asked} octets of memory for {measure}");
        let steps = (self.arena.work() - steps) as u64;
        let most = MOST_WORK + WORK_PER_OCTET * self.message.octets.len() as u64;
        assert!(steps <= most, "{steps} steps of work for {measure}");
        done
    }
}

/// Steps that the shortest message may take, the one that is too much included.
const MOST_WORK: u64 = 8192;
const WORK_PER_OCTET: u64 = 17;
/// Octets of the arena, as in an ORB.
const ARENA: usize = 1 << 20;
const MAX_FRAME: usize = 8 << 20;
/// Octets of memory that the shortest message may cost.
const MOST: u64 = 64 << 10;
/// Buffers of which the size is not known are made anew, several times as large.
const MOST_PER_OCTET: u64 = 256;
