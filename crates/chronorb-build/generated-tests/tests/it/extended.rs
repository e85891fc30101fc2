//! Additions of IDL 4: maps, structs that extend others, empty structs, integers of eight bits.

use std::collections::BTreeMap;

use chronorb::SystemExceptionKind;
use chronorb::data::{Arena, TypeCode, Typed};
use chronorb::prelude::*;
use chronorb_cdr::{Cdr, CdrError, Decoder, Endian};
use chronorb_generated_tests::extended::later::{
    Bare, Base, Choice, ChoiceBuf, Counts, CountsBuf, Derived, DerivedBuf, Key, Maps, MapsBuf,
    Middle, Nothing, Shelf, ShelfServant, ShelfSkeleton,
};

use crate::ways::{in_each_way_and_owned, octets, there_and_back};

fn counts(entries: &[(&str, i32)]) -> CountsBuf {
    entries
        .iter()
        .map(|&(key, value)| (key.to_owned(), value))
        .collect()
}

fn derived() -> DerivedBuf {
    DerivedBuf {
        id: 7,
        rank: 255,
        weight: 0.5,
        label: "label".to_owned(),
        steps: vec![-1, 127, -128],
    }
}

fn maps() -> MapsBuf {
    let inner = BTreeMap::from([("wide \u{20ac}".to_owned(), true), (String::new(), false)]);
    MapsBuf {
        few: counts(&[("b", 2), ("a", 1)]),
        by_key: BTreeMap::from([(Key::Right, derived()), (Key::Left, DerivedBuf::default())]),
        names: vec![(0.5, "half".to_owned()), (-1.0, String::new())],
        nested: BTreeMap::from([(1, inner), (2, BTreeMap::new())]),
        both: [counts(&[]), counts(&[("x", -1)])],
        all: vec![counts(&[("y", 0)]), counts(&[])],
    }
}

#[test]
fn the_members_of_the_base_come_first() {
    let derived = derived();
    let view = derived.as_view();
    assert_eq!(Base::from(&view), Base { id: 7, rank: 255 });
    assert_eq!(Middle::from(&view).weight, 0.5);
    assert_eq!(Middle::from(derived.clone()).id, 7);
    let octets = octets(Endian::Big, |e| view.encode(e)).expect("written");
    assert_eq!(
        octets[..16],
        [0, 0, 0, 7, 255, 0, 0, 0, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0]
    );
    let TypeCode::Struct { members, .. } = Derived::TYPE_CODE else {
        panic!("{}", Derived::TYPE_CODE);
    };
    let names: Vec<_> = members.iter().map(|member| member.name).collect();
    assert_eq!(names, ["id", "rank", "weight", "label", "steps"]);
    assert_eq!(Bare { n: 1 }, Bare { n: 1 });
}

#[test]
fn an_empty_struct_has_no_octets() {
    assert_eq!(octets(Endian::Big, |e| Nothing.encode(e)), Ok(vec![]));
}

#[test]
fn a_map_is_a_slice_of_pairs_and_its_twin_is_in_order() {
    let arena = Arena::new(1 << 16);
    let maps = maps();
    let view = maps.as_view_in(&arena).expect("room");
    assert_eq!(view.few, [("a", 1), ("b", 2)]);
    there_and_back(&view, |d| {
        let read = Maps::decode(d)?;
        assert_eq!(read, view);
        assert_eq!(read.to_owned(), maps);
        Ok(())
    });
    assert_eq!(
        octets(Endian::Big, |e| view.encode(e)),
        octets(Endian::Big, |e| maps.encode(e))
    );
}

#[test]
fn a_map_travels_as_a_sequence_of_its_entries() {
    let counts: Counts<'_> = &[("a", 1)];
    let choice = Choice::Few(counts);
    let octets = octets(Endian::Big, |e| choice.encode(e)).expect("written");
    let text = [0, 0, 0, 2, b'a', 0];
    assert_eq!(octets[..4], [255, 0, 0, 0]);
    assert_eq!(octets[4..8], [0, 0, 0, 1]);
    assert_eq!(octets[8..14], text);
    assert_eq!(octets[16..], [0, 0, 0, 1]);
}

#[test]
fn more_entries_than_the_bound_are_refused() {
    let maps = Maps {
        names: &[(1.0, ""), (2.0, ""), (3.0, "")],
        ..Maps::default()
    };
    let refused = octets(Endian::Big, |e| maps.encode(e));
    assert_eq!(refused, Err(CdrError::BoundExceeded));
    let refused = octets(Endian::Big, |e| maps.to_owned().encode(e));
    assert_eq!(refused, Err(CdrError::BoundExceeded));

    let arena = Arena::new(1 << 10);
    let mut many = [0; 64];
    many[11] = 3;
    let mut d = Decoder::new(&mut many, 0, Endian::Big, &arena);
    assert_eq!(Maps::decode(&mut d), Err(CdrError::BoundExceeded));
}

/// A servant that returns its arguments.
struct Echo;

impl ShelfServant for Echo {
    fn sort<'a>(
        &self,
        _: &Call<'a>,
        a: &Maps<'a>,
        b: &mut Counts<'a>,
    ) -> Result<Maps<'a>, SystemException> {
        *b = a.few;
        Ok(*a)
    }

    fn change<'a>(
        &self,
        _: &Call<'a>,
        a: &Derived<'a>,
        b: &mut Base,
    ) -> Result<(Derived<'a>, &'a [Nothing]), SystemException> {
        *b = a.into();
        Ok((*a, &[]))
    }

    fn choose<'a>(&self, _: &Call<'a>, a: &Choice<'a>) -> Result<Choice<'a>, SystemException> {
        Ok(*a)
    }

    fn small<'a>(
        &self,
        _: &Call<'a>,
        a: i8,
        b: &mut &'a [u8],
    ) -> Result<(u8, &'a [i8]), SystemException> {
        *b = &b[1..];
        Ok((a.unsigned_abs(), &[-1, 1]))
    }
}

#[test]
fn they_are_called_with_in_all_directions() {
    let arena = Arena::new(1 << 16);
    for served in in_each_way_and_owned(|| ShelfSkeleton::new(Echo), crate::owned::shelf) {
        let shelf = Shelf::narrow(&served.object).expect("asked").expect("one");
        let maps = maps();
        let view = maps.as_view_in(&arena).expect("room");
        let mut b = counts(&[("old", 1)]);
        assert_eq!(shelf.sort(&view, &mut b).as_ref(), Ok(&maps));
        assert_eq!(b, maps.few);

        let mut b = Base::default();
        let changed = shelf.change(&derived().as_view(), &mut b);
        assert_eq!(changed, Ok((derived(), vec![])));
        assert_eq!(b, Base { id: 7, rank: 255 });

        let none = shelf.choose(&Choice::None_(Nothing));
        assert_eq!(none, Ok(ChoiceBuf::None_(Nothing)));
        let other = shelf.choose(&Choice::Other(0));
        assert_eq!(other, Ok(ChoiceBuf::Other(0)));
        let refused = shelf.choose(&Choice::Other(-1)).map_err(|e| e.kind);
        assert_eq!(refused, Err(SystemExceptionKind::Marshal));

        let mut b = vec![1, 2, 3];
        assert_eq!(shelf.small(-128, &mut b), Ok((128, vec![-1, 1])));
        assert_eq!(b, [2, 3]);
    }
}
