//! Type codes: descriptions of IDL types at run time.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
mod compare;
mod decode;
mod display;
mod encode;
mod owned;
mod unrolled;

pub use owned::TypeCodeBuf;

/// An IDL type as a value: the type of an [`Any`](crate::Any)'s content.
///
/// A type code is a tree of `Copy` values. Those of compiled types are constants, see
/// [`Typed`](crate::Typed); received ones are views of the frame and the arena. A bound of 0 means
/// that there is none. A type that contains itself does so by [`Recursive`](Self::Recursive).
///
/// Types of IDL 4 that CORBA has no kind for are told by others of the same form: `int8` and
/// `uint8` by [`Octet`](Self::Octet), a map by a sequence of a struct of key and value, a bitmask
/// or bitset by an alias of the unsigned type that carries it.
///
/// ```
/// use chronorb_cdr::{StructMember, TypeCode, Typed};
///
/// let level = TypeCode::Struct {
///     id: "IDL:Level:1.0",
///     name: "Level",
///     members: &[
///         StructMember { name: "px", type_code: f64::TYPE_CODE },
///         StructMember { name: "qty", type_code: i32::TYPE_CODE },
///     ],
/// };
/// let levels = TypeCode::Sequence { element: &level, bound: 0 };
/// assert_eq!(level.to_string(), "struct Level { double px; long qty; }");
/// assert_eq!(levels.to_string(), "sequence<Level>");
/// let alias = TypeCode::Alias { id: "IDL:Levels:1.0", name: "Levels", target: &levels };
/// assert!(alias.equivalent(&levels) && !alias.equal(&levels));
/// ```
///
/// Source: CORBA 3.3 part 1, clause 8.11.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum TypeCode<'a> {
    /// `tk_null`: of an any that holds nothing.
    #[default]
    Null,
    /// `void`
    Void,
    /// `short`
    Short,
    /// `long`
    Long,
    /// `unsigned short`
    UShort,
    /// `unsigned long`
    ULong,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `boolean`
    Boolean,
    /// `char`
    Char,
    /// `octet`, and `int8` and `uint8`
    Octet,
    /// `any`
    Any,
    /// `CORBA::TypeCode`
    TypeCode,
    /// `CORBA::Principal`, which CORBA has given up. Values of it are refused.
    Principal,
    /// `long long`
    LongLong,
    /// `unsigned long long`
    ULongLong,
    /// `long double`
    LongDouble,
    /// `wchar`
    WChar,
    /// An interface.
    ObjRef {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
    },
    /// A struct.
    Struct {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The members, in order.
        members: &'a [StructMember<'a>],
    },
    /// A union.
    Union {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The type of the discriminator.
        discriminator: &'a Self,
        /// The index of the member with the label `default`, if there is one. The label of that
        /// member has no meaning.
        default_index: Option<u32>,
        /// One for each label, in order.
        members: &'a [UnionMember<'a>],
    },
    /// An enum.
    Enum {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The names of the enumerators; the first has the number 0.
        members: &'a [&'a str],
    },
    /// `string`
    String {
        /// The greatest number of octets; 0 where there is none.
        bound: u32,
    },
    /// `wstring`
    WString {
        /// The greatest number of units; 0 where there is none.
        bound: u32,
    },
    /// `fixed`
    Fixed {
        /// The number of digits, at most 31.
        digits: u16,
        /// The number of digits behind the point.
        scale: i16,
    },
    /// A sequence.
    Sequence {
        /// The type of the elements.
        element: &'a Self,
        /// The greatest number of elements; 0 where there is none.
        bound: u32,
    },
    /// An array of one dimension; those of more are arrays of arrays.
    Array {
        /// The type of the elements.
        element: &'a Self,
        /// The number of elements.
        length: u32,
    },
    /// A typedef.
    Alias {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The aliased type.
        target: &'a Self,
    },
    /// A user exception.
    Except {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The members, in order.
        members: &'a [StructMember<'a>],
    },
    /// A valuetype.
    Value {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The way in which it is marshalled.
        modifier: ValueModifier,
        /// The concrete valuetype that it inherits from, if there is one.
        base: Option<&'a Self>,
        /// The members of this type itself, in order.
        members: &'a [ValueMember<'a>],
    },
    /// A boxed value.
    ValueBox {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The boxed type.
        target: &'a Self,
    },
    /// A native type.
    Native {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
    },
    /// An abstract interface.
    AbstractInterface {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
    },
    /// A local interface.
    LocalInterface {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
    },
    /// A component.
    Component {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
    },
    /// A home of a component.
    Home {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
    },
    /// An eventtype.
    Event {
        /// The repository id.
        id: &'a str,
        /// The name without its scope.
        name: &'a str,
        /// The way in which it is marshalled.
        modifier: ValueModifier,
        /// The concrete eventtype or valuetype that it inherits from, if there is one.
        base: Option<&'a Self>,
        /// The members of this type itself, in order.
        members: &'a [ValueMember<'a>],
    },
    /// The enclosing type with this repository identifier.
    Recursive {
        /// The repository id.
        id: &'a str,
    },
}

/// A member of a struct or an exception.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct StructMember<'a> {
    /// The name.
    pub name: &'a str,
    /// The type.
    pub type_code: TypeCode<'a>,
}

/// A member of a union, for one of its labels.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct UnionMember<'a> {
    /// The value of the discriminator: the number of an enumerator, the code of a character, 0 or
    /// 1 for a boolean, and for an `unsigned long long` its bits.
    pub label: i64,
    /// The name.
    pub name: &'a str,
    /// The type.
    pub type_code: TypeCode<'a>,
}

/// A member of the state of a valuetype.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ValueMember<'a> {
    /// The name.
    pub name: &'a str,
    /// The type.
    pub type_code: TypeCode<'a>,
    /// Whether it is public.
    pub is_public: bool,
}

/// The way in which a valuetype is marshalled.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ValueModifier {
    /// As its state.
    #[default]
    None,
    /// By code of the application.
    Custom,
    /// Not at all.
    Abstract,
    /// As its state, which a receiver may truncate to that of the base.
    Truncatable,
}

impl<'a> TypeCode<'a> {
    /// Returns the repository id; `None` for kinds of types that have none.
    pub const fn id(&self) -> Option<&'a str> {
        match self {
            Self::ObjRef { id, .. }
            | Self::Struct { id, .. }
            | Self::Union { id, .. }
            | Self::Enum { id, .. }
            | Self::Alias { id, .. }
            | Self::Except { id, .. }
            | Self::Value { id, .. }
            | Self::ValueBox { id, .. }
            | Self::Native { id, .. }
            | Self::AbstractInterface { id, .. }
            | Self::LocalInterface { id, .. }
            | Self::Component { id, .. }
            | Self::Home { id, .. }
            | Self::Event { id, .. }
            | Self::Recursive { id } => Some(*id),
            _ => None,
        }
    }

    /// The name without its scope, of the kinds that have one.
    pub const fn name(&self) -> Option<&'a str> {
        match self {
            Self::ObjRef { name, .. }
            | Self::Struct { name, .. }
            | Self::Union { name, .. }
            | Self::Enum { name, .. }
            | Self::Alias { name, .. }
            | Self::Except { name, .. }
            | Self::Value { name, .. }
            | Self::ValueBox { name, .. }
            | Self::Native { name, .. }
            | Self::AbstractInterface { name, .. }
            | Self::LocalInterface { name, .. }
            | Self::Component { name, .. }
            | Self::Home { name, .. }
            | Self::Event { name, .. } => Some(*name),
            _ => None,
        }
    }

    /// The type that it is when all aliases at its top are resolved.
    pub const fn unaliased(&self) -> &Self {
        let mut this = self;
        while let Self::Alias { target, .. } = this {
            this = target;
        }
        this
    }
}
