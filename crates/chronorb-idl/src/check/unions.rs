//! Unions: discriminators, labels, defaults (CORBA 3.3 part 1, 7.11.2.2).

use std::collections::BTreeMap;

use super::Checker;
use super::annotations::Target;
use super::consts::integer_range;
use super::scope::ScopeId;
use crate::ast::{CaseLabel, Expr, ExprKind, TypeKind, TypeSpec, UnionDef};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{Case, ConstValue, DefId, DefKind, Type, Union};
use crate::span::Span;

impl Checker<'_> {
    pub(super) fn union(&mut self, scope: ScopeId, definition: &UnionDef) -> DefId {
        let open = self.open_aggregate(scope, &definition.meta, &definition.name, true);
        let inner = open.inner;
        let discriminator = self.resolve_type(inner, &definition.discriminator, true);
        let switch = discriminator
            .as_ref()
            .and_then(|ty| self.discriminator(ty, &definition.discriminator));
        let mut labels = Labels::default();
        let mut cases = Vec::new();
        for case in &definition.cases {
            if self.is_exhausted() {
                break;
            }
            let values = self.labels(inner, &case.labels, switch.as_ref(), &mut labels);
            let ty = self.member_type(inner, &case.member);
            for declarator in &case.member.declarators {
                let member = self.member(inner, &case.member, Target::Case, ty.clone(), declarator);
                cases.extend(member.map(|member| {
                    Case {
                        labels: values.clone(),
                        is_default: case
                            .labels
                            .iter()
                            .any(|l| matches!(l, CaseLabel::Default(_))),
                        member,
                    }
                }));
            }
        }
        let unlabelled = switch.as_ref().and_then(|ty| self.unlabelled(ty, &labels));
        if let (Some(_), None, Some(default)) = (&switch, &unlabelled, labels.default) {
            self.sink.push(
                Diagnostic::warning(
                    codes::USELESS_DEFAULT,
                    default,
                    "`default` where the labels name every value",
                    "nothing is left for it",
                )
                .note("a member with this label alone is left out")
                .hint("remove it, or one of the labels"),
            );
            cases.retain(|case: &Case| !case.is_default || !case.labels.is_empty());
            for case in &mut cases {
                case.is_default = false;
            }
        }
        let discriminator_annotations = self.annotations_of(
            scope,
            &definition.discriminator_annotations,
            Target::Discriminator,
            discriminator.as_ref(),
        );
        let kind = DefKind::Union(Union {
            // A union with an error never becomes part of a model.
            discriminator: discriminator.unwrap_or(Type::Long),
            discriminator_annotations,
            cases,
            unlabelled,
            nested: Vec::new(),
        });
        self.close_aggregate(open, kind)
    }

    /// Returns the type of a discriminator without aliases, if it can be one.
    fn discriminator(&mut self, ty: &Type, spec: &TypeSpec) -> Option<Type> {
        let ty = self.without_aliases(ty);
        let allowed = match &ty {
            Type::Boolean | Type::Char | Type::WChar => true,
            Type::Named(def) => {
                matches!(self.definitions[def.0 as usize].kind, DefKind::Enum { .. })
            }
            ty => integer_range(ty).is_some(),
        };
        if allowed {
            return Some(ty);
        }
        let name = match &spec.kind {
            TypeKind::Named(name) => format!("`{name}`"),
            _ => "a value of this type".to_owned(),
        };
        self.sink.push(
            Diagnostic::error(
                codes::BAD_DISCRIMINATOR,
                spec.span,
                format!("{name} cannot select the member of a union"),
                "not the type of a discriminator",
            )
            .hint("switch over an integer, a character, a boolean or an enum"),
        );
        None
    }

    /// Evaluates the labels of one case.
    fn labels(
        &mut self,
        scope: ScopeId,
        written: &[CaseLabel],
        switch: Option<&Type>,
        labels: &mut Labels,
    ) -> Vec<ConstValue> {
        let mut values = Vec::new();
        for label in written {
            match label {
                CaseLabel::Default(span) => match labels.default {
                    None => labels.default = Some(*span),
                    Some(earlier) => self.duplicate_label("`default`", *span, earlier),
                },
                CaseLabel::Value(expr) => {
                    // Without a type, a label cannot be checked.
                    let value = switch
                        .filter(|ty| !self.is_hidden_enumerator(scope, expr, ty))
                        .and_then(|ty| self.evaluate_as(scope, expr, ty));
                    let Some(value) = value else {
                        labels.incomplete = true;
                        continue;
                    };
                    match labels.seen.insert(key(&value), expr.span) {
                        None => values.push(value),
                        Some(earlier) => {
                            let shown = self.shown(&value);
                            self.duplicate_label(&format!("the label {shown}"), expr.span, earlier);
                        }
                    }
                }
            }
        }
        self.charge(size_of::<ConstValue>() * values.len(), label_span(written));
        values
    }

    /// Reports a label that is an enumerator of the discriminator, but is not visible here.
    fn is_hidden_enumerator(&mut self, scope: ScopeId, label: &Expr, switch: &Type) -> bool {
        let (ExprKind::Name(name), Type::Named(def)) = (&label.kind, switch) else {
            return false;
        };
        let definition = &self.definitions[def.0 as usize];
        let (Some(single), DefKind::Enum { enumerators, .. }) = (name.single(), &definition.kind)
        else {
            return false;
        };
        let is_meant = enumerators.iter().any(|e| *e.name == *single.name);
        if !is_meant || self.resolve_quietly(scope, name).is_some() {
            return false;
        }
        let mut full = definition.scoped_name.clone();
        full.pop();
        full.push(single.name.to_string());
        self.sink.push(
            Diagnostic::error(
                codes::UNDEFINED,
                single.span,
                format!("`{}` is not visible here", single.name),
                "an enumerator of another scope",
            )
            .label(self.spans[def.0 as usize], "its enum")
            .hint(format!("write `{}`", full.join("::"))),
        );
        true
    }

    fn duplicate_label(&mut self, what: &str, span: Span, earlier: Span) {
        self.sink.push(
            Diagnostic::error(
                codes::DUPLICATE_LABEL,
                span,
                format!("{what} is given twice"),
                "again here",
            )
            .label(earlier, "first here")
            .hint("each value selects one member: remove one of the labels"),
        );
    }

    fn shown(&self, value: &ConstValue) -> String {
        match value {
            ConstValue::Enumerator(def, index) => match &self.definitions[def.0 as usize].kind {
                DefKind::Enum { enumerators, .. } => enumerators
                    .get(*index as usize)
                    .map_or_else(String::new, |e| format!("`{}`", e.name)),
                _ => String::new(),
            },
            ConstValue::Boolean(value) => if *value { "`TRUE`" } else { "`FALSE`" }.to_owned(),
            ConstValue::Char(c) => format!("{:?}", char::from(*c)),
            ConstValue::WChar(c) => format!("{c:?}"),
            value => format!("`{}`", key(value)),
        }
    }

    /// Returns the least value of the type that no label names.
    fn unlabelled(&self, ty: &Type, labels: &Labels) -> Option<ConstValue> {
        let (least, greatest) = match ty {
            Type::Boolean => (0, 1),
            Type::Char => (0, u8::MAX.into()),
            Type::WChar => (0, u32::from(char::MAX).into()),
            Type::Named(def) => match &self.definitions[def.0 as usize].kind {
                DefKind::Enum { enumerators, .. } => (0, enumerators.len() as i128 - 1),
                _ => return None,
            },
            ty => integer_range(ty)?,
        };
        let mut free = least;
        for &taken in labels.seen.keys() {
            if taken != free {
                break;
            }
            free += 1;
            if *ty == Type::WChar && free == 0xd800 {
                // Surrogates are no characters.
                free = 0xe000;
            }
        }
        if free > greatest {
            return labels.incomplete.then(|| value(ty, least));
        }
        Some(value(ty, free))
    }
}

/// The labels of a union so far.
#[derive(Default)]
struct Labels {
    seen: BTreeMap<i128, Span>,
    default: Option<Span>,
    /// Whether some labels had errors.
    incomplete: bool,
}

fn label_span(labels: &[CaseLabel]) -> Span {
    match &labels[0] {
        CaseLabel::Value(expr) => expr.span,
        CaseLabel::Default(span) => *span,
    }
}

/// Returns the position of a label among the values of its type.
fn key(value: &ConstValue) -> i128 {
    match value {
        ConstValue::Integer(value) => *value,
        ConstValue::Boolean(value) => i128::from(*value),
        ConstValue::Char(value) => i128::from(*value),
        ConstValue::WChar(value) => i128::from(u32::from(*value)),
        ConstValue::Enumerator(_, index) => i128::from(*index),
        _ => 0,
    }
}

/// Returns the value of the type at this position.
fn value(ty: &Type, key: i128) -> ConstValue {
    match ty {
        Type::Boolean => ConstValue::Boolean(key != 0),
        Type::Char => ConstValue::Char(key as u8),
        Type::WChar => ConstValue::WChar(char::from_u32(key as u32).unwrap_or('\0')),
        Type::Named(def) => ConstValue::Enumerator(*def, key as u32),
        _ => ConstValue::Integer(key),
    }
}
