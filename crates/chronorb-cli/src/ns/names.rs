//! The calls to a name server, and their failures with the component that is wrong.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use chronorb_cdr::CdrError;
use chronorb_naming::idl::chronorb_naming::{BindWithLeaseErrorBuf, RebindWithLeaseErrorBuf};
use chronorb_naming::idl::cos_naming::naming_context::NotFoundReason;
use chronorb_naming::idl::cos_naming::{
    BindErrorBuf, BindingBuf, NameComponent, NameComponentBuf, NamingContext, RebindErrorBuf,
};
use chronorb_naming::{ChangeError, NameTextError, name_from_text, name_to_text};
use chronorb_orb::{Object, OrbConfig, SystemException, SystemExceptionKind};
use chronorb_rt::visible;
use thiserror::Error;

use super::arguments::{BoundArguments, GREATEST_MAX, ServerArguments};
use super::serve::ServeFailure;
use crate::client::{Client, ClientError};

/// A command of `chronorb ns` failed.
#[derive(Debug, Error)]
pub(crate) enum NsError {
    #[error(transparent)]
    Serve(#[from] ServeFailure),
    #[error(transparent)]
    Client(ClientError),
    #[error("the name {name:?}: {problem}")]
    Malformed {
        name: String,
        problem: NameTextError,
    },
    #[error("{name}: {problem}, in component {position}, {component:?}{remedy}")]
    NotFound {
        name: String,
        problem: &'static str,
        /// The number of the component, from 1.
        position: usize,
        component: String,
        remedy: &'static str,
    },
    #[error("{0} is bound already; chronorb ns rebind replaces the object")]
    AlreadyBound(String),
    #[error("{0}: the server refuses the name as invalid")]
    InvalidName(String),
    #[error("{0}: the server cannot go on with the name; a server of another context may be down")]
    CannotProceed(String),
    #[error("{0} is bound to a nil reference")]
    Nil(String),
    #[error("there are more than {0} bindings or contexts; --max permits more")]
    TooMany(usize),
    #[error("{name}: the server allows leases of {least} to {greatest} seconds")]
    TimeToLive {
        name: String,
        least: u32,
        greatest: u32,
    },
    #[error("{}: {source}", .file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("{}: {problem}", .file.display())]
    Text {
        file: PathBuf,
        problem: Box<dyn Error + Send + Sync>,
    },
    #[error("a component is not UTF-8: {0}")]
    NotUtf8(String),
    #[error("a reference is malformed: {0}")]
    Reference(CdrError),
    #[error("the listed bindings contradict each other: {0}")]
    Inconsistent(ChangeError),
    #[error("{0} is bound to a context that has no name")]
    Orphan(String),
    #[error("{cause}\n{done} of {all} bindings were made before; --rebind replaces them")]
    Import {
        cause: Box<Self>,
        done: usize,
        all: usize,
    },
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

/// The root context of a name server.
pub(crate) struct NameServer {
    pub(super) client: Client,
    pub(super) root: NamingContext,
    /// The most bindings and contexts that are asked for, so that a server cannot go on for ever.
    pub(super) max: usize,
}

/// The failure of an operation on a name.
pub(super) enum NameFailure {
    /// The number of components from the one that failed on.
    NotFound(NotFoundReason, usize),
    CannotProceed,
    InvalidName,
    AlreadyBound,
    /// The shortest and the longest time to live that the server allows.
    TimeToLive(u32, u32),
    System(SystemException),
}

impl From<RebindErrorBuf> for NameFailure {
    fn from(error: RebindErrorBuf) -> Self {
        match error {
            RebindErrorBuf::NotFound(error) => Self::NotFound(error.why, error.rest_of_name.len()),
            RebindErrorBuf::CannotProceed(_) => Self::CannotProceed,
            RebindErrorBuf::InvalidName(_) => Self::InvalidName,
            RebindErrorBuf::System(exception) => Self::System(exception),
        }
    }
}

impl From<BindErrorBuf> for NameFailure {
    fn from(error: BindErrorBuf) -> Self {
        match error {
            BindErrorBuf::NotFound(error) => Self::NotFound(error.why, error.rest_of_name.len()),
            BindErrorBuf::CannotProceed(_) => Self::CannotProceed,
            BindErrorBuf::InvalidName(_) => Self::InvalidName,
            BindErrorBuf::AlreadyBound(_) => Self::AlreadyBound,
            BindErrorBuf::System(exception) => Self::System(exception),
        }
    }
}

impl From<BindWithLeaseErrorBuf> for NameFailure {
    fn from(error: BindWithLeaseErrorBuf) -> Self {
        use BindWithLeaseErrorBuf as Leased;
        match error {
            Leased::NotFound(error) => Self::NotFound(error.why, error.rest_of_name.len()),
            Leased::CannotProceed(_) => Self::CannotProceed,
            Leased::InvalidName(_) => Self::InvalidName,
            Leased::AlreadyBound(_) => Self::AlreadyBound,
            Leased::InvalidTimeToLive(limits) => Self::TimeToLive(limits.least, limits.greatest),
            Leased::System(exception) => Self::System(exception),
        }
    }
}

impl From<RebindWithLeaseErrorBuf> for NameFailure {
    fn from(error: RebindWithLeaseErrorBuf) -> Self {
        use RebindWithLeaseErrorBuf as Leased;
        match error {
            Leased::NotFound(error) => Self::NotFound(error.why, error.rest_of_name.len()),
            Leased::CannotProceed(_) => Self::CannotProceed,
            Leased::InvalidName(_) => Self::InvalidName,
            Leased::InvalidTimeToLive(limits) => Self::TimeToLive(limits.least, limits.greatest),
            Leased::System(exception) => Self::System(exception),
        }
    }
}

impl NameServer {
    /// Finds the root context, and waits until its server can be reached if that is asked for.
    pub(crate) fn connect(arguments: &ServerArguments, config: OrbConfig) -> Result<Self, NsError> {
        let is_configured = config.default_init_ref.is_some()
            || config
                .init_refs
                .iter()
                .any(|(name, _)| name == NAME_SERVICE);
        let reference = match &arguments.ns {
            Some(reference) => reference.as_str(),
            None if is_configured => "corbaloc:rir:/NameService",
            None => DEFAULT,
        };
        let timeout = arguments.timeout(&config);
        let client = Client::new(config, timeout)?;
        let deadline = Instant::now() + arguments.wait();
        let root = loop {
            let object = client.object(reference).and_then(|object| {
                if arguments.wait().is_zero() {
                    return Ok(object);
                }
                match object.non_existent() {
                    Err(exception) if may_come(exception) => {
                        Err(client.failed(reference, exception))
                    }
                    // The operation reports another failure.
                    _ => Ok(object),
                }
            });
            match object {
                Ok(object) => break object,
                Err(error) if Instant::now() >= deadline || !is_waited_for(&error) => {
                    return Err(error.into());
                }
                Err(_) => thread::sleep(RETRY),
            }
        };
        let root = NamingContext::unchecked_narrow(&root);
        Ok(Self {
            client,
            root,
            max: GREATEST_MAX as usize,
        })
    }

    /// Sets the most bindings that are asked for.
    pub(super) fn bounded(mut self, bound: &BoundArguments) -> Self {
        self.max = bound.max();
        self
    }

    /// Returns the ORB of the calls.
    pub(crate) fn into_client(self) -> Client {
        self.client
    }

    pub(crate) fn resolve(&self, name: &str) -> Result<Object, NsError> {
        let components = parse(name)?;
        let object = self.root.resolve(&views(&components));
        object
            .map_err(|error| self.error(name, &components, error.into()))?
            .ok_or_else(|| NsError::Nil(name.to_owned()))
    }

    /// Resolves a name, and waits until it is bound.
    pub(crate) fn resolve_waiting(&self, name: &str, wait: Duration) -> Result<Object, NsError> {
        let deadline = Instant::now() + wait;
        loop {
            match self.resolve(name) {
                Err(NsError::NotFound { .. }) if Instant::now() < deadline => thread::sleep(RETRY),
                outcome => return outcome,
            }
        }
    }

    pub(super) fn bind(&self, name: &str, reference: &str) -> Result<(), NsError> {
        let components = parse(name)?;
        let object = self.client.object(reference)?;
        let bound = self.root.bind(&views(&components), Some(&object));
        bound.map_err(|error| self.error(name, &components, error.into()))
    }

    pub(crate) fn rebind(&self, name: &str, reference: &str) -> Result<(), NsError> {
        let components = parse(name)?;
        let object = self.client.object(reference)?;
        let bound = self.root.rebind(&views(&components), Some(&object));
        bound.map_err(|error| self.error(name, &components, error.into()))
    }

    pub(crate) fn unbind(&self, name: &str) -> Result<(), NsError> {
        let components = parse(name)?;
        let unbound = self.root.unbind(&views(&components));
        unbound.map_err(|error| self.error(name, &components, error.into()))
    }

    /// Makes a context; with `parents` also those on the way, where they are missing.
    pub(super) fn make_context(&self, name: &str, parents: bool) -> Result<(), NsError> {
        let components = parse(name)?;
        let first = if parents { 1 } else { components.len() };
        for end in first..=components.len() {
            let part = &components[..end];
            match self.root.bind_new_context(&views(part)) {
                Ok(_) => {}
                Err(BindErrorBuf::AlreadyBound(_)) if parents => {}
                Err(error) => return Err(self.error(name, part, error.into())),
            }
        }
        Ok(())
    }

    /// Asks for all bindings of a context.
    ///
    /// `prefix` is its name with a slash behind it, and `count` the number of bindings that were
    /// listed before.
    pub(super) fn bindings_of(
        &self,
        context: &NamingContext,
        prefix: &str,
        count: usize,
    ) -> Result<Vec<BindingBuf>, NsError> {
        let failed = |exception| {
            let name = visible(prefix.trim_end_matches('/'));
            let subject = if name.is_empty() {
                "listing the first context".to_owned()
            } else {
                format!("listing {name}")
            };
            NsError::from(self.client.failed(subject, exception))
        };
        let (mut bindings, iterator) = context.list(BATCH).map_err(failed)?;
        if let Some(iterator) = iterator {
            loop {
                let (more, batch) = iterator.next_n(BATCH).map_err(failed)?;
                let is_last = !more || batch.is_empty();
                bindings.extend(batch);
                if count + bindings.len() > self.max {
                    return Err(NsError::TooMany(self.max));
                }
                if is_last {
                    break;
                }
            }
            // The server may have ended it by itself.
            let _ = iterator.destroy();
        }
        if count + bindings.len() > self.max {
            return Err(NsError::TooMany(self.max));
        }
        bindings.sort_by(|one, other| {
            let key = |binding: &BindingBuf| {
                let first = binding.binding_name.first();
                first.map(|component| (component.id.clone(), component.kind.clone()))
            };
            key(one).cmp(&key(other))
        });
        Ok(bindings)
    }

    pub(super) fn error(
        &self,
        name: &str,
        components: &[NameComponentBuf],
        error: NameFailure,
    ) -> NsError {
        let name = visible(name).into_owned();
        match error {
            NameFailure::NotFound(why, rest) => {
                let at = components.len().saturating_sub(rest);
                let at = at.min(components.len().saturating_sub(1));
                let (problem, remedy) = match why {
                    NotFoundReason::MissingNode if at + 1 < components.len() => (
                        "the context does not exist",
                        "; chronorb ns mkdir --parents makes contexts",
                    ),
                    NotFoundReason::MissingNode => {
                        ("the name is not bound", "; chronorb ns list shows what is")
                    }
                    NotFoundReason::NotContext => ("an object stands where a context should", ""),
                    NotFoundReason::NotObject => (
                        "a context is bound there, and not an object",
                        "; chronorb ns unbind removes its binding",
                    ),
                };
                NsError::NotFound {
                    name,
                    problem,
                    position: at + 1,
                    component: components.get(at).map(text_of).unwrap_or_default(),
                    remedy,
                }
            }
            NameFailure::CannotProceed => NsError::CannotProceed(name),
            NameFailure::InvalidName => NsError::InvalidName(name),
            NameFailure::AlreadyBound => NsError::AlreadyBound(name),
            NameFailure::TimeToLive(least, greatest) => NsError::TimeToLive {
                name,
                least,
                greatest,
            },
            NameFailure::System(exception) => NsError::Client(self.client.failed(name, exception)),
        }
    }
}

/// Whether waiting helps: the server may not have started yet.
fn may_come(exception: SystemException) -> bool {
    use SystemExceptionKind::{CommFailure, ObjectNotExist, Timeout, Transient};
    matches!(
        exception.kind,
        CommFailure | ObjectNotExist | Timeout | Transient
    )
}

fn is_waited_for(error: &ClientError) -> bool {
    matches!(error, ClientError::Failed { exception, .. } if may_come(*exception))
}

fn parse(name: &str) -> Result<Vec<NameComponentBuf>, NsError> {
    name_from_text(name).map_err(|problem| NsError::Malformed {
        name: name.to_owned(),
        problem,
    })
}

pub(super) fn views(components: &[NameComponentBuf]) -> Vec<NameComponent<'_>> {
    components
        .iter()
        .map(|component| component.as_view())
        .collect()
}

/// The text form of one component.
pub(super) fn text_of(component: &NameComponentBuf) -> String {
    // It is not empty.
    name_to_text(&[component.as_view()]).unwrap_or_default()
}

const NAME_SERVICE: &str = "NameService";
const DEFAULT: &str = "corbaloc::1.2@localhost:2809/NameService";
/// The bindings of one answer of a server.
const BATCH: u32 = 1000;
/// The time between two attempts to reach a server.
const RETRY: Duration = Duration::from_millis(200);
