//! Changes of the contexts and their bindings, and the journal that keeps them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A change of the state of a name server.
///
/// The state is the result of all changes in order, beginning with one root context, number 0,
/// without bindings. A change that stands in a journal was valid when it was made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// Creates an empty context. Numbers are never used again.
    CreateContext {
        /// The number of the new context.
        context: u64,
    },
    /// Destroys an empty context. Bindings to it may remain.
    DestroyContext {
        /// The number of the context.
        context: u64,
    },
    /// Binds a component in a context, in place of the binding that it may have.
    Bind {
        /// The number of the context.
        context: u64,
        /// The identifier of the component; contains no NUL.
        id: Vec<u8>,
        /// The kind of the component; contains no NUL.
        kind: Vec<u8>,
        /// The new binding.
        binding: Binding,
    },
    /// Removes the binding of a component.
    Unbind {
        /// The number of the context.
        context: u64,
        /// The identifier of the component.
        id: Vec<u8>,
        /// The kind of the component.
        kind: Vec<u8>,
    },
}

/// The value that a component is bound to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    /// Whether names are resolved through the binding.
    pub kind: BindingKind,
    /// The bound object.
    pub target: Target,
    /// The limit of the life of the binding; `None` for no limit.
    pub lease: Option<Lease>,
}

/// Whether names are resolved through a binding (`CosNaming::BindingType`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BindingKind {
    /// An object (`nobject`).
    Object,
    /// A context that names are resolved through (`ncontext`).
    Context,
}

/// The object of a binding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// A reference as an encapsulation: the octet of the byte order, then the IOR. It may be nil.
    Reference(Arc<[u8]>),
    /// The number of a context of this name server.
    Context(u64),
}

/// The limit of the life of a binding.
///
/// The time of the last renewal is not part of the state, so a lease begins anew when a name server
/// starts again, and a renewal is not a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lease {
    /// The number of the lease, which is unique within the name server.
    pub id: u64,
    /// The time after the last renewal at which the binding is removed, in seconds.
    pub time_to_live: u32,
}

/// The place where changes are kept before they take effect.
///
/// The server appends one group at a time, applies it to its state if this succeeds, and then
/// answers the client.
pub trait Journal: Send {
    /// Keeps the changes, all or none of them.
    ///
    /// # Errors
    /// [`JournalError`] if they could not be kept. The state of the server does not change, and the
    /// client gets `PERSIST_STORE`.
    fn append(&mut self, changes: &[Change]) -> Result<(), JournalError>;

    /// Whether the journal is so long that a snapshot is worthwhile. The server asks after each
    /// group that it applied.
    fn wants_snapshot(&self) -> bool {
        false
    }

    /// Replaces the journal by the changes that make the present state of an empty one
    /// ([`Tree::changes`](crate::Tree::changes)).
    ///
    /// # Errors
    /// [`JournalError`] if it was not replaced. That concerns no client.
    fn write_snapshot(
        &mut self,
        state: &mut dyn Iterator<Item = Change>,
    ) -> Result<(), JournalError> {
        let _ = state;
        Ok(())
    }
}

/// A failure of a [`Journal`]; the source has the cause.
#[derive(Debug)]
pub struct JournalError(Box<dyn Error + Send + Sync>);

impl JournalError {
    /// Wraps the cause of the failure.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the change could not be stored")
    }
}

impl Error for JournalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
