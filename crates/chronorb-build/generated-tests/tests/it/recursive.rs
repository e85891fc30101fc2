//! Recursive types: values survive a round trip, and those that are nested too deeply are refused.

use std::thread;

use chronorb::config::Collocation;
use chronorb::data::{Arena, TypeCode, Typed};
use chronorb::prelude::*;
use chronorb_cdr::{Cdr, CdrError, Decoder, Endian, MAX_DEPTH};
use chronorb_generated_tests::recursive::nest::{
    Big, Directory, DirectoryBuf, Entry, EntryBuf, Expression, ExpressionBuf, Tree, TreeBuf,
    Walker, WalkerServant, WalkerSkeleton,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::ways::{in_each_way, octets, orb, there_and_back};

fn trees() -> impl Strategy<Value = TreeBuf> {
    let leaf = "[a-z]{0,8}".prop_map(|name| TreeBuf {
        name,
        children: vec![],
    });
    leaf.prop_recursive(8, 64, 4, |inner| {
        ("[a-z]{0,8}", vec(inner, 0..4)).prop_map(|(name, children)| TreeBuf { name, children })
    })
}

fn expressions() -> impl Strategy<Value = ExpressionBuf> {
    let leaf = prop_oneof![
        any::<f64>()
            .prop_filter("a number", |number| !number.is_nan())
            .prop_map(ExpressionBuf::Number),
        "[a-z]{0,8}".prop_map(ExpressionBuf::Name),
    ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(ExpressionBuf::Sum),
            (3..i32::MAX, vec(inner, 0..4)).prop_map(|(discriminator, value)| {
                ExpressionBuf::Call {
                    discriminator,
                    value,
                }
            }),
        ]
    })
}

fn directories() -> impl Strategy<Value = DirectoryBuf> {
    let leaf = Just(DirectoryBuf::default());
    leaf.prop_recursive(5, 32, 3, |inner| {
        let entry = prop_oneof![
            vec(inner.clone(), 0..3).prop_map(EntryBuf::Inside),
            vec(any::<u8>(), 0..9).prop_map(EntryBuf::Data),
        ];
        ("[a-z]{0,8}", vec(entry, 0..3), vec(inner, 0..2)).prop_map(|(name, entries, links)| {
            DirectoryBuf {
                name,
                entries,
                links: [links, vec![]],
            }
        })
    })
}

proptest! {
    #[test]
    fn a_tree_is_read_as_it_was_written(tree in trees()) {
        let arena = Arena::new(1 << 20);
        let view = tree.as_view_in(&arena).expect("room");
        prop_assert_eq!(view.to_owned(), tree.clone());
        prop_assert_eq!(
            octets(Endian::Big, |e| view.encode(e)),
            octets(Endian::Big, |e| tree.encode(e))
        );
        there_and_back(&view, |d| {
            assert_eq!(Tree::decode(d)?.to_owned(), tree);
            Ok(())
        });
    }

    #[test]
    fn a_union_of_itself_is_read_as_it_was_written(expression in expressions()) {
        let arena = Arena::new(1 << 20);
        let view = expression.as_view_in(&arena).expect("room");
        there_and_back(&view, |d| {
            assert_eq!(Expression::decode(d)?.to_owned(), expression);
            Ok(())
        });
    }

    #[test]
    fn types_that_hold_each_other_are_read_as_they_were_written(directory in directories()) {
        let arena = Arena::new(1 << 20);
        let view = directory.as_view_in(&arena).expect("room");
        there_and_back(&view, |d| {
            assert_eq!(Directory::decode(d)?.to_owned(), directory);
            Ok(())
        });
    }

    #[test]
    fn any_octets_are_a_value_or_an_error(mut octets in vec(any::<u8>(), 0..200)) {
        let arena = Arena::new(1 << 14);
        let mut copy = octets.clone();
        let _ = Directory::decode(&mut Decoder::new(&mut octets, 0, Endian::Big, &arena));
        let _ = Expression::decode(&mut Decoder::new(&mut copy, 0, Endian::Little, &arena));
    }
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let mut tree = TreeBuf::default();
    for _ in 0..MAX_DEPTH + 1 {
        tree = TreeBuf {
            name: String::new(),
            children: vec![tree],
        };
    }
    let mut octets = octets(Endian::Big, |e| tree.encode(e)).expect("written");
    let arena = Arena::new(1 << 20);
    let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
    assert_eq!(Tree::decode(&mut d), Err(CdrError::TooDeep));
}

#[test]
fn great_structs_within_each_other_take_no_more_than_the_stack() {
    // An ORB gives decoders the stack sizes of threads.
    let _orb = orb(Collocation::Off);
    for stack_size in [64 << 10, 256 << 10, 1 << 20, 8 << 20] {
        let nested = move || {
            let mut is_refused = false;
            for levels in 1..60 {
                let arena = Arena::new(1 << 18);
                let written = octets(Endian::NATIVE, |e| {
                    for level in (0..levels).rev() {
                        for _ in 0..100 {
                            e.write_f64(1.0)?;
                            e.write_str("")?;
                        }
                        e.write_u32(u32::from(level > 0))?;
                    }
                    Ok(())
                });
                let mut octets = written.expect("room");
                let mut d = Decoder::new(&mut octets, 0, Endian::NATIVE, &arena);
                match Big::decode(&mut d) {
                    // The decoded value can be processed as well.
                    Ok(big) => {
                        let own = big.to_owned();
                        assert_eq!(own, own.clone());
                        assert!(!format!("{own:?}").is_empty());
                    }
                    Err(error) => {
                        assert_eq!(error, CdrError::TooDeep);
                        is_refused = true;
                    }
                }
            }
            assert!(is_refused || stack_size >= 1 << 20);
        };
        let thread = thread::Builder::new().stack_size(stack_size).spawn(nested);
        thread.expect("started").join().expect("it returned");
    }
}

#[test]
fn the_type_code_of_what_holds_itself_ends_where_it_begins() {
    let TypeCode::Struct { members, .. } = Tree::TYPE_CODE else {
        panic!("{}", Tree::TYPE_CODE);
    };
    let id = Tree::REPOSITORY_ID;
    let again = TypeCode::Recursive { id };
    let children = TypeCode::Sequence {
        element: &again,
        bound: 0,
    };
    assert_eq!(members[1].type_code, children);
    assert_eq!(TreeBuf::TYPE_CODE, Tree::TYPE_CODE);
    // The type code of each type in the cycle contains the others.
    assert!(Directory::TYPE_CODE.equivalent(&Directory::TYPE_CODE));
    there_and_back(&Directory::TYPE_CODE, |d| {
        assert!(TypeCode::decode(d)?.equal(&Directory::TYPE_CODE));
        Ok(())
    });
    there_and_back(&Entry::TYPE_CODE, |d| {
        assert!(TypeCode::decode(d)?.equal(&Entry::TYPE_CODE));
        Ok(())
    });
}

/// A servant that returns its arguments.
struct Echo;

impl WalkerServant for Echo {
    fn walk<'a>(
        &self,
        _: &Call<'a>,
        a: &Tree<'a>,
        b: &mut Tree<'a>,
    ) -> Result<Tree<'a>, SystemException> {
        Ok(std::mem::replace(b, *a))
    }

    fn simplify<'a>(
        &self,
        _: &Call<'a>,
        a: &Expression<'a>,
    ) -> Result<Expression<'a>, SystemException> {
        Ok(match a {
            Expression::Sum([one]) => *one,
            other => *other,
        })
    }

    fn list<'a>(
        &self,
        _: &Call<'a>,
        a: &Directory<'a>,
    ) -> Result<(Directory<'a>, u32), SystemException> {
        Ok((*a, a.entries.len() as u32))
    }
}

#[test]
fn they_are_called_with() {
    let arena = Arena::new(1 << 16);
    let leaf = |name: &str| TreeBuf {
        name: name.to_owned(),
        children: vec![],
    };
    for served in in_each_way(|| WalkerSkeleton::new(Echo)) {
        let walker = Walker::narrow(&served.object).expect("asked").expect("one");
        let tree = TreeBuf {
            name: "root".to_owned(),
            children: vec![leaf("left"), leaf("right")],
        };
        let mut b = leaf("other");
        let view = tree.as_view_in(&arena).expect("room");
        assert_eq!(walker.walk(&view, &mut b), Ok(leaf("other")));
        assert_eq!(b, tree);

        let sum = Expression::Sum(&[Expression::Number(1.5)]);
        assert_eq!(walker.simplify(&sum), Ok(ExpressionBuf::Number(1.5)));

        let directory = Directory {
            name: "d",
            entries: &[Entry::Data(&[1]), Entry::Inside(&[])],
            links: [&[], &[]],
        };
        assert_eq!(walker.list(&directory), Ok((directory.to_owned(), 2)));
    }
}
