//! Structs and exceptions, and the parts that unions share with them.

use super::Checker;
use super::annotations::{Target, is_on};
use super::bases::BaseKind;
use super::scope::{EntityId, EntityKind, ScopeId, ScopeKind, StructState};
use super::types::{Incomplete, has_annotation};
use crate::ast::{Declarator, Ident, MemberDef, Meta, StructDef};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, Member, Type};
use crate::span::Span;

/// A struct or union whose members are being read.
pub(super) struct OpenAggregate {
    entity: EntityId,
    def: DefId,
    /// The scope of its members.
    pub(super) inner: ScopeId,
}

impl Checker<'_> {
    /// `struct X;`
    pub(super) fn struct_forward(&mut self, scope: ScopeId, meta: &Meta, name: &Ident) {
        self.declare_aggregate(scope, meta, name, false);
    }

    /// `union X;`
    pub(super) fn union_forward(&mut self, scope: ScopeId, meta: &Meta, name: &Ident) {
        self.declare_aggregate(scope, meta, name, true);
    }

    pub(super) fn structure(&mut self, scope: ScopeId, definition: &StructDef) -> DefId {
        let name = &definition.name;
        let open = self.open_aggregate(scope, &definition.meta, name, false);
        let base = definition
            .base
            .as_ref()
            .and_then(|base| self.base(scope, Some(open.def), base, BaseKind::Struct));
        if let Some(base) = &base {
            self.inherit_members(open.inner, base);
            let found = self.incomplete_part(&Type::Named(base.def));
            self.incomplete.extend(found.map(|found| (open.def, found)));
        }
        let members = self.members(open.inner, definition);
        let kind = DefKind::Struct {
            base: base.map(|base| base.def),
            members,
            nested: Vec::new(),
        };
        self.close_aggregate(open, kind)
    }

    fn declare_aggregate(&mut self, scope: ScopeId, meta: &Meta, name: &Ident, union: bool) {
        if let Some((id, _, _)) = self.declared_aggregate(scope, name) {
            self.check_same_aggregate(id, name, union);
            return;
        }
        let def = self.introduce(scope, name, meta, empty_struct());
        let kind = EntityKind::Struct {
            scope: None,
            def,
            state: StructState::Declared,
            union,
        };
        let id = self.declare(scope, name, kind, codes::DUPLICATE);
        let itself = Incomplete {
            part: id,
            in_sequence: false,
        };
        self.incomplete.insert(def, itself);
    }

    /// Begins the definition of a struct or union, which may have been declared before.
    pub(super) fn open_aggregate(
        &mut self,
        scope: ScopeId,
        meta: &Meta,
        name: &Ident,
        union: bool,
    ) -> OpenAggregate {
        let forward = self
            .declared_aggregate(scope, name)
            .filter(|(_, _, state)| *state == StructState::Declared);
        let (entity, def) = match forward {
            Some((entity, def, _)) => {
                self.check_same_aggregate(entity, name, union);
                self.complete_declaration(scope, def, name, meta);
                (entity, def)
            }
            None => {
                let def = self.introduce(scope, name, meta, empty_struct());
                let kind = EntityKind::Struct {
                    scope: None,
                    def,
                    state: StructState::Open,
                    union,
                };
                (self.declare(scope, name, kind, codes::DUPLICATE), def)
            }
        };
        let inner = self.scopes.add(ScopeKind::Struct, scope, Some(def), name);
        self.scopes.entity_mut(entity).span = name.span;
        self.scopes.entity_mut(entity).kind = EntityKind::Struct {
            scope: Some(inner),
            def,
            state: StructState::Open,
            union,
        };
        OpenAggregate { entity, def, inner }
    }

    /// Ends the definition of a struct or union.
    pub(super) fn close_aggregate(&mut self, open: OpenAggregate, kind: DefKind) -> DefId {
        if let EntityKind::Struct { state, .. } = &mut self.scopes.entity_mut(open.entity).kind {
            *state = StructState::Complete;
        }
        self.complete(open.def, kind);
        open.def
    }

    fn check_same_aggregate(&mut self, id: EntityId, name: &Ident, is_union: bool) {
        let entity = self.scopes.entity(id);
        if matches!(entity.kind, EntityKind::Struct { union, .. } if union == is_union) {
            return;
        }
        let (before, hint) = if is_union {
            ("a struct", "declare it with `union`")
        } else {
            ("a union", "declare it with `struct`")
        };
        self.sink.push(
            Diagnostic::error(
                codes::DECLARATION_MISMATCH,
                name.span,
                format!("`{}` was declared as {before} before", name.name),
                "another kind here",
            )
            .label(entity.span, "first declared here")
            .hint(hint),
        );
    }

    pub(super) fn exception(&mut self, scope: ScopeId, definition: &StructDef) {
        let empty = DefKind::Exception {
            members: Vec::new(),
            nested: Vec::new(),
        };
        let name = &definition.name;
        let def = self.introduce(scope, name, &definition.meta, empty);
        let inner = self.scopes.add(ScopeKind::Struct, scope, Some(def), name);
        let kind = EntityKind::Exception { scope: inner, def };
        self.declare(scope, name, kind, codes::DUPLICATE);
        let members = self.members(inner, definition);
        let kind = DefKind::Exception {
            members,
            nested: Vec::new(),
        };
        self.complete(def, kind);
    }

    /// Completes a declaration: the definition takes over its place and documentation.
    pub(super) fn complete_declaration(
        &mut self,
        scope: ScopeId,
        def: DefId,
        name: &Ident,
        meta: &Meta,
    ) {
        self.check_declared_id(scope, def, name);
        let target = Target::of(&self.definitions[def.0 as usize].kind);
        let annotations = self.annotations_of(scope, &meta.annotations, target, None);
        let doc = self.doc(meta);
        let definition = &mut self.definitions[def.0 as usize];
        definition.location = self.sources.location(name.span);
        definition.in_main_file = self.sources.is_main(name.span);
        definition.annotations.extend(annotations);
        if doc.is_some() {
            definition.doc = doc;
        }
        self.spans[def.0 as usize] = name.span;
    }

    /// Returns the struct or union of exactly this name in exactly this scope.
    fn declared_aggregate(
        &self,
        scope: ScopeId,
        name: &Ident,
    ) -> Option<(EntityId, DefId, StructState)> {
        let id = self.scopes.own(scope, &name.name)?;
        let entity = self.scopes.entity(id);
        match entity.kind {
            EntityKind::Struct { def, state, .. } if entity.name == name.name => {
                Some((id, def, state))
            }
            _ => None,
        }
    }

    fn members(&mut self, scope: ScopeId, definition: &StructDef) -> Vec<Member> {
        let mut members = Vec::new();
        for member in &definition.members {
            let ty = self.member_type(scope, member);
            for declarator in &member.declarators {
                if self.is_exhausted() {
                    return members;
                }
                members.extend(self.member(scope, member, Target::Member, ty.clone(), declarator));
            }
        }
        members
    }

    /// Checks a member of a struct, exception or union. Its type is `None` after an error.
    pub(super) fn member(
        &mut self,
        scope: ScopeId,
        written: &MemberDef,
        target: Target,
        ty: Option<Type>,
        declarator: &Declarator,
    ) -> Option<Member> {
        let name = &declarator.name;
        let ty = ty.and_then(|ty| self.with_dimensions(scope, ty, declarator));
        self.check_inherited_variable(scope, name);
        self.declare(scope, name, EntityKind::Variable, codes::DUPLICATE_MEMBER);
        let ty = self.marked(ty?, &written.meta);
        let is_external = has_annotation(&written.meta, "external");
        let mut may_be_absent = target == Target::Case;
        if is_external && let Some((open, is_union)) = self.unfinished(&ty) {
            may_be_absent |= is_union || has_annotation(&written.meta, "optional");
            if !may_be_absent {
                self.incomplete_struct(open, written.ty.span);
                return None;
            }
        }
        if let Some(mut found) = self.incomplete_part(&ty) {
            if !found.in_sequence && !is_external {
                self.incomplete_struct(found.part, written.ty.span);
                return None;
            }
            // The containing type holds the declared one only in sequences, too, or elsewhere.
            found.in_sequence = true;
            self.incomplete
                .extend(self.scopes.get(scope).def.map(|def| (def, found)));
        }
        Some(self.built_member(scope, &written.meta, target, ty, name))
    }

    /// Returns the struct or union that is the type or the element of it and whose definition has
    /// not ended, and whether it is a union.
    fn unfinished(&self, ty: &Type) -> Option<(EntityId, bool)> {
        match ty {
            Type::Array { element, .. } => self.unfinished(element),
            Type::Named(def) => {
                let id = self.scopes.declared_as(*def)?;
                match self.scopes.entity(id).kind {
                    EntityKind::Struct { state, union, .. } if state != StructState::Complete => {
                        Some((id, union))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the member of this name and type, also of the state of a value type.
    pub(super) fn built_member(
        &mut self,
        scope: ScopeId,
        meta: &Meta,
        target: Target,
        ty: Type,
        name: &Ident,
    ) -> Member {
        let annotations = self.annotations_of(scope, &meta.annotations, target, Some(&ty));
        Member {
            name: name.name.to_string(),
            location: self.sources.location(name.span),
            doc: self.doc(meta),
            optional: target == Target::Member && is_on(&annotations, "optional"),
            annotations,
            ty,
        }
    }

    /// Reports the use of a struct or union that is not complete.
    pub(super) fn incomplete_struct(&mut self, id: EntityId, at: Span) {
        let entity = self.scopes.entity(id);
        let EntityKind::Struct { state, union, .. } = entity.kind else {
            return;
        };
        let name = &entity.name;
        let what = if union { "union" } else { "struct" };
        let open = state == StructState::Open;
        let diagnostic = if open {
            Diagnostic::error(
                codes::RECURSIVE_STRUCT,
                at,
                format!("{what} `{name}` contains itself"),
                "its size would be infinite",
            )
            .hint(format!(
                "hold others of its kind in a sequence: `sequence<{name}>`"
            ))
        } else {
            Diagnostic::error(
                codes::INCOMPLETE_TYPE,
                at,
                format!("{what} `{name}` is declared but not yet defined"),
                "used too early",
            )
            .hint("define it before this use")
        };
        let label = if open {
            "its definition begins here"
        } else {
            "declared here"
        };
        let diagnostic = diagnostic.label(entity.span, label);
        self.sink.push(diagnostic);
    }
}

fn empty_struct() -> DefKind {
    DefKind::Struct {
        base: None,
        members: Vec::new(),
        nested: Vec::new(),
    }
}
