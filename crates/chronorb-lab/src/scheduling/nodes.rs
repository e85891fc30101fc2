//! ORBs of this process, which stand for processes, with scripted servants.

use chronorb::prelude::*;
use chronorb_cdr::Decoder;
use chronorb_orb::{Operation, ReplyWriter, Skeleton};

use crate::bench::orb_arguments;
use crate::error::LabError;

/// A name, and work that is timed.
pub(super) type TimedWork<'w> = (&'static str, &'w dyn Fn() -> Result<(), LabError>);

/// A servant whose operations are one function.
pub(super) struct Script<F>(pub(super) F);

impl<F> Skeleton for Script<F>
where
    F: Fn(&Call<'_>) -> Result<(), SystemException> + Send + Sync + 'static,
{
    fn repository_id(&self) -> &'static str {
        "IDL:Lab/Script:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        _: &[u8],
        _: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        (self.0)(call)?;
        reply.normal().map(drop)
    }
}

/// An ORB that stands for a process.
pub(super) struct Node {
    pub(super) orb: Orb,
}

impl Node {
    /// Starts it with these options, on the loopback.
    pub(super) fn start(options: &[&str]) -> Result<Self, LabError> {
        let mut arguments = orb_arguments(options);
        let orb = Orb::init(&mut arguments);
        let orb = orb.map_err(LabError::work(STARTING))?;
        Ok(Self { orb })
    }

    /// Serves an object of the root POA whose operations are this function.
    pub(super) fn serve(
        &self,
        script: impl Fn(&Call<'_>) -> Result<(), SystemException> + Send + Sync + 'static,
    ) -> Result<Object, LabError> {
        let root = self.orb.root_poa().map_err(LabError::work(STARTING))?;
        let object = root.serve(Script(script));
        let object = object.map_err(LabError::work(STARTING))?;
        let active = root.manager().activate();
        active.map_err(LabError::work(STARTING))?;
        Ok(object)
    }

    /// Returns the object of another node, as this one calls it.
    pub(super) fn see(&self, other: &Self, object: &Object) -> Result<Object, LabError> {
        let text = other.orb.object_to_string(object);
        let object = self.orb.string_to_object(&text);
        object.map_err(LabError::work(STARTING))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It is not called by a servant.
        let _ = self.orb.shutdown(false);
    }
}

/// Calls an operation without arguments and results.
pub(super) fn perform(object: &Object) -> Result<(), SystemException> {
    Scope::with(|scope| {
        let operation = Operation::twoway("go");
        object.invoke(scope, &operation, &|_| Ok(())).map(drop)
    })
}

pub(super) const STARTING: &str = "starting an ORB";
