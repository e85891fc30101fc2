//! The error of encoding and decoding.

/// The cause of a failure to write a value in CDR, or to read one.
///
/// The layer above turns each of them into a system exception. The variant names the cause, and
/// thereby the side at fault.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CdrError {
    /// The message ends within the value: the sender cut it short, or its
    /// idea of the type is another.
    #[error("the message ends within a value")]
    EndOfData,
    /// A length exceeds the rest of the message (reading), or the range of an `unsigned long`
    /// (writing).
    #[error("a length is greater than the message")]
    LengthOverflow,
    /// A bounded string or sequence is longer than its IDL type allows.
    #[error("a string or sequence is longer than its bound")]
    BoundExceeded,
    /// A string on the wire does not end in NUL.
    #[error("a string does not end in NUL")]
    UnterminatedString,
    /// A string has a NUL before its end; CORBA strings cannot hold one.
    #[error("a string has a NUL within it")]
    EmbeddedNul,
    /// A string of transmission code set UTF-8 is not UTF-8.
    #[error("a string is not valid UTF-8")]
    InvalidUtf8,
    /// A character does not exist in the other code set, or is a surrogate alone.
    #[error("a character cannot be converted to the other code set")]
    UnmappableChar,
    /// A wide character is not one of UTF-16, or a wide string has an odd length.
    #[error("a wide character or string is not valid UTF-16")]
    InvalidWideChar,
    /// The number of an enumerator that the IDL type does not have.
    #[error("an enumerator is out of range")]
    InvalidEnum,
    /// A discriminator or tag that the IDL type gives no meaning.
    #[error("a discriminator has no meaning for its type")]
    InvalidDiscriminator,
    /// The arena that holds decoded values has no room left.
    #[error("the arena for decoded values is full")]
    ArenaFull,
    /// An any that was made to be sent has no arena to extract its value into.
    #[error(
        "an any that was made to be sent has no arena for its value; extract it by \
         AnyBuf::extract, AnyBuf::with_view or Any::new"
    )]
    NoArena,
    /// The frame would grow over its limit.
    #[error("the message is greater than its limit")]
    FrameFull,
    /// There is no memory for the message to grow.
    #[error("there is no memory for the message")]
    OutOfMemory,
    /// Values are nested more than [`MAX_DEPTH`](crate::MAX_DEPTH) deep.
    #[error("values are nested too deeply")]
    TooDeep,
    /// A `wchar` or `wstring` cannot be written, because GIOP 1.0 has no encoding for them.
    #[error("wide characters cannot be written in GIOP 1.0")]
    WideNotAllowedWrite,
    /// A `wchar` or `wstring` was to be read in GIOP 1.0, which has no form
    /// for them.
    #[error("wide characters cannot be read in GIOP 1.0")]
    WideNotAllowedRead,
    /// No factory is registered for the type of a value, nor for a base that it may be taken for.
    #[error("there is no factory for the type of a value")]
    NoValueFactory,
    /// A value is of a type that its place in the message does not allow.
    #[error("a value is of another type than is expected")]
    WrongValueType,
    /// The header of a value, its chunks, or a reference to an earlier part of the message are
    /// malformed.
    #[error("a value is malformed")]
    InvalidValue,
    /// A value holds itself.
    #[error("a value is within itself")]
    CyclicValue,
    /// There are more than [`MAX_VALUES`](crate::MAX_VALUES) values in a message.
    #[error("there are too many values in a message")]
    TooManyValues,
    /// A message takes more work than messages of its size may; see
    /// [`Decoder::charge`](crate::Decoder::charge).
    #[error("the message takes more work than its size allows")]
    TooMuchWork,
    /// The layer above could not make an object reference of the octets, or could not write the
    /// given one.
    #[error("an object reference cannot be read or written")]
    BadReference,
    /// The object references of one message need more memory than the layer
    /// above allows them.
    #[error("the object references of one message need more memory than they may")]
    TooManyReferences,
    /// A value is outside of the range that its IDL type allows.
    #[error("a value is outside of the range of its type")]
    OutOfRange,
    /// A type code is malformed: its kind is unknown, an indirection leads nowhere, or its
    /// parameters contradict each other. Or a type code cannot be written.
    #[error("a type code is not valid")]
    InvalidTypeCode,
    /// A `fixed` on the wire has an invalid digit or no sign, or more digits than its type allows.
    #[error("a fixed-point value is not valid")]
    InvalidFixed,
    /// An any holds a value of another type than was asked for.
    #[error("an any holds a value of another type")]
    WrongType,
    /// An any holds a value that only code which knows its type can decode: a valuetype, or a local
    /// type.
    #[error("an any holds a value that cannot be read without its type's code")]
    OpaqueValue,
}
