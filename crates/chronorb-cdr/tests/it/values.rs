//! Values of value types: what they look like on the wire, and what is refused.

use std::sync::Arc;

use chronorb_cdr::{
    Arena, CdrError, Decoder, Encoder, Endian, Frame, MAX_VALUE_DEPTH, MAX_VALUES, Value,
    narrow_value,
};
use proptest::prelude::*;

use crate::value_types::{Base, Derived, Grown, Label, Node, Point, PointValue};

/// Returns the octets that `write` writes, in big endian.
fn written(write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>) -> Vec<u8> {
    let mut frame = Frame::new(0, 1 << 24);
    write(&mut Encoder::new(&mut frame, Endian::Big)).expect("it can be written");
    frame.as_slice().to_vec()
}

/// Returns the result of `read` on octets in big endian.
fn read<T>(
    octets: &[u8],
    read: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>,
) -> Result<T, CdrError> {
    let arena = Arena::new(1 << 16);
    let mut octets = octets.to_vec();
    read(&mut Decoder::new(&mut octets, 0, Endian::Big, &arena))
}

fn point(x: i32, y: i32) -> Arc<dyn Point> {
    Arc::new(PointValue { x, y })
}

/// The octets of the parts, each a text or numbers in big endian.
macro_rules! octets {
    ($($part:expr),* $(,)?) => {{
        let mut octets: Vec<u8> = Vec::new();
        $(octets.extend_from_slice(&Part::octets($part));)*
        octets
    }};
}

trait Part {
    fn octets(self) -> Vec<u8>;
}

impl Part for u32 {
    fn octets(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
}

impl Part for i32 {
    fn octets(self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }
}

/// A string with its length and NUL, padded to four octets.
impl Part for &str {
    fn octets(self) -> Vec<u8> {
        let mut octets = (self.len() as u32 + 1).to_be_bytes().to_vec();
        octets.extend_from_slice(self.as_bytes());
        octets.push(0);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }
}

const POINT: &str = "IDL:Point:1.0";
const BASE: &str = "IDL:Base:1.0";
const DERIVED: &str = "IDL:Derived:1.0";
const GROWN: &str = "IDL:Grown:1.0";

#[test]
fn a_value_is_its_tag_its_type_and_its_state() {
    let octets = written(|e| e.write_value(Some(&point(3, 4))));
    assert_eq!(octets, octets![0x7fff_ff02_u32, POINT, 3, 4]);
    let back = read(&octets, |d| d.read_value::<dyn Point>());
    let back = back.expect("correct").expect("not null");
    assert_eq!((back.x(), back.y()), (3, 4));
}

#[test]
fn null_is_a_tag_of_zero() {
    assert_eq!(written(|e| e.write_value::<dyn Point>(None)), octets![0]);
    assert!(matches!(
        read(&octets![0], |d| d.read_value::<dyn Point>()),
        Ok(None)
    ));
}

#[test]
fn two_references_to_one_value_stay_two_references_to_one_value() {
    let shared = point(3, 4);
    let octets = written(|e| {
        e.write_value(Some(&shared))?;
        e.write_value(Some(&shared))?;
        e.write_value(Some(&point(3, 4)))
    });
    let expected = octets![
        0x7fff_ff02_u32,
        POINT,
        3,
        4, //
        0xffff_ffff_u32,
        -36, // the value
        0x7fff_ff02_u32,
        0xffff_ffff_u32,
        -44,
        3,
        4, // its identifier
    ];
    assert_eq!(octets, expected);
    let back = read(&octets, |d| {
        let one = d.read_value::<dyn Point>()?.expect("a value");
        let two = d.read_value::<dyn Point>()?.expect("a value");
        let three = d.read_value::<dyn Point>()?.expect("a value");
        Ok((
            Arc::ptr_eq(&one, &two),
            Arc::ptr_eq(&one, &three),
            *one == *three,
        ))
    });
    assert_eq!(back, Ok((true, false, true)));
}

#[test]
fn a_value_without_a_type_is_of_the_expected_one() {
    let octets = octets![0x7fff_ff00_u32, 3, 4];
    let value = read(&octets, |d| d.read_value::<dyn Point>());
    assert_eq!(value.expect("correct").expect("a value").y(), 4);
}

#[test]
fn the_url_of_a_codebase_is_passed_over() {
    let octets = octets![0x7fff_ff03_u32, "http://host/code", POINT, 3, 4];
    let value = read(&octets, |d| d.read_value::<dyn Point>());
    assert_eq!(value.expect("correct").expect("a value").x(), 3);
}

#[test]
fn a_truncatable_value_is_in_chunks_behind_all_its_types() {
    let derived: Arc<dyn Derived> = crate::value_types::derived(1, 2, Some(point(3, 4)));
    let octets = written(|e| e.write_value(Some(&derived)));
    let expected = octets![
        0x7fff_ff0e_u32,
        2,
        DERIVED,
        BASE, //
        4,
        1, // a chunk: the state of the base
        4,
        2, // another one: what the derived type adds
        0x7fff_ff0a_u32,
        POINT,
        8,
        3,
        4,
        -2, // the value within, with its end
        -1,
    ];
    assert_eq!(octets, expected);
    let back = read(&octets, |d| d.read_value::<dyn Base>());
    let back = back.expect("correct").expect("a value");
    let back: Arc<dyn Value> = back;
    let back = narrow_value::<dyn Derived>(&back).expect("what was sent");
    assert_eq!((back.a(), back.b()), (1, 2));
    assert_eq!(back.place().expect("a value").x(), 3);
}

#[test]
fn lists_of_types_are_written_in_full() {
    let derived: Arc<dyn Derived> = crate::value_types::derived(1, 2, None);
    let another: Arc<dyn Derived> = crate::value_types::derived(3, 4, None);
    let octets = written(|e| {
        e.write_value(Some(&derived))?;
        e.write_value(Some(&another))
    });
    let first = written(|e| e.write_value(Some(&derived)));
    // The identifiers stand 8 octets behind the beginning, and behind the first of them.
    let to_derived = -(first.len() as i32 + 8 + 4 - 8);
    let to_base = to_derived - 8 + 4 + (DERIVED.len() + 1).next_multiple_of(4) as i32;
    let second = octets![
        0x7fff_ff0e_u32,
        2,
        0xffff_ffff_u32,
        to_derived,
        0xffff_ffff_u32,
        to_base,
        4,
        3,
        8,
        4,
        0,
        -1,
    ];
    assert_eq!(&octets[first.len()..], second);
    let back = read(&octets, |d| {
        d.read_value::<dyn Derived>()?;
        d.read_value::<dyn Derived>()
    });
    assert_eq!(back.expect("correct").expect("a value").b(), 4);
}

/// TAO ends the state of each base as if the derived values were within it.
#[test]
fn end_tags_behind_the_states_of_bases_are_skipped() {
    let of_type = |id| {
        octets![
            0x7fff_ff0e_u32,
            2,
            id,
            BASE, //
            4,
            1,
            -2, // the base
            4,
            2, // the derived type
            0,
            -1,
            55_u32,
        ]
    };
    let derived = read(&of_type(DERIVED), |d| {
        let derived = d.read_value::<dyn Derived>()?.expect("a value");
        Ok((derived.a(), derived.b(), d.read_u32()?, d.remaining()))
    });
    assert_eq!(derived, Ok((1, 2, 55, 0)));
    let base = read(&of_type("IDL:Unknown:1.0"), |d| {
        let base = d.read_value::<dyn Base>()?.expect("a value");
        Ok((base.a(), d.read_u32()?, d.remaining()))
    });
    assert_eq!(base, Ok((1, 55, 0)));
}

/// TAO writes a value without chunks into the chunk of the value that contains it, against CORBA
/// 3.3 part 2, 9.3.4.
#[test]
fn a_value_without_chunks_within_a_chunk_is_read_as_tao_writes_it() {
    let within = octets![0x7fff_ff02_u32, POINT, 3, 4];
    let of_type = |id, size: u32, state: &[u8]| {
        let mut octets = octets![0x7fff_ff0e_u32, 2, id, BASE, 4, 1, -2, size, 2];
        octets.extend_from_slice(state);
        octets.extend_from_slice(&octets![-1, 55_u32]);
        octets
    };
    let whole = 4 + within.len() as u32;
    let read_derived = |octets: &[u8]| {
        read(octets, |d| {
            let derived = d.read_value::<dyn Derived>()?.expect("a value");
            let place = derived.place().map(|place| (place.x(), place.y()));
            Ok((
                derived.a(),
                derived.b(),
                place,
                d.read_u32()?,
                d.remaining(),
            ))
        })
    };
    let correct = Ok((1, 2, Some((3, 4)), 55, 0));
    assert_eq!(read_derived(&of_type(DERIVED, whole, &within)), correct);
    // Of the formal type, and null.
    let formal = octets![0x7fff_ff00_u32, 3, 4];
    assert_eq!(read_derived(&of_type(DERIVED, 16, &formal)), correct);
    let null = of_type(DERIVED, 8, &octets![0]);
    assert_eq!(read_derived(&null), Ok((1, 2, None, 55, 0)));
    // The chunk ends within the value, and the state continues in another one.
    let (first, rest) = within.split_at(within.len() - 4);
    let cut = [first, &octets![4_u32], rest].concat();
    assert_eq!(read_derived(&of_type(DERIVED, whole - 4, &cut)), correct);
    // A receiver that truncates the value skips the one within.
    let base = read(&of_type("IDL:Unknown:1.0", whole, &within), |d| {
        let base = d.read_value::<dyn Base>()?.expect("a value");
        Ok((base.a(), d.read_u32()?, d.remaining()))
    });
    assert_eq!(base, Ok((1, 55, 0)));
    // Later parts of the message may refer to it.
    let mut again = of_type(DERIVED, whole, &within);
    again.truncate(again.len() - 4);
    let back = within.len() as i32 + 8;
    again.extend_from_slice(&octets![0xffff_ffff_u32, -back]);
    let both = read(&again, |d| {
        let derived = d.read_value::<dyn Derived>()?.expect("a value");
        let again = d.read_value::<dyn Point>()?.expect("a value");
        Ok(Arc::ptr_eq(derived.place().expect("it has one"), &again))
    });
    assert_eq!(both, Ok(true));
    // A value in chunks of its own begins behind a chunk, never within one.
    let chunked = octets![0x7fff_ff0a_u32, POINT, 8, 3, 4, -2];
    let within_one = of_type(DERIVED, 4 + chunked.len() as u32, &chunked);
    assert_eq!(read_derived(&within_one), Err(CdrError::InvalidValue));
    // A value without chunks begins within a chunk, never behind one.
    let behind_one = of_type(DERIVED, 4, &within);
    assert_eq!(read_derived(&behind_one), Err(CdrError::InvalidValue));
    // Octets beyond the end of the chunk.
    let short = of_type(DERIVED, whole - 2, &within);
    assert!(read_derived(&short).is_err());
}

#[test]
fn values_without_chunks_within_a_chunk_are_as_deep_as_others() {
    let nested = |values: usize| {
        let node = octets![0x7fff_ff00_u32, 1];
        let mut state = octets![1];
        state.extend_from_slice(&node.repeat(values));
        state.extend_from_slice(&octets![0]);
        let mut octets = octets![0x7fff_ff08_u32, state.len() as u32];
        octets.extend_from_slice(&state);
        octets.extend_from_slice(&octets![-1]);
        read(&octets, |d| d.read_value::<Node>().map(|_| d.remaining()))
    };
    let most = MAX_VALUE_DEPTH as usize - 1;
    assert_eq!(nested(most), Ok(0));
    assert_eq!(nested(most + 1), Err(CdrError::TooDeep));
}

#[test]
fn what_no_factory_knows_is_taken_for_its_base() {
    let octets = octets![
        0x7fff_ff0e_u32,
        2,
        "IDL:Unknown:1.0",
        BASE, //
        4,
        7, // the base
        4,
        99, // what the derived type adds: a number,
        0x7fff_ff0a_u32,
        POINT,
        4,
        3,
        4,
        4,
        -2, // a value,
        0x7fff_ff0a_u32,
        "IDL:Unknown:2.0",
        0x7fff_ff0a_u32,
        POINT,
        8,
        1,
        2,  // two, ended at once
        -1, //
        55_u32,
    ];
    let back = read(&octets, |d| {
        let base = d.read_value::<dyn Base>()?.expect("a value");
        Ok((base.a(), d.read_u32()?, d.remaining()))
    });
    assert_eq!(back, Ok((7, 55, 0)));
}

#[test]
fn a_value_in_what_was_passed_over_can_be_referred_to_if_it_has_a_factory() {
    crate::value_types::register_label();
    let octets = octets![
        0x7fff_ff0e_u32,
        2,
        "IDL:Unknown:1.0",
        BASE,
        4,
        7, //
        0x7fff_ff0a_u32,
        "IDL:Label:1.0",
        8,
        "abc",
        -2,
        -1, //
        0xffff_ffff_u32,
        -48,
    ];
    let back = read(&octets, |d| {
        d.read_value::<dyn Base>()?;
        d.read_value::<Label>()
    });
    assert_eq!(back.expect("correct").expect("a value").0, "abc");
}

#[test]
fn every_way_to_cut_a_state_into_chunks_is_read() {
    let grown = crate::value_types::grown();
    let whole = written(|e| e.write_value(Some(&grown)));
    assert_eq!(
        read(&whole, |d| d.read_value::<Grown>()),
        Ok(Some(grown.clone()))
    );
    let state = written(|e| chronorb_cdr::ValueType::encode_state(&*grown, e));
    // Between members: behind the octet, the number, the length, each double, each string.
    let cuts = [1, 8, 12, 40, 48, 56];
    for set in 0..1_u32 << cuts.len() {
        let octets = written(|e| {
            e.write_u32(0x7fff_ff0a)?;
            e.write_str(GROWN)?;
            let mut from = 0;
            let chosen = cuts.iter().enumerate().filter(|(i, _)| set & 1 << i != 0);
            for to in chosen.map(|(_, at)| *at).chain([state.len()]) {
                crate::value_types::chunk(e, &state, from, to)?;
                from = to;
            }
            e.write_i32(-1)
        });
        let back = read(&octets, |d| d.read_value::<Grown>());
        assert_eq!(back, Ok(Some(grown.clone())), "{set:b}");
    }
}

#[test]
fn a_list_is_as_long_as_the_depth_allows() {
    fn list(n: u32) -> Option<Arc<Node>> {
        (0..n).fold(None, |next, n| Some(Arc::new(Node { n, next })))
    }
    let octets = written(|e| e.write_value(list(MAX_VALUE_DEPTH).as_ref()));
    assert!(read(&octets, |d| d.read_value::<Node>()).is_ok());
    let mut frame = Frame::new(0, 1 << 16);
    let too_long = list(MAX_VALUE_DEPTH + 1);
    let error = Encoder::new(&mut frame, Endian::Big).write_value(too_long.as_ref());
    assert_eq!(error, Err(CdrError::TooDeep));
}

#[test]
fn a_message_that_nests_deeper_is_refused() {
    let node = octets![0x7fff_ff00_u32, 1];
    let octets = node.repeat(MAX_VALUE_DEPTH as usize + 1);
    let error = read(&octets, |d| d.read_value::<Node>().map(|_| ()));
    assert_eq!(error, Err(CdrError::TooDeep));
}

#[test]
fn a_message_with_more_values_is_refused() {
    let octets = octets![0x7fff_ff00_u32, 3, 4].repeat(MAX_VALUES as usize + 1);
    let error = read(&octets, |d| {
        for _ in 0..MAX_VALUES {
            d.read_value::<dyn Point>()?;
        }
        assert_eq!(d.remaining(), 12);
        d.read_value::<dyn Point>().map(|_| ())
    });
    assert_eq!(error, Err(CdrError::TooManyValues));
}

#[test]
fn a_value_within_itself_is_refused() {
    let octets = octets![0x7fff_ff00_u32, 1, 0xffff_ffff_u32, -12];
    let error = read(&octets, |d| d.read_value::<Node>().map(|_| ()));
    assert_eq!(error, Err(CdrError::CyclicValue));
}

#[test]
fn malformed_values_are_refused() {
    let cases: &[(&str, Vec<u8>, CdrError)] = &[
        ("no tag", octets![0x7fff_fe00_u32], CdrError::InvalidValue),
        (
            "bits",
            octets![0x7fff_ff10_u32, 3, 4],
            CdrError::InvalidValue,
        ),
        (
            "types",
            octets![0x7fff_ff04_u32, 3, 4],
            CdrError::InvalidValue,
        ),
        (
            "no types",
            octets![0x7fff_ff06_u32, 0, 4],
            CdrError::InvalidValue,
        ),
        (
            "nothing there",
            octets![0xffff_ffff_u32, -4],
            CdrError::InvalidValue,
        ),
        (
            "forward",
            octets![0xffff_ffff_u32, 4, 0],
            CdrError::InvalidValue,
        ),
        (
            "before all",
            octets![0xffff_ffff_u32, i32::MIN],
            CdrError::InvalidValue,
        ),
        ("end", octets![-1], CdrError::EndOfData),
        (
            "unknown",
            octets![0x7fff_ff02_u32, "IDL:No:1.0"],
            CdrError::NoValueFactory,
        ),
        (
            "no chunk",
            octets![0x7fff_ff08_u32, 0, 3, 4],
            CdrError::InvalidValue,
        ),
        (
            "an end",
            octets![0x7fff_ff08_u32, -1, 3, 4],
            CdrError::InvalidValue,
        ),
        (
            "chunk of more",
            octets![0x7fff_ff08_u32, 64, 3],
            CdrError::EndOfData,
        ),
        (
            "across",
            octets![0x7fff_ff08_u32, 5, 3, 4, -1],
            CdrError::InvalidValue,
        ),
        (
            "ended as a base only",
            octets![0x7fff_ff08_u32, 8, 3, 4, -2],
            CdrError::EndOfData,
        ),
        (
            "not ended",
            octets![0x7fff_ff08_u32, 8, 3, 4],
            CdrError::EndOfData,
        ),
        (
            "truncated without chunks",
            octets![0x7fff_ff06_u32, 2, "IDL:No:1.0", POINT, 3, 4],
            CdrError::InvalidValue,
        ),
    ];
    for (what, octets, error) in cases {
        let result = read(octets, |d| d.read_value::<dyn Point>().map(|_| ()));
        assert_eq!(result, Err(*error), "{what}");
    }
}

#[test]
fn a_value_of_another_type_is_refused() {
    let octets = written(|e| e.write_value(Some(&crate::value_types::grown())));
    let error = read(&octets, |d| d.read_value::<dyn Point>().map(|_| ()));
    assert_eq!(error, Err(CdrError::NoValueFactory));
    crate::value_types::register_label();
    let octets = octets![0x7fff_ff02_u32, "IDL:Label:1.0", "abc"];
    let error = read(&octets, |d| d.read_value::<dyn Point>().map(|_| ()));
    assert_eq!(error, Err(CdrError::WrongValueType));
}

#[test]
fn what_was_taken_back_is_not_referred_to() {
    let shared = point(3, 4);
    let octets = written(|e| {
        e.write_u32(9)?;
        e.write_value(Some(&shared))?;
        e.truncate(4);
        e.write_value(Some(&shared))
    });
    assert_eq!(octets, octets![9, 0x7fff_ff02_u32, POINT, 3, 4]);
}

proptest! {
    #[test]
    fn arbitrary_octets_are_refused_or_read(parts in proptest::collection::vec(part(), 0..40)) {
        crate::value_types::register_label();
        let octets = parts.concat();
        for endian in [Endian::Big, Endian::Little] {
            let arena = Arena::new(1 << 12);
            let mut octets = octets.clone();
            let mut d = Decoder::new(&mut octets, 0, endian, &arena);
            while !d.is_empty() && d.read_value::<dyn Base>().is_ok() {}
            let _ = d.read_value::<Node>();
            let _ = d.read_value::<dyn Value>();
        }
    }

    #[test]
    fn what_is_written_is_read(
        points in proptest::collection::vec((any::<i32>(), any::<i32>()), 1..8),
        uses in proptest::collection::vec((0..8_usize, any::<bool>()), 0..20),
    ) {
        let points: Vec<_> = points.into_iter().map(|(x, y)| point(x, y)).collect();
        let values: Vec<(Arc<dyn Base>, usize)> = uses
            .iter()
            .map(|&(index, twice)| {
                let index = index % points.len();
                let place = twice.then(|| points[index].clone());
                let value: Arc<dyn Base> = crate::value_types::derived(index as i32, -1, place);
                (value, index)
            })
            .collect();
        let octets = written(|e| {
            values.iter().try_for_each(|(value, index)| {
                e.write_value(Some(value))?;
                e.write_value(Some(&points[*index]))
            })
        });
        let back = read(&octets, |d| {
            values
                .iter()
                .map(|_| Ok((d.read_value::<dyn Base>()?, d.read_value::<dyn Point>()?)))
                .collect::<Result<Vec<_>, CdrError>>()
        });
        let back = back.expect("correct");
        for ((value, index), (back, place)) in values.iter().zip(back) {
            prop_assert_eq!(&**value, &*back.expect("a value"));
            prop_assert_eq!(&*points[*index], &*place.expect("a value"));
        }
    }
}

/// Pieces that look like those of values.
fn part() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..16_u32).prop_map(|bits| octets![0x7fff_ff00 | bits]),
        (-60..40_i32).prop_map(|n| octets![n]),
        prop_oneof![
            Just(POINT),
            Just(BASE),
            Just(DERIVED),
            Just("IDL:Label:1.0"),
            Just("IDL:X:1.0")
        ]
        .prop_map(|id| octets![id]),
        (0..30_i32).prop_map(|n| octets![0xffff_ffff_u32, -4 * n]),
        any::<[u8; 4]>().prop_map(|octets| octets.to_vec()),
        (0..40_usize).prop_map(|n| vec![0; n]),
    ]
}
