//! Structs and exceptions.

use super::Checker;
use super::scope::{EntityId, EntityKind, ScopeId, ScopeKind, StructState};
use crate::ast::{Ident, Meta, StructDef};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, Member};

impl Checker<'_> {
    /// `struct X;`
    pub(super) fn struct_forward(&mut self, scope: ScopeId, meta: &Meta, name: &Ident) {
        if self.declared_struct(scope, name).is_some() {
            return;
        }
        let def = self.introduce(scope, name, meta, empty_struct());
        let kind = EntityKind::Struct {
            scope: None,
            def,
            state: StructState::Declared,
        };
        self.declare(scope, name, kind, codes::DUPLICATE);
    }

    pub(super) fn structure(&mut self, scope: ScopeId, definition: &StructDef) -> DefId {
        let name = &definition.name;
        let forward = self
            .declared_struct(scope, name)
            .filter(|(_, _, state)| *state == StructState::Declared);
        let (entity, def) = match forward {
            Some((entity, def, _)) => {
                self.complete_declaration(scope, def, name, &definition.meta);
                (entity, def)
            }
            None => {
                let def = self.introduce(scope, name, &definition.meta, empty_struct());
                let kind = EntityKind::Struct {
                    scope: None,
                    def,
                    state: StructState::Open,
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
        };
        let members = self.members(inner, definition);
        self.scopes.entity_mut(entity).kind = EntityKind::Struct {
            scope: Some(inner),
            def,
            state: StructState::Complete,
        };
        let kind = DefKind::Struct {
            base: None,
            members,
            nested: Vec::new(),
        };
        self.complete(def, kind);
        def
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

    /// A definition of what was declared before takes over its place and documentation.
    pub(super) fn complete_declaration(
        &mut self,
        scope: ScopeId,
        def: DefId,
        name: &Ident,
        meta: &Meta,
    ) {
        self.check_declared_id(scope, def, name);
        let annotations = self.annotations(scope, &meta.annotations);
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

    /// The struct of exactly this name in exactly this scope.
    fn declared_struct(
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
            let ty = self.resolve_type(scope, &member.ty, true);
            for declarator in &member.declarators {
                if self.is_exhausted() {
                    return members;
                }
                let name = &declarator.name;
                let ty = ty
                    .clone()
                    .and_then(|ty| self.with_dimensions(scope, ty, declarator));
                self.declare(scope, name, EntityKind::Variable, codes::DUPLICATE_MEMBER);
                let Some(ty) = ty else {
                    continue;
                };
                let annotations = self.annotations(scope, &member.meta.annotations);
                let doc = self.doc(&member.meta);
                members.push(Member {
                    name: name.name.to_string(),
                    location: self.sources.location(name.span),
                    doc,
                    annotations,
                    optional: false,
                    ty,
                });
            }
        }
        members
    }

    /// Reports the use of a struct that is not complete.
    pub(super) fn incomplete_struct(
        &mut self,
        id: EntityId,
        at: crate::source::Span,
        in_sequence: bool,
    ) {
        let entity = self.scopes.entity(id);
        let EntityKind::Struct { state, .. } = entity.kind else {
            return;
        };
        let name = &entity.name;
        let open = state == StructState::Open;
        let diagnostic = match (in_sequence, open) {
            (true, _) => Diagnostic::error(
                codes::NO_RECURSION,
                at,
                format!("sequences of `{name}` before its end are not compiled by this version"),
                "not supported",
            )
            .hint("keep all elements in one sequence, and refer to them by index"),
            (false, true) => Diagnostic::error(
                codes::RECURSIVE_STRUCT,
                at,
                format!("struct `{name}` contains itself"),
                "its size would be infinite",
            )
            .hint("refer to other values by index or by name"),
            (false, false) => Diagnostic::error(
                codes::INCOMPLETE_TYPE,
                at,
                format!("struct `{name}` is declared but not yet defined"),
                "used too early",
            )
            .hint("define it before this use"),
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
