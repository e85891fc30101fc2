//! The operations that skeletons of unusual interfaces answer.

use std::any::TypeId;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use chronorb::Skeleton;
use chronorb::config::{Collocation, OrbConfig};
use chronorb::prelude::*;
use chronorb_generated_tests::shapes::{
    Bottom, BottomServant, BottomSkeleton, Empty, EmptyServant, EmptySkeleton, Left, LeftServant,
    Outer, OuterBuf, Right, RightServant, Top, TopServant, TopSkeleton, outer,
};

struct Servant;

impl EmptyServant for Servant {}

impl TopServant for Servant {
    fn on_top(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        Ok(n)
    }
}

impl LeftServant for Servant {
    fn on_left(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(2)
    }
}

impl RightServant for Servant {
    fn on_right(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(3)
    }
}

impl BottomServant for Servant {
    fn at_bottom(&self, _: &Call<'_>) -> Result<i32, SystemException> {
        Ok(4)
    }

    fn far(&self, _: &Call<'_>) -> Result<Option<Empty>, SystemException> {
        Ok(None)
    }

    fn set_far(&self, _: &Call<'_>, _: Option<&Empty>) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_skeleton_is_of_its_interface_and_of_every_base() {
    let skeleton = BottomSkeleton::new(Servant);
    assert_eq!(skeleton.repository_id(), Bottom::REPOSITORY_ID);
    for id in [
        Bottom::REPOSITORY_ID,
        Left::REPOSITORY_ID,
        Right::REPOSITORY_ID,
        Top::REPOSITORY_ID,
    ] {
        assert!(skeleton.is_a(id), "{id}");
    }
    assert!(!skeleton.is_a(Empty::REPOSITORY_ID));
}

#[test]
fn skeletons_of_one_servant_have_one_identity() {
    let servant = Arc::new(Servant);
    let skeleton = BottomSkeleton::from_arc(servant.clone());
    let same = BottomSkeleton::from_arc(servant.clone());
    let as_another = EmptySkeleton::from_arc(servant);
    assert_eq!(skeleton.identity(), same.identity());
    assert_eq!(skeleton.identity(), as_another.identity());
    assert_ne!(skeleton.identity(), BottomSkeleton::new(Servant).identity());
}

#[test]
fn a_skeleton_gives_its_servant_as_one_of_its_interface_and_of_every_base() {
    fn servant_as<S: 'static>(skeleton: &dyn Skeleton) -> Option<&S> {
        let servant = skeleton.servant_as(TypeId::of::<S>())?;
        Some(servant.downcast_ref().expect("of the type"))
    }
    let skeleton = BottomSkeleton::new(Servant);
    assert!(servant_as::<Arc<dyn BottomServant>>(&skeleton).is_some());
    assert!(servant_as::<Arc<dyn LeftServant>>(&skeleton).is_some());
    assert!(servant_as::<Arc<dyn RightServant>>(&skeleton).is_some());
    assert!(servant_as::<Arc<dyn TopServant>>(&skeleton).is_some());
    assert!(servant_as::<Arc<dyn EmptyServant>>(&skeleton).is_none());
    assert!(servant_as::<Arc<Servant>>(&skeleton).is_none());
}

/// A servant that records whether it is called by the thread that created it.
struct Witness(ThreadId);

impl TopServant for Witness {
    fn on_top(&self, call: &Call<'_>, n: i32) -> Result<i32, SystemException> {
        assert_eq!(call.operation(), b"on_top");
        let is_same = thread::current().id() == self.0;
        Ok(if is_same { n } else { -n })
    }
}

#[test]
fn a_direct_call_is_made_by_the_thread_of_the_client() {
    for (collocation, expected) in [(Collocation::Off, -1), (Collocation::Direct, 1)] {
        let mut config = config();
        config.collocation = collocation;
        let orb = Orb::with_config(config).expect("an ORB");
        let root = orb.root_poa().expect("a root POA");
        let witness = Witness(thread::current().id());
        let object = root.serve(TopSkeleton::new(witness)).expect("served");
        root.manager().activate().expect("active");
        assert_eq!(Top::unchecked_narrow(&object).on_top(1), Ok(expected));
        orb.shutdown(true).expect("shut down");
    }
}

#[test]
fn a_base_that_is_reached_by_two_ways_is_called_once() {
    let orb = Orb::with_config(config()).expect("an ORB");
    let root = orb.root_poa().expect("a root POA");
    let object = root.serve(BottomSkeleton::new(Servant)).expect("served");
    root.manager().activate().expect("active");

    let bottom = Bottom::narrow(&object).expect("asked").expect("a bottom");
    assert_eq!(bottom.on_top(1), Ok(1));
    assert_eq!((bottom.on_left(), bottom.on_right()), (Ok(2), Ok(3)));
    assert_eq!(bottom.at_bottom(), Ok(4));
    let top: Top = bottom.into();
    assert_eq!(top.on_top(5), Ok(5));

    let empty = root.serve(EmptySkeleton::new(Servant)).expect("served");
    let error = Top::unchecked_narrow(&empty)
        .on_top(1)
        .expect_err("no operation");
    assert_eq!(error.kind, SystemExceptionKind::BadOperation);
    orb.shutdown(true).expect("shut down");
}

#[test]
fn types_inside_types_stand_in_modules_of_their_name() {
    let part = outer::Middle {
        which: outer::middle::Kind::Two,
        n: 3,
    };
    let view = Outer {
        middle_part: part,
        text: "text",
    };
    let owned: OuterBuf = view.to_owned();
    assert_eq!(owned.as_view(), view);
}

fn config() -> OrbConfig {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    OrbConfig::read(&mut args).expect("the options are correct")
}
