//! How large a type may be when all that it is made of is counted.

use std::collections::HashMap;

use chronorb_idl::model::{DefId, DefKind, Model, Type};

use super::GenerateError;
use crate::names::Place;
use crate::recursion::Recursion;
use crate::shape;

/// Refuses types that are nested too deeply or hold too many others: a few
/// lines of IDL can double a type again and again through its own parts.
pub(super) fn refuse_too_large(model: &Model, recursion: &Recursion) -> Result<(), GenerateError> {
    let mut measure = Measure {
        model,
        known: HashMap::new(),
    };
    for (id, definition) in model.iter() {
        let (what, extent) = match &definition.kind {
            DefKind::Typedef { ty } => ("typedef", measure.of_type(ty, 0)),
            kind @ (DefKind::Struct { .. } | DefKind::Exception { .. } | DefKind::Union(_)) => {
                (shape::kind_name(kind), measure.of_definition(id, 0))
            }
            _ => continue,
        };
        if extent.is_none() || !recursion.unfolds_within(model, id, MAX_UNFOLDED) {
            return Err(GenerateError::TooLarge {
                place: Place::of(model, what, &definition.name, &definition.location),
            });
        }
    }
    Ok(())
}

/// How large a type is.
#[derive(Clone, Copy)]
struct Extent {
    /// How many types are within one another.
    depth: u32,
    /// How many types there are in all.
    types: u32,
}

struct Measure<'m> {
    model: &'m Model,
    known: HashMap<DefId, Extent>,
}

impl Measure<'_> {
    /// The extent of a type that is within `level` others; `None` if it is too large.
    fn of_type(&mut self, ty: &Type, level: u32) -> Option<Extent> {
        if level > MAX_DEPTH {
            return None;
        }
        match shape::resolve(self.model, ty) {
            Type::Array { element, .. } => self.of_type(element, level + 1)?.around(),
            Type::Sequence { element, .. } => self.of_element(element, level + 1)?.around(),
            Type::Map { key, value, .. } => self.of_entry(key, value, level + 1)?.around(),
            Type::Named(id) => self.of_definition(*id, level),
            _ => Some(Extent::ONE),
        }
    }

    /// As [`of_type`](Self::of_type), for what stands in a sequence: a struct
    /// there is no part of what holds the sequence.
    fn of_element(&self, ty: &Type, level: u32) -> Option<Extent> {
        if level > MAX_DEPTH {
            return None;
        }
        match shape::resolve(self.model, ty) {
            Type::Array { element, .. } | Type::Sequence { element, .. } => {
                self.of_element(element, level + 1)?.around()
            }
            Type::Map { key, value, .. } => self.of_entry(key, value, level + 1)?.around(),
            _ => Some(Extent::ONE),
        }
    }

    fn of_entry(&self, key: &Type, value: &Type, level: u32) -> Option<Extent> {
        Some(
            self.of_element(key, level)?
                .beside(self.of_element(value, level)?),
        )
    }

    fn of_definition(&mut self, id: DefId, level: u32) -> Option<Extent> {
        if let Some(known) = self.known.get(&id) {
            return Some(*known);
        }
        let mut inner = Extent::ONE;
        for part in shape::parts(self.model, id) {
            inner = inner.beside(self.of_type(&part.ty, level + 1)?);
        }
        let extent = inner.around()?;
        self.known.insert(id, extent);
        Some(extent)
    }
}

impl Extent {
    const ONE: Self = Self { depth: 1, types: 1 };

    /// The extent of both within one type.
    fn beside(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            types: self.types.saturating_add(other.types),
        }
    }

    /// The extent of a type that holds this one.
    fn around(self) -> Option<Self> {
        let extent = Self {
            depth: self.depth + 1,
            types: self.types.saturating_add(1),
        };
        (extent.depth <= MAX_DEPTH && extent.types <= MAX_TYPES).then_some(extent)
    }
}

/// The parser has the same for what stands directly within one another.
const MAX_DEPTH: u32 = 200;

const MAX_TYPES: u32 = 1 << 16;

/// Of types that hold each other every one has the others in its type code.
const MAX_UNFOLDED: u32 = 1 << 12;
