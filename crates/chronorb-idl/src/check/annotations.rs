//! Annotations: their declarations, and their applications (IDL 4.2, 7.4.15).

use std::collections::HashSet;
use std::rc::Rc;

use super::Checker;
use super::scope::{EntityKind, ScopeId, ScopeKind, Scopes, lower};
use super::standard::{self, Kind, Params};
use crate::ast::{self, AnnotationDef, Expr, ExprKind};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{Annotation, AnnotationMember, ConstValue, DefId, DefKind, Type};
use crate::suggest;

/// The construct to which an annotation is applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Target {
    Module,
    Interface,
    Struct,
    Union,
    Exception,
    Enum,
    /// A bit mask or bit set.
    Bits,
    Value,
    Typedef,
    Const,
    /// A member of a struct, an exception or the state of a value type.
    Member,
    /// The member of a union.
    Case,
    Discriminator,
    Enumerator,
    /// A flag of a bit mask.
    Flag,
    /// A field of a bit set.
    Field,
    Operation,
    Attribute,
    Parameter,
    /// A type at its use.
    TypeUse,
    Other,
}

impl Target {
    pub(super) fn of(kind: &DefKind) -> Self {
        match kind {
            DefKind::Module { .. } => Self::Module,
            DefKind::Interface(_) => Self::Interface,
            DefKind::Struct { .. } => Self::Struct,
            DefKind::Union(_) => Self::Union,
            DefKind::Exception { .. } => Self::Exception,
            DefKind::Enum { .. } => Self::Enum,
            DefKind::Bitmask { .. } | DefKind::Bitset { .. } => Self::Bits,
            DefKind::Value(_) | DefKind::ValueBox { .. } => Self::Value,
            DefKind::Typedef { .. } => Self::Typedef,
            DefKind::Const { .. } => Self::Const,
            DefKind::Native | DefKind::Annotation { .. } => Self::Other,
        }
    }
}

/// A parameter of a known annotation.
struct AnnotationParamSpec<'a> {
    name: &'a str,
    kind: KnownKind,
    optional: bool,
}

enum KnownKind {
    Standard(Kind),
    /// The declared type; `None` for `any`.
    Declared(Option<Type>),
}

impl Checker<'_> {
    /// `@annotation name { … }`
    pub(super) fn annotation_declaration(&mut self, scope: ScopeId, written: &AnnotationDef) {
        let kind = DefKind::Annotation {
            members: Vec::new(),
            nested: Vec::new(),
        };
        let name = &written.name;
        let def = self.introduce(scope, name, &written.meta, kind);
        let key = (scope, lower(&name.name));
        if let Some(earlier) = self.declared_annotations.insert(key, def) {
            self.sink.push(
                Diagnostic::error(
                    codes::DUPLICATE,
                    name.span,
                    format!("annotation `{}` is declared twice", name.name),
                    "declared again here",
                )
                .label(self.spans[earlier.0 as usize], "first declared here")
                .hint("rename one of them"),
            );
        }
        let inner = self.scopes.add(ScopeKind::Struct, scope, Some(def), name);
        self.items(inner, &written.items);
        let mut members = Vec::new();
        for member in &written.members {
            self.declare(
                inner,
                &member.name,
                EntityKind::Variable,
                codes::DUPLICATE_MEMBER,
            );
            let ty = match &member.ty.kind {
                ast::TypeKind::Basic(Type::Any) => None,
                _ => match self.const_type(inner, &member.ty) {
                    Some(ty) => Some(ty),
                    None => continue,
                },
            };
            let default = match (&member.default, &ty) {
                (None, _) => None,
                (Some(value), None) => self.evaluate(inner, value, None),
                (Some(value), Some(ty)) => self.evaluate_as(inner, value, ty),
            };
            members.push(AnnotationMember {
                name: member.name.name.to_string(),
                ty,
                default,
            });
        }
        let kind = DefKind::Annotation {
            members,
            nested: Vec::new(),
        };
        self.complete(def, kind);
    }

    /// Checks the annotations of a construct, and returns them. `ty` is its type, if it has one.
    pub(super) fn annotations_of(
        &mut self,
        scope: ScopeId,
        written: &[ast::AnnotationUse],
        target: Target,
        ty: Option<&Type>,
    ) -> Vec<Annotation> {
        let applied: Vec<Annotation> = written
            .iter()
            .map(|annotation| {
                let applied = self.annotation(scope, annotation, target, ty);
                self.charge(size_of_annotation(&applied), annotation.span);
                applied
            })
            .collect();
        self.check_extensibility(written, &applied);
        self.check_range(written, &applied);
        applied
    }

    fn annotation(
        &mut self,
        scope: ScopeId,
        written: &ast::AnnotationUse,
        target: Target,
        ty: Option<&Type>,
    ) -> Annotation {
        let name = written.name.to_string();
        let name = name.trim_start_matches("::").to_owned();
        let params = if let Some(def) = self.declared_annotation(scope, &written.name) {
            let known = self.declared_params(def);
            let known: Vec<AnnotationParamSpec<'_>> =
                known.iter().map(AnnotationParamSpec::declared).collect();
            self.known_params(scope, written, &known, ty)
        } else if let Some(standard) = standard::standard(&name) {
            if !standard.targets.is_empty() && !standard.targets.contains(&target) {
                self.sink.push(
                    Diagnostic::warning(
                        codes::ANNOTATION_IGNORED,
                        written.span,
                        format!("`@{name}` has no effect here"),
                        "ignored",
                    )
                    .hint("remove it, or put it before what it is meant for"),
                );
            }
            match standard.params {
                Params::Only(params) => {
                    let known: Vec<AnnotationParamSpec<'_>> =
                        params.iter().map(AnnotationParamSpec::standard).collect();
                    self.known_params(scope, written, &known, ty)
                }
                Params::Free => self.free_params(scope, written),
            }
        } else {
            self.unknown_annotation(written, &name);
            self.unknown_params(scope, written)
        };
        Annotation { name, params }
    }

    /// Warns of an unknown annotation, once for each name.
    fn unknown_annotation(&mut self, written: &ast::AnnotationUse, name: &str) {
        const MOST: usize = 200;
        if self.unknown_annotations.len() > MOST
            || !self.unknown_annotations.insert(name.to_owned())
        {
            return;
        }
        let declared = self.declared_annotations.keys().map(|(_, key)| &**key);
        let known = standard::names().chain(declared.take(MOST));
        let hint = match suggest::closest(name, known) {
            Some(closest) => format!("did you mean `@{closest}`?"),
            None => "declare it with `@annotation`, or remove it".to_owned(),
        };
        self.sink.push(
            Diagnostic::warning(
                codes::UNKNOWN_ANNOTATION,
                written.span,
                format!("there is no annotation `@{name}`"),
                "ignored, here and wherever it stands",
            )
            .hint(hint),
        );
    }

    /// Returns the declaration of an annotation's name, seen from a scope.
    fn declared_annotation(&self, scope: ScopeId, name: &ast::ScopedName) -> Option<DefId> {
        if self.declared_annotations.is_empty() {
            return None;
        }
        let (last, qualifier) = name.parts.split_last()?;
        let key = lower(&last.name);
        let at = |scope| self.declared_annotations.get(&(scope, Rc::clone(&key)));
        if !qualifier.is_empty() {
            let module = ast::ScopedName {
                parts: qualifier.to_vec(),
                ..name.clone()
            };
            let module = self.resolve_quietly(scope, &module)?;
            return at(self.scope_of(module)?).copied();
        }
        let mut next = Some(if name.absolute { Scopes::FILE } else { scope });
        while let Some(scope) = next {
            if let Some(def) = at(scope) {
                return Some(*def);
            }
            next = self.scopes.around(scope);
        }
        None
    }

    fn declared_params(&self, def: DefId) -> Vec<AnnotationMember> {
        match &self.definitions[def.0 as usize].kind {
            DefKind::Annotation { members, .. } => members.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the parameters of an annotation that is not known, and reports none of them: names
    /// that are no constants stay words, and other expressions without a value are left out.
    fn unknown_params(
        &mut self,
        scope: ScopeId,
        written: &ast::AnnotationUse,
    ) -> Vec<(String, ConstValue)> {
        let mut params = Vec::new();
        for param in &written.params {
            let value = match &param.value.kind {
                ExprKind::Name(name) if !self.is_exactly_known(scope, name) => {
                    Some(ConstValue::String(name.to_string()))
                }
                ExprKind::Unary(_, operand) if matches!(operand.kind, ExprKind::Name(_)) => None,
                ExprKind::Unary(_, operand) if matches!(operand.kind, ExprKind::Unary(..)) => None,
                ExprKind::Binary(..) => None,
                _ => self.annotation_value(scope, &param.value),
            };
            let name = param.name.as_ref().map_or("value", |name| &name.name);
            params.extend(value.map(|value| (name.to_owned(), value)));
        }
        params
    }

    /// Returns whether a name is spelled as where it is defined.
    fn is_exactly_known(&self, scope: ScopeId, name: &ast::ScopedName) -> bool {
        let entity = self.resolve_quietly(scope, name);
        let entity = entity.map(|entity| self.scopes.entity(entity));
        entity
            .zip(name.parts.last())
            .is_some_and(|(entity, last)| entity.name == last.name)
    }

    /// Returns the parameters of an annotation that declares none.
    fn free_params(
        &mut self,
        scope: ScopeId,
        written: &ast::AnnotationUse,
    ) -> Vec<(String, ConstValue)> {
        let params = written.params.iter();
        params
            .filter_map(|param| {
                let name = param.name.as_ref().map_or("value", |name| &name.name);
                let value = self.annotation_value(scope, &param.value)?;
                Some((name.to_owned(), value))
            })
            .collect()
    }

    /// Checks and returns the parameters of an annotation that declares these.
    fn known_params(
        &mut self,
        scope: ScopeId,
        written: &ast::AnnotationUse,
        known: &[AnnotationParamSpec<'_>],
        ty: Option<&Type>,
    ) -> Vec<(String, ConstValue)> {
        let mut seen = HashSet::new();
        let mut params = Vec::new();
        for param in &written.params {
            let found = match &param.name {
                None if written.params.len() == 1 => match known {
                    [only] => Some(only),
                    _ => None,
                },
                None => None,
                Some(name) => known.iter().find(|known| *known.name == *name.name),
            };
            let at = param.name.as_ref().map_or(param.value.span, |n| n.span);
            let Some(found) = found else {
                self.bad_param(at, written, param.name.as_ref(), known);
                continue;
            };
            if !seen.insert(found.name) {
                self.sink.push(
                    Diagnostic::error(
                        codes::ANNOTATION_PARAM,
                        at,
                        format!("parameter `{}` is given twice", found.name),
                        "again here",
                    )
                    .hint("remove one of them"),
                );
                continue;
            }
            let value = self.param_value(scope, &param.value, &found.kind, ty);
            params.extend(value.map(|value| (found.name.to_owned(), value)));
        }
        for missing in known {
            if !missing.optional && !seen.contains(missing.name) && !written.has_errors(known) {
                self.sink.push(
                    Diagnostic::error(
                        codes::ANNOTATION_PARAM,
                        written.span,
                        format!(
                            "parameter `{}` of `@{}` is missing",
                            missing.name, written.name
                        ),
                        "needs it",
                    )
                    .hint(format!("write `@{}({} = …)`", written.name, missing.name)),
                );
            }
        }
        params
    }

    fn bad_param(
        &mut self,
        at: crate::span::Span,
        written: &ast::AnnotationUse,
        name: Option<&ast::Ident>,
        known: &[AnnotationParamSpec<'_>],
    ) {
        let names: Vec<String> = known.iter().map(|k| format!("`{}`", k.name)).collect();
        let hint = match names.len() {
            0 => "it has none: remove the parentheses".to_owned(),
            1 => format!("it has the parameter {}", names[0]),
            _ => format!("it has the parameters {}", names.join(", ")),
        };
        let (message, label) = match name {
            Some(name) => (
                format!("`@{}` has no parameter `{}`", written.name, name.name),
                "not known",
            ),
            None if names.is_empty() => {
                (format!("`@{}` has no parameters", written.name), "too much")
            }
            None => (
                format!("a parameter of `@{}` has no name", written.name),
                "which one is it?",
            ),
        };
        self.sink
            .push(Diagnostic::error(codes::ANNOTATION_PARAM, at, message, label).hint(hint));
    }

    fn param_value(
        &mut self,
        scope: ScopeId,
        expr: &Expr,
        kind: &KnownKind,
        ty: Option<&Type>,
    ) -> Option<ConstValue> {
        let fixed = match kind {
            KnownKind::Declared(ty) => ty.clone(),
            KnownKind::Standard(kind) => kind.ty(),
        };
        match (kind, fixed) {
            (_, Some(ty)) => self.value_of_type(scope, expr, &ty),
            (KnownKind::Standard(Kind::OfTarget), _) => {
                match ty.map(|ty| self.without_aliases(ty)) {
                    Some(ty) if self.is_const_type(&ty) => self.value_of_type(scope, expr, &ty),
                    _ => self.annotation_value(scope, expr),
                }
            }
            (KnownKind::Standard(Kind::Word(words)), _) => {
                if let ExprKind::Name(name) = &expr.kind
                    && let Some(last) = name.parts.last()
                    && words.contains(&&*last.name)
                {
                    return Some(ConstValue::String(last.name.to_string()));
                }
                self.sink.push(
                    Diagnostic::error(
                        codes::WRONG_TYPE,
                        expr.span,
                        "this is none of the words that can stand here",
                        "not known",
                    )
                    .hint(format!("write one of {}", words.join(", "))),
                );
                None
            }
            _ => self.evaluate(scope, expr, None),
        }
    }

    /// Evaluates an expression as a value of a type. The enumerators of an enum need not be
    /// visible.
    fn value_of_type(&mut self, scope: ScopeId, expr: &Expr, ty: &Type) -> Option<ConstValue> {
        if let (ExprKind::Name(name), Type::Named(def)) = (&expr.kind, ty)
            && let Some(single) = name.single()
            && let DefKind::Enum { enumerators, .. } = &self.definitions[def.0 as usize].kind
            && let Some(index) = enumerators.iter().position(|e| *e.name == *single.name)
        {
            return Some(ConstValue::Enumerator(*def, index as u32));
        }
        self.evaluate_as(scope, expr, ty)
    }

    fn check_extensibility(&mut self, written: &[ast::AnnotationUse], applied: &[Annotation]) {
        let mut said: Option<(&str, usize)> = None;
        for (i, annotation) in applied.iter().enumerate() {
            let word = match (annotation.name.as_str(), annotation.params.first()) {
                ("final", _) => "FINAL",
                ("appendable", _) => "APPENDABLE",
                ("mutable", _) => "MUTABLE",
                ("extensibility", Some((_, ConstValue::String(word)))) => word,
                _ => continue,
            };
            match said {
                Some((earlier, at)) if earlier != word => {
                    self.sink.push(
                        Diagnostic::error(
                            codes::BAD_ANNOTATION,
                            written[i].span,
                            "this contradicts another annotation",
                            "not both",
                        )
                        .label(written[at].span, "the other one")
                        .hint("a type is final, appendable or mutable"),
                    );
                    return;
                }
                _ => said = Some((word, i)),
            }
        }
    }
}

impl<'a> AnnotationParamSpec<'a> {
    fn standard(param: &'a standard::StandardParam) -> Self {
        Self {
            name: param.name,
            kind: KnownKind::Standard(param.kind),
            optional: param.optional,
        }
    }

    fn declared(member: &'a AnnotationMember) -> Self {
        Self {
            name: &member.name,
            kind: KnownKind::Declared(member.ty.clone()),
            optional: member.default.is_some(),
        }
    }
}

impl ast::AnnotationUse {
    /// Returns whether a parameter was reported already, which may be meant for another one.
    fn has_errors(&self, known: &[AnnotationParamSpec<'_>]) -> bool {
        self.params.iter().any(|param| match &param.name {
            None => self.params.len() > 1 || known.len() > 1,
            Some(name) => known.iter().all(|known| *known.name != *name.name),
        })
    }
}

/// Returns the approximate size of an annotation in bytes.
fn size_of_annotation(annotation: &Annotation) -> usize {
    let params = annotation.params.iter().map(|(name, value)| match value {
        ConstValue::String(text) | ConstValue::WString(text) => name.len() + text.len() + 64,
        _ => name.len() + 64,
    });
    annotation.name.len() + 64 + params.sum::<usize>()
}

/// Returns whether a boolean annotation is applied, and not with `FALSE`.
pub(super) fn is_on(annotations: &[Annotation], name: &str) -> bool {
    let found = annotations
        .iter()
        .find(|annotation| annotation.name == name);
    found.is_some_and(|annotation| {
        !matches!(annotation.params[..], [(_, ConstValue::Boolean(false))])
    })
}
