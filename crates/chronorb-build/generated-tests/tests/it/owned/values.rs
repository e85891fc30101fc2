//! Value types in owned results: by themselves, in structs, unions and exceptions.

use std::sync::{Arc, OnceLock};

use chronorb::prelude::*;
use chronorb::values::Value;
use chronorb_generated_tests::owned::values::{bank, boxes, exchange, geometry, lists, shapes};
use exchange::{
    Choice, ChoiceBuf, Echo, EchoOwnedServant, EchoSkeleton, Holder, HolderBuf, MisplaceErrorBuf,
    MisplacedBuf,
};
use geometry::{Point, PointState};

use crate::ways::in_each_way;

type Returns<T> = Result<T, SystemException>;

/// A value that may be nil.
type Nilable<T> = Option<Arc<T>>;

/// A servant that returns its arguments.
#[derive(Default)]
struct Mirror {
    favourite: OnceLock<Arc<dyn Point>>,
}

macro_rules! echoes {
    ($($name:ident: $ty:ty;)*) => {$(
        fn $name(&self, _: &Call<'_>, value: Option<&Arc<$ty>>) -> Returns<Nilable<$ty>> {
            Ok(value.cloned())
        }
    )*};
}

impl EchoOwnedServant for Mirror {
    echoes! {
        point: dyn Point;
        text: boxes::Text;
        numbers: boxes::Numbers;
        pair: boxes::PairBox;
        points: boxes::Points;
        list: dyn lists::Node;
        tree: dyn lists::Tree;
        account: dyn bank::Account;
        secret: dyn bank::Secret;
        value: dyn Value;
        shape: dyn shapes::Shape;
    }

    fn swap(
        &self,
        _: &Call<'_>,
        p: &mut Nilable<dyn Point>,
    ) -> Returns<(Nilable<dyn Point>, Nilable<dyn Point>)> {
        Ok((None, p.replace(PointState { x: 7, y: 8 }.into())))
    }

    fn same(
        &self,
        _: &Call<'_>,
        p: Option<&Arc<dyn Point>>,
        q: Option<&Arc<dyn Point>>,
    ) -> Returns<bool> {
        Ok(p.zip(q).is_some_and(|(p, q)| Arc::ptr_eq(p, q)))
    }

    fn hold(&self, _: &Call<'_>, h: &Holder<'_>) -> Returns<HolderBuf> {
        Ok(h.to_owned())
    }

    fn choose(&self, _: &Call<'_>, c: &Choice<'_>) -> Returns<ChoiceBuf> {
        Ok(c.to_owned())
    }

    fn misplace(&self, _: &Call<'_>, p: Option<&Arc<dyn Point>>) -> Result<(), MisplaceErrorBuf> {
        let place = p.cloned();
        Err(MisplacedBuf { place }.into())
    }

    fn area(&self, _: &Call<'_>, s: Option<&Arc<dyn shapes::Shape>>) -> Returns<f64> {
        s.map_or(Ok(0.0), |shape| shape.area())
    }

    fn remote(&self, _: &Call<'_>) -> Returns<Option<shapes::RemoteShape>> {
        Ok(None)
    }

    fn favourite(&self, _: &Call<'_>) -> Returns<Nilable<dyn Point>> {
        Ok(self.favourite.get().cloned())
    }

    fn set_favourite(&self, _: &Call<'_>, value: Option<&Arc<dyn Point>>) -> Returns<()> {
        if let Some(value) = value {
            self.favourite.get_or_init(|| value.clone());
        }
        Ok(())
    }
}

#[test]
fn values_are_results_and_parts_of_results() {
    for served in in_each_way(|| EchoSkeleton::new(Mirror::default())) {
        let echo = Echo::unchecked_narrow(&served.object);
        let point = || -> Arc<dyn Point> { PointState { x: 1, y: 2 }.into() };
        let mut p = Some(point());
        let (result, q) = echo.swap(&mut p).expect("called");
        assert!(result.is_none());
        assert_eq!(
            q.expect("a value").point_state(),
            &PointState { x: 1, y: 2 }
        );
        assert_eq!(
            p.expect("a value").point_state(),
            &PointState { x: 7, y: 8 }
        );

        let holder = HolderBuf {
            label: "holder".to_owned(),
            place: Some(point()),
            path: vec![Some(point()), None],
            text: Some(Arc::new(boxes::Text("text".to_owned()))),
            corners: [None, Some(point())],
        };
        let arena = chronorb::data::Arena::new(1 << 16);
        let view = holder.as_view_in(&arena).expect("room");
        assert_eq!(echo.hold(&view).expect("called"), holder);

        let p = point();
        let choice = echo.choose(&Choice::Place(Some(&p))).expect("called");
        assert!(matches!(choice, ChoiceBuf::Place(Some(place)) if *place == *p));

        let Err(MisplaceErrorBuf::Misplaced(misplaced)) = echo.misplace(Some(&p)) else {
            panic!("no exception");
        };
        assert!(misplaced.place.is_some_and(|place| *place == *p));

        echo.set_favourite(Some(&p)).expect("called");
        let favourite = echo.favourite().expect("called");
        assert!(favourite.is_some_and(|favourite| *favourite == *p));
    }
}
