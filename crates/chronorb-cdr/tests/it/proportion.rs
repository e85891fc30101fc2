//! Received data costs memory and work in proportion to its octets.

use chronorb_cdr::{
    Any, Arena, Bounds, Cdr, CdrError, Decoder, Encoder, Endian, Frame, StructMember, TypeCode,
    UnionMember, Value,
};
use proptest::prelude::*;

use crate::value_types::Base;

/// The octets of an any of this type, in this byte order, with `body` as its value.
fn any_of(type_code: &TypeCode<'_>, body: &[u8]) -> Frame {
    let mut frame = Frame::new(1 << 10, 1 << 20);
    let mut e = Encoder::new(&mut frame, Endian::NATIVE);
    let written = type_code
        .encode(&mut e)
        .and_then(|()| e.align(8))
        .and_then(|()| e.write_octets(body));
    written.expect("there is room");
    frame
}

#[test]
fn a_copy_of_a_type_code_has_a_great_name_once() {
    const MEMBERS: usize = 1000;
    let great = "x".repeat(1 << 10);
    let member = StructMember {
        name: "m",
        type_code: TypeCode::ObjRef {
            id: &great,
            name: &great,
        },
    };
    let type_code = TypeCode::Struct {
        id: "IDL:S:1.0",
        name: "S",
        members: &[member; MEMBERS],
    };
    let arena = Arena::new(MEMBERS * (size_of::<StructMember<'_>>() + 8) + (2 << 10));
    assert_eq!(type_code.copy_in(&arena), Ok(type_code));
}

#[test]
fn names_and_members_of_type_codes_are_bounded() {
    let read = |type_code: TypeCode<'_>, bounds| {
        let mut frame = any_of(&type_code, &[]);
        let mut arena = Arena::new(1 << 20);
        arena.set_bounds(bounds);
        let mut d = frame.decoder(0, Endian::NATIVE, &arena);
        TypeCode::decode(&mut d).map(drop)
    };
    let name = "x".repeat(2048);
    let named = |len| TypeCode::ObjRef {
        id: "IDL:O:1.0",
        name: &name[..len],
    };
    let names = ["m"; (1 << 14) + 1];
    let listing = |len| TypeCode::Enum {
        id: "IDL:E:1.0",
        name: "E",
        members: &names[..len],
    };
    let exceeded = Err(CdrError::BoundExceeded);
    assert_eq!(read(named(2047), Bounds::DEFAULT), Ok(()));
    assert_eq!(read(named(2048), Bounds::DEFAULT), exceeded);
    assert_eq!(read(listing(1 << 14), Bounds::DEFAULT), Ok(()));
    assert_eq!(read(listing((1 << 14) + 1), Bounds::DEFAULT), exceeded);
    let others = Bounds {
        type_name_octets: 2049,
        type_members: 2,
        ..Bounds::DEFAULT
    };
    assert_eq!(read(named(2048), others), Ok(()));
    assert_eq!(read(listing(2), others), Ok(()));
    assert_eq!(read(listing(3), others), exceeded);
}

/// Decodes a value of this tag, these words, these octets and a zero octet. Returns the error.
fn read_value(tag: u32, words: &[u32], octets: usize, bounds: Bounds) -> Option<CdrError> {
    let mut frame = Frame::new(1 << 10, 1 << 20);
    let mut e = Encoder::new(&mut frame, Endian::NATIVE);
    e.write_u32(tag).expect("room");
    words
        .iter()
        .for_each(|word| e.write_u32(*word).expect("room"));
    e.write_octets(&vec![b'x'; octets]).expect("room");
    e.write_u8(0).expect("room");
    let mut arena = Arena::new(1 << 12);
    arena.set_bounds(bounds);
    let mut d = frame.decoder(0, Endian::NATIVE, &arena);
    d.read_value::<dyn Value>().err()
}

#[test]
fn identifiers_of_values_are_bounded_in_number_and_length() {
    const ONE: u32 = 0x7fff_ff02;
    const LIST: u32 = 0x7fff_ff06;
    let one = |len: u32, bounds| read_value(ONE, &[len + 1], len as usize, bounds);
    let empty = [0; 40];
    let list = |n: u32, bounds| {
        let words = [&[n], &empty[..n as usize]].concat();
        read_value(LIST, &words, 0, bounds)
    };
    // What is within the bounds is of no type that is known here.
    let (accepted, exceeded) = (
        Some(CdrError::NoValueFactory),
        Some(CdrError::BoundExceeded),
    );
    assert_eq!(one(1024, Bounds::DEFAULT), accepted);
    assert_eq!(one(1025, Bounds::DEFAULT), exceeded);
    assert_eq!(list(32, Bounds::DEFAULT), accepted);
    assert_eq!(list(33, Bounds::DEFAULT), exceeded);
    let others = Bounds {
        value_id_octets: 1025,
        value_ids: 1,
        ..Bounds::DEFAULT
    };
    assert_eq!(one(1025, others), accepted);
    assert_eq!(list(1, others), accepted);
    assert_eq!(list(2, others), exceeded);
}

#[test]
fn exceptions_without_identifiers_cost_those_that_a_copy_has() {
    let id = "x".repeat(2000);
    let read = |length| {
        let exception = TypeCode::Except {
            id: &id,
            name: "E",
            members: &[],
        };
        let type_code = TypeCode::Array {
            element: &exception,
            length,
        };
        let mut frame = any_of(&type_code, &[]);
        let arena = Arena::new(1 << 12);
        let mut d = frame.decoder(0, Endian::NATIVE, &arena);
        Any::decode(&mut d).map(drop)
    };
    assert_eq!(read(4), Ok(()));
    assert_eq!(read(64), Err(CdrError::TooMuchWork));
}

/// Messages of a kind, by the number of their parts.
type Message = fn(u32) -> Vec<u8>;
/// Decodes a message.
type Read = fn(&mut Decoder<'_>) -> Result<(), CdrError>;

/// Reads messages whose octets double, and checks that the work does no more than that.
fn assert_in_proportion(message: Message, read: Read) {
    let measure = |parts| {
        let mut octets = message(parts);
        let n = octets.len();
        let mut arena = Arena::new(16 << 20);
        arena.set_bounds(Bounds {
            type_members: u32::MAX,
            ..Bounds::DEFAULT
        });
        let mut d = Decoder::new(&mut octets, 0, Endian::NATIVE, &arena);
        let result = read(&mut d);
        (n, arena.work(), result)
    };
    for parts in [4096, 8192, 16_384] {
        let ((n, work, _), (twice_n, twice, result)) = (measure(parts), measure(2 * parts));
        assert!(
            twice_n <= 2 * n,
            "{parts} parts: {n} octets, then {twice_n}"
        );
        assert!(
            twice as f64 <= 2.1 * work as f64,
            "{parts} parts: {work} steps, then {twice}"
        );
        // A charge is for no more than one part, or 2 KiB of text.
        assert!(
            twice <= 4096 + 16 * twice_n + 2048,
            "{twice} steps for {twice_n} octets"
        );
        let is_bounded = matches!(result, Err(CdrError::TooMuchWork | CdrError::ArenaFull));
        assert!(result.is_ok() || is_bounded, "{result:?}");
    }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

fn text(text: &str) -> Vec<u8> {
    let mut octets = words(&[text.len() as u32 + 1]);
    octets.extend_from_slice(text.as_bytes());
    octets.push(0);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

/// A type code with its parameters, in an encapsulation.
fn complex(kind: u32, parameters: &[u8]) -> Vec<u8> {
    let mut octets = words(&[kind, parameters.len() as u32 + 4]);
    octets.extend_from_slice(&[u8::from(cfg!(target_endian = "little")), 0, 0, 0]);
    octets.extend_from_slice(parameters);
    octets
}

const STRUCT: u32 = 15;
const UNION: u32 = 16;
const SEQUENCE: u32 = 19;
const NULL: u32 = 0;
const LONG: u32 = 3;
const ULONG: u32 = 5;
const REFERENCE: u32 = 14;
const INDIRECTION: u32 = u32::MAX;

fn header(id: &str) -> Vec<u8> {
    [text(id), text("")].concat()
}

/// A type with a long name, and members that are indirections to it.
fn indirections_to_a_name(parts: u32) -> Vec<u8> {
    let mut parameters = [header("IDL:S:1.0"), words(&[parts])].concat();
    parameters.extend(text(""));
    let target = parameters.len();
    parameters.extend(complex(
        REFERENCE,
        &[text(&"x".repeat(2000)), text("")].concat(),
    ));
    for _ in 1..parts {
        parameters.extend(text(""));
        parameters.extend(words(&[INDIRECTION]));
        let back = target as i32 - parameters.len() as i32;
        parameters.extend(words(&[back as u32]));
    }
    complex(STRUCT, &parameters)
}

/// Members that are indirections to a struct with a tenth of all members.
fn indirections_to_members(parts: u32) -> Vec<u8> {
    let inner = parts / 10;
    let mut parameters = [header("IDL:S:1.0"), words(&[parts - inner])].concat();
    parameters.extend(text(""));
    let target = parameters.len();
    let mut members = [header("IDL:T:1.0"), words(&[inner])].concat();
    for _ in 0..inner {
        members.extend([text(""), words(&[LONG])].concat());
    }
    parameters.extend(complex(STRUCT, &members));
    for _ in 1..parts - inner {
        parameters.extend(text(""));
        parameters.extend(words(&[INDIRECTION]));
        let back = target as i32 - parameters.len() as i32;
        parameters.extend(words(&[back as u32]));
    }
    complex(STRUCT, &parameters)
}

/// A union of so many arms, as the element of a sequence of so many, each of the last arm.
fn unions(parts: u32) -> Vec<u8> {
    let mut parameters = [header("IDL:U:1.0"), words(&[ULONG, u32::MAX, parts])].concat();
    for label in 0..parts {
        parameters.extend([words(&[label]), text(""), words(&[NULL])].concat());
    }
    let union = complex(UNION, &parameters);
    let sequence = complex(SEQUENCE, &[union, words(&[0])].concat());
    let labels = vec![parts - 1; parts as usize];
    [sequence, words(&[parts]), words(&labels)].concat()
}

/// A recursive struct with a long identifier, whose value has many empty sequences of itself.
fn recursions(parts: u32) -> Vec<u8> {
    let id = format!("IDL:{}:1.0", "x".repeat(2000));
    let mut parameters = [header(&id), words(&[1])].concat();
    parameters.extend(text(""));
    // The encapsulation of the sequence begins 12 octets before its element.
    let target = -8 - (parameters.len() as i32 + 4 + 12 + 4);
    let element = words(&[INDIRECTION, target as u32, 0]);
    parameters.extend(complex(SEQUENCE, &element));
    let node = complex(STRUCT, &parameters);
    let empty = vec![0; parts as usize];
    [node, words(&[parts]), words(&empty)].concat()
}

/// A struct of members without octets, of which a sequence has one for each member.
fn members_without_octets(parts: u32) -> Vec<u8> {
    let mut parameters = [header("IDL:S:1.0"), words(&[parts])].concat();
    for _ in 1..parts {
        parameters.extend([text(""), words(&[NULL])].concat());
    }
    parameters.extend([text(""), words(&[LONG])].concat());
    let element = complex(STRUCT, &parameters);
    let sequence = complex(SEQUENCE, &[element, words(&[0])].concat());
    let numbers = vec![0; parts as usize];
    [sequence, words(&[parts]), words(&numbers)].concat()
}

/// Values with a list of identifiers, the first of which are as long as they may be, and which all
/// later values refer to.
fn lists_of_identifiers(parts: u32) -> Vec<u8> {
    let mut octets = words(&[parts, 0x7fff_ff0e, 32]);
    let list = octets.len() - 4;
    for _ in 0..31 {
        octets.extend(text(&"x".repeat(1000)));
    }
    octets.extend(text("IDL:Base:1.0"));
    let state = words(&[4, 7, -1_i32 as u32]);
    octets.extend(&state);
    for _ in 1..parts {
        octets.extend(words(&[0x7fff_ff0e, INDIRECTION]));
        let back = list as i32 - octets.len() as i32;
        octets.extend(words(&[back as u32]));
        octets.extend(&state);
    }
    octets
}

#[test]
fn work_is_in_proportion_to_the_octets() {
    let type_code: Read = |d| TypeCode::decode(d).map(drop);
    let any: Read = |d| Any::decode(d).map(drop);
    let values: Read = |d| {
        let n = d.read_u32()?;
        (0..n).try_for_each(|_| d.read_value::<dyn Base>().map(drop))
    };
    let cases: [(Message, Read); 6] = [
        (indirections_to_a_name, type_code),
        (indirections_to_members, type_code),
        (unions, any),
        (recursions, any),
        (members_without_octets, any),
        (lists_of_identifiers, values),
    ];
    for (message, read) in cases {
        assert_in_proportion(message, read);
    }
}

proptest! {
    /// Arms that are found by their labels in order are those that a search would find.
    #[test]
    fn an_arm_is_the_first_with_its_label(
        labels in prop::collection::vec(0_i64..60, 1..80),
        default in proptest::option::of(0_u32..80),
        label in 0_u32..70,
    ) {
        let default = default.filter(|index| (*index as usize) < labels.len());
        // The arm of an index takes as many octets.
        let members: Vec<_> = (0_u32..).zip(&labels).map(|(index, label)| UnionMember {
            label: *label,
            name: "a",
            type_code: TypeCode::Array { element: &TypeCode::Octet, length: index },
        }).collect();
        let union = TypeCode::Union {
            id: "IDL:U:1.0",
            name: "U",
            discriminator: &TypeCode::ULong,
            default_index: default,
            members: &members,
        };
        let expected = (0_u32..).zip(&labels)
            .find(|(index, other)| **other == i64::from(label) && Some(*index) != default)
            .map(|(index, _)| index)
            .or(default)
            .unwrap_or(0);
        let mut frame = Frame::new(1 << 10, 1 << 20);
        let mut e = Encoder::new(&mut frame, Endian::NATIVE);
        union.encode(&mut e).unwrap();
        e.write_u32(label).unwrap();
        let body = e.position();
        e.write_octets(&[0; 100]).unwrap();
        let arena = Arena::new(1 << 16);
        let mut d = frame.decoder(0, Endian::NATIVE, &arena);
        Any::decode(&mut d).unwrap();
        prop_assert_eq!(d.position() - body, expected as usize);
    }
}
