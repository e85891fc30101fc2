//! Self-describing values and decimal numbers as parameters, members and exceptions.

use chronorb::data::{Any, AnyBuf, Arena, Fixed, TypeCode, TypeCodeBuf, Typed};
use chronorb::prelude::*;
use chronorb::{CompletionStatus, SystemExceptionKind};
use chronorb_cdr::{Cdr, Endian};
use chronorb_generated_tests::dynamic::live::{
    self, Bag, BagBuf, Either, EitherBuf, Level, Mistaken, MistakenBuf, Money, PRICE, PutError,
    PutErrorBuf, RATIO, Reading, ReadingBuf, Store, StoreServant, StoreSkeleton,
};

use crate::ways::{ServedObject, in_each_way_and_owned, octets, orb_with, there_and_back};

/// A servant that returns its arguments; strings are refused.
struct Shelf;

impl StoreServant for Shelf {
    fn put<'a>(
        &self,
        _: &Call<'a>,
        a: &Any<'a>,
        b: &mut Any<'a>,
    ) -> Result<(Any<'a>, Any<'a>), PutError<'a>> {
        if a.holds::<&str>() {
            let expected = Reading::TYPE_CODE;
            return Err(Mistaken {
                expected,
                found: *a,
            }
            .into());
        }
        Ok((*a, std::mem::replace(b, *a)))
    }

    fn type_of<'a>(
        &self,
        _: &Call<'a>,
        a: &Any<'a>,
        b: &mut TypeCode<'a>,
    ) -> Result<TypeCode<'a>, SystemException> {
        Ok(std::mem::replace(b, *a.type_code()))
    }

    fn fill<'a>(&self, _: &Call<'a>, a: &Bag<'a>) -> Result<Bag<'a>, SystemException> {
        Ok(*a)
    }

    fn sum(
        &self,
        _: &Call<'_>,
        a: Money,
        b: &mut Money,
    ) -> Result<(Money, Money), SystemException> {
        let overflow = SystemException::no(SystemExceptionKind::DataConversion, 0);
        let sum = a.checked_add(*b).ok_or(overflow)?;
        Ok((sum, std::mem::replace(b, a)))
    }

    fn choose<'a>(&self, _: &Call<'a>, a: &Either<'a>) -> Result<Either<'a>, SystemException> {
        Ok(*a)
    }

    fn content<'a>(&self, call: &Call<'a>) -> Result<Any<'a>, SystemException> {
        Ok(Any::new(&7_i32, call.arena())?)
    }

    fn set_content<'a>(&self, _: &Call<'a>, value: &Any<'a>) -> Result<(), SystemException> {
        match value.extract::<Reading<'_>>() {
            Ok(reading) if reading.how == Level::High => Ok(()),
            _ => Err(SystemException::no(SystemExceptionKind::BadParam, 0)),
        }
    }

    fn greet<'a>(
        &self,
        call: &Call<'a>,
        guest: &'a str,
        context: &'a [(&'a str, &'a str)],
    ) -> Result<&'a str, SystemException> {
        let context: Vec<_> = context
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Ok(call.keep(format!("{guest}: {}", context.join(" "))))
    }
}

fn stores() -> impl Iterator<Item = (ServedObject, Store)> {
    in_each_way_and_owned(|| StoreSkeleton::new(Shelf), crate::owned::store).map(|served| {
        let store = Store::narrow(&served.object).expect("asked").expect("one");
        (served, store)
    })
}

const READING: Reading<'static> = Reading {
    sensor: "north",
    value: 21.5,
    how: Level::High,
};

#[test]
fn an_any_takes_generated_types_and_gives_them_back() {
    let arena = Arena::new(1 << 16);
    for (_served, store) in stores() {
        let mut b = AnyBuf::new(&3_u32).expect("made");
        let (result, c) = store.put(&Any::of(&READING), &mut b).expect("called");
        let view = result.as_view_in(&arena).expect("room");
        assert_eq!(view.extract::<Reading<'_>>(), Ok(READING));
        assert!(view.extract::<u32>().is_err());
        let c = c.as_view_in(&arena).expect("room");
        assert_eq!(c.extract::<u32>(), Ok(3));
        assert_eq!(b, result);

        assert_eq!(store.set_content(&Any::of(&READING)), Ok(()));
        let content = store.content().expect("called");
        let content = content.as_view_in(&arena).expect("room");
        assert_eq!(content.extract::<i32>(), Ok(7));
    }
}

#[test]
fn references_come_out_of_owned_anys_by_an_orb() {
    let arena = Arena::new(1 << 16);
    for (served, store) in stores() {
        let sent = Some(&store);
        let mut other = AnyBuf::new(&0_u8).expect("made");
        let (kept, _) = store.put(&Any::of(&sent), &mut other).expect("called");
        let view = kept.as_view_in(&arena).expect("room");
        assert!(view.extract::<Option<&Store>>().is_err(), "of no ORB");
        let view = served.client().any(view).expect("room");
        assert_eq!(view.extract::<Option<&Store>>(), Ok(Some(&store)));
    }
}

#[test]
fn exceptions_tell_of_types_and_values() {
    for (_served, store) in stores() {
        let refused = store.put(&Any::of(&"text"), &mut AnyBuf::default());
        let Err(PutErrorBuf::Mistaken(MistakenBuf { expected, found })) = refused else {
            panic!("{refused:?}");
        };
        assert!(expected.as_view().equal(&Reading::TYPE_CODE));
        assert!(found.holds::<&str>());
    }
}

#[test]
fn type_codes_are_parameters() {
    for (_served, store) in stores() {
        let mut b = TypeCodeBuf::from(Level::TYPE_CODE);
        let before = store.type_of(&Any::of(&READING), &mut b).expect("called");
        assert!(before.as_view().equal(&Level::TYPE_CODE));
        assert!(b.as_view().equal(&ReadingBuf::TYPE_CODE));
    }
}

#[test]
fn settings_bound_what_each_side_accepts() {
    const OTHERS: [&[&str]; 2] = [&["-ORBMaxTypeMembers", "2"], &[]];
    let call = |server: usize, client: usize| {
        let orbs = [server, client].map(|side| orb_with(OTHERS[side]));
        let served = ServedObject::by(orbs.into(), StoreSkeleton::new(Shelf));
        let store = Store::unchecked_narrow(&served.object);
        let mut b = TypeCodeBuf::from(Level::TYPE_CODE);
        store.type_of(&Any::of(&READING), &mut b)
    };
    assert!(call(1, 1).is_ok());
    // The type in the request has three members, as that in the reply.
    for (server, client, completed) in [(0, 1, CompletionStatus::No), (1, 0, CompletionStatus::Yes)]
    {
        let refused = call(server, client).expect_err("two members are too few");
        let expected = (SystemExceptionKind::Marshal, completed);
        assert_eq!((refused.kind, refused.completed), expected);
    }
}

#[test]
fn members_are_of_these_types() {
    let arena = Arena::new(1 << 16);
    let money = |text: &str| text.parse::<Money>().expect("a number");
    for (_served, store) in stores() {
        let bag = BagBuf {
            content: AnyBuf::new(&READING).expect("made"),
            more: vec![AnyBuf::new(&true).expect("made"), AnyBuf::default()],
            kind: TypeCodeBuf::from(Bag::TYPE_CODE),
            total: money("1234567.89"),
            parts: [money("-0.01"), PRICE],
            list: vec![money("0"), money("-9999999.99")],
            pair: [AnyBuf::new(&'x').expect("made"), AnyBuf::default()],
        };
        let view = bag.as_view_in(&arena).expect("room");
        assert_eq!(store.fill(&view).as_ref(), Ok(&bag));

        let amount = Either::Amount(PRICE);
        assert_eq!(store.choose(&amount), Ok(EitherBuf::Amount(PRICE)));
        let content = EitherBuf::Content(AnyBuf::new(&1.5_f64).expect("made"));
        let view = content.as_view_in(&arena).expect("room");
        assert_eq!(store.choose(&view).as_ref(), Ok(&content));

        let mut b = money("0.5");
        assert_eq!(store.sum(PRICE, &mut b), Ok((money("13"), money("0.5"))));
        assert_eq!(b, PRICE);
    }
}

#[test]
fn constants_may_be_decimal_numbers() {
    assert_eq!(PRICE.to_string(), "12.50");
    assert_eq!(RATIO.to_string(), "-0.125");
    assert_eq!(
        RATIO,
        Fixed::<3, 3>::from_unscaled(-125).expect("three digits")
    );
}

#[test]
fn a_typedef_has_a_type_code_beside_it() {
    let TypeCode::Alias { name, target, .. } = live::MONEY_TYPE_CODE else {
        panic!("{}", live::MONEY_TYPE_CODE);
    };
    assert_eq!((name, *target), ("Money", Money::TYPE_CODE));
    let unaliased = live::ANYS_TYPE_CODE.unaliased();
    assert_eq!(unaliased.to_string(), "sequence<any, 4>");
}

#[test]
fn the_client_tells_what_the_clause_names() {
    for (_served, store) in stores() {
        let context = [
            ("user", "ann"),
            ("secret", "x"),
            ("env.lang", "de"),
            ("env.tz", ""),
        ];
        let greeting = store.greet("all", &context);
        assert_eq!(greeting.as_deref(), Ok("all: user=ann env.lang=de env.tz="));
        assert_eq!(store.greet("all", &[]).as_deref(), Ok("all: "));
    }
}

#[test]
fn a_received_any_goes_out_again_in_the_other_byte_order() {
    let bag = Bag {
        content: Any::of(&READING),
        total: PRICE,
        ..Bag::default()
    };
    there_and_back(&bag, |d| {
        let read = Bag::decode(d)?;
        assert_eq!(read.content.extract::<Reading<'_>>()?, READING);
        for endian in [Endian::Big, Endian::Little] {
            let again = octets(endian, |e| read.encode(e))?;
            assert_eq!(Ok(again), octets(endian, |e| bag.encode(e)));
        }
        Ok(())
    });
}
