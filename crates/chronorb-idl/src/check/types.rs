//! Types at their use.

use super::Checker;
use super::annotations::Target;
use super::scope::{EntityId, EntityKind, ScopeId, StructState};
use super::templates::Bound;
use crate::ast::{
    AnnotationParam, Declarator, Expr, ExprKind, MemberDef, Meta, ScopedName, TypeKind, TypeSpec,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{ConstValue, DefKind, Type};

/// The reason why a type is incomplete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incomplete {
    /// The struct or union that is only declared.
    pub(super) part: EntityId,
    /// Whether the type contains it only in sequences or maps, which may be empty.
    pub(super) in_sequence: bool,
}

/// Returns whether an annotation of the standard is applied, and not with `FALSE`.
pub(super) fn has_annotation(meta: &Meta, name: &str) -> bool {
    meta.annotations.iter().any(|annotation| {
        let is_off = |param: &AnnotationParam| matches!(param.value.kind, ExprKind::Boolean(false));
        annotation
            .name
            .single()
            .is_some_and(|single| *single.name == *name)
            && !annotation.params.iter().any(is_off)
    })
}

impl Checker<'_> {
    /// Resolves the type of a parameter, result or attribute, which must be complete.
    pub(super) fn complete_type(&mut self, scope: ScopeId, spec: &TypeSpec) -> Option<Type> {
        let ty = self.resolve_type(scope, spec, false)?;
        match self.incomplete_part(&ty) {
            None => Some(ty),
            Some(incomplete) => {
                self.incomplete_struct(incomplete.part, spec.span);
                None
            }
        }
    }

    /// Returns the part of a type that is declared but not yet defined.
    pub(super) fn incomplete_part(&self, ty: &Type) -> Option<Incomplete> {
        let in_sequence = |found: Incomplete| Incomplete {
            in_sequence: true,
            ..found
        };
        match ty {
            Type::Array { element, .. } => self.incomplete_part(element),
            Type::Sequence { element, .. } => self.incomplete_part(element).map(in_sequence),
            Type::Map { key, value, .. } => self
                .incomplete_part(key)
                .or_else(|| self.incomplete_part(value))
                .map(in_sequence),
            Type::Named(def) => self.incomplete.get(def).copied().filter(|found| {
                matches!(
                    self.scopes.entity(found.part).kind,
                    EntityKind::Struct {
                        state: StructState::Declared,
                        ..
                    }
                )
            }),
            _ => None,
        }
    }

    /// Resolves a type. If `may_define`, it may define a struct, union or enum.
    pub(super) fn resolve_type(
        &mut self,
        scope: ScopeId,
        spec: &TypeSpec,
        may_define: bool,
    ) -> Option<Type> {
        self.type_of(scope, spec, may_define, false)
    }

    /// Resolves the type of a member. With `@external` the member is elsewhere in memory, so that
    /// its type may be incomplete, if the member can also be absent: it is optional, or one of a
    /// union, or of a union.
    pub(super) fn member_type(&mut self, scope: ScopeId, member: &MemberDef) -> Option<Type> {
        let is_external = has_annotation(&member.meta, "external");
        self.type_of(scope, &member.ty, true, is_external)
    }

    fn type_of(
        &mut self,
        scope: ScopeId,
        spec: &TypeSpec,
        may_define: bool,
        in_sequence: bool,
    ) -> Option<Type> {
        let ty = self.type_of_kind(scope, spec, may_define, in_sequence);
        // These annotations are checked, but the model does not contain them.
        self.annotations_of(scope, &spec.annotations, Target::TypeUse, ty.as_ref());
        ty
    }

    fn type_of_kind(
        &mut self,
        scope: ScopeId,
        spec: &TypeSpec,
        may_define: bool,
        in_sequence: bool,
    ) -> Option<Type> {
        match &spec.kind {
            TypeKind::Basic(basic) => Some(basic.clone()),
            TypeKind::String { wide, bound } => {
                let bound = self.optional_bound(scope, bound.as_ref())?;
                Some(if *wide {
                    Type::WString { bound }
                } else {
                    Type::String { bound }
                })
            }
            TypeKind::Sequence { element, bound } => {
                let element = self.type_of(scope, element, false, true);
                let bound = self.optional_bound(scope, bound.as_ref())?;
                let element = Box::new(element?);
                Some(Type::Sequence { element, bound })
            }
            TypeKind::Map { key, value, bound } => {
                let key = self.type_of(scope, key, false, true);
                let value = self.type_of(scope, value, false, true);
                let bound = self.optional_bound(scope, bound.as_ref())?;
                Some(Type::Map {
                    key: Box::new(key?),
                    value: Box::new(value?),
                    bound,
                })
            }
            TypeKind::Fixed(size) => self.fixed_type(scope, size.as_deref(), spec.span),
            TypeKind::Named(name) => self.named_type(scope, name, in_sequence),
            TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::Enum(_) if !may_define => {
                self.sink.push(
                    Diagnostic::error(
                        codes::SYNTAX,
                        spec.span,
                        "a type cannot be defined here",
                        "a definition",
                    )
                    .hint("define it before, and use its name here"),
                );
                None
            }
            TypeKind::Struct(definition) => Some(Type::Named(self.structure(scope, definition))),
            TypeKind::Union(definition) => Some(Type::Named(self.union(scope, definition))),
            TypeKind::Enum(definition) => Some(Type::Named(self.enumeration(scope, definition))),
            TypeKind::Void => {
                self.sink.push(
                    Diagnostic::error(
                        codes::VOID_AS_TYPE,
                        spec.span,
                        "`void` is no type of a value",
                        "needs a type",
                    )
                    .hint("only the result of an operation may be `void`"),
                );
                None
            }
        }
    }

    fn named_type(&mut self, scope: ScopeId, name: &ScopedName, in_sequence: bool) -> Option<Type> {
        let unwritten = self.sized_integer(scope, name);
        if let Some(ty) = unwritten.or_else(|| self.pseudo_type(scope, name)) {
            return Some(ty);
        }
        let id = self.resolve(scope, name)?;
        let entity = self.scopes.entity(id);
        if let EntityKind::Bound(index) = entity.kind
            && let Bound::Type(ty) = self.bound(index)
        {
            return Some(ty.clone());
        }
        match entity.kind {
            EntityKind::Struct {
                state: StructState::Complete,
                def,
                ..
            }
            | EntityKind::Interface { def, .. }
            | EntityKind::Value { def, .. }
            | EntityKind::ValueBox(def)
            | EntityKind::Enum(def)
            | EntityKind::Bitmask { def, .. }
            | EntityKind::Bitset { def, .. }
            | EntityKind::Typedef(def)
            | EntityKind::Native(def) => Some(Type::Named(def)),
            EntityKind::Struct { def, .. } if in_sequence => Some(Type::Named(def)),
            EntityKind::Struct { .. } => {
                self.incomplete_struct(id, name.span);
                None
            }
            EntityKind::Refused => None,
            EntityKind::Exception { .. } => {
                let diagnostic = Diagnostic::error(
                    codes::EXCEPTION_AS_TYPE,
                    name.span,
                    format!("exception `{name}` is used as a type"),
                    "an exception",
                )
                .label(entity.span, "defined here")
                .hint("exceptions can only be raised: define a struct with the same members");
                self.sink.push(diagnostic);
                None
            }
            kind => {
                let diagnostic = Diagnostic::error(
                    codes::NOT_A_TYPE,
                    name.span,
                    format!("`{name}` is {}, not a type", kind.describe()),
                    "expected a type",
                )
                .label(entity.span, "defined here")
                .hint("types are structs, enums, interfaces and what `typedef` defines");
                self.sink.push(diagnostic);
                None
            }
        }
    }

    /// Resolves the integers of IDL 4 whose names are no keywords, unless a file defines the name
    /// itself.
    fn sized_integer(&self, scope: ScopeId, name: &ScopedName) -> Option<Type> {
        let ty = match &*name.single()?.name {
            "int8" => Type::Int8,
            "uint8" => Type::UInt8,
            "int16" => Type::Short,
            "uint16" => Type::UShort,
            "int32" => Type::Long,
            "uint32" => Type::ULong,
            "int64" => Type::LongLong,
            "uint64" => Type::ULongLong,
            _ => return None,
        };
        self.resolve_quietly(scope, name).is_none().then_some(ty)
    }

    /// Returns an array of the type when there are dimensions, the type otherwise.
    pub(super) fn with_dimensions(
        &mut self,
        scope: ScopeId,
        ty: Type,
        declarator: &Declarator,
    ) -> Option<Type> {
        let dimensions = &declarator.dimensions;
        self.charge(type_size(&ty), declarator.name.span);
        if dimensions.is_empty() {
            return Some(ty);
        }
        let mut lengths = Vec::with_capacity(dimensions.len());
        for dimension in dimensions {
            let length = self.positive(
                scope,
                dimension,
                codes::BAD_ARRAY_LENGTH,
                "the length of an array",
            );
            lengths.push(length);
        }
        Some(Type::Array {
            element: Box::new(ty),
            dimensions: lengths.into_iter().collect::<Option<_>>()?,
        })
    }

    #[expect(clippy::option_option, reason = "an error; no bound; a bound")]
    fn optional_bound(&mut self, scope: ScopeId, bound: Option<&Expr>) -> Option<Option<u32>> {
        match bound {
            None => Some(None),
            Some(bound) => self
                .positive(scope, bound, codes::BAD_BOUND, "a bound")
                .map(Some),
        }
    }

    /// Evaluates a constant from 1 to 2^32 - 1.
    fn positive(
        &mut self,
        scope: ScopeId,
        expr: &Expr,
        code: &'static str,
        what: &str,
    ) -> Option<u32> {
        let value = self.evaluate(scope, expr, Some(&Type::LongLong))?;
        let (message, label) = match value {
            ConstValue::Integer(value) => match u32::try_from(value) {
                Ok(length) if length > 0 => return Some(length),
                _ => (
                    format!("{what} cannot be {value}"),
                    "must be from 1 to 4294967295",
                ),
            },
            _ => (format!("{what} must be an integer"), "not an integer"),
        };
        self.sink.push(
            Diagnostic::error(code, expr.span, message, label)
                .hint("write a positive integer constant"),
        );
        None
    }

    /// Returns the type that is left when all typedefs are resolved.
    pub(super) fn without_aliases(&self, ty: &Type) -> Type {
        let Type::Named(def) = ty else {
            return ty.clone();
        };
        let root = self.alias_roots.get(def).unwrap_or(def);
        match &self.definitions[root.0 as usize].kind {
            DefKind::Typedef { ty } => ty.clone(),
            _ => Type::Named(*root),
        }
    }
}

/// Returns the approximate size of a type in bytes.
pub(super) fn type_size(ty: &Type) -> usize {
    let own = size_of::<Type>() + 16;
    match ty {
        Type::Sequence { element, .. } => own + type_size(element),
        Type::Map { key, value, .. } => own + type_size(key) + type_size(value),
        Type::Array {
            element,
            dimensions,
        } => own + 4 * dimensions.len() + type_size(element),
        _ => own,
    }
}
