//! A servant that returns its arguments, and its reference from a client's point of view.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use chronorb::config::{Collocation, OrbConfig};
use chronorb::prelude::*;
use chronorb::values::Value;
use chronorb_generated_tests::values::{bank, boxes, exchange, geometry, lists, shapes};
use exchange::{Choice, Echo, EchoServant, EchoSkeleton, Holder, MisplaceError, Misplaced};
use geometry::{Point, PointState};

/// An ORB that serves an echo, and the client's reference to it.
pub(crate) struct ServedEcho {
    orbs: Vec<Orb>,
    echo: Echo,
}

impl ServedEcho {
    /// Returns, one after the other, an echo of another ORB, and one of the client's own ORB for
    /// each kind of collocated call.
    pub(crate) fn in_each_way() -> impl Iterator<Item = Self> {
        let own = [
            Collocation::Off,
            Collocation::ThroughPoa,
            Collocation::Direct,
        ];
        let own = own.into_iter().map(|collocation| {
            eprintln!("calls within one ORB: {collocation:?}");
            Self::by(vec![orb(collocation)])
        });
        let other = [Collocation::Off].into_iter().map(|collocation| {
            eprintln!("calls from one ORB to another");
            Self::by(vec![orb(collocation), orb(collocation)])
        });
        other.chain(own)
    }

    /// Creates the echo. The first ORB serves, the last calls.
    fn by(orbs: Vec<Orb>) -> Self {
        let (server, client) = (&orbs[0], &orbs[orbs.len() - 1]);
        let root = server.root_poa().expect("a root POA");
        let remote = root.serve(shapes::RemoteShapeSkeleton::new(Field));
        let remote = shapes::RemoteShape::unchecked_narrow(&remote.expect("served"));
        let echo = Mirror {
            remote,
            favourite: OnceLock::new(),
        };
        let object = root.serve(EchoSkeleton::new(echo)).expect("served");
        root.manager().activate().expect("active");
        let text = server.object_to_string(&object);
        let object = client.string_to_object(&text).expect("a reference");
        let echo = Echo::unchecked_narrow(&object);
        Self { orbs, echo }
    }
}

impl Deref for ServedEcho {
    type Target = Echo;

    fn deref(&self) -> &Echo {
        &self.echo
    }
}

impl Drop for ServedEcho {
    fn drop(&mut self) {
        for orb in self.orbs.iter().rev() {
            orb.shutdown(true).expect("shut down");
        }
    }
}

fn orb(collocation: Collocation) -> Orb {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let mut config = OrbConfig::read(&mut args).expect("the options are correct");
    config.collocation = collocation;
    Orb::with_config(config).expect("an ORB")
}

struct Mirror {
    remote: shapes::RemoteShape,
    favourite: OnceLock<Arc<dyn Point>>,
}

/// The result of a method of the servant.
type Returns<T> = Result<T, SystemException>;

impl EchoServant for Mirror {
    fn point(&self, _: &Call<'_>, p: Option<&Arc<dyn Point>>) -> Returns<Option<Arc<dyn Point>>> {
        Ok(p.cloned())
    }

    fn swap(
        &self,
        _: &Call<'_>,
        p: &mut Option<Arc<dyn Point>>,
    ) -> Returns<(Option<Arc<dyn Point>>, Option<Arc<dyn Point>>)> {
        let new: Arc<dyn Point> = PointState { x: 7, y: 8 }.into();
        Ok((None, p.replace(new)))
    }

    fn same(
        &self,
        _: &Call<'_>,
        p: Option<&Arc<dyn Point>>,
        q: Option<&Arc<dyn Point>>,
    ) -> Returns<bool> {
        Ok(p.zip(q).is_some_and(|(p, q)| Arc::ptr_eq(p, q)))
    }

    fn text(
        &self,
        _: &Call<'_>,
        t: Option<&Arc<boxes::Text>>,
    ) -> Returns<Option<Arc<boxes::Text>>> {
        Ok(t.cloned())
    }

    fn numbers(
        &self,
        _: &Call<'_>,
        n: Option<&Arc<boxes::Numbers>>,
    ) -> Returns<Option<Arc<boxes::Numbers>>> {
        Ok(n.cloned())
    }

    fn pair(
        &self,
        _: &Call<'_>,
        p: Option<&Arc<boxes::PairBox>>,
    ) -> Returns<Option<Arc<boxes::PairBox>>> {
        Ok(p.cloned())
    }

    fn points(
        &self,
        _: &Call<'_>,
        p: Option<&Arc<boxes::Points>>,
    ) -> Returns<Option<Arc<boxes::Points>>> {
        Ok(p.cloned())
    }

    fn list(
        &self,
        _: &Call<'_>,
        n: Option<&Arc<dyn lists::Node>>,
    ) -> Returns<Option<Arc<dyn lists::Node>>> {
        Ok(n.cloned())
    }

    fn tree(
        &self,
        _: &Call<'_>,
        t: Option<&Arc<dyn lists::Tree>>,
    ) -> Returns<Option<Arc<dyn lists::Tree>>> {
        Ok(t.cloned())
    }

    fn account(
        &self,
        _: &Call<'_>,
        a: Option<&Arc<dyn bank::Account>>,
    ) -> Returns<Option<Arc<dyn bank::Account>>> {
        Ok(a.cloned())
    }

    fn secret(
        &self,
        _: &Call<'_>,
        s: Option<&Arc<dyn bank::Secret>>,
    ) -> Returns<Option<Arc<dyn bank::Secret>>> {
        Ok(s.cloned())
    }

    fn hold<'a>(&self, _: &Call<'a>, h: &Holder<'a>) -> Returns<Holder<'a>> {
        Ok(*h)
    }

    fn choose<'a>(&self, _: &Call<'a>, c: &Choice<'a>) -> Returns<Choice<'a>> {
        Ok(*c)
    }

    fn value(&self, _: &Call<'_>, v: Option<&Arc<dyn Value>>) -> Returns<Option<Arc<dyn Value>>> {
        Ok(v.cloned())
    }

    fn misplace<'a>(
        &self,
        call: &Call<'a>,
        p: Option<&Arc<dyn Point>>,
    ) -> Result<(), MisplaceError<'a>> {
        let place = p.map(|p| call.keep(p.clone()));
        Err(Misplaced { place }.into())
    }

    fn shape(
        &self,
        _: &Call<'_>,
        s: Option<&Arc<dyn shapes::Shape>>,
    ) -> Returns<Option<Arc<dyn shapes::Shape>>> {
        Ok(s.cloned())
    }

    fn area(&self, _: &Call<'_>, s: Option<&Arc<dyn shapes::Shape>>) -> Returns<f64> {
        s.map_or(Ok(0.0), |shape| shape.area())
    }

    fn remote(&self, _: &Call<'_>) -> Returns<Option<shapes::RemoteShape>> {
        Ok(Some(self.remote.clone()))
    }

    fn favourite(&self, _: &Call<'_>) -> Returns<Option<Arc<dyn Point>>> {
        Ok(self.favourite.get().cloned())
    }

    fn set_favourite(&self, _: &Call<'_>, value: Option<&Arc<dyn Point>>) -> Returns<()> {
        if let Some(value) = value {
            self.favourite.get_or_init(|| value.clone());
        }
        Ok(())
    }
}

/// A shape that is an object.
struct Field;

impl shapes::ShapeServant for Field {
    fn area(&self, _: &Call<'_>) -> Returns<f64> {
        Ok(100.0)
    }

    fn name<'a>(&self, _: &Call<'a>, prefix: &'a str) -> Returns<&'a str> {
        Ok(prefix)
    }
}

impl shapes::RemoteShapeServant for Field {
    fn grow(&self, _: &Call<'_>, _: f64) -> Returns<()> {
        Ok(())
    }
}
