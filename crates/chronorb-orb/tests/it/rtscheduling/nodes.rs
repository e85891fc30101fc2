//! Nodes with scripted servants, and a scheduler that records what it is told.

use std::sync::Arc;

use chronorb_cdr::Decoder;
use chronorb_orb::rtcorba::Priority;
use chronorb_orb::rtscheduling::{Guid, Scheduler, SchedulingParameter, SchedulingPoint};
use chronorb_orb::{
    Call, Object, Operation, Orb, OrbConfig, PendingReply, Reply, ReplyWriter, Scope, Skeleton,
    SystemException,
};
use chronorb_rt::PiMutex;

use crate::support::orb_with;

/// A servant whose operations are one function.
struct Script<F>(F);

impl<F> Skeleton for Script<F>
where
    F: Fn(&Call<'_>) -> Result<(), SystemException> + Send + Sync + 'static,
{
    fn repository_id(&self) -> &'static str {
        "IDL:Test/Script:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        _: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        (self.0)(call)?;
        if operation == b"refuse" {
            reply.user_exception("IDL:Test/Refused:1.0")?;
        } else {
            reply.normal()?;
        }
        Ok(())
    }
}

/// An ORB, which stands for a process, and what its scheduler was told.
pub(super) struct Node {
    pub(super) orb: Orb,
    pub(super) told: Arc<Recorder>,
}

impl Node {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(configure: impl FnOnce(&mut OrbConfig)) -> Self {
        let orb = orb_with(configure);
        let told = Arc::new(Recorder::default());
        let set = orb.set_scheduler(told.clone());
        set.expect("it is the first");
        Self { orb, told }
    }

    /// Serves an object whose operations are this function.
    pub(super) fn serve(
        &self,
        script: impl Fn(&Call<'_>) -> Result<(), SystemException> + Send + Sync + 'static,
    ) -> Object {
        let root = self.orb.root_poa().expect("the endpoint opens");
        let object = root.serve(Script(script)).expect("it activates");
        root.manager().activate().expect("it was not deactivated");
        object
    }

    /// The object of another node, as this one calls it.
    pub(super) fn see(&self, other: &Self, object: &Object) -> Object {
        let text = other.orb.object_to_string(object);
        self.orb
            .string_to_object(&text)
            .expect("the reference reads")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(false);
    }
}

/// Schedules by fixed priorities, and records what it is told.
#[derive(Default)]
pub(super) struct Recorder(PiMutex<Vec<String>>);

impl Recorder {
    /// Takes the events that were recorded.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    /// The number of cancellations that were told.
    pub(super) fn cancellations(&self) -> usize {
        let told = self.0.lock();
        told.iter().filter(|event| *event == "cancel").count()
    }

    fn note(&self, event: String) {
        self.0.lock().push(event);
    }
}

fn level(parameter: Option<&SchedulingParameter>) -> i16 {
    match parameter {
        Some(SchedulingParameter::FixedPriority { base_priority }) => base_priority.value(),
        _ => -1,
    }
}

impl Scheduler for Recorder {
    fn scheduling_discipline_name(&self) -> &str {
        "FP"
    }

    fn supports(&self, parameter: &SchedulingParameter) -> bool {
        matches!(parameter, SchedulingParameter::FixedPriority { .. })
    }

    fn priority(&self, parameter: &SchedulingParameter) -> Option<Priority> {
        Priority::new(level(Some(parameter)))
    }

    fn begin_new_scheduling_segment(
        &self,
        _: Guid,
        name: &str,
        parameter: Option<&SchedulingParameter>,
        _: Option<&SchedulingParameter>,
    ) {
        self.note(format!("begin {name} {}", level(parameter)));
    }

    fn begin_nested_scheduling_segment(
        &self,
        _: Guid,
        name: &str,
        parameter: Option<&SchedulingParameter>,
        _: Option<&SchedulingParameter>,
    ) {
        self.note(format!("nest {name} {}", level(parameter)));
    }

    fn update_scheduling_segment(
        &self,
        _: Guid,
        name: &str,
        parameter: Option<&SchedulingParameter>,
        _: Option<&SchedulingParameter>,
    ) {
        self.note(format!("update {name} {}", level(parameter)));
    }

    fn end_scheduling_segment(&self, _: Guid, name: &str) {
        self.note(format!("end {name}"));
    }

    fn end_nested_scheduling_segment(
        &self,
        _: Guid,
        name: &str,
        outer: Option<&SchedulingParameter>,
    ) {
        self.note(format!("end {name} to {}", level(outer)));
    }

    fn at_point(&self, point: SchedulingPoint, _: Guid) {
        self.note(format!("{point:?}"));
    }

    fn cancel(&self, _: Guid) {
        self.note("cancel".to_owned());
    }
}

/// The parameter of a base priority.
pub(super) fn fixed(value: i16) -> SchedulingParameter {
    SchedulingParameter::FixedPriority {
        base_priority: Priority::new(value).expect("not negative"),
    }
}

/// Calls an operation without arguments and results. Returns whether it has raised an exception of
/// the user.
pub(super) fn perform(object: &Object, name: &'static str) -> Result<bool, SystemException> {
    Scope::with(|scope| {
        let reply = object.invoke(scope, &Operation::twoway(name), &|_| Ok(()))?;
        Ok(matches!(reply, Reply::UserException(..)))
    })
}

/// Begins an asynchronous call without arguments and results.
pub(super) fn begin(object: &Object) -> Result<PendingReply<()>, SystemException> {
    PendingReply::begin(object, &Operation::twoway("go"), &|_| Ok(()), |_| Ok(()))
}
