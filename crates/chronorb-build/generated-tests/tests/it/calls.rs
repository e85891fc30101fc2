//! Calls of every type and parameter mode, from one ORB to another and within one, marshalled or
//! direct: the results are the same.

use std::thread;

use chronorb::data::Char;
use chronorb::{CompletionStatus, Object, Scope, SystemExceptionKind, minor};
use chronorb_generated_tests::types::house::{
    Busy, Code, Color, FAVOURITE, FailingObjectError, FirstError, FourOut, GREETING, Kitchen,
    LEAST, LETTER, Level, Listener, MAX_ITEMS, NodeBuf, NodesErrorBuf, NotFoundBuf, Numbered,
    Plain, SetFailingObjectErrorBuf, TINY, ThirdErrorBuf, TreeBuf, WIDE_PI, base,
};

use crate::support::{ServedKitchen, fixed, node, tree};

#[test]
fn fixed_types_go_there_and_back() {
    for kitchen in ServedKitchen::in_each_way() {
        let a = fixed();
        let other = Plain { g: 7, ..a };
        let mut b = other;
        let (result, c) = kitchen.fixed_parts(&a, &mut b).expect("called");
        assert_eq!((result, b, c), (a, a, other));
    }
}

#[test]
fn variable_types_are_owned_by_default() {
    for kitchen in ServedKitchen::in_each_way() {
        let arena = chronorb::data::Arena::new(1 << 16);
        let a = node();
        let view = a.as_view_in(&arena).expect("room");
        let mut b = NodeBuf {
            name: "other".to_owned(),
            ..NodeBuf::default()
        };
        let (result, c) = kitchen.nodes(&view, &mut b).expect("called");
        assert_eq!((&result, &b), (&a, &a));
        assert_eq!(c.name, "other");
    }
}

#[test]
fn nested_variable_types_go_there_and_back_with_references_in_them() {
    for kitchen in ServedKitchen::in_each_way() {
        let arena = chronorb::data::Arena::new(1 << 18);
        let a = tree(&kitchen.clone().into());
        let view = a.as_view_in(&arena).expect("room");
        let mut b = TreeBuf::default();
        let (result, c) = kitchen.trees(&view, &mut b).expect("called");
        assert_same_tree(&result, &a);
        assert_same_tree(&b, &a);
        assert_eq!(c, TreeBuf::default());
    }
}

#[test]
fn results_can_be_borrowed_from_a_scope() {
    for kitchen in ServedKitchen::in_each_way() {
        let arena = chronorb::data::Arena::new(1 << 16);
        let a = node();
        let view = a.as_view_in(&arena).expect("room");
        let mut scope = Scope::new(1 << 16);
        let mut b = view;
        let (result, c) = kitchen.nodes_in(&mut scope, &view, &mut b).expect("called");
        assert_eq!((result, b, c), (view, view, view));
    }
}

#[test]
fn more_than_three_results_come_as_a_struct() {
    for kitchen in ServedKitchen::in_each_way() {
        let mut e = "inout".to_owned();
        let out = kitchen.many("in", &mut e).expect("called");
        assert_eq!(
            (out.result.as_str(), out.b.as_str(), e.as_str()),
            ("result", "inout", "in")
        );
        assert_eq!((out.c, out.d), (9, [[1.0, 2.0]; 3]));

        let expected = FourOut {
            result: 1,
            x: 2,
            y: 3,
            z: 4,
        };
        assert_eq!(kitchen.four().expect("called"), expected);
    }
}

#[test]
fn references_are_passed_in_all_directions() {
    for kitchen in ServedKitchen::in_each_way() {
        let listener: Listener = kitchen.clone().into();
        let object: &Object = kitchen.as_object();
        let mut b = Some(listener);
        let (old, a) = kitchen
            .references(None, &mut b, Some(object))
            .expect("called");
        assert!(b.is_none() && a.is_none());
        assert_eq!(old.expect("not nil").heard().expect("called"), 0);

        assert!(kitchen.peer().expect("called").is_none());
        kitchen.set_other(Some(&kitchen)).expect("called");
        let itself = kitchen.other().expect("called").expect("not nil");
        assert_eq!(itself.label().expect("called"), "label");
    }
}

#[test]
fn arrays_enums_and_characters_go_there_and_back() {
    for kitchen in ServedKitchen::in_each_way() {
        let mut b = [[5.0; 2]; 3];
        let (result, c) = kitchen
            .arrays(&[[7.0; 2]; 3], &mut b, &[&[1.0], &[2.0, 3.0]])
            .expect("called");
        assert_eq!((result, b), ([[5.0; 2]; 3], [[7.0; 2]; 3]));
        assert_eq!(c, [vec![1.0], vec![2.0, 3.0]]);

        let mut color = Color::Red;
        let colors = kitchen.enums(Color::DarkGreen, &mut color).expect("called");
        assert_eq!(
            (colors, color),
            ((Color::Red, Color::Blue), Color::DarkGreen)
        );

        let (mut b, mut d) = (Char(b'1'), false);
        let result = kitchen
            .characters('\u{20ac}', &mut b, &mut d)
            .expect("called");
        assert_eq!((result, b, d), (('\u{20ac}', WIDE_PI), Char(b'2'), true));
    }
}

#[test]
fn great_sequences_go_there_and_back() {
    let a: Vec<u8> = (0..300_000).map(|index| (index % 251) as u8).collect();
    for kitchen in ServedKitchen::in_each_way() {
        let mut b = vec![1];
        let (result, c) = kitchen.octets(&a, &mut b).expect("called");
        assert_eq!((result.as_slice(), b.as_slice()), (&[1][..], &a[..4]));
        assert!(c == a);
    }
}

#[test]
fn octets_strings_and_sequences_go_there_and_back() {
    for kitchen in ServedKitchen::in_each_way() {
        let mut b = vec![1];
        let octets = kitchen.octets(&[1, 2, 3, 4, 5], &mut b).expect("called");
        assert_eq!(
            (octets, b),
            ((vec![1], vec![1, 2, 3, 4, 5]), vec![1, 2, 3, 4])
        );

        let mut b = "\u{1f600}".to_owned();
        let (result, lines) = kitchen.wide("gr\u{fc}n", &mut b).expect("called");
        assert_eq!((result.as_str(), b.as_str()), ("\u{1f600}", "gr\u{fc}n"));
        assert_eq!(lines, ["gr\u{fc}n", "\u{1f600}"]);

        let (mut a, mut b) = (vec!["q".to_owned()], vec![node()]);
        assert_eq!(kitchen.sequences(&mut a, &mut b).expect("called"), [node()]);
        assert_eq!((a, b), (vec!["x".to_owned(), "y".to_owned()], vec![]));
    }
}

#[test]
fn bounds_hold_in_both_directions() {
    for kitchen in ServedKitchen::in_each_way() {
        let code: Code<'_> = "a";
        let call = |a: &[&str], c: &str| {
            let (mut b, mut d) = (vec!["b".to_owned()], "d".to_owned());
            let result = kitchen.bounded(a, &mut b, c, &mut d);
            result.map(|result| (result, b, d))
        };
        let expected = (vec!["b".to_owned()], vec!["a".to_owned()], "c".to_owned());
        assert_eq!(call(&[code], "c").expect("within the bounds"), expected);
        call(&[code; 4], "c").expect_err("too many elements");
        call(&["123456789"], "c").expect_err("too long an element");
        call(&[code], "123456").expect_err("too long a wide string");

        assert_eq!(
            kitchen.at_most_four("abcd").expect("within the bound"),
            "abcd"
        );
        kitchen
            .at_most_four("abcde")
            .expect_err("too long an argument");
        kitchen.at_most_four("long").expect_err("too long a result");
    }
}

#[test]
fn what_cannot_be_marshalled_raises_the_same_exceptions_in_each_way() {
    use CompletionStatus::{No, Yes};
    use SystemExceptionKind::{DataConversion, Marshal};

    for kitchen in ServedKitchen::in_each_way() {
        let bounded = |b: &str, c| {
            let mut b = vec![b.to_owned()];
            kitchen.bounded(&[], &mut b, c, &mut String::new())
        };
        let characters = |a, b| kitchen.characters(a, &mut Char(b), &mut false);
        let third = |what| match kitchen.third(what) {
            Err(ThirdErrorBuf::System(exception)) => exception,
            other => panic!("{other:?}"),
        };
        let raised = [
            kitchen.at_most_four("abcde").expect_err("too long"),
            kitchen.at_most_four("a\0").expect_err("NUL in it"),
            kitchen.at_most_four("long").expect_err("too long a result"),
            bounded("123456789", "").expect_err("too long an element"),
            bounded("", "123456").expect_err("too long a wide string"),
            characters('\u{1f600}', b'1').expect_err("no wchar"),
            characters('x', 0xe0).expect_err("not ASCII"),
            characters('x', 0x7f).expect_err("not ASCII as a result"),
            third("\0"),
            third("nul"),
        ];
        let raised = raised.map(|e| (e.kind, e.minor, e.completed));
        let expected = [
            (Marshal, minor::BOUND_EXCEEDED, No),
            (Marshal, minor::EMBEDDED_NUL, No),
            (Marshal, minor::BOUND_EXCEEDED, Yes),
            (Marshal, minor::BOUND_EXCEEDED, No),
            (Marshal, minor::BOUND_EXCEEDED, No),
            (DataConversion, minor::CHAR_NOT_MAPPED, No),
            (DataConversion, minor::CHAR_NOT_MAPPED, No),
            (DataConversion, minor::CHAR_NOT_MAPPED, Yes),
            (Marshal, minor::EMBEDDED_NUL, No),
            (Marshal, minor::EMBEDDED_NUL, Yes),
        ];
        assert_eq!(raised, expected);
    }
}

#[test]
fn exceptions_arrive_as_what_they_are() {
    for kitchen in ServedKitchen::in_each_way() {
        assert_eq!(kitchen.first(), Err(FirstError::Busy(Busy)));
        assert_eq!(
            kitchen.second(),
            Err(FirstError::Numbered(Numbered { number: 5 }))
        );

        let error = kitchen.third("x").expect_err("an exception");
        let place = Level { px: 1.0, qty: 2 };
        let expected = NotFoundBuf {
            what: "x".to_owned(),
            r#where: place,
        };
        assert_eq!(error, ThirdErrorBuf::NotFound(expected));
        assert_eq!(
            error.to_string(),
            "not found (what: \"x\", where: Level { px: 1.0, qty: 2 })"
        );
    }
}

#[test]
fn an_inout_stays_as_it_was_where_the_call_fails() {
    for kitchen in ServedKitchen::in_each_way() {
        let arena = chronorb::data::Arena::new(1 << 16);
        let a = node();
        let mut b = NodeBuf {
            name: "missing".to_owned(),
            ..NodeBuf::default()
        };
        let before = b.clone();
        let error = kitchen
            .nodes(&a.as_view_in(&arena).expect("room"), &mut b)
            .expect_err("an exception");
        assert!(
            matches!(error, NodesErrorBuf::NotFound(NotFoundBuf { what, .. }) if what == "missing")
        );
        assert_eq!(b, before);
    }
}

#[test]
fn attributes_are_read_set_and_raise() {
    for kitchen in ServedKitchen::in_each_way() {
        assert_eq!(kitchen.label().expect("called"), "label");
        kitchen.set_height(8).expect("called");
        assert_eq!(kitchen.height().expect("called"), 8);

        let arena = chronorb::data::Arena::new(1 << 16);
        let favourite = node();
        kitchen
            .set_favourite_node(&favourite.as_view_in(&arena).expect("room"))
            .expect("called");
        assert_eq!(kitchen.favourite_node().expect("called"), favourite);

        assert_eq!(
            kitchen.failing_object(),
            Err(FailingObjectError::Busy(Busy))
        );
        let error = kitchen.set_failing_object(None).expect_err("an exception");
        assert_eq!(
            error,
            SetFailingObjectErrorBuf::Numbered(Numbered { number: 3 })
        );
    }
}

#[test]
fn a_base_is_called_through_the_derived_and_by_itself() {
    for kitchen in ServedKitchen::in_each_way() {
        let pair = base::Pair { x: 1, y: 2 };
        assert_eq!(kitchen.checked(&[pair]).expect("called"), [pair]);

        let listener: Listener = kitchen.clone().into();
        let error = listener.checked(&[]).expect_err("an exception");
        assert_eq!(error.to_string(), "inner (n: 3)");
        assert!(
            Kitchen::narrow(listener.as_object())
                .expect("called")
                .is_some()
        );
    }
}

#[test]
fn oneway_operations_are_done() {
    for kitchen in ServedKitchen::in_each_way() {
        for _ in 0..3 {
            let level = Level { px: 0.5, qty: 3 };
            kitchen.notify("x", &level).expect("sent");
        }
        // Within one ORB, a later call with a reply may overtake them.
        while kitchen.heard().expect("called") < 3 {
            thread::yield_now();
        }
        assert_eq!(kitchen.heard().expect("called"), 3);
    }
}

#[test]
fn constants_have_their_values() {
    assert_eq!((MAX_ITEMS, LEAST, LETTER), (10, i64::MIN, 'y'));
    assert_eq!((GREETING, FAVOURITE), ("say \"hello\"", Color::DarkGreen));
    assert!((TINY + 1.5).abs() < f32::EPSILON);
    assert!((WIDE_PI.to_f64() - 3.25).abs() < f64::EPSILON);
}

/// The references in them are of two ORBs, and so not the same.
fn assert_same_tree(tree: &TreeBuf, expected: &TreeBuf) {
    assert_eq!(tree.root, expected.root);
    assert_eq!(tree.children, expected.children);
    assert_eq!(tree.deep, expected.deep);
    assert_eq!(tree.two, expected.two);
    assert!(tree.one.is_some());
    let are_some =
        |listeners: &[Option<Listener>]| listeners.iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!(are_some(&tree.many), are_some(&expected.many));
    assert_eq!(are_some(&tree.some), are_some(&expected.some));
}
