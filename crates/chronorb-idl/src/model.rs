//! The checked model of a correct set of IDL files.
//!
//! Everything in it is resolved: names are [`DefId`]s, constants are values, repository identifiers
//! are final. Definitions are in one table in the order of their introduction, so a definition
//! comes after everything that it uses. Only recursive definitions, and those that are declared
//! before they are defined, are used earlier.

use std::path::{Path, PathBuf};

/// A checked set of definitions, made by [`crate::compile`].
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// All definitions; [`DefId`] is the index.
    pub definitions: Vec<Definition>,
    /// The definitions at file level, in order of introduction.
    pub roots: Vec<DefId>,
    /// Every file that was read, the main file first. A file that is part of the compiler has a
    /// name in angle brackets, as `<orb.idl>`; [`Self::files_on_disk`] leaves these out.
    pub files: Vec<PathBuf>,
    /// Names in `#line` directives of files that were not read. A [`Location`] counts them behind
    /// `files`.
    pub line_files: Vec<PathBuf>,
}

impl Model {
    /// Returns the definition with this number.
    pub fn get(&self, id: DefId) -> &Definition {
        &self.definitions[id.0 as usize]
    }

    /// Returns every file that was read from a directory, the main file first; for
    /// `rerun-if-changed`.
    pub fn files_on_disk(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().map(PathBuf::as_path);
        files.filter(|path| !crate::builtin::is_built_in(path))
    }

    /// Returns the file of a location.
    pub fn path(&self, location: &Location) -> Option<&Path> {
        let mut files = self.files.iter().chain(&self.line_files);
        files.nth(location.file as usize).map(PathBuf::as_path)
    }

    /// Returns all definitions with their numbers, in order of introduction.
    pub fn iter(&self) -> impl Iterator<Item = (DefId, &Definition)> {
        self.definitions
            .iter()
            .enumerate()
            .map(|(i, d)| (DefId(i as u32), d))
    }
}

/// The number of a definition in its [`Model`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DefId(pub u32);

/// One definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The identifier as written, without a leading escape `_`.
    pub name: String,
    /// The scoped name from the outermost module on, `name` included.
    pub scoped_name: Vec<String>,
    /// `IDL:prefix/scopes/name:1.0`; empty for modules.
    pub repository_id: String,
    /// The module, interface, struct or exception that it stands in.
    pub parent: Option<DefId>,
    /// The place of its name.
    pub location: Location,
    /// Whether it stands in the main file, and not in an included one.
    pub in_main_file: bool,
    /// The documentation comment before it (`/** … */` or `///` lines), without the marks.
    pub doc: Option<String>,
    /// The annotations applied to it, in order.
    pub annotations: Vec<Annotation>,
    /// The kind of definition.
    pub kind: DefKind,
}

/// A place in a file, according to `#line` directives if there are any.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Location {
    /// Index into [`Model::files`], or behind their end into [`Model::line_files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// An applied annotation, `@scope::name(key = value, …)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The name as written, for example `rt::priority`.
    pub name: String,
    /// The parameters that are written. One without its name gets that of the annotation's only
    /// parameter, which is `value` for all standard and unknown annotations.
    pub params: Vec<(String, ConstValue)>,
}

/// The kind of a definition.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DefKind {
    /// A module; reopened modules are one definition.
    Module {
        /// The definitions, in order of introduction.
        members: Vec<DefId>,
    },
    /// An interface with its contents.
    Interface(Interface),
    /// A struct.
    Struct {
        /// The struct that it extends (IDL 4.2); the base's members come first.
        base: Option<DefId>,
        /// The members in order, without those of the base.
        members: Vec<Member>,
        /// Types defined inside it.
        nested: Vec<DefId>,
    },
    /// An exception.
    Exception {
        /// The members in order.
        members: Vec<Member>,
        /// Types defined inside it.
        nested: Vec<DefId>,
    },
    /// A union.
    Union(Union),
    /// An enum.
    Enum {
        /// The enumerators in order.
        enumerators: Vec<Enumerator>,
        /// The index of the enumerator marked by `@default_literal`, else 0.
        default: u32,
        /// The number of bits on the wire, 1 to 32: 32 without `@bit_bound`.
        bit_bound: u8,
    },
    /// A bit mask (IDL 4.2).
    Bitmask {
        /// The flags in order.
        flags: Vec<BitFlag>,
        /// The number of bits, 1 to 64: 32 without `@bit_bound`.
        bit_bound: u8,
    },
    /// A bit set (IDL 4.2).
    Bitset {
        /// The bit set that it extends; the base's fields come first.
        base: Option<DefId>,
        /// The fields in order, unnamed ones too.
        fields: Vec<BitField>,
    },
    /// A value type, or an event type.
    Value(ValueType),
    /// A boxed value type.
    ValueBox {
        /// The type inside.
        ty: Type,
        /// Types defined inside it.
        nested: Vec<DefId>,
    },
    /// A native type, which each language mapping defines.
    Native,
    /// The declaration of an annotation (`@annotation name { … };`).
    Annotation {
        /// The parameters in order.
        members: Vec<AnnotationMember>,
        /// Types and constants defined inside it.
        nested: Vec<DefId>,
    },
    /// A typedef (one for each declarator).
    Typedef {
        /// The type that it names; arrays are part of it.
        ty: Type,
    },
    /// A constant.
    Const {
        /// The type, resolved through typedefs to a basic type, string or enum.
        ty: Type,
        /// The value, converted to the type.
        value: ConstValue,
    },
}

/// A union.
#[derive(Clone, Debug)]
pub struct Union {
    /// The type of the discriminator, as written: an integer type, `octet`, `boolean`, `char`,
    /// `wchar`, or the name of an enum or of a typedef of any of these.
    pub discriminator: Type,
    /// The annotations applied to the discriminator.
    pub discriminator_annotations: Vec<Annotation>,
    /// The cases in order.
    pub cases: Vec<Case>,
    /// The least value of the discriminator that no label names; `None` if the labels name all. It
    /// selects `default:` if there is one, and otherwise no member.
    pub unlabelled: Option<ConstValue>,
    /// Types defined inside it.
    pub nested: Vec<DefId>,
}

/// A case of a union: its labels, and the member that they select.
#[derive(Clone, Debug)]
pub struct Case {
    /// The values of its labels in order, of the discriminator's type; `default:` is none of them.
    pub labels: Vec<ConstValue>,
    /// Whether `default:` is among its labels.
    pub is_default: bool,
    /// The member.
    pub member: Member,
}

/// A flag of a bit mask.
#[derive(Clone, Debug)]
pub struct BitFlag {
    /// The identifier as written.
    pub name: String,
    /// The place of its name.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// The bit, from 0: `@position`, or the one after the flag before it.
    pub position: u8,
}

/// A field of a bit set.
#[derive(Clone, Debug)]
pub struct BitField {
    /// The identifier as written; `None` for padding.
    pub name: Option<String>,
    /// The place of its name, or of the field.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// The first bit, from 0, bits of the bases counted.
    pub position: u8,
    /// The number of bits, 1 to 64.
    pub bits: u8,
    /// The type of its value: the one written, or the smallest that holds the bits.
    pub ty: Type,
}

/// A value type or event type.
#[derive(Clone, Debug, Default)]
pub struct ValueType {
    /// Only declared (`valuetype X;`), never defined in these files.
    pub forward_only: bool,
    /// `abstract valuetype`.
    pub is_abstract: bool,
    /// `custom valuetype`: the program marshals it.
    pub custom: bool,
    /// Whether it inherits `truncatable` from its concrete base.
    pub truncatable: bool,
    /// Declared as `eventtype`.
    pub event: bool,
    /// Direct bases, in the order of the inheritance list.
    pub bases: Vec<DefId>,
    /// The one base with state, always the first of `bases`.
    pub concrete_base: Option<DefId>,
    /// Every base, direct and inherited, once, bases before the derived.
    pub all_bases: Vec<DefId>,
    /// The interfaces of its own `supports` list, in order.
    pub supports: Vec<DefId>,
    /// Types, constants and exceptions defined inside it.
    pub nested: Vec<DefId>,
    /// The state in order, without that of the bases.
    pub state: Vec<StateMember>,
    /// The initialisers (`factory`) in order.
    pub factories: Vec<Factory>,
    /// The operations in order.
    pub operations: Vec<Operation>,
    /// The attributes in order.
    pub attributes: Vec<Attribute>,
}

/// A member of a value type's state.
#[derive(Clone, Debug)]
pub struct StateMember {
    /// Declared `public`, else `private`.
    pub public: bool,
    /// The member.
    pub member: Member,
}

/// An initialiser of a value type, or a factory or finder of a home.
#[derive(Clone, Debug)]
pub struct Factory {
    /// The identifier as written.
    pub name: String,
    /// The place of its name.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// The parameters in order, all `in`.
    pub params: Vec<Param>,
    /// The exceptions of the `raises` clause, in order.
    pub raises: Vec<DefId>,
}

/// A parameter of a declared annotation.
#[derive(Clone, Debug)]
pub struct AnnotationMember {
    /// The identifier as written.
    pub name: String,
    /// The type; `None` for `any`, which takes every constant.
    pub ty: Option<Type>,
    /// The value of the parameter if an application does not give it.
    pub default: Option<ConstValue>,
}

/// The keyword that an interface was declared with.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum InterfaceOrigin {
    /// `interface`.
    #[default]
    Interface,
    /// `component`: this is its equivalent interface.
    Component,
    /// `home`: this is its equivalent interface.
    Home,
    /// The interface `NAMEExplicit` of a home, with the contents of its declaration.
    HomeExplicit,
    /// The interface `NAMEImplicit` of a home, with the operations that every home has.
    HomeImplicit,
    /// Another interface that the declaration of a component, of a port or of an event type
    /// implies, as `EVENTConsumer`.
    Implied,
}

/// An interface.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// The origin of the interface.
    pub origin: InterfaceOrigin,
    /// Only declared (`interface X;`), never defined in these files.
    pub forward_only: bool,
    /// `local interface`.
    pub local: bool,
    /// `abstract interface`.
    pub is_abstract: bool,
    /// Direct bases, in the order of the inheritance list.
    pub bases: Vec<DefId>,
    /// Every base, direct and inherited, once, bases before the derived.
    pub all_bases: Vec<DefId>,
    /// Types, constants and exceptions defined inside it.
    pub nested: Vec<DefId>,
    /// The operations in order; inherited ones are found through the bases.
    pub operations: Vec<Operation>,
    /// The attributes in order (one for each declarator).
    pub attributes: Vec<Attribute>,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The identifier as written; the name on the wire.
    pub name: String,
    /// The place of its name.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// Declared `oneway`.
    pub oneway: bool,
    /// The result; `None` for `void`.
    pub result: Option<Type>,
    /// The parameters in order.
    pub params: Vec<Param>,
    /// The exceptions of the `raises` clause, in order.
    pub raises: Vec<DefId>,
    /// The names of the `context` clause, in order.
    pub context: Vec<String>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// The identifier as written.
    pub name: String,
    /// The direction.
    pub mode: ParamMode,
    /// The type.
    pub ty: Type,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ParamMode {
    /// From client to server.
    In,
    /// From server to client.
    Out,
    /// Both ways.
    InOut,
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The identifier as written; `_get_NAME` and `_set_NAME` on the wire.
    pub name: String,
    /// The place of its name.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// No setter.
    pub readonly: bool,
    /// The type.
    pub ty: Type,
    /// Exceptions of the getter (`getraises`, or `raises` of a readonly attribute).
    pub get_raises: Vec<DefId>,
    /// Exceptions of the setter (`setraises`).
    pub set_raises: Vec<DefId>,
}

/// A member of a struct or exception.
#[derive(Clone, Debug)]
pub struct Member {
    /// The identifier as written.
    pub name: String,
    /// The place of its name.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// Marked `@optional`: a value may lack it.
    pub optional: bool,
    /// The type; arrays are part of it.
    pub ty: Type,
}

/// An enumerator.
#[derive(Clone, Debug)]
pub struct Enumerator {
    /// The identifier as written.
    pub name: String,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// The value on the wire: `@value`, or one more than that of the enumerator before it. Negative
    /// values are in two's complement.
    pub value: u32,
}

/// A type as used in a member, parameter, result or typedef.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are the type names of IDL")]
pub enum Type {
    Boolean,
    Octet,
    Char,
    WChar,
    Short,
    UShort,
    Long,
    ULong,
    LongLong,
    ULongLong,
    /// `int8`; the other types of IDL 4.2 with a width in their names map to the types without.
    Int8,
    /// `uint8`.
    UInt8,
    Float,
    Double,
    LongDouble,
    /// A decimal number.
    Fixed {
        /// All digits, 1 to 31.
        digits: u8,
        /// The digits behind the point, at most `digits`.
        scale: u8,
    },
    Any,
    /// `CORBA::TypeCode`.
    TypeCode,
    String {
        /// The greatest length in characters.
        bound: Option<u32>,
    },
    WString {
        /// The greatest length in characters.
        bound: Option<u32>,
    },
    Sequence {
        element: Box<Self>,
        /// The greatest number of elements.
        bound: Option<u32>,
    },
    Array {
        element: Box<Self>,
        /// One length for each dimension, the outermost first; never empty, never 0.
        dimensions: Vec<u32>,
    },
    /// A bounded string with `@rt::inline`: values are kept where they stand.
    InlineString {
        /// The greatest length in octets.
        bound: u32,
    },
    /// An object reference with `@rt::nonnil`: it is never nil.
    NonNil(Box<Self>),
    /// A map (IDL 4.2).
    Map {
        key: Box<Self>,
        value: Box<Self>,
        /// The greatest number of entries.
        bound: Option<u32>,
    },
    /// `Object`: a reference to an object of any interface.
    Object,
    /// `ValueBase`: a value of any value type.
    ValueBase,
    /// `CORBA::AbstractBase`: a reference to any object or a value of any value type.
    AbstractBase,
    /// A definition that is a type.
    Named(DefId),
}

/// The value of a constant expression.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConstValue {
    /// An integer of any IDL type, or an octet.
    Integer(i128),
    /// A floating point number.
    Float(f64),
    /// A decimal number: `unscaled` divided by ten to the power of `scale`.
    Fixed {
        /// All digits, with the sign.
        unscaled: i128,
        /// The number of digits without leading zeros, 1 to 31.
        digits: u8,
        /// The number of digits behind the point.
        scale: u8,
    },
    /// A boolean.
    Boolean(bool),
    /// A character, ISO 8859-1.
    Char(u8),
    /// A wide character.
    WChar(char),
    /// A string.
    String(String),
    /// A wide string.
    WString(String),
    /// An enumerator, by index.
    Enumerator(DefId, u32),
}
