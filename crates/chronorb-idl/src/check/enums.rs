//! Enums, and the annotations that number them (IDL 4.2, 8.3.1.5, 8.3.2.3 and 8.3.4.1).

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::Checker;
use super::annotations::Target;
use super::scope::{EntityKind, ScopeId};
use crate::ast::{self, EnumDef};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{Annotation, ConstValue, DefId, DefKind, Enumerator};
use crate::span::Span;

impl Checker<'_> {
    pub(super) fn enumeration(&mut self, scope: ScopeId, written: &EnumDef) -> DefId {
        let name = &written.name;
        let def = self.introduce(scope, name, &written.meta, enum_of(Vec::new(), 0, 32));
        self.declare(scope, name, EntityKind::Enum(def), codes::DUPLICATE);
        let bit_bound = self.bit_bound(def, &written.meta.annotations, 1..=32);
        let greatest = u32::MAX >> (32 - bit_bound);
        let mut enumerators = Vec::with_capacity(written.enumerators.len());
        let mut taken: HashMap<u32, Span> = HashMap::new();
        let mut next = Some(0);
        let mut default: Option<(u32, Span)> = None;
        for (index, (meta, name)) in written.enumerators.iter().enumerate() {
            if self.is_exhausted() {
                break;
            }
            let kind = EntityKind::Enumerator(def, index as u32);
            self.declare(scope, name, kind, codes::DUPLICATE_ENUMERATOR);
            let annotations =
                self.annotations_of(scope, &meta.annotations, Target::Enumerator, None);
            let marked = span_of(&meta.annotations, "default_literal");
            self.check_default_literal(marked, &mut default, index as u32);
            let value = match number(&annotations, "value") {
                Some(value) => {
                    let at = span_of(&meta.annotations, "value").unwrap_or(name.span);
                    self.enum_value(value, greatest, at)
                        .map(|wire| (wire, value))
                }
                None if span_of(&meta.annotations, "value").is_some() => {
                    self.not_a_number(&annotations, &meta.annotations, "value");
                    None
                }
                None => next.and_then(|next| {
                    let wire = self.enum_value(next, greatest, name.span)?;
                    Some((wire, next))
                }),
            };
            next = value.map(|(_, value)| value + 1);
            let value = value.map(|(wire, _)| wire);
            if let Some(value) = value
                && let Some(earlier) = taken.insert(value, name.span)
            {
                self.sink.push(
                    Diagnostic::error(
                        codes::BAD_ENUM_VALUE,
                        name.span,
                        format!(
                            "`{}` has the value {value}, as another enumerator",
                            name.name
                        ),
                        "the second one",
                    )
                    .label(earlier, "the first one")
                    .hint("give each a value of its own"),
                );
            }
            enumerators.push(Enumerator {
                name: name.name.to_string(),
                doc: self.doc(meta),
                annotations,
                value: value.unwrap_or(0),
            });
        }
        let default = default.map_or(0, |(index, _)| index);
        self.complete(def, enum_of(enumerators, default, bit_bound));
        def
    }

    /// Returns a value as it is on the wire. Negative ones, which IDL 4 and DDS-XTypes have, are in
    /// two's complement there.
    fn enum_value(&mut self, value: i128, greatest: u32, at: Span) -> Option<u32> {
        let least = -i128::from(greatest / 2) - 1;
        match i64::try_from(value) {
            Ok(wire) if (least..=i128::from(greatest)).contains(&value) => Some(wire as u32),
            _ => {
                self.sink.push(
                    Diagnostic::error(
                        codes::BAD_ENUM_VALUE,
                        at,
                        format!("an enumerator cannot have the value {value} here"),
                        format!("the values go from {least} to {greatest}"),
                    )
                    .hint("choose another value, or a greater `@bit_bound`"),
                );
                None
            }
        }
    }

    fn check_default_literal(
        &mut self,
        marked: Option<Span>,
        default: &mut Option<(u32, Span)>,
        index: u32,
    ) {
        let Some(at) = marked else {
            return;
        };
        let Some((_, earlier)) = *default else {
            *default = Some((index, at));
            return;
        };
        self.sink.push(
            Diagnostic::error(
                codes::BAD_ANNOTATION,
                at,
                "an enum has one default",
                "a second one",
            )
            .label(earlier, "the first one")
            .hint("remove one of them"),
        );
    }

    /// Returns the number of bits that `@bit_bound` gives to a definition, else 32.
    pub(super) fn bit_bound(
        &mut self,
        def: DefId,
        written: &[ast::AnnotationUse],
        range: RangeInclusive<u8>,
    ) -> u8 {
        let annotations = &self.definitions[def.0 as usize].annotations;
        let Some(bits) = number(annotations, "bit_bound") else {
            return 32;
        };
        match u8::try_from(bits) {
            Ok(bits) if range.contains(&bits) => bits,
            _ => {
                let at = span_of(written, "bit_bound").unwrap_or(self.spans[def.0 as usize]);
                self.sink.push(
                    Diagnostic::error(
                        codes::BAD_BIT_BOUND,
                        at,
                        format!("{bits} bits are not possible here"),
                        format!("must be from {} to {}", range.start(), range.end()),
                    )
                    .hint("choose another number of bits"),
                );
                32
            }
        }
    }

    /// Reports a value that should be an integer.
    fn not_a_number(
        &mut self,
        annotations: &[Annotation],
        written: &[ast::AnnotationUse],
        name: &str,
    ) {
        // A parameter without a value was reported already.
        let has_value = |a: &Annotation| a.name == name && !a.params.is_empty();
        if let (true, Some(at)) = (annotations.iter().any(has_value), span_of(written, name)) {
            self.sink.push(
                Diagnostic::error(
                    codes::WRONG_TYPE,
                    at,
                    "the value of an enumerator is an integer",
                    "not an integer",
                )
                .hint("write for example `@value(3)`"),
            );
        }
    }
}

/// Returns the integer that an annotation gives.
pub(super) fn number(annotations: &[Annotation], name: &str) -> Option<i128> {
    let annotation = annotations
        .iter()
        .find(|annotation| annotation.name == name)?;
    match annotation.params[..] {
        [(_, ConstValue::Integer(value))] => Some(value),
        _ => None,
    }
}

/// Returns the place at which an annotation is applied.
pub(super) fn span_of(written: &[ast::AnnotationUse], name: &str) -> Option<Span> {
    let is_it = |annotation: &&ast::AnnotationUse| match annotation.name.parts.as_slice() {
        [only] => *only.name == *name,
        _ => false,
    };
    written.iter().find(is_it).map(|annotation| annotation.span)
}

fn enum_of(enumerators: Vec<Enumerator>, default: u32, bit_bound: u8) -> DefKind {
    DefKind::Enum {
        enumerators,
        default,
        bit_bound,
    }
}
