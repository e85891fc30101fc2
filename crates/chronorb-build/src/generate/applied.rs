//! Additions by annotations to the items of a definition.

use std::str::FromStr;

use chronorb_idl::model::{Annotation, ConstValue, DefId, DefKind, Definition, Location, Model};
use proc_macro2::TokenStream;

use super::context::Context;
use super::{GenerateError, GenerateOptions};
use crate::names::Place;

/// The additions around an item, and to its derive.
#[derive(Debug, Default)]
pub(super) struct Additions {
    /// Attributes and items before it.
    pub(super) before: TokenStream,
    /// Items after it.
    pub(super) after: TokenStream,
    /// More traits to derive.
    pub(super) derives: Vec<TokenStream>,
}

impl Context<'_> {
    /// Returns the additions by the annotations of the definition, which [`refuse_invalid`] has
    /// checked.
    pub(super) fn applied(self, id: DefId) -> Additions {
        let definition = self.model.get(id);
        let mut applied = of(&definition.annotations).unwrap_or_default();
        let is_number = matches!(
            definition.kind,
            DefKind::Enum { .. } | DefKind::Bitmask { .. } | DefKind::Bitset { .. }
        );
        if is_number {
            let derives = &mut applied.derives;
            derives.retain(|derive| !ALWAYS_OF_NUMBERS.contains(&derive.to_string().as_str()));
        }
        applied
    }
}

/// Refuses additions by the annotations of a model that are not Rust, or are not permitted.
pub(super) fn refuse_invalid(
    model: &Model,
    options: &GenerateOptions,
) -> Result<(), GenerateError> {
    for (_, definition) in model.iter() {
        let place = || place(model, definition, &definition.location);
        let applied = of(&definition.annotations).map_err(|Invalid { annotation, text }| {
            GenerateError::InvalidAnnotation {
                annotation,
                text,
                place: place(),
            }
        })?;
        let is_verbatim = !(applied.before.is_empty() && applied.after.is_empty());
        if options.no_verbatim && is_verbatim {
            return Err(GenerateError::Verbatim { place: place() });
        }
    }
    Ok(())
}

/// The text of an annotation that is not valid Rust at its place.
struct Invalid {
    annotation: &'static str,
    text: String,
}

fn of(annotations: &[Annotation]) -> Result<Additions, Invalid> {
    let mut applied = Additions::default();
    for annotation in annotations {
        match annotation.name.as_str() {
            "rust::derive" => {
                for (_, value) in &annotation.params {
                    derive(text(value), &mut applied.derives)?;
                }
            }
            "verbatim" => verbatim(annotation, &mut applied)?,
            _ => {}
        }
    }
    Ok(applied)
}

/// Adds traits to derive. Traits that all generated types have anyway are left out.
fn derive(text: String, derives: &mut Vec<TokenStream>) -> Result<(), Invalid> {
    for name in text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let path = syn::parse_str::<syn::Path>(name);
        match path.ok().and_then(|_| TokenStream::from_str(name).ok()) {
            _ if ALWAYS.contains(&name) => {}
            Some(tokens) => derives.push(tokens),
            None => {
                return Err(Invalid {
                    annotation: "rust::derive",
                    text,
                });
            }
        }
    }
    Ok(())
}

/// Adds the text of a `@verbatim`. Texts for other languages are ignored, and those within a
/// declaration, which has another form in Rust.
fn verbatim(annotation: &Annotation, applied: &mut Additions) -> Result<(), Invalid> {
    let param = |key: &str| {
        let mut params = annotation.params.iter();
        params
            .find(|(name, _)| name == key)
            .map(|(_, value)| text(value))
    };
    let language = param("language").unwrap_or_else(|| "*".to_owned());
    if !language.eq_ignore_ascii_case("rust") {
        return Ok(());
    }
    let text = param("text").or_else(|| param("value")).unwrap_or_default();
    let placement = param("placement").unwrap_or_default();
    let (place, context) = match placement.as_str() {
        "" | "BEFORE_DECLARATION" | "BEGIN_FILE" => (&mut applied.before, "struct S;"),
        "AFTER_DECLARATION" | "END_FILE" => (&mut applied.after, ""),
        _ => {
            return Err(Invalid {
                annotation: "verbatim",
                text: placement,
            });
        }
    };
    // The text before it may be an attribute of the declaration.
    let is_rust = syn::parse_file(&format!("{text}\n{context}")).is_ok();
    match TokenStream::from_str(&text) {
        Ok(tokens) if is_rust => {
            place.extend(tokens);
            Ok(())
        }
        _ => Err(Invalid {
            annotation: "verbatim",
            text,
        }),
    }
}

fn text(value: &ConstValue) -> String {
    match value {
        ConstValue::String(text) | ConstValue::WString(text) => text.clone(),
        _ => String::new(),
    }
}

fn place(model: &Model, definition: &Definition, location: &Location) -> Place {
    let what = crate::shape::kind_name(&definition.kind);
    Place::of(model, what, &definition.name, location)
}

const ALWAYS: &[&str] = &["Clone", "Copy", "Debug", "Default", "PartialEq"];

/// The traits that enums, bitmasks and bitsets have as well.
const ALWAYS_OF_NUMBERS: &[&str] = &["Eq", "Hash", "Ord", "PartialOrd"];
