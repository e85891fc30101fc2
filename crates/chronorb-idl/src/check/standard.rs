//! The annotations that need no declaration: those of IDL 4.2, 8.3, and of chronorb.

use crate::model::Type;

use super::annotations::Target::{self, *};

/// An annotation that needs no declaration.
pub(super) struct Standard {
    pub(super) name: &'static str,
    /// The constructs on which it has an effect; empty for all.
    pub(super) targets: &'static [Target],
    pub(super) params: Params,
}

pub(super) enum Params {
    /// These parameters, by name.
    Only(&'static [StandardParam]),
    /// Any parameters.
    Free,
}

pub(super) struct StandardParam {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether it may be left out.
    pub(super) optional: bool,
}

/// The kind of a parameter's value.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Boolean,
    UShort,
    ULong,
    String,
    /// A value of the annotated construct's type.
    OfTarget,
    Any,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Kind {
    /// Returns the type of the value, if it is fixed.
    pub(super) fn ty(self) -> Option<Type> {
        match self {
            Self::Boolean => Some(Type::Boolean),
            Self::UShort => Some(Type::UShort),
            Self::ULong => Some(Type::ULong),
            Self::String => Some(Type::String { bound: None }),
            Self::OfTarget | Self::Any | Self::Word(_) => None,
        }
    }
}

/// Returns the annotation with a name, whose parts are separated by `::`.
pub(super) fn standard(name: &str) -> Option<&'static Standard> {
    STANDARD.iter().find(|standard| standard.name == name)
}

/// Returns the names of all annotations, for suggestions.
pub(super) fn names<'a>() -> impl Iterator<Item = &'a str> {
    STANDARD.iter().map(|standard| standard.name)
}

const fn only(
    name: &'static str,
    targets: &'static [Target],
    params: &'static [StandardParam],
) -> Standard {
    Standard {
        name,
        targets,
        params: Params::Only(params),
    }
}

const fn free(name: &'static str) -> Standard {
    Standard {
        name,
        targets: &[],
        params: Params::Free,
    }
}

const fn required(name: &'static str, kind: Kind) -> StandardParam {
    StandardParam {
        name,
        kind,
        optional: false,
    }
}

const fn optional(name: &'static str, kind: Kind) -> StandardParam {
    StandardParam {
        name,
        kind,
        optional: true,
    }
}

const FLAG_PARAM: &[StandardParam] = &[optional("value", Kind::Boolean)];
const STRING_PARAM: &[StandardParam] = &[required("value", Kind::String)];
const TYPES: &[Target] = &[Struct, Union, Exception, Enum, Bits, Value, Typedef];
const MEMBERS: &[Target] = &[Member, Case, Discriminator];
const VALUES: &[Target] = &[
    Member,
    Case,
    Discriminator,
    Field,
    Typedef,
    TypeUse,
    Parameter,
    Attribute,
    Operation,
    Const,
];
const CALLS: &[Target] = &[Operation, Attribute, Interface, Module];

const EXTENSIBILITY: &[&str] = &["FINAL", "APPENDABLE", "MUTABLE"];
const PLACEMENT: &[&str] = &[
    "BEGIN_FILE",
    "BEFORE_DECLARATION",
    "BEGIN_DECLARATION",
    "END_DECLARATION",
    "AFTER_DECLARATION",
    "END_FILE",
];

const STANDARD: &[Standard] = &[
    only("id", MEMBERS, &[required("value", Kind::ULong)]),
    only(
        "autoid",
        &[Module, Struct, Union, Value],
        &[optional("value", Kind::Word(&["SEQUENTIAL", "HASH"]))],
    ),
    only("optional", &[Member], FLAG_PARAM),
    only("position", &[Flag], &[required("value", Kind::UShort)]),
    only("value", &[Enumerator], &[required("value", Kind::Any)]),
    only(
        "extensibility",
        TYPES,
        &[required("value", Kind::Word(EXTENSIBILITY))],
    ),
    only("final", TYPES, &[]),
    only("appendable", TYPES, &[]),
    only("mutable", TYPES, &[]),
    only("key", MEMBERS, FLAG_PARAM),
    only("must_understand", MEMBERS, FLAG_PARAM),
    only("default_literal", &[Enumerator], &[]),
    only("default", VALUES, &[required("value", Kind::OfTarget)]),
    only(
        "range",
        VALUES,
        &[
            required("min", Kind::OfTarget),
            required("max", Kind::OfTarget),
        ],
    ),
    only("min", VALUES, &[required("value", Kind::OfTarget)]),
    only("max", VALUES, &[required("value", Kind::OfTarget)]),
    only("unit", VALUES, STRING_PARAM),
    only(
        "bit_bound",
        &[Enum, Bits],
        &[required("value", Kind::UShort)],
    ),
    only(
        "external",
        &[Member, Case, Discriminator, TypeUse],
        FLAG_PARAM,
    ),
    only("nested", TYPES, FLAG_PARAM),
    only(
        "verbatim",
        &[],
        &[
            optional("language", Kind::String),
            optional("placement", Kind::Word(PLACEMENT)),
            required("text", Kind::String),
        ],
    ),
    only(
        "service",
        &[Interface],
        &[optional("platform", Kind::String)],
    ),
    only("oneway", &[Operation], FLAG_PARAM),
    only("ami", CALLS, FLAG_PARAM),
    free("rt::priority"),
    free("rt::lane"),
    free("rt::wcet"),
    free("rt::period"),
    free("rt::deadline"),
    free("rt::max_size"),
    free("rt::inline"),
    free("rt::nonnil"),
    free("rt::lazy"),
    only("rust::name", &[], STRING_PARAM),
    only("rust::derive", TYPES, STRING_PARAM),
];
