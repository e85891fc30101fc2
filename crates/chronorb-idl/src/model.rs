//! The checked model: what a correct set of IDL files means.
//!
//! Everything in it is resolved: names are [`DefId`]s, constants are values,
//! repository identifiers are final. Definitions stand in one table in the
//! order of their introduction, so that a definition comes after everything
//! that it uses.

use std::path::PathBuf;

/// A checked set of definitions, made by [`crate::compile`].
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// All definitions; [`DefId`] is the index.
    pub definitions: Vec<Definition>,
    /// The definitions at file level, in order of introduction.
    pub roots: Vec<DefId>,
    /// Every file that was read, the main file first; for `rerun-if-changed`.
    pub files: Vec<PathBuf>,
}

impl Model {
    /// The definition with this number.
    pub fn get(&self, id: DefId) -> &Definition {
        &self.definitions[id.0 as usize]
    }

    /// All definitions with their numbers, in order of introduction.
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
    /// Where its name stands.
    pub location: Location,
    /// Whether it stands in the main file (and not in an included one).
    pub in_main_file: bool,
    /// The documentation comment before it (`/** … */` or `///` lines), without the marks.
    pub doc: Option<String>,
    /// The annotations applied to it, in order.
    pub annotations: Vec<Annotation>,
    /// What it is.
    pub kind: DefKind,
}

/// A place in a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Location {
    /// Index into [`Model::files`].
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
    /// The parameters; a single unnamed one has the key `value`.
    pub params: Vec<(String, ConstValue)>,
}

/// What a definition is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DefKind {
    /// A module; reopened modules are one definition.
    Module {
        /// Its definitions, in order of introduction.
        members: Vec<DefId>,
    },
    /// An interface with its contents.
    Interface(Interface),
    /// A struct.
    Struct {
        /// Its members in order.
        members: Vec<Member>,
        /// Types defined inside it.
        nested: Vec<DefId>,
    },
    /// An exception.
    Exception {
        /// Its members in order.
        members: Vec<Member>,
        /// Types defined inside it.
        nested: Vec<DefId>,
    },
    /// An enum.
    Enum {
        /// The enumerators in order; the value on the wire is the index.
        enumerators: Vec<Enumerator>,
    },
    /// A typedef (one for each declarator).
    Typedef {
        /// The type that it names; arrays are part of it.
        ty: Type,
    },
    /// A constant.
    Const {
        /// Its type, resolved through typedefs to a basic type, string or enum.
        ty: Type,
        /// Its value, converted to the type.
        value: ConstValue,
    },
}

/// An interface.
#[derive(Clone, Debug, Default)]
pub struct Interface {
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
    /// Its own operations, in order; inherited ones are found through the bases.
    pub operations: Vec<Operation>,
    /// Its own attributes, in order (one for each declarator).
    pub attributes: Vec<Attribute>,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The identifier as written; the name on the wire.
    pub name: String,
    /// Where its name stands.
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
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// The identifier as written.
    pub name: String,
    /// Its direction.
    pub mode: ParamMode,
    /// Its type.
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
    /// Where its name stands.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// No setter.
    pub readonly: bool,
    /// Its type.
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
    /// Where its name stands.
    pub location: Location,
    /// The documentation comment before it.
    pub doc: Option<String>,
    /// The annotations applied to it.
    pub annotations: Vec<Annotation>,
    /// Its type; arrays are part of it.
    pub ty: Type,
}

/// An enumerator.
#[derive(Clone, Debug)]
pub struct Enumerator {
    /// The identifier as written.
    pub name: String,
    /// The documentation comment before it.
    pub doc: Option<String>,
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
    Float,
    Double,
    LongDouble,
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
    /// `Object`: a reference to an object of any interface.
    Object,
    /// A struct, enum, typedef or interface.
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
