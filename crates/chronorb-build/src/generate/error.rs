//! Errors of models that have no Rust form.

use chronorb_idl::model::{DefKind, Model, Type};

use crate::names::Place;
use crate::shape;

/// The error of a correct model that has no Rust form.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Two names of the IDL become the same Rust name in the same scope.
    #[error(
        "{first} and {second} both become `{rust_name}` in Rust\n  \
         hint: give one of them another name with @rust::name(\"…\") or Builder::rename"
    )]
    Collision {
        /// The Rust name.
        rust_name: String,
        /// The first owner of the name.
        first: Place,
        /// The second owner of the name.
        second: Place,
    },

    /// An `@rust::name`, or a rename from outside, does not hold a Rust identifier.
    #[error(
        "`{name}`, the @rust::name of {place}, is not a Rust identifier\n  \
         hint: write @rust::name(\"a_name\"), not a keyword"
    )]
    InvalidName {
        /// The text in the annotation.
        name: String,
        /// The definition with the annotation.
        place: Place,
    },

    /// The text of an annotation is not valid Rust at its place.
    #[error("`{text}`, in the @{annotation} of {place}, is not Rust that can stand there")]
    InvalidAnnotation {
        /// The annotation.
        annotation: &'static str,
        /// The text in the annotation.
        text: String,
        /// The definition with the annotation.
        place: Place,
    },

    /// An annotation that adds Rust code while `no_verbatim` is on.
    #[error(
        "{place} has @verbatim(language=\"rust\"), which is code, and no_verbatim is on\n  \
         hint: read what it adds; then compile the file without no_verbatim"
    )]
    Verbatim {
        /// The definition that it is applied to.
        place: Place,
    },

    /// This version does not generate code for the construct.
    #[error("{place}: {what} are not compiled by this version")]
    Unsupported {
        /// The construct, in the plural.
        what: &'static str,
        /// The place of the construct.
        place: Place,
    },

    /// A type has more than 200 levels, or more than 65536 parts.
    #[error("{place} is nested too deeply or has too many parts")]
    TooLarge {
        /// The type.
        place: Place,
    },

    /// A definition has more than 16,384 parts.
    #[error(
        "{place} has {parts} parts, and 16384 are the most: members, enumerators, operations and \
         attributes with their parameters and exceptions, inherited ones too\n  \
         hint: divide it"
    )]
    TooManyParts {
        /// The definition.
        place: Place,
        /// The number of its parts.
        parts: usize,
    },

    /// All code together has more than 128 MiB.
    #[error(
        "the code has more than 128 MiB with that of {place}\n  hint: divide the IDL into files, \
        and generate each by itself, with extern_path for the others"
    )]
    TooMuchText {
        /// The definition that goes beyond it.
        place: Place,
    },

    /// An operation or attribute needs allocation.
    #[error(
        "{place} carries object references or values, which are allocated, and no_alloc is on\n  \
         hint: move it to an interface in a file of its own, compiled without no_alloc"
    )]
    Allocates {
        /// The operation or attribute that needs it.
        place: Place,
    },

    /// An external path is invalid.
    #[error(
        "the external path `{rust}` for `{idl}` is {what}\n  \
         hint: extern_path(\"::CosNaming\", \"::naming_idl::cos_naming\")"
    )]
    ExternPath {
        /// The module or file of the IDL.
        idl: String,
        /// The Rust module that was given for it.
        rust: String,
        /// The reason.
        what: &'static str,
    },

    /// The generated text is not Rust: an error of the generator.
    #[error("the generated code is not valid Rust ({0}); this is an error in chronorb-build")]
    Internal(String),
}

/// Refuses constructs that the mapping has no form for: unions and exceptions with local types.
pub(super) fn refuse_unsupported(model: &Model) -> Result<(), GenerateError> {
    for (id, definition) in model.iter() {
        let what = match &definition.kind {
            DefKind::Union(_) => "unions that hold local interfaces or native types",
            DefKind::Exception { .. } => "exceptions that hold local interfaces or native types",
            _ => continue,
        };
        if shape::is_local(model, &Type::Named(id)) {
            let kind = shape::kind_name(&definition.kind);
            return Err(GenerateError::Unsupported {
                what,
                place: Place::of(model, kind, &definition.name, &definition.location),
            });
        }
    }
    Ok(())
}
