//! The names within a type: variants, flags and fields.

use chronorb_idl::model::{
    Annotation, BitField, BitFlag, Enumerator, Location, Member, Model, Union,
};

use super::table::rename;
use super::{escaped, pascal, screaming, snake};
use crate::shape;

/// Returns the field for a member of a struct.
pub(crate) fn field(member: &Member) -> String {
    rename(&member.annotations).unwrap_or_else(|| escaped(&member.name, snake))
}

/// Returns the variant for an enumerator, or for a member of a union.
pub(crate) fn variant(name: &str, annotations: &[Annotation]) -> String {
    rename(annotations).unwrap_or_else(|| escaped(name, pascal))
}

/// Returns the constant for a flag of a bit mask.
pub(crate) fn flag(flag: &BitFlag) -> String {
    rename(&flag.annotations).unwrap_or_else(|| screaming(&flag.name))
}

/// Returns the getter for a field of a bit set.
pub(crate) fn bit_field(name: &str, annotations: &[Annotation]) -> String {
    rename(annotations).unwrap_or_else(|| snake(name))
}

/// Returns the setter for the field of a bit set with this getter.
pub(crate) fn bit_field_setter(getter: &str) -> String {
    // The underscore of a word that Rust keeps for itself is not needed.
    format!("with_{}", getter.strip_suffix('_').unwrap_or(getter))
}

/// Returns the variant of a union for discriminators that select no member, if there are such:
/// `Other`, or `Other2` and so on where a member is called that.
pub(crate) fn implicit_default(model: &Model, union: &Union) -> Option<String> {
    let cases = union.cases.iter();
    let taken = cases.map(|case| variant(&case.member.name, &case.member.annotations));
    shape::has_implicit_default(model, union).then(|| free("Other", &taken.collect::<Vec<_>>()))
}

/// Returns the variant of an appendable enum for numbers that it does not know.
pub(crate) fn unknown(enumerators: &[Enumerator]) -> String {
    let taken = enumerators.iter();
    let taken = taken.map(|enumerator| variant(&enumerator.name, &enumerator.annotations));
    free("Unknown", &taken.collect::<Vec<_>>())
}

fn free(name: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = [name.to_owned()].into_iter().chain(numbered);
    let free = names.find(|name| !taken.contains(name));
    free.unwrap_or_else(|| name.to_owned())
}

/// A named part of a type, for the check that all names are different.
pub(crate) struct Part<'p> {
    pub(crate) what: &'static str,
    /// The name in the IDL.
    pub(crate) name: &'p str,
    pub(crate) location: &'p Location,
    pub(crate) annotations: &'p [Annotation],
    pub(crate) rust_name: String,
}

impl<'p> Part<'p> {
    pub(crate) fn of_struct(member: &'p Member) -> Self {
        Self {
            what: "member",
            name: &member.name,
            location: &member.location,
            annotations: &member.annotations,
            rust_name: field(member),
        }
    }

    pub(crate) fn of_union(member: &'p Member) -> Self {
        Self {
            rust_name: variant(&member.name, &member.annotations),
            ..Self::of_struct(member)
        }
    }

    pub(crate) fn of_enum(enumerator: &'p Enumerator, location: &'p Location) -> Self {
        Self {
            what: "enumerator",
            name: &enumerator.name,
            location,
            annotations: &enumerator.annotations,
            rust_name: variant(&enumerator.name, &enumerator.annotations),
        }
    }

    pub(crate) fn of_bitmask(flag: &'p BitFlag) -> Self {
        Self {
            what: "flag",
            name: &flag.name,
            location: &flag.location,
            annotations: &flag.annotations,
            rust_name: self::flag(flag),
        }
    }

    /// Returns getter and setter; none for padding.
    pub(crate) fn of_bitset(field: &'p BitField) -> Vec<Self> {
        let Some(name) = &field.name else {
            return Vec::new();
        };
        let getter = bit_field(name, &field.annotations);
        let setter = bit_field_setter(&getter);
        let part = |rust_name| Self {
            what: "field",
            name,
            location: &field.location,
            annotations: &field.annotations,
            rust_name,
        };
        vec![part(getter), part(setter)]
    }
}

/// The items of every bit mask besides its flags.
pub(crate) const BITMASK_ITEMS: &[&str] = &[
    "REPOSITORY_ID",
    "bits",
    "contains",
    "from_bits",
    "is_empty",
    "union",
];

/// The items of every bit set besides its fields.
pub(crate) const BITSET_ITEMS: &[&str] = &["REPOSITORY_ID", "bits", "from_bits"];
