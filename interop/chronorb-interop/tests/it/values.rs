//! Values, value boxes and abstract interfaces between the two ORBs.
//!
//! The objects and values are those of `idl/values.idl`. omniORB's checks are in
//! `interop/omniorb/main_values_client.cc`.

use std::sync::Arc;

use chronorb_interop::value_types as idl;
use idl::{Mirror, MisplaceErrorBuf, Named, NamedState, NodeState, Point, PointState, TreeState};

use crate::support::peers::{OMNIORB, require};
use crate::support::programs::{Server, run_values_client};
use crate::values_of_ours::{Guest, MirrorObject, Tile, orb, register};

#[test]
fn omniorb_calls_chronorb() {
    if !require(&[&OMNIORB]) {
        return;
    }
    register();
    let orb = orb();
    let mirror = MirrorObject::serve(&orb);
    run_values_client(&orb.object_to_string(mirror.as_object()));
    orb.shutdown(true).expect("shut down");
}

/// Calls both ORBs' servers, which must behave the same.
fn with_each(test: impl Fn(&Mirror)) {
    register();
    let (client, server) = (orb(), orb());
    let ours = server.object_to_string(MirrorObject::serve(&server).as_object());
    let mirror = |text: &str| {
        let object = client.string_to_object(text).expect("a reference");
        Mirror::narrow(&object).expect("asked").expect("a mirror")
    };
    test(&mirror(&ours));
    if require(&[&OMNIORB]) {
        let theirs = Server::start_values();
        let mirror = mirror(&theirs.ior);
        test(&mirror);
        mirror.shutdown().expect("sent");
        theirs.finish();
    }
    client.shutdown(true).expect("shut down");
    server.shutdown(true).expect("shut down");
}

fn point(x: i32, y: i32) -> Arc<dyn Point> {
    PointState { x, y }.into()
}

fn named(name: &str, origin: Option<Arc<dyn Point>>) -> Arc<dyn Named> {
    let state = NamedState {
        base: PointState { x: 1, y: 2 },
        name: name.to_owned(),
        origin,
        weight: 2.5,
    };
    state.into()
}

#[test]
fn points_come_back_with_all_that_they_are() {
    with_each(|mirror| {
        assert_eq!(mirror.echo_point(None), Ok(None));
        let sent = point(3, -4);
        assert_eq!(mirror.echo_point(Some(&sent)), Ok(Some(sent.clone())));
        let derived: Arc<dyn Point> = named("name", Some(sent));
        let back = mirror.echo_point(Some(&derived)).expect("called");
        assert_eq!(back, Some(derived));
    });
}

#[test]
fn one_value_stays_one() {
    with_each(|mirror| {
        let shared = point(5, 6);
        assert_eq!(mirror.are_one(Some(&shared), Some(&shared)), Ok(true));
        assert_eq!(mirror.are_one(Some(&shared), Some(&point(5, 6))), Ok(false));
        let first: Arc<dyn Point> = named("n", Some(shared.clone()));
        let points = [Some(&first), Some(&shared), Some(&shared), None];
        let back = mirror.echo_points(&points).expect("called");
        let sent: Vec<_> = points.iter().map(|point| point.cloned()).collect();
        assert_eq!(back, sent);
        assert!(Arc::ptr_eq(
            back[1].as_ref().expect("a point"),
            back[2].as_ref().expect("one")
        ));
    });
}

#[test]
fn every_way_back_gives_values() {
    with_each(|mirror| {
        let mut one = Some(point(1, 1));
        let (result, other) = mirror.rotate(&mut one).expect("called");
        assert_eq!(one, Some(point(7, 8)));
        assert_eq!(other, Some(point(1, 1)));
        assert!(Arc::ptr_eq(
            &result.expect("a point"),
            &other.expect("a point")
        ));
        let Err(MisplaceErrorBuf::Misplaced(exception)) = mirror.misplace(Some(&point(2, 3)))
        else {
            panic!("it is raised");
        };
        assert_eq!(exception.place, Some(point(2, 3)));
        assert_eq!(exception.why, "asked for");
    });
}

#[test]
fn who_does_not_know_a_value_takes_it_for_its_base() {
    with_each(|mirror| {
        let place = point(3, 4);
        let mate = named("mate", Some(place.clone()));
        let guest: Arc<dyn Point> = Guest::new("I", Some(place), Some(mate));
        let back = mirror
            .as_named(Some(&guest))
            .expect("called")
            .expect("named");
        assert_eq!(back.named_state().name, "I");
        let back = mirror.stranger().expect("called").expect("a point");
        let back = <dyn Named>::narrow(&back).expect("named");
        assert_eq!(back.named_state().name, "from afar");
        assert_eq!(*back.point_state(), PointState { x: 1, y: 2 });
    });
}

#[test]
fn lists_and_trees_keep_their_form() {
    with_each(|mirror| {
        let list = (0..60).fold(None, |next, number| Some(NodeState { number, next }.into()));
        assert_eq!(mirror.echo_node(list.as_ref()), Ok(list));
        let leaf: Arc<dyn idl::Tree> = TreeState {
            label: "leaf".to_owned(),
            branches: Vec::new(),
        }
        .into();
        let tree: Arc<dyn idl::Tree> = TreeState {
            label: "tree".to_owned(),
            branches: vec![Some(leaf.clone()), Some(leaf)],
        }
        .into();
        let back = mirror
            .echo_tree(Some(&tree))
            .expect("called")
            .expect("a tree");
        assert_eq!(*back, *tree);
        let twice = &back.tree_state().branches;
        assert!(Arc::ptr_eq(
            twice[0].as_ref().expect("a leaf"),
            twice[1].as_ref().expect("it")
        ));
    });
}

#[test]
fn boxes_keep_what_is_in_them() {
    with_each(|mirror| {
        let text = Arc::new(idl::Text("text".to_owned()));
        assert_eq!(mirror.echo_text(Some(&text)), Ok(Some(text)));
        let numbers = Arc::new(idl::Numbers(vec![0.5; 20_000]));
        assert_eq!(mirror.echo_numbers(Some(&numbers)), Ok(Some(numbers)));
        let pair = idl::PairBuf {
            left: "left".to_owned(),
            right: Some(point(1, 2)),
        };
        let pair = Arc::new(idl::PairBox(pair));
        assert_eq!(mirror.echo_pair(Some(&pair)), Ok(Some(pair)));
    });
}

#[test]
fn behind_an_abstract_interface_is_an_object_or_a_value() {
    with_each(|mirror| {
        let square: Arc<dyn idl::Shape> = Tile::new(1.5);
        assert_eq!(mirror.area_of(Some(&square)), Ok(2.25));
        let back = mirror
            .echo_shape(Some(&square))
            .expect("called")
            .expect("a shape");
        assert_eq!(back.area(), Ok(2.25));
        let field = mirror.a_field().expect("called").expect("a field");
        assert_eq!(field.rows(), Ok(3));
        let field: Arc<dyn idl::Shape> = Arc::new(field);
        assert_eq!(mirror.area_of(Some(&field)), Ok(12.0));
        let back = mirror
            .echo_shape(Some(&field))
            .expect("called")
            .expect("a shape");
        assert_eq!(back.area(), Ok(12.0));
        assert_eq!(mirror.echo_shape(None), Ok(None));
    });
}
