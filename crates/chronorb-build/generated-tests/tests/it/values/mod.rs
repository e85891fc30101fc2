//! Values, value boxes and abstract interfaces between client and servant, as programs use them.

mod accounts;
mod echo;
mod local;

use std::sync::Arc;

use accounts::{Bank, CheckingAccount, Hidden};
use chronorb::values::{MAX_VALUE_DEPTH, Value, ValueType, narrow_value};
use chronorb_generated_tests::values::{bank, boxes, exchange, geometry, lists, shapes};
use echo::ServedEcho;
use geometry::{
    DatedPoint, DatedPointState, NamedPoint, NamedPointState, Point, PointState, PointValue,
};

fn point(x: i32, y: i32) -> Arc<dyn Point> {
    PointState { x, y }.into()
}

fn named(x: i32, y: i32, name: &str) -> NamedPointState {
    NamedPointState {
        base: PointState { x, y },
        name: name.to_owned(),
        aliases: vec!["a".to_owned(), "b".to_owned()],
    }
}

#[test]
fn a_value_of_only_state_needs_nothing() {
    for served in ServedEcho::in_each_way() {
        let sent = point(3, 4);
        let back = served.point(Some(&sent)).expect("called").expect("a value");
        assert_eq!(back.point_state(), &PointState { x: 3, y: 4 });
        assert_eq!(*back, *sent);
        assert_eq!(served.point(None), Ok(None));
    }
}

#[test]
fn what_is_sent_as_its_base_arrives_as_the_derived() {
    for served in ServedEcho::in_each_way() {
        let state = DatedPointState {
            base: named(1, 2, "home"),
            origin: Some(point(0, 0)),
            date: 1 << 40,
            exact: true,
        };
        let sent: Arc<dyn DatedPoint> = state.clone().into();
        let sent: Arc<dyn Point> = sent;
        let back = served.point(Some(&sent)).expect("called").expect("a value");
        let back = <dyn DatedPoint>::narrow(&back).expect("what was sent");
        assert_eq!(back.dated_point_state(), &state);
        assert_eq!(back.dated_point_state().name, "home");
        assert_eq!(back.dated_point_state().x, 1);
        assert_eq!(back.named_point_state(), &state.base);
        assert!(<dyn geometry::StrictPoint>::narrow(&back).is_none());
    }
}

#[test]
fn inout_and_out_are_values_too() {
    for served in ServedEcho::in_each_way() {
        let named: Arc<dyn NamedPoint> = named(1, 1, "n").into();
        let mut p: Option<Arc<dyn Point>> = Some(named);
        let (result, q) = served.swap(&mut p).expect("called");
        assert_eq!(result, None);
        assert_eq!(p, Some(point(7, 8)));
        let q = <dyn NamedPoint>::narrow(&q.expect("a value")).expect("what was sent");
        assert_eq!(q.named_point_state().name, "n");
    }
}

#[test]
fn the_same_value_twice_is_the_same_value_twice() {
    for served in ServedEcho::in_each_way() {
        let p = point(1, 2);
        assert_eq!(served.same(Some(&p), Some(&p)), Ok(true));
        assert_eq!(served.same(Some(&p), Some(&point(1, 2))), Ok(false));
    }
}

#[test]
fn boxes_hold_any_type() {
    for served in ServedEcho::in_each_way() {
        let text = Arc::new(boxes::Text("text".to_owned()));
        assert_eq!(served.text(Some(&text)), Ok(Some(text)));
        assert_eq!(served.text(None), Ok(None));
        let numbers = Arc::new(boxes::Numbers::from(vec![0.5; 20_000]));
        assert_eq!(served.numbers(Some(&numbers)), Ok(Some(numbers)));
        let pair = boxes::PairBuf {
            left: "left".to_owned(),
            right: 3,
        };
        let pair = Arc::new(boxes::PairBox(pair));
        assert_eq!(served.pair(Some(&pair)), Ok(Some(pair)));
        let one = point(1, 1);
        let points = vec![Some(one.clone()), None, Some(one)];
        let points = Arc::new(boxes::Points(points));
        let back = served
            .points(Some(&points))
            .expect("called")
            .expect("a box");
        assert_eq!(back, points);
        let (Some(first), Some(last)) = (&back[0], &back[2]) else {
            panic!("{back:?}");
        };
        assert!(Arc::ptr_eq(first, last));
    }
}

#[test]
fn lists_and_trees_are_values_within_values() {
    for served in ServedEcho::in_each_way() {
        let list = (0..50).fold(None, |next, n| {
            let item = format!("item {n}");
            Some(lists::NodeState { item, next }.into())
        });
        assert_eq!(served.list(list.as_ref()), Ok(list));

        let leaf: Arc<dyn lists::Tree> = lists::TreeState {
            weight: 1,
            branches: Vec::new(),
        }
        .into();
        let tree = lists::TreeState {
            weight: 2,
            branches: vec![Some(leaf.clone()), None, Some(leaf)],
        };
        let tree: Arc<dyn lists::Tree> = tree.into();
        let back = served.tree(Some(&tree)).expect("called").expect("a tree");
        assert_eq!(*back, *tree);
    }
}

/// The greatest permitted depth must fit the stack of a serving thread, with room for the servant.
/// Unoptimized code needs the most.
#[test]
fn values_as_deep_as_is_allowed_fit_a_small_stack() {
    let deep = || {
        let list = (0..MAX_VALUE_DEPTH).fold(None, |next, _| {
            let item = String::new();
            Some(lists::NodeState { item, next }.into())
        });
        for served in ServedEcho::in_each_way().take(2) {
            assert_eq!(served.list(list.as_ref()), Ok(list.clone()));
        }
        // Each tree except the leaf is in a sequence, which counts too.
        let tree = (0..30).fold(None, |branch: Option<Arc<dyn lists::Tree>>, weight| {
            let branches = vec![branch];
            Some(lists::TreeState { weight, branches }.into())
        });
        for served in ServedEcho::in_each_way().take(2) {
            assert_eq!(served.tree(tree.as_ref()), Ok(tree.clone()));
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_SIZE);
    thread
        .spawn(deep)
        .expect("a thread")
        .join()
        .expect("enough");
}

/// The default stack size of a pool's threads.
const STACK_SIZE: usize = 256 << 10;

#[test]
fn values_with_operations_are_made_by_their_factory() {
    accounts::register();
    for served in ServedEcho::in_each_way() {
        let account = bank::AccountFactory::inherit(&Bank, "ann", 500).expect("opened");
        let back = served
            .account(Some(&account))
            .expect("called")
            .expect("an account");
        assert_eq!(back.account_state(), account.account_state());
        assert_eq!(back.description().expect("told"), "ann has 500");
        assert_eq!(back.withdraw(100), Ok(400));
        let error = back.withdraw(900).expect_err("too much");
        assert_eq!(
            error.to_string(),
            "overdrawn (holder: \"ann\", missing: 400)"
        );
        back.audit("supported").expect("a method like any");
        assert!(back.is::<CheckingAccount>());
    }
}

#[test]
fn what_has_no_factory_is_taken_for_a_base_that_has_one() {
    accounts::register();
    for served in ServedEcho::in_each_way().take(1) {
        let savings: Arc<dyn bank::Account> = accounts::savings("eve", 7);
        let back = served
            .account(Some(&savings))
            .expect("called")
            .expect("an account");
        assert_eq!(back.account_state().owner, "eve");
        assert!(<dyn bank::Savings>::narrow(&back).is_none());
        assert!(back.is::<CheckingAccount>());
    }
}

#[test]
fn a_custom_value_is_what_the_program_writes() {
    accounts::register();
    for served in ServedEcho::in_each_way() {
        let secret: Arc<dyn bank::Secret> = Arc::new(Hidden::new("psst"));
        let back = served
            .secret(Some(&secret))
            .expect("called")
            .expect("a value");
        assert_eq!(back.secret_state().text, "psst");
    }
}

#[test]
fn values_stand_in_structs_unions_and_exceptions() {
    for served in ServedEcho::in_each_way() {
        let shared = point(5, 6);
        let holder = exchange::HolderBuf {
            label: "label".to_owned(),
            place: Some(shared.clone()),
            path: vec![Some(shared.clone()), None],
            text: Some(Arc::new("text".to_owned().into())),
            corners: [None, Some(shared)],
        };
        let arena = chronorb::data::Arena::new(1024);
        let view = holder.as_view_in(&arena).expect("room");
        assert_eq!(served.hold(&view), Ok(holder.clone()));

        let place = Some(point(9, 9));
        let choice = exchange::Choice::Place(place.as_ref());
        let back = served.choose(&choice);
        assert_eq!(back, Ok(exchange::ChoiceBuf::Place(place.clone())));

        let Err(exchange::MisplaceErrorBuf::Misplaced(exception)) = served.misplace(place.as_ref())
        else {
            panic!("it always raises");
        };
        assert_eq!(exception.place, place);
    }
}

#[test]
fn any_value_is_a_value() {
    // A test in the same process may have registered it.
    let _ = PointValue::register();
    for served in ServedEcho::in_each_way() {
        let value = ValueType::into_value(point(2, 3));
        let back = served
            .value(Some(&value))
            .expect("called")
            .expect("a value");
        let back = narrow_value::<dyn Point>(&back).expect("what was sent");
        assert_eq!(back.point_state().y, 3);
    }
}

#[test]
fn attributes_are_values_too() {
    for served in ServedEcho::in_each_way() {
        served.set_favourite(Some(&point(4, 2))).expect("set");
        assert_eq!(served.favourite(), Ok(Some(point(4, 2))));
    }
}

#[test]
fn behind_an_abstract_interface_is_an_object_or_a_value() {
    accounts::register();
    for served in ServedEcho::in_each_way() {
        let square: Arc<dyn shapes::Shape> = accounts::square(1.5);
        assert_eq!(served.area(Some(&square)), Ok(2.25));
        let back = served
            .shape(Some(&square))
            .expect("called")
            .expect("a shape");
        assert_eq!(back.name("a ").expect("named"), "a square");
        assert!(<dyn shapes::Shape>::narrow::<dyn shapes::Square>(&back).is_some());

        let remote = served.remote().expect("called").expect("an object");
        let shape: Arc<dyn shapes::Shape> = Arc::new(remote);
        assert_eq!(served.area(Some(&shape)), Ok(100.0));
        let back = served
            .shape(Some(&shape))
            .expect("called")
            .expect("a shape");
        assert_eq!(back.area(), Ok(100.0));
        assert!(<dyn shapes::Shape>::narrow::<dyn shapes::Square>(&back).is_none());
        assert_eq!(served.shape(None), Ok(None));
    }
}

/// The properties that a test checks of a value behind a trait.
trait Is {
    fn is<T: 'static>(&self) -> bool;
}

impl Is for Arc<dyn bank::Account> {
    fn is<T: 'static>(&self) -> bool {
        let value: &dyn Value = &**self;
        (value as &dyn std::any::Any).is::<T>()
    }
}
