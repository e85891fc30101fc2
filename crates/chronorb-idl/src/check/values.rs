//! Value types, event types and boxed values (CORBA 3.3 part 1, 7.9).

use std::collections::HashSet;

use super::Checker;
use super::annotations::Target;
use super::bases::{Base, BaseKind};
use super::components::in_components;
use super::scope::{EntityId, EntityKind, ScopeId, ScopeKind};
use crate::ast::{FactoryDef, Ident, ScopedName, StateDef, ValueBox, ValueDef, ValueHead};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, Factory, Interface, StateMember, Type, ValueType};
use crate::portable::SUPPORTED_TWICE;
use crate::span::Span;

impl Checker<'_> {
    /// `valuetype X;`
    pub(super) fn value_forward(&mut self, scope: ScopeId, head: &ValueHead) {
        match self.declared_value(scope, &head.name) {
            Some((id, def, _)) => self.check_same_value(id, def, head),
            None => {
                let (_, def) = self.declare_value(scope, head);
                if head.event {
                    self.event_consumer(scope, head, def);
                }
            }
        }
    }

    pub(super) fn value(&mut self, scope: ScopeId, value: &ValueDef) {
        let head = &value.head;
        let name = &head.name;
        let (id, def) = match self.declared_value(scope, name) {
            Some((id, def, None)) => {
                self.check_same_value(id, def, head);
                self.complete_declaration(scope, def, name, &head.meta);
                (id, def)
            }
            _ => self.declare_value(scope, head),
        };
        let listed_bases = self.event_bases(scope, value);
        let bases = self.bases(scope, Some(def), &listed_bases, BaseKind::Value);
        let supports = self.bases(scope, Some(def), &value.supports, BaseKind::Interface);
        let concrete_base = self.check_value_bases(value, &bases);
        let inner = self.scopes.add(ScopeKind::Value, scope, Some(def), name);
        let all_bases = self.all_bases(&bases, name);
        let all_defs: Vec<DefId> = all_bases.iter().map(|(def, _)| *def).collect();
        self.check_supports(name, &all_defs, &supports);
        let inherited = self.with_supported(all_bases, &supports, name);
        let listed: Vec<ScopedName> = listed_bases
            .iter()
            .chain(&value.supports)
            .cloned()
            .collect();
        self.inherit(inner, &inherited, &listed, name);
        let entity = self.scopes.entity_mut(id);
        entity.span = name.span;
        entity.kind = EntityKind::Value {
            scope: Some(inner),
            def,
        };
        self.definitions[def.0 as usize].kind = DefKind::Value(ValueType {
            forward_only: false,
            truncatable: value.truncatable.is_some(),
            bases: bases.iter().map(|base| base.def).collect(),
            concrete_base,
            all_bases: all_defs,
            supports: supports.iter().map(|base| base.def).collect(),
            ..declared(head)
        });
        let outer = self.prefix.clone();
        self.items(inner, &value.items);
        self.prefix = outer;
        self.close(def);
        if head.event {
            self.event_consumer(scope, head, def);
        }
    }

    /// `valuetype X T;`
    pub(super) fn value_box(&mut self, scope: ScopeId, definition: &ValueBox) {
        let name = &definition.name;
        let ty = self.resolve_type(scope, &definition.ty, true);
        let Some(ty) = ty.filter(|ty| self.check_boxable(ty, definition.ty.span)) else {
            self.declare(scope, name, EntityKind::Refused, codes::DUPLICATE);
            return;
        };
        let kind = DefKind::ValueBox {
            ty,
            nested: Vec::new(),
        };
        let def = self.introduce(scope, name, &definition.meta, kind);
        self.declare(scope, name, EntityKind::ValueBox(def), codes::DUPLICATE);
    }

    fn check_boxable(&mut self, ty: &Type, at: Span) -> bool {
        let is_value = match self.without_aliases(ty) {
            Type::ValueBase => true,
            Type::Named(def) => matches!(
                self.definitions[def.0 as usize].kind,
                DefKind::Value(_) | DefKind::ValueBox { .. }
            ),
            _ => false,
        };
        if is_value {
            self.sink.push(
                Diagnostic::error(
                    codes::BOXED_VALUE,
                    at,
                    "a value type cannot be boxed",
                    "is a value type already",
                )
                .hint("use the value type itself, or give it another name with `typedef`"),
            );
        }
        !is_value
    }

    /// Returns the bases in the list. An event without an event as its base gets the base of all
    /// events.
    fn event_bases(&self, scope: ScopeId, value: &ValueDef) -> Vec<ScopedName> {
        let mut bases = value.bases.clone();
        let is_event = |name: &ScopedName| {
            let kind = self
                .resolve_quietly(scope, name)
                .map(|id| self.scopes.entity(id).kind);
            match kind {
                Some(EntityKind::Value { def, .. }) => matches!(
                    &self.definitions[def.0 as usize].kind,
                    DefKind::Value(value) if value.event
                ),
                _ => false,
            }
        };
        if value.head.event && !bases.iter().any(is_event) {
            bases.push(in_components("EventBase", value.head.name.span));
        }
        bases
    }

    /// `public T a, b;`
    pub(super) fn state(&mut self, scope: ScopeId, state: &StateDef) {
        if let Some(value) = self.value_of(scope)
            && value.is_abstract
        {
            self.abstract_state(scope, state.keyword, "state");
        }
        let member = &state.member;
        let ty = self.resolve_type(scope, &member.ty, true);
        if let Some(ty) = &ty
            && self.is_local(ty)
        {
            self.sink.push(
                Diagnostic::error(
                    codes::LOCAL_TYPE,
                    member.ty.span,
                    "the state of a value type cannot have a local type",
                    "is local, or contains what is local",
                )
                .hint("what is local cannot be sent: use a type that can"),
            );
        }
        for declarator in &member.declarators {
            if self.is_exhausted() {
                return;
            }
            let name = &declarator.name;
            let ty = ty
                .clone()
                .and_then(|ty| self.with_dimensions(scope, ty, declarator));
            self.declare_member(scope, name, EntityKind::State);
            let Some(ty) = ty else {
                continue;
            };
            let member = self.built_member(scope, &member.meta, Target::Member, ty, name);
            let public = state.public;
            if let Some(value) = self.value_of(scope) {
                value.state.push(StateMember { public, member });
            }
        }
    }

    /// `factory name(in T a);` in a value type.
    pub(super) fn factory(&mut self, scope: ScopeId, factory: &FactoryDef) {
        if self.value_of(scope).is_none() {
            self.home_operation(scope, factory, "CreateFailure");
            return;
        }
        if let Some(value) = self.value_of(scope)
            && value.is_abstract
        {
            self.abstract_state(scope, factory.keyword, "initialisers");
        }
        let name = &factory.name;
        self.declare(scope, name, EntityKind::Factory, codes::OVERLOADED);
        let inner = self.scopes.add(ScopeKind::Operation, scope, None, name);
        let params = self.params(scope, inner, &factory.params);
        let raises = self.exceptions(scope, &factory.raises);
        let made = Factory {
            name: name.name.to_string(),
            location: self.sources.location(name.span),
            doc: self.doc(&factory.meta),
            annotations: self.annotations_of(
                scope,
                &factory.meta.annotations,
                Target::Operation,
                None,
            ),
            params,
            raises,
        };
        if let Some(value) = self.value_of(scope) {
            value.factories.push(made);
        }
    }

    fn abstract_state(&mut self, scope: ScopeId, at: Span, what: &str) {
        let mut diagnostic = Diagnostic::error(
            codes::ABSTRACT_STATE,
            at,
            format!("an abstract value type has no {what}"),
            "not possible here",
        );
        if let Some(def) = self.scopes.get(scope).def {
            diagnostic = diagnostic.label(self.spans[def.0 as usize], "declared abstract here");
        }
        self.sink
            .push(diagnostic.hint("move it into a value type that inherits from this one"));
    }

    pub(super) fn value_of(&mut self, scope: ScopeId) -> Option<&mut ValueType> {
        let def = self.scopes.get(scope).def?;
        match &mut self.definitions[def.0 as usize].kind {
            DefKind::Value(value) => Some(value),
            _ => None,
        }
    }

    fn declare_value(&mut self, scope: ScopeId, head: &ValueHead) -> (EntityId, DefId) {
        let kind = DefKind::Value(declared(head));
        let def = self.introduce(scope, &head.name, &head.meta, kind);
        let kind = EntityKind::Value { scope: None, def };
        (self.declare(scope, &head.name, kind, codes::DUPLICATE), def)
    }

    fn declared_value(
        &self,
        scope: ScopeId,
        name: &Ident,
    ) -> Option<(EntityId, DefId, Option<ScopeId>)> {
        let id = self.scopes.own(scope, &name.name)?;
        let entity = self.scopes.entity(id);
        match entity.kind {
            EntityKind::Value { def, scope } if entity.name == name.name => Some((id, def, scope)),
            _ => None,
        }
    }

    /// Checks a declaration against an earlier one. It may leave out `custom`, but neither
    /// `abstract` nor the kind of the type.
    fn check_same_value(&mut self, id: EntityId, def: DefId, head: &ValueHead) {
        let DefKind::Value(before) = &self.definitions[def.0 as usize].kind else {
            return;
        };
        if (before.is_abstract, before.event) == (head.is_abstract, head.event) {
            return;
        }
        let name = &head.name;
        self.sink.push(
            Diagnostic::error(
                codes::DECLARATION_MISMATCH,
                name.span,
                format!("`{}` was declared differently before", name.name),
                "declared again here",
            )
            .label(self.scopes.entity(id).span, "first declared here")
            .hint("write the same words before both names"),
        );
    }

    /// Checks the combination of base value types, and returns the base with state.
    fn check_value_bases(&mut self, value: &ValueDef, bases: &[Base]) -> Option<DefId> {
        let head = &value.head;
        let mut concrete_base = None;
        for (index, base) in bases.iter().enumerate() {
            let DefKind::Value(of_base) = &self.definitions[base.def.0 as usize].kind else {
                continue;
            };
            let name = &base.name;
            let (code, message, hint) = if of_base.is_abstract {
                continue;
            } else if head.is_abstract {
                (
                    codes::BASE_KIND,
                    format!("an abstract value type cannot inherit from `{name}`, which has state"),
                    "declare the base `abstract`",
                )
            } else if of_base.custom && head.custom.is_none() {
                (
                    codes::BASE_KIND,
                    format!("only custom value types can inherit from `{name}`, which is custom"),
                    "declare this value type `custom`",
                )
            } else if index > 0 {
                (
                    codes::BASE_NOT_FIRST,
                    format!("`{name}` has state, and is not the first base"),
                    "put it first; a value type has one base with state, the others are abstract",
                )
            } else {
                concrete_base = Some(base.def);
                continue;
            };
            let diagnostic =
                Diagnostic::error(code, name.span, message, "not possible as a base here")
                    .label(base.defined, "defined here")
                    .hint(hint);
            self.sink.push(diagnostic);
        }
        self.check_truncatable(value, bases, concrete_base);
        concrete_base
    }

    fn check_truncatable(&mut self, value: &ValueDef, bases: &[Base], concrete: Option<DefId>) {
        let Some(at) = value.truncatable else {
            return;
        };
        let fault = |message: &str| {
            Diagnostic::error(codes::TRUNCATABLE, at, message, "cannot be truncated")
        };
        let diagnostic = if let Some(custom) = value.head.custom {
            fault("a custom value type cannot be truncatable")
                .label(custom, "declared custom here")
                .hint("remove `truncatable`, or `custom`")
        } else if bases.len() == value.bases.len() && concrete.is_none() {
            fault("there is no state to truncate to")
                .hint("the base behind `truncatable` must be one with state: remove `truncatable`")
        } else {
            return;
        };
        self.sink.push(diagnostic);
    }

    /// Checks that all supported interfaces but one and its bases are abstract.
    fn check_supports(&mut self, name: &Ident, bases: &[DefId], supports: &[Base]) {
        for base in supports.iter().skip(1) {
            if self.concrete_interface(base.def).is_some() {
                let diagnostic = Diagnostic::error(
                    codes::BASE_NOT_FIRST,
                    base.name.span,
                    format!("`{}` is not abstract, and is not the first one", base.name),
                    "not possible here",
                )
                .label(base.defined, "defined here")
                .hint(
                    "a value type supports one interface that is not abstract, which stands first",
                );
                self.sink.push(diagnostic);
            }
        }
        // The most derived interface so far.
        let mut derived: Option<DefId> = None;
        let inherited: Vec<DefId> = bases
            .iter()
            .flat_map(|base| match &self.definitions[base.0 as usize].kind {
                DefKind::Value(value) => value.supports.clone(),
                _ => Vec::new(),
            })
            .collect();
        for next in inherited.into_iter().chain(supports.first().map(|b| b.def)) {
            let Some(interface) = self.concrete_interface(next) else {
                continue;
            };
            let Some(before) = derived.filter(|&before| before != next) else {
                derived = Some(next);
                continue;
            };
            let own = supports.first().is_some_and(|own| own.def == next);
            let extends = interface.all_bases.contains(&before);
            if !own {
                self.sink.unportable(&SUPPORTED_TWICE, name.span);
            }
            if extends {
                derived = Some(next);
                continue;
            }
            let is_base = |of: &Interface| of.all_bases.contains(&next);
            if !own && self.concrete_interface(before).is_some_and(is_base) {
                continue;
            }
            let label = |def: DefId| self.definitions[def.0 as usize].name.clone();
            let diagnostic = Diagnostic::error(
                codes::SUPPORTS_CLASH,
                supports.first().map_or(name.span, |own| own.name.span),
                format!(
                    "`{}` supports `{}` and `{}`, and neither is derived from the other",
                    name.name,
                    label(before),
                    label(next)
                ),
                "these cannot be combined",
            )
            .label(self.spans[before.0 as usize], "one is defined here")
            .label(self.spans[next.0 as usize], "the other one here")
            .hint("support an interface that is derived from the one that a base supports");
            self.sink.push(diagnostic);
            return;
        }
    }

    /// Returns the interface, unless it is abstract.
    fn concrete_interface(&self, def: DefId) -> Option<&Interface> {
        match &self.definitions[def.0 as usize].kind {
            DefKind::Interface(interface) if !interface.is_abstract => Some(interface),
            _ => None,
        }
    }

    /// Returns the bases, followed by every interface that they or the value type support.
    fn with_supported(
        &mut self,
        mut bases: Vec<(DefId, ScopeId)>,
        supports: &[Base],
        name: &Ident,
    ) -> Vec<(DefId, ScopeId)> {
        let mut seen: HashSet<DefId> = HashSet::new();
        for i in 0..bases.len() {
            let (def, scope) = bases[i];
            let DefKind::Value(value) = &self.definitions[def.0 as usize].kind else {
                continue;
            };
            for &scope in &self.scopes.get(scope).bases[value.all_bases.len()..] {
                if let Some(def) = self.scopes.get(scope).def
                    && seen.insert(def)
                {
                    bases.push((def, scope));
                }
            }
        }
        let interfaces = self.all_bases(supports, name);
        bases.extend(interfaces.into_iter().filter(|(def, _)| seen.insert(*def)));
        bases
    }
}

/// Returns a value type of which only the head is known.
fn declared(head: &ValueHead) -> ValueType {
    ValueType {
        forward_only: true,
        is_abstract: head.is_abstract,
        custom: head.custom.is_some(),
        event: head.event,
        ..ValueType::default()
    }
}
