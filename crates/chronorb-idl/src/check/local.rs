//! Local types, which never leave the process (CORBA 3.3 part 1, 7.8.7).

use super::Checker;
use super::scope::ScopeId;
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, Type};
use crate::span::Span;

impl Checker<'_> {
    /// Records whether a definition is local. Everything that it uses was recorded before.
    pub(super) fn note_local(&mut self, def: DefId) {
        let is_local = match &self.definitions[def.0 as usize].kind {
            DefKind::Native => true,
            DefKind::Interface(interface) => interface.local,
            DefKind::Struct { base, members, .. } => {
                base.is_some_and(|base| self.local.contains(&base))
                    || members.iter().any(|member| self.is_local(&member.ty))
            }
            DefKind::Exception { members, .. } => {
                members.iter().any(|member| self.is_local(&member.ty))
            }
            DefKind::Union(union) => {
                let mut members = union.cases.iter().map(|case| &case.member);
                members.any(|member| self.is_local(&member.ty))
            }
            DefKind::ValueBox { ty, .. } | DefKind::Typedef { ty } => self.is_local(ty),
            _ => false,
        };
        if is_local {
            self.local.insert(def);
        }
    }

    /// Returns whether a type is a local interface, or contains one.
    pub(super) fn is_local(&self, ty: &Type) -> bool {
        match ty {
            Type::Named(def) => self.local.contains(def),
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.is_local(element),
            Type::Map { key, value, .. } => self.is_local(key) || self.is_local(value),
            _ => false,
        }
    }

    /// Reports a local type in an operation or attribute that can be called remotely.
    pub(super) fn check_local_use(&mut self, scope: ScopeId, ty: &Type, at: Span, what: &str) {
        if self.is_local(ty) {
            self.local_use(scope, at, what, "has a local type");
        }
    }

    /// Reports an exception with local members that can be raised to a remote caller.
    pub(super) fn check_local_exception(&mut self, scope: ScopeId, exception: DefId, at: Span) {
        if self.local.contains(&exception) {
            self.local_use(scope, at, "exception", "has a member of a local type");
        }
    }

    fn local_use(&mut self, scope: ScopeId, at: Span, what: &str, has: &str) {
        let Some(def) = self.scopes.get(scope).def else {
            return;
        };
        let definition = &self.definitions[def.0 as usize];
        match &definition.kind {
            DefKind::Interface(interface) if !interface.local => {}
            _ => return,
        }
        self.sink.push(
            Diagnostic::error(
                codes::LOCAL_TYPE,
                at,
                format!(
                    "the {what} {has}, but interface `{}` is not local",
                    definition.name
                ),
                "is local, or contains what is local",
            )
            .label(self.spans[def.0 as usize], "declared without `local` here")
            .hint("declare the interface `local`, or use a type that can be sent"),
        );
    }
}
