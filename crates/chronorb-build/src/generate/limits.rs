//! Limits of generated code: the parts of a definition and of its types, and the total length of
//! the text.

use std::collections::HashMap;
use std::iter;

use chronorb_idl::model::{Attribute, DefId, DefKind, Model, Operation, Type};

use super::GenerateError;
use super::context::Context;
use crate::names::Place;
use crate::recursion::Recursion;
use crate::shape;

/// Refuses types that are nested too deeply or contain too many others: a few lines of IDL can
/// double a type repeatedly through its own parts.
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

/// Refuses definitions with too many parts. The generator has the whole code of a definition in
/// memory at once, some ten thousand octets per part.
pub(super) fn refuse_too_many_parts(model: &Model) -> Result<(), GenerateError> {
    let own = model.iter().map(|(id, _)| (id, own_parts(model, id)));
    let own: HashMap<DefId, usize> = own.collect();
    for (id, definition) in model.iter() {
        let bases: Vec<DefId> = match &definition.kind {
            DefKind::Interface(interface) => interface.all_bases.clone(),
            DefKind::Value(value) => [&value.all_bases[..], &value.supports].concat(),
            DefKind::Struct { base, .. } => {
                iter::successors(*base, |id| base_of(model, *id)).collect()
            }
            _ => Vec::new(),
        };
        let all = bases.iter().chain([&id]);
        let parts = all.map(|id| own.get(id).unwrap_or(&0)).sum();
        if parts > MAX_PARTS {
            let what = shape::kind_name(&definition.kind);
            return Err(GenerateError::TooManyParts {
                place: Place::of(model, what, &definition.name, &definition.location),
                parts,
            });
        }
    }
    Ok(())
}

fn base_of(model: &Model, id: DefId) -> Option<DefId> {
    match &model.get(id).kind {
        DefKind::Struct { base, .. } => *base,
        _ => None,
    }
}

/// Returns the parts of a definition that it does not inherit.
fn own_parts(model: &Model, id: DefId) -> usize {
    match &model.get(id).kind {
        DefKind::Interface(interface) => {
            of_operations(&interface.operations, &interface.attributes)
        }
        DefKind::Value(value) => {
            let factories = value.factories.iter();
            let factories = factories.map(|f| 1 + f.params.len() + f.raises.len());
            let operations = of_operations(&value.operations, &value.attributes);
            value.state.len() + operations + factories.sum::<usize>()
        }
        DefKind::Struct { members, .. } | DefKind::Exception { members, .. } => members.len(),
        DefKind::Union(union) => union.cases.iter().map(|case| 1 + case.labels.len()).sum(),
        DefKind::Enum { enumerators, .. } => enumerators.len(),
        _ => 0,
    }
}

/// Returns the number of operations and attributes, with their parameters and exceptions.
fn of_operations(operations: &[Operation], attributes: &[Attribute]) -> usize {
    let operations = operations.iter();
    let operations = operations.map(|o| 1 + o.params.len() + o.raises.len());
    let attributes = attributes.iter();
    let attributes = attributes.map(|a| 1 + a.get_raises.len() + a.set_raises.len());
    operations.sum::<usize>() + attributes.sum::<usize>()
}

/// Adds the text of a definition to the total, and refuses the definition if that is too long.
pub(super) fn charge(context: Context<'_>, octets: usize, id: DefId) -> Result<(), GenerateError> {
    let Some(room) = context.room.get().checked_sub(octets) else {
        let definition = context.model.get(id);
        let what = shape::kind_name(&definition.kind);
        let (name, location) = (&definition.name, &definition.location);
        return Err(GenerateError::TooMuchText {
            place: Place::of(context.model, what, name, location),
        });
    };
    context.room.set(room);
    Ok(())
}

/// The size of a type.
#[derive(Clone, Copy)]
struct Extent {
    /// The nesting depth.
    depth: u32,
    /// The total number of types.
    types: u32,
}

struct Measure<'m> {
    model: &'m Model,
    known: HashMap<DefId, Extent>,
}

impl Measure<'_> {
    /// Returns the extent of a type that is within `level` others; `None` if it is too large.
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

    /// Returns the extent of the element type of a sequence, or of a member that is apart, as
    /// [`of_type`](Self::of_type) does. A struct or union counts as one type here, because the Rust
    /// type only points to it.
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
            let extent = if shape::is_apart(self.model, part) {
                self.of_element(&part.ty, level + 1)
            } else {
                self.of_type(&part.ty, level + 1)
            };
            inner = inner.beside(extent?);
        }
        let extent = inner.around()?;
        self.known.insert(id, extent);
        Some(extent)
    }
}

impl Extent {
    const ONE: Self = Self { depth: 1, types: 1 };

    /// Returns the combined extent of both within one type.
    fn beside(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            types: self.types.saturating_add(other.types),
        }
    }

    /// Returns the extent of a type that holds this one.
    fn around(self) -> Option<Self> {
        let extent = Self {
            depth: self.depth + 1,
            types: self.types.saturating_add(1),
        };
        (extent.depth <= MAX_DEPTH && extent.types <= MAX_TYPES).then_some(extent)
    }
}

/// The maximum nesting depth. The parser has the same limit for direct nesting.
const MAX_DEPTH: u32 = 200;

const MAX_TYPES: u32 = 1 << 16;

/// The maximum number of parts of one definition.
const MAX_PARTS: usize = 1 << 14;

/// The maximum length of the text of a model in octets.
pub(super) const MAX_TEXT: usize = 128 << 20;

/// The maximum size of a cycle's type codes. Each type of a cycle has the others in its type code.
const MAX_UNFOLDED: u32 = 1 << 12;
