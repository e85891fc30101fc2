//! chronorb's values with their own code, and its mirror.

use std::sync::{Arc, Once};

use chronorb::config::OrbConfig;
use chronorb::impl_value;
use chronorb::prelude::*;
use chronorb_interop::value_types as idl;
use idl::{
    Field, FieldServant, FieldSkeleton, Mirror, MirrorServant, MirrorSkeleton, MisplaceError,
    Misplaced, Named, NamedState, Node, Numbers, PairBox, Point, PointState, Points, Shape,
    ShapeServant, Square, SquareFactory, SquareState, Stranger, StrangerState, Text, Tree,
};

/// Returns an ORB that serves at any port of the loopback interface.
pub(crate) fn orb() -> Orb {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    Orb::with_config(OrbConfig::read(&mut args).expect("correct options")).expect("an ORB")
}

/// Registers the factories that are needed, except for that of `Stranger`.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| <dyn Square>::register_factory(Tiles).expect("new"));
}

/// A square.
#[derive(Debug)]
pub(crate) struct Tile(SquareState);

impl Tile {
    pub(crate) fn new(side: f64) -> Arc<Self> {
        Arc::new(Self(SquareState { side }))
    }
}

impl Shape for Tile {
    fn area(&self) -> Result<f64, SystemException> {
        Ok(self.0.side * self.0.side)
    }
}

impl Square for Tile {
    fn square_state(&self) -> &SquareState {
        &self.0
    }
}

impl_value!(Tile as Square);

struct Tiles;

impl SquareFactory for Tiles {
    fn unmarshal(&self, state: SquareState) -> Arc<dyn Square> {
        Arc::new(Tile(state))
    }
}

/// A stranger without a factory.
#[derive(Debug)]
pub(crate) struct Guest(StrangerState);

impl Guest {
    pub(crate) fn new(
        name: &str,
        abode: Option<Arc<dyn Point>>,
        mate: Option<Arc<dyn Named>>,
    ) -> Arc<Self> {
        let base = NamedState {
            base: PointState { x: 1, y: 2 },
            name: name.to_owned(),
            origin: None,
            weight: 0.5,
        };
        Arc::new(Self(StrangerState {
            base,
            abode,
            ballast: vec![7; 100_000],
            mate,
            last: 99,
        }))
    }
}

impl Point for Guest {
    fn point_state(&self) -> &PointState {
        &self.0.base.base
    }
}

impl Named for Guest {
    fn named_state(&self) -> &NamedState {
        &self.0.base
    }
}

impl Stranger for Guest {
    fn stranger_state(&self) -> &StrangerState {
        &self.0
    }

    fn secret(&self) -> Result<i64, SystemException> {
        Ok(self.0.last)
    }
}

impl_value!(Guest as Stranger);

/// The result of a method.
type Returns<T> = Result<T, SystemException>;

/// A servant that returns its arguments.
pub(crate) struct MirrorObject {
    field: Field,
}

impl MirrorObject {
    /// Serves a mirror.
    pub(crate) fn serve(orb: &Orb) -> Mirror {
        let root = orb.root_poa().expect("a root POA");
        let field = root.serve(FieldSkeleton::new(FieldObject)).expect("served");
        let field = Field::unchecked_narrow(&field);
        let mirror = root.serve(MirrorSkeleton::new(Self { field }));
        root.manager().activate().expect("active");
        Mirror::unchecked_narrow(&mirror.expect("served"))
    }
}

impl MirrorServant for MirrorObject {
    fn echo_point(
        &self,
        _: &Call<'_>,
        value: Option<&Arc<dyn Point>>,
    ) -> Returns<Option<Arc<dyn Point>>> {
        Ok(value.cloned())
    }

    fn echo_points<'a>(&self, _: &Call<'a>, values: Points<'a>) -> Returns<Points<'a>> {
        Ok(values)
    }

    fn echo_node(
        &self,
        _: &Call<'_>,
        value: Option<&Arc<dyn Node>>,
    ) -> Returns<Option<Arc<dyn Node>>> {
        Ok(value.cloned())
    }

    fn echo_tree(
        &self,
        _: &Call<'_>,
        value: Option<&Arc<dyn Tree>>,
    ) -> Returns<Option<Arc<dyn Tree>>> {
        Ok(value.cloned())
    }

    fn echo_text(&self, _: &Call<'_>, value: Option<&Arc<Text>>) -> Returns<Option<Arc<Text>>> {
        Ok(value.cloned())
    }

    fn echo_numbers(
        &self,
        _: &Call<'_>,
        value: Option<&Arc<Numbers>>,
    ) -> Returns<Option<Arc<Numbers>>> {
        Ok(value.cloned())
    }

    fn echo_pair(
        &self,
        _: &Call<'_>,
        value: Option<&Arc<PairBox>>,
    ) -> Returns<Option<Arc<PairBox>>> {
        Ok(value.cloned())
    }

    fn echo_shape(
        &self,
        _: &Call<'_>,
        value: Option<&Arc<dyn Shape>>,
    ) -> Returns<Option<Arc<dyn Shape>>> {
        Ok(value.cloned())
    }

    fn as_named(
        &self,
        _: &Call<'_>,
        value: Option<&Arc<dyn Point>>,
    ) -> Returns<Option<Arc<dyn Named>>> {
        Ok(value.and_then(<dyn Named>::narrow))
    }

    fn are_one(
        &self,
        _: &Call<'_>,
        one: Option<&Arc<dyn Point>>,
        other: Option<&Arc<dyn Point>>,
    ) -> Returns<bool> {
        Ok(one
            .zip(other)
            .is_some_and(|(one, other)| Arc::ptr_eq(one, other)))
    }

    fn rotate(
        &self,
        _: &Call<'_>,
        one: &mut Option<Arc<dyn Point>>,
    ) -> Returns<(Option<Arc<dyn Point>>, Option<Arc<dyn Point>>)> {
        let new: Arc<dyn Point> = PointState { x: 7, y: 8 }.into();
        let old = one.replace(new);
        Ok((old.clone(), old))
    }

    fn stranger(&self, _: &Call<'_>) -> Returns<Option<Arc<dyn Point>>> {
        let place: Arc<dyn Point> = PointState { x: 3, y: 4 }.into();
        let mate = NamedState {
            base: PointState { x: 1, y: 2 },
            name: "mate".to_owned(),
            origin: Some(place.clone()),
            weight: 1.5,
        };
        Ok(Some(Guest::new(
            "from afar",
            Some(place),
            Some(mate.into()),
        )))
    }

    fn area_of(&self, _: &Call<'_>, value: Option<&Arc<dyn Shape>>) -> Returns<f64> {
        value.map_or(Ok(0.0), |shape| shape.area())
    }

    fn a_field(&self, _: &Call<'_>) -> Returns<Option<Field>> {
        Ok(Some(self.field.clone()))
    }

    fn misplace<'a>(
        &self,
        call: &Call<'a>,
        value: Option<&Arc<dyn Point>>,
    ) -> Result<(), MisplaceError<'a>> {
        let place = value.map(|value| call.keep(value.clone()));
        let why = "asked for";
        Err(Misplaced { why, place }.into())
    }

    fn shutdown(&self, call: &Call<'_>) -> Returns<()> {
        // It may have been shut down already.
        let _ = call.orb().shutdown(false);
        Ok(())
    }
}

struct FieldObject;

impl ShapeServant for FieldObject {
    fn area(&self, _: &Call<'_>) -> Returns<f64> {
        Ok(12.0)
    }
}

impl FieldServant for FieldObject {
    fn rows(&self, _: &Call<'_>) -> Returns<i32> {
        Ok(3)
    }
}
