//! System exceptions.

use std::fmt;

use chronorb_cdr::{CdrError, Decoder, Encoder};

use crate::minor;

/// The progress of an operation when its exception was raised.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CompletionStatus {
    /// The operation was completed.
    Yes,
    /// The operation was not begun, or had no effect.
    No,
    /// The progress is unknown.
    Maybe,
}

/// A system exception of CORBA: small enough to be copied, and complete.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct SystemException {
    /// The kind of the exception.
    pub kind: SystemExceptionKind,
    /// The cause within its kind; see [`minor`].
    pub minor: u32,
    /// The progress of the operation.
    pub completed: CompletionStatus,
}

impl SystemException {
    /// Makes an exception.
    pub const fn new(kind: SystemExceptionKind, minor: u32, completed: CompletionStatus) -> Self {
        Self {
            kind,
            minor,
            completed,
        }
    }

    /// Makes an exception raised before the operation had any effect.
    pub const fn no(kind: SystemExceptionKind, minor: u32) -> Self {
        Self::new(kind, minor, CompletionStatus::No)
    }

    /// Makes an exception of an operation whose progress is unknown.
    pub const fn maybe(kind: SystemExceptionKind, minor: u32) -> Self {
        Self::new(kind, minor, CompletionStatus::Maybe)
    }

    /// Makes an exception raised after the operation was completed.
    pub const fn yes(kind: SystemExceptionKind, minor: u32) -> Self {
        Self::new(kind, minor, CompletionStatus::Yes)
    }

    /// Replaces the completion status.
    #[must_use]
    pub const fn with_completed(mut self, completed: CompletionStatus) -> Self {
        self.completed = completed;
        self
    }

    /// Writes the body of a reply of status SYSTEM_EXCEPTION.
    ///
    /// # Errors
    /// [`CdrError::FrameFull`]
    pub fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_str(self.kind.repository_id())?;
        e.write_u32(self.minor)?;
        e.write_u32(match self.completed {
            CompletionStatus::Yes => 0,
            CompletionStatus::No => 1,
            CompletionStatus::Maybe => 2,
        })
    }

    /// Reads the body of a reply of status SYSTEM_EXCEPTION. An exception that
    /// the standard does not have becomes `UNKNOWN`.
    ///
    /// # Errors
    /// Any of [`CdrError`].
    pub fn decode(d: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let kind = SystemExceptionKind::from_repository_id(d.read_str()?);
        let minor = d.read_u32()?;
        let completed = match d.read_u32()? {
            0 => CompletionStatus::Yes,
            1 => CompletionStatus::No,
            2 => CompletionStatus::Maybe,
            _ => return Err(CdrError::InvalidEnum),
        };
        Ok(match kind {
            Some(kind) => Self::new(kind, minor, completed),
            None => Self::new(
                SystemExceptionKind::Unknown,
                minor::NONSTANDARD_SYSTEM_EXCEPTION,
                completed,
            ),
        })
    }

    /// The repository id, as `IDL:omg.org/CORBA/TRANSIENT:1.0`.
    pub const fn repository_id(&self) -> &'static str {
        self.kind.repository_id()
    }

    /// Makes an exception of its repository id; `None` if the standard does
    /// not have it.
    pub fn from_repository_id(id: &str, minor: u32, completed: CompletionStatus) -> Option<Self> {
        SystemExceptionKind::from_repository_id(id).map(|kind| Self::new(kind, minor, completed))
    }
}

impl std::error::Error for SystemException {}

impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match minor::meaning(self.kind, self.minor) {
            Some(meaning) => write!(f, " (minor {:#010x}: {meaning})", self.minor)?,
            None if self.minor == 0 => {}
            None => write!(f, " (minor {:#010x})", self.minor)?,
        }
        write!(f, ", completed {}", self.completed)
    }
}

/// Formats with the minor code in hexadecimal, as in the specifications, and its meaning.
impl fmt::Debug for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SystemException");
        shown.field("kind", &self.kind);
        match minor::meaning(self.kind, self.minor) {
            Some(meaning) => {
                shown.field("minor", &format_args!("{:#010x} ({meaning})", self.minor))
            }
            None => shown.field("minor", &format_args!("{:#010x}", self.minor)),
        };
        shown.field("completed", &self.completed).finish()
    }
}

impl fmt::Display for CompletionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "YES",
            Self::No => "NO",
            Self::Maybe => "MAYBE",
        })
    }
}

/// Converts a failed encoding or decoding to the exception that the caller of the operation
/// receives. The completion status is NO.
impl From<CdrError> for SystemException {
    fn from(error: CdrError) -> Self {
        use SystemExceptionKind::{
            BadParam, BadTypecode, DataConversion, ImpLimit, Marshal, NoImplement, NoMemory,
        };
        let (kind, minor) = match error {
            CdrError::EndOfData => (Marshal, minor::END_OF_DATA),
            CdrError::LengthOverflow => (Marshal, minor::LENGTH_OVERFLOW),
            CdrError::BoundExceeded => (Marshal, minor::BOUND_EXCEEDED),
            CdrError::UnterminatedString => (Marshal, minor::UNTERMINATED_STRING),
            CdrError::EmbeddedNul => (Marshal, minor::EMBEDDED_NUL),
            CdrError::InvalidUtf8 => (Marshal, minor::INVALID_UTF8),
            CdrError::UnmappableChar => (DataConversion, minor::CHAR_NOT_MAPPED),
            CdrError::InvalidWideChar => (Marshal, minor::INVALID_WIDE_CHAR),
            CdrError::InvalidEnum => (Marshal, minor::INVALID_ENUM),
            CdrError::InvalidDiscriminator => (Marshal, minor::INVALID_DISCRIMINATOR),
            CdrError::ArenaFull => (NoMemory, minor::ARENA_FULL),
            CdrError::NoArena => (BadParam, minor::NO_ARENA_IN_ANY),
            CdrError::OutOfMemory => (NoMemory, minor::OUT_OF_MEMORY),
            CdrError::FrameFull => (ImpLimit, minor::MESSAGE_TOO_LARGE),
            CdrError::TooDeep => (Marshal, minor::TOO_DEEP),
            CdrError::WideNotAllowedWrite => (Marshal, minor::WIDE_CHAR_SENT_OVER_1_0),
            CdrError::WideNotAllowedRead => (Marshal, minor::WIDE_CHAR_RECEIVED_OVER_1_0),
            CdrError::BadReference => (Marshal, minor::BAD_REFERENCE),
            CdrError::TooManyReferences => (ImpLimit, minor::TOO_MANY_REFERENCES),
            CdrError::NoValueFactory => (Marshal, minor::NO_VALUE_FACTORY),
            CdrError::WrongValueType => (Marshal, minor::WRONG_VALUE_TYPE),
            CdrError::InvalidValue => (Marshal, minor::INVALID_VALUE),
            CdrError::CyclicValue => (Marshal, minor::CYCLIC_VALUE),
            CdrError::TooManyValues => (Marshal, minor::TOO_MANY_VALUES),
            CdrError::TooMuchWork => (ImpLimit, minor::TOO_MUCH_WORK),
            CdrError::OutOfRange => (BadParam, minor::VALUE_OUT_OF_RANGE),
            CdrError::InvalidTypeCode => (BadTypecode, minor::INVALID_TYPE_CODE),
            CdrError::WrongType => (BadTypecode, minor::WRONG_TYPE_IN_ANY),
            CdrError::InvalidFixed => (Marshal, minor::INVALID_FIXED),
            CdrError::OpaqueValue => (NoImplement, minor::OPAQUE_VALUE_IN_ANY),
            _ => (Marshal, minor::OTHER_MARSHAL_FAILURE),
        };
        Self::no(kind, minor)
    }
}

macro_rules! kinds {
    ($($kind:ident $name:literal, $doc:literal;)*) => {
        /// The standard system exceptions: CORBA 3.3 part 1, clause 9.6.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum SystemExceptionKind {
            $(
                #[doc = concat!("`", $name, "`: ", $doc, ".")]
                $kind,
            )*
        }

        impl SystemExceptionKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The name in IDL, as `TRANSIENT`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The repository id, as `IDL:omg.org/CORBA/TRANSIENT:1.0`.
            pub const fn repository_id(self) -> &'static str {
                match self {
                    $(Self::$kind => concat!("IDL:omg.org/CORBA/", $name, ":1.0"),)*
                }
            }
        }
    };
}

kinds! {
    Unknown "UNKNOWN", "the servant raised something that cannot be passed on";
    BadParam "BAD_PARAM", "a parameter is wrong";
    NoMemory "NO_MEMORY", "memory is exhausted";
    ImpLimit "IMP_LIMIT", "a limit of the implementation is exceeded";
    CommFailure "COMM_FAILURE", "the connection was lost after the request was sent";
    InvObjref "INV_OBJREF", "the object reference is malformed";
    NoPermission "NO_PERMISSION", "the caller may not do this";
    Internal "INTERNAL", "the ORB has failed";
    Marshal "MARSHAL", "a value cannot be written or read";
    Initialize "INITIALIZE", "the ORB cannot be initialized";
    NoImplement "NO_IMPLEMENT", "there is no implementation of this";
    BadTypecode "BAD_TYPECODE", "a type code is wrong";
    BadOperation "BAD_OPERATION", "the object has no such operation";
    NoResources "NO_RESOURCES", "a resource is exhausted";
    NoResponse "NO_RESPONSE", "a deferred reply is not there yet";
    PersistStore "PERSIST_STORE", "the persistent storage failed";
    BadInvOrder "BAD_INV_ORDER", "the call is not possible at this time";
    Transient "TRANSIENT", "the object cannot be reached now; trying again may help";
    FreeMem "FREE_MEM", "memory cannot be freed";
    InvIdent "INV_IDENT", "an identifier is malformed";
    InvFlag "INV_FLAG", "a flag is wrong";
    IntfRepos "INTF_REPOS", "the interface repository failed";
    BadContext "BAD_CONTEXT", "the context object is wrong";
    ObjAdapter "OBJ_ADAPTER", "the object adapter failed";
    DataConversion "DATA_CONVERSION", "a value has no counterpart on the other side";
    ObjectNotExist "OBJECT_NOT_EXIST", "there is no such object, and never will be again";
    TransactionRequired "TRANSACTION_REQUIRED", "the operation needs a transaction";
    TransactionRolledback "TRANSACTION_ROLLEDBACK", "the transaction is rolled back";
    InvalidTransaction "INVALID_TRANSACTION", "the transaction is malformed";
    InvPolicy "INV_POLICY", "policies do not fit each other";
    CodesetIncompatible "CODESET_INCOMPATIBLE", "client and server have no code set in common";
    Rebind "REBIND", "the reference would have to be bound anew, which a policy forbids";
    Timeout "TIMEOUT", "the time of the call is over";
    TransactionUnavailable "TRANSACTION_UNAVAILABLE", "the transaction service cannot be reached";
    TransactionMode "TRANSACTION_MODE", "the policies for transactions do not fit each other";
    BadQos "BAD_QOS", "the quality of service cannot be had";
    InvalidActivity "INVALID_ACTIVITY", "the activity is not the one that was suspended";
    ActivityCompleted "ACTIVITY_COMPLETED", "the activity has come to its end";
    ActivityRequired "ACTIVITY_REQUIRED", "the operation needs an activity";
    ThreadCancelled "THREAD_CANCELLED", "the distributable thread was cancelled";
}

impl SystemExceptionKind {
    /// The kind with this name in IDL.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kind with this repository id.
    pub fn from_repository_id(id: &str) -> Option<Self> {
        id.strip_prefix("IDL:omg.org/CORBA/")?
            .strip_suffix(":1.0")
            .and_then(Self::from_name)
    }
}

impl fmt::Display for SystemExceptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
