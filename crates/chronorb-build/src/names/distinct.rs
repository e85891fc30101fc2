//! Second names for the parts of types: members, enumerators, flags and fields.

use std::borrow::Cow;

use chronorb_idl::model::{Annotation, ConstValue, DefId, DefKind, Model};

use super::parts::{BITMASK_ITEMS, BITSET_ITEMS, Part};
use super::scope::SecondName;
use super::{Claims, Place};
use crate::generate::GenerateError;
use crate::shape;

/// Returns the model in which no two parts of a type have the same Rust name, and the parts that
/// got another one, by an annotation `@rust::name`, because an earlier part has theirs.
///
/// # Errors
///
/// A name that the IDL gives is that of an earlier part.
pub(crate) fn distinct_parts(
    model: &Model,
) -> Result<(Cow<'_, Model>, Vec<SecondName>), GenerateError> {
    let mut model = Cow::Borrowed(model);
    let mut second_names = Vec::new();
    // A base is before the types that are derived from it.
    for index in 0..model.definitions.len() {
        let id = DefId(index as u32);
        for (part, second) in second_names_of(&model, id)? {
            annotate(&mut model.to_mut().definitions[index].kind, part, &second);
            second_names.push(second);
        }
    }
    Ok((model, second_names))
}

/// Returns the own parts of a type that need another name, by their number.
fn second_names_of(model: &Model, id: DefId) -> Result<Vec<(usize, SecondName)>, GenerateError> {
    let definition = model.get(id);
    let one = |part| vec![part];
    // Getter and setter of a field together.
    let (parts, own, items): (Vec<Vec<Part<'_>>>, usize, &[&str]) = match &definition.kind {
        DefKind::Struct { members, .. } | DefKind::Exception { members, .. } => {
            let parts = shape::parts(model, id).map(Part::of_struct);
            (parts.map(one).collect(), members.len(), &[])
        }
        DefKind::Union(union) => {
            let parts = shape::parts(model, id).map(Part::of_union);
            (parts.map(one).collect(), union.cases.len(), &[])
        }
        DefKind::Enum { enumerators, .. } => {
            let parts = enumerators.iter();
            let parts = parts.map(|part| Part::of_enum(part, &definition.location));
            (parts.map(one).collect(), enumerators.len(), &[])
        }
        DefKind::Bitmask { flags, .. } => {
            let parts = flags.iter().map(Part::of_bitmask);
            (parts.map(one).collect(), flags.len(), BITMASK_ITEMS)
        }
        DefKind::Bitset { fields, .. } => {
            let parts = shape::bit_fields(model, id);
            let parts = parts.into_iter().map(Part::of_bitset);
            (parts.collect(), fields.len(), BITSET_ITEMS)
        }
        DefKind::Value(value) => {
            let parts = value.state.iter().map(|state| &state.member);
            let parts = parts.map(Part::of_struct).map(one);
            (parts.collect(), value.state.len(), &[])
        }
        _ => return Ok(Vec::new()),
    };
    let mut claims = Claims::default();
    for item in items {
        let first = Place {
            what: format!("what is generated as `{item}`"),
            at: Place::at(model, &definition.location),
        };
        claims.claim(item, first)?;
    }
    let inherited = parts.len() - own;
    let mut second_names = Vec::new();
    for (number, names) in parts.iter().enumerate() {
        let Some(part) = names.first() else {
            continue;
        };
        let place = Place::of(model, part.what, part.name, part.location);
        // The name of an inherited part is that of the base.
        let given = number < inherited || super::table::rename(part.annotations).is_some();
        let all = |name: &str| match names.len() {
            1 => vec![name.to_owned()],
            _ => vec![name.to_owned(), super::parts::bit_field_setter(name)],
        };
        let (_, second) = claims.claim_distinct(&part.rust_name, given, &place, all)?;
        second_names.extend(second.map(|second| (number - inherited, second)));
    }
    Ok(second_names)
}

/// Gives a part of a type its second name.
fn annotate(kind: &mut DefKind, part: usize, second: &SecondName) {
    let annotations = match kind {
        DefKind::Struct { members, .. } | DefKind::Exception { members, .. } => {
            &mut members[part].annotations
        }
        DefKind::Union(union) => &mut union.cases[part].member.annotations,
        DefKind::Enum { enumerators, .. } => &mut enumerators[part].annotations,
        DefKind::Bitmask { flags, .. } => &mut flags[part].annotations,
        DefKind::Bitset { fields, .. } => &mut fields[part].annotations,
        DefKind::Value(value) => &mut value.state[part].member.annotations,
        _ => return,
    };
    annotations.push(Annotation {
        name: "rust::name".to_owned(),
        params: vec![(
            "value".to_owned(),
            ConstValue::String(second.rust_name.clone()),
        )],
    });
}
