//! Bit masks and bit sets (IDL 4.2, 7.4.13.4.3).

use std::collections::HashMap;

use super::Checker;
use super::annotations::Target;
use super::bases::BaseKind;
use super::consts::integer_range;
use super::enums::{number, span_of};
use super::scope::{EntityKind, ScopeId, ScopeKind};
use crate::ast::{BitFieldDef, BitmaskDef, BitsetDef, Ident};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{BitField, BitFlag, ConstValue, DefId, DefKind, Type};
use crate::span::Span;

/// The bits of the largest bit mask and bit set.
const MAX_BITS: u8 = 64;

impl Checker<'_> {
    pub(super) fn bitmask(&mut self, scope: ScopeId, written: &BitmaskDef) {
        let name = &written.name;
        let empty = DefKind::Bitmask {
            flags: Vec::new(),
            bit_bound: 32,
        };
        let def = self.introduce(scope, name, &written.meta, empty);
        let inner = self.scopes.add(ScopeKind::Struct, scope, Some(def), name);
        let kind = EntityKind::Bitmask { scope: inner, def };
        self.declare(scope, name, kind, codes::DUPLICATE);
        let bit_bound = self.bit_bound(def, &written.meta.annotations, 1..=MAX_BITS);
        let mut flags = Vec::new();
        let mut taken: HashMap<i128, Span> = HashMap::new();
        let mut next = 0;
        for (meta, name) in &written.flags {
            if self.is_exhausted() {
                return;
            }
            let annotations = self.annotations_of(scope, &meta.annotations, Target::Flag, None);
            let position = number(&annotations, "position").unwrap_or(next);
            next = position + 1;
            let at = span_of(&meta.annotations, "position").unwrap_or(name.span);
            self.check_position(position, bit_bound, at, &mut taken);
            let flag = EntityKind::Flag(position.clamp(0, 63) as u8);
            self.declare(inner, name, flag, codes::DUPLICATE_ENUMERATOR);
            flags.push(BitFlag {
                name: name.name.to_string(),
                location: self.sources.location(name.span),
                doc: self.doc(meta),
                annotations,
                position: position.clamp(0, 63) as u8,
            });
        }
        self.complete(def, DefKind::Bitmask { flags, bit_bound });
    }

    fn check_position(
        &mut self,
        position: i128,
        bit_bound: u8,
        at: Span,
        taken: &mut HashMap<i128, Span>,
    ) {
        let diagnostic = if position >= i128::from(bit_bound) {
            Diagnostic::error(
                codes::BAD_POSITION,
                at,
                format!("there is no bit {position} in {bit_bound} bits"),
                format!("must be from 0 to {}", bit_bound - 1),
            )
            .hint("choose another position, or a greater `@bit_bound`")
        } else if let Some(earlier) = taken.insert(position, at) {
            Diagnostic::error(
                codes::BAD_POSITION,
                at,
                format!("bit {position} has a flag already"),
                "the second one",
            )
            .label(earlier, "the first one")
            .hint("give each flag a bit of its own")
        } else {
            return;
        };
        self.sink.push(diagnostic);
    }

    pub(super) fn bitset(&mut self, scope: ScopeId, written: &BitsetDef) {
        let name = &written.name;
        let empty = DefKind::Bitset {
            base: None,
            fields: Vec::new(),
        };
        let def = self.introduce(scope, name, &written.meta, empty);
        let inner = self.scopes.add(ScopeKind::Struct, scope, Some(def), name);
        let kind = EntityKind::Bitset { scope: inner, def };
        self.declare(scope, name, kind, codes::DUPLICATE);
        let base = written
            .base
            .as_ref()
            .and_then(|base| self.base(scope, Some(def), base, BaseKind::Bitset));
        let mut bits = 0;
        if let Some(base) = &base {
            self.inherit_members(inner, base);
            bits = self.bits_of(base.def);
        }
        let mut fields = Vec::new();
        for field in &written.fields {
            if self.is_exhausted() {
                return;
            }
            let Some(size) = self.field_bits(scope, field) else {
                continue;
            };
            let ty = self.field_type(scope, field, size);
            let names: Vec<Option<&Ident>> = if field.names.is_empty() {
                vec![None]
            } else {
                field.names.iter().map(Some).collect()
            };
            for name in names {
                if let Some(name) = name {
                    self.check_inherited_variable(inner, name);
                    self.declare(inner, name, EntityKind::Variable, codes::DUPLICATE_MEMBER);
                }
                if bits + size > MAX_BITS {
                    self.too_many_bits(name.map_or(field.span, |name| name.span), &written.name);
                    return;
                }
                let Some(ty) = ty.clone() else {
                    continue;
                };
                let annotations =
                    self.annotations_of(scope, &field.meta.annotations, Target::Field, Some(&ty));
                fields.push(BitField {
                    name: name.map(|name| name.name.to_string()),
                    location: self.sources.location(name.map_or(field.span, |n| n.span)),
                    doc: self.doc(&field.meta),
                    annotations,
                    position: bits,
                    bits: size,
                    ty,
                });
                bits += size;
            }
        }
        let base = base.map(|base| base.def);
        self.complete(def, DefKind::Bitset { base, fields });
    }

    /// Returns the bits of a bit set with those of its bases.
    fn bits_of(&self, def: DefId) -> u8 {
        match &self.definitions[def.0 as usize].kind {
            DefKind::Bitset { base, fields } => match (fields.last(), base) {
                (Some(last), _) => last.position + last.bits,
                (None, Some(base)) => self.bits_of(*base),
                (None, None) => 0,
            },
            _ => 0,
        }
    }

    fn too_many_bits(&mut self, at: Span, name: &Ident) {
        self.sink.push(
            Diagnostic::error(
                codes::BAD_BITS,
                at,
                format!("bit set `{}` has more than {MAX_BITS} bits", name.name),
                "no bits are left for this",
            )
            .hint("bits of the base count too: split it"),
        );
    }

    fn field_bits(&mut self, scope: ScopeId, field: &BitFieldDef) -> Option<u8> {
        let value = self.evaluate(scope, &field.bits, Some(&Type::Long))?;
        let message = match value {
            ConstValue::Integer(bits) => match u8::try_from(bits) {
                Ok(bits) if (1..=MAX_BITS).contains(&bits) => return Some(bits),
                _ => format!("a field cannot have {bits} bits"),
            },
            _ => "the number of bits must be an integer".to_owned(),
        };
        self.sink.push(
            Diagnostic::error(
                codes::BAD_BITS,
                field.bits.span,
                message,
                format!("must be from 1 to {MAX_BITS}"),
            )
            .hint("write a positive integer constant"),
        );
        None
    }

    /// Returns the type of a field's value: the one written, or the smallest that holds the bits.
    fn field_type(&mut self, scope: ScopeId, field: &BitFieldDef, bits: u8) -> Option<Type> {
        let Some(spec) = &field.ty else {
            return Some(match bits {
                1 => Type::Boolean,
                2..=8 => Type::Octet,
                9..=16 => Type::UShort,
                17..=32 => Type::ULong,
                _ => Type::ULongLong,
            });
        };
        let ty = self.resolve_type(scope, spec, false)?;
        let plain = self.without_aliases(&ty);
        let (message, hint) = match width(&plain) {
            Some(width) if bits <= width => return Some(plain),
            Some(width) => (
                format!("a field of {bits} bits does not fit into this type"),
                format!("it has {width} bits: choose a larger one"),
            ),
            None => (
                "the value of a field cannot have this type".to_owned(),
                "fields are booleans, octets and integers".to_owned(),
            ),
        };
        self.sink.push(
            Diagnostic::error(codes::BAD_BITS, spec.span, message, "not possible here").hint(hint),
        );
        None
    }
}

/// Returns the maximum number of bits of a field with this type.
fn width(ty: &Type) -> Option<u8> {
    if *ty == Type::Boolean {
        return Some(1);
    }
    let (least, greatest) = integer_range(ty)?;
    Some(128 - (greatest - least).leading_zeros() as u8)
}
