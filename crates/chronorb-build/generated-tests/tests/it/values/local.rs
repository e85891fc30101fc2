//! Local interfaces, native types, and structs that hold them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use chronorb::SystemException;
use chronorb_generated_tests::values::geometry::Point;
use chronorb_generated_tests::values::inside::{
    AddErrorBuf, Handle, Listener, RefusedBuf, Registration, Source,
};

#[derive(Default)]
struct Ear {
    heard: AtomicI32,
}

impl Source for Ear {
    fn add(&self, r: &Registration) -> Result<(), AddErrorBuf> {
        if r.first.is_none() {
            let why = format!("{} has no listener", r.name);
            return Err(RefusedBuf { why }.into());
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<(Registration, bool), SystemException> {
        let registration = Registration {
            name: name.to_owned(),
            first: None,
            grip: handle(3),
            others: Vec::new(),
        };
        Ok((registration, false))
    }

    fn all(&self) -> Result<Vec<Option<Arc<dyn Listener>>>, SystemException> {
        Ok(vec![None, Some(Arc::new(Self::default()))])
    }

    fn count(&self) -> Result<i32, SystemException> {
        Ok(self.heard.load(Ordering::Relaxed))
    }
}

impl Listener for Ear {
    fn audit(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn audits(&self) -> Result<i32, SystemException> {
        Ok(1)
    }

    fn notify(
        &self,
        p: Option<&Arc<dyn Point>>,
        from: Option<&Arc<dyn Source>>,
        grip: &mut Handle,
    ) -> Result<(), SystemException> {
        let x = p.map_or(0, |p| p.point_state().x);
        self.heard.fetch_add(x, Ordering::Relaxed);
        let count = from.map_or(Ok(-1), |from| from.count())?;
        *grip = handle(count);
        Ok(())
    }
}

fn handle(number: i32) -> Handle {
    Arc::new(number)
}

#[test]
fn local_interfaces_are_traits_with_plain_methods() {
    let ear = Arc::new(Ear::default());
    let listener: Arc<dyn Listener> = ear.clone();
    let source: Arc<dyn Source> = ear;
    let place = super::point(5, 0);
    let mut grip = handle(0);
    listener
        .notify(Some(&place), Some(&source), &mut grip)
        .expect("notified");
    assert_eq!(grip.downcast_ref::<i32>(), Some(&5));
    assert_eq!(source.count(), Ok(5));
    assert_eq!(listener.audits(), Ok(1));
    assert_eq!(format!("{listener:?}"), "Listener { .. }");
    assert_eq!(<dyn Listener>::REPOSITORY_ID, "IDL:inside/Listener:1.0");
}

#[test]
fn structs_with_local_members_own_them() {
    let source: Arc<dyn Source> = Arc::new(Ear::default());
    let mut registration = Registration {
        name: "n".to_owned(),
        first: None,
        grip: handle(1),
        others: source.all().expect("told"),
    };
    let refused = source.add(&registration).expect_err("it has no listener");
    assert_eq!(refused.to_string(), "refused (why: \"n has no listener\")");
    registration.first = registration.others[1].clone();
    source.add(&registration.clone()).expect("added");
    let (found, is_found) = source.find("m").expect("asked");
    assert_eq!((found.name.as_str(), is_found), ("m", false));
}
