//! Types that contain themselves by `@external`: such members are references in views, and boxes in
//! owned values.

use chronorb::data::{Any, Arena, TypeCode, Typed};
use chronorb::prelude::*;
use chronorb_cdr::{Cdr, CdrError, Decoder, Endian, MAX_DEPTH};
use chronorb_generated_tests::apart::apart::{
    Chain, ChainServant, ChainSkeleton, DerivedBuf, Half, HalfBuf, Id, IdBuf, Item, ItemBuf, Lists,
    ListsBuf, Node, NodeBuf, Pair, PairBuf,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::ways::{in_each_way, octets, there_and_back};

/// A chain of nodes with these names.
fn chain<'n>(names: impl IntoIterator<Item = &'n str, IntoIter: DoubleEndedIterator>) -> NodeBuf {
    let mut names = names.into_iter().rev();
    let last = names.next().unwrap_or_default();
    let last = NodeBuf {
        name: last.to_owned(),
        next: None,
    };
    names.fold(last, |next, name| NodeBuf {
        name: name.to_owned(),
        next: Some(Box::new(next)),
    })
}

fn ids() -> impl Strategy<Value = IdBuf> {
    any::<i32>()
        .prop_map(IdBuf::Plain)
        .prop_recursive(6, 48, 3, |inner| {
            prop_oneof![
                (any::<i32>(), inner.clone()).prop_map(|(number, which)| {
                    let which = Box::new(which);
                    IdBuf::List(ItemBuf { number, which })
                }),
                [inner.clone(), inner.clone()].prop_map(|inner| IdBuf::Inner(Box::new(inner))),
                (4..=u8::MAX, vec(inner, 0..3)).prop_map(|(discriminator, value)| IdBuf::Several {
                    discriminator,
                    value
                }),
            ]
        })
}

fn pairs() -> impl Strategy<Value = PairBuf> {
    Just(PairBuf::default()).prop_recursive(4, 24, 3, |inner| {
        let half = (
            any::<u8>(),
            proptest::option::of(inner.clone()),
            proptest::option::of([inner.clone(), inner]),
        );
        let half = half.prop_map(|(number, whole, more)| HalfBuf {
            number,
            whole: whole.map(Box::new),
            more: more.map(Box::new),
        });
        [half.clone(), half].prop_map(|[a, b]| PairBuf { a, b })
    })
}

proptest! {
    #[test]
    fn a_union_that_holds_itself_apart_is_read_as_it_was_written(id in ids()) {
        let arena = Arena::new(1 << 20);
        let view = id.as_view_in(&arena).expect("room");
        prop_assert_eq!(view.to_owned(), id.clone());
        prop_assert_eq!(
            octets(Endian::Big, |e| view.encode(e)),
            octets(Endian::Big, |e| id.encode(e))
        );
        there_and_back(&view, |d| {
            assert_eq!(Id::decode(d)?.to_owned(), id);
            Ok(())
        });
    }

    #[test]
    fn structs_that_hold_each_other_apart_are_read_as_they_were_written(pair in pairs()) {
        let arena = Arena::new(1 << 20);
        let view = pair.as_view_in(&arena).expect("room");
        prop_assert_eq!(
            octets(Endian::Big, |e| view.encode(e)),
            octets(Endian::Big, |e| pair.encode(e))
        );
        there_and_back(&view, |d| {
            assert_eq!(Pair::decode(d)?.to_owned(), pair);
            Ok(())
        });
    }

    #[test]
    fn any_octets_are_a_value_apart_or_an_error(mut octets in vec(any::<u8>(), 0..200)) {
        let arena = Arena::new(1 << 14);
        let mut copy = octets.clone();
        let _ = Pair::decode(&mut Decoder::new(&mut octets, 0, Endian::Big, &arena));
        let _ = Id::decode(&mut Decoder::new(&mut copy, 0, Endian::Little, &arena));
    }
}

#[test]
fn a_chain_has_the_octets_of_optional_members() {
    let written = octets(Endian::Big, |e| chain(["a", "b"]).encode(e)).expect("room");
    let expected = b"\0\0\0\x02a\0\x01\0\0\0\0\x02b\0\0";
    assert_eq!(written, expected);
    let list = Node {
        name: "a",
        next: Some(&Node {
            name: "b",
            next: None,
        }),
    };
    assert_eq!(
        octets(Endian::Big, |e| list.encode(e)).expect("room"),
        expected
    );
}

#[test]
fn chains_have_as_many_links_as_a_message_has_levels() {
    for (links, is_refused) in [(MAX_DEPTH, false), (MAX_DEPTH + 1, true)] {
        let list = chain(std::iter::repeat_n("", links as usize + 1));
        let mut octets = octets(Endian::Big, |e| list.encode(e)).expect("written");
        let arena = Arena::new(1 << 20);
        let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
        match Node::decode(&mut d) {
            Ok(read) => assert!(!is_refused && read.to_owned() == list),
            Err(error) => assert_eq!((error, is_refused), (CdrError::TooDeep, true)),
        }
    }
}

#[test]
fn only_members_of_a_cycle_are_apart() {
    let lists = ListsBuf {
        first: Box::new(chain(["first"])),
        title: "title".to_owned(),
    };
    let arena = Arena::new(1 << 12);
    let view = lists.as_view_in(&arena).expect("room");
    assert_eq!((view.first.name, view.title), ("first", "title"));
    let full = Arena::new(0);
    assert_eq!(lists.as_view_in(&full), Err(CdrError::ArenaFull));
    let derived = DerivedBuf {
        name: "a".to_owned(),
        next: Some(Box::new(chain(["b"]))),
        more: 7,
    };
    assert_eq!(NodeBuf::from(derived), chain(["a", "b"]));
    assert_eq!(IdBuf::default(), IdBuf::Plain(0));
}

#[test]
fn the_type_code_of_what_holds_itself_apart_ends_where_it_begins() {
    for type_code in [
        Node::TYPE_CODE,
        Id::TYPE_CODE,
        Item::TYPE_CODE,
        Half::TYPE_CODE,
    ] {
        there_and_back(&type_code, |d| {
            assert!(TypeCode::decode(d)?.equal(&type_code));
            Ok(())
        });
    }
    assert_eq!(NodeBuf::TYPE_CODE, Node::TYPE_CODE);
}

#[test]
fn values_of_an_any_hold_themselves_apart() {
    let list = chain(["a", "b", "c"]);
    let arena = Arena::new(1 << 12);
    let view = list.as_view_in(&arena).expect("room");
    there_and_back(&Any::of(&view), |d| {
        // It is read by its type code.
        assert_eq!(Any::decode(d)?.extract::<Node<'_>>()?.to_owned(), list);
        Ok(())
    });
}

/// A servant that changes its arguments.
struct Turner;

impl ChainServant for Turner {
    fn turn<'a>(
        &self,
        call: &Call<'a>,
        forward: &Node<'a>,
        other: &mut Node<'a>,
    ) -> Result<Node<'a>, SystemException> {
        let mut turned = Node {
            next: None,
            ..*forward
        };
        let mut rest = forward.next;
        while let Some(node) = rest {
            rest = node.next;
            let before = call.arena().alloc(turned)?;
            turned = Node {
                next: Some(before),
                ..*node
            };
        }
        *other = *forward;
        Ok(turned)
    }

    fn wrap<'a>(&self, call: &Call<'a>, inner: &Id<'a>) -> Result<Id<'a>, SystemException> {
        Ok(Id::List(Item {
            number: 1,
            which: call.arena().alloc(*inner)?,
        }))
    }

    fn swap<'a>(
        &self,
        call: &Call<'a>,
        one: &Pair<'a>,
    ) -> Result<(Pair<'a>, Lists<'a>), SystemException> {
        let first = call.arena().alloc(Node {
            name: "first",
            next: None,
        })?;
        let lists = Lists {
            first,
            title: "title",
        };
        Ok((Pair { a: one.b, b: one.a }, lists))
    }
}

#[test]
fn operations_have_parameters_that_hold_themselves_apart() {
    let arena = Arena::new(1 << 16);
    for served in in_each_way(|| ChainSkeleton::new(Turner)) {
        let object = Chain::narrow(&served.object).expect("asked").expect("one");
        let list = chain(["a", "b", "c"]);
        let mut other = NodeBuf::default();
        let view = list.as_view_in(&arena).expect("room");
        assert_eq!(object.turn(&view, &mut other), Ok(chain(["c", "b", "a"])));
        assert_eq!(other, list);

        let wrapped = IdBuf::List(ItemBuf {
            number: 1,
            which: Box::new(IdBuf::Plain(7)),
        });
        assert_eq!(object.wrap(&Id::Plain(7)), Ok(wrapped));

        let inner = Pair::default();
        let pair = Pair {
            a: Half {
                number: 1,
                whole: Some(&inner),
                more: None,
            },
            b: Half::default(),
        };
        let (swapped, lists) = object.swap(&pair).expect("it is served");
        assert_eq!(
            (swapped.a, swapped.b),
            (pair.b.to_owned(), pair.a.to_owned())
        );
        assert_eq!((&*lists.first.name, &*lists.title), ("first", "title"));
    }
}
