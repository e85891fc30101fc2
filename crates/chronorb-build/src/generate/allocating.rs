//! Refusal of definitions whose code would have to allocate.

use std::collections::HashSet;

use chronorb_idl::model::{DefId, DefKind, Location, Model, Type};

use super::GenerateError;
use super::external::Externals;
use crate::names::Place;
use crate::shape;

/// Refuses value types, and operations and attributes with object references, which are allocated
/// when they are decoded.
pub(super) fn refuse(model: &Model, externals: &Externals) -> Result<(), GenerateError> {
    for (id, definition) in model.iter() {
        if externals.get(id).is_some() {
            continue;
        }
        let interface = match &definition.kind {
            DefKind::Interface(interface) => interface,
            DefKind::Value(_) | DefKind::ValueBox { .. } => {
                let kind = shape::kind_name(&definition.kind);
                let place = Place::of(model, kind, &definition.name, &definition.location);
                return Err(GenerateError::Allocates { place });
            }
            _ => continue,
        };
        let refuse = |what: &str, name: &str, location: &Location, types: &[&Type]| {
            if !types.iter().any(|ty| allocates(model, ty)) {
                return Ok(());
            }
            let place = Place::of(model, what, name, location);
            Err(GenerateError::Allocates { place })
        };
        for operation in &interface.operations {
            let params = operation.params.iter().map(|param| &param.ty);
            let exceptions: Vec<_> = operation.raises.iter().map(|&e| Type::Named(e)).collect();
            let types: Vec<_> = params.chain(&operation.result).chain(&exceptions).collect();
            refuse("operation", &operation.name, &operation.location, &types)?;
        }
        for attribute in &interface.attributes {
            let types = [&attribute.ty];
            refuse("attribute", &attribute.name, &attribute.location, &types)?;
        }
    }
    Ok(())
}

/// Returns whether a value of the type cannot be decoded without allocation.
fn allocates(model: &Model, ty: &Type) -> bool {
    fn within(model: &Model, ty: &Type, seen: &mut HashSet<DefId>) -> bool {
        match shape::resolve(model, ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                within(model, element, seen)
            }
            Type::Map { key, value, .. } => within(model, key, seen) || within(model, value, seen),
            Type::Named(id) if seen.insert(*id) => {
                shape::is_reference(model, ty)
                    || shape::parts(model, *id).any(|part| within(model, &part.ty, seen))
            }
            ty => shape::is_reference(model, ty),
        }
    }
    within(model, ty, &mut HashSet::new())
}
