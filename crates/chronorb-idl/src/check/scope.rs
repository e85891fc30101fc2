//! Scopes, the names in them, and name lookup (CORBA 3.3 part 1, 7.20).

use std::collections::HashMap;
use std::rc::Rc;

use super::Checker;
use crate::ast::{Ident, ScopedName};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, InterfaceOrigin};
use crate::portable::HIDDEN_NAME;
use crate::span::Span;
use crate::suggest;

/// The number of a scope.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct ScopeId(u32);

/// The number of an entity.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct EntityId(u32);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ScopeKind {
    File,
    Module,
    Interface,
    Value,
    /// A struct, union or exception.
    Struct,
    Operation,
}

#[derive(Debug)]
pub(super) struct Scope {
    pub(super) kind: ScopeKind,
    parent: Option<ScopeId>,
    pub(super) def: Option<DefId>,
    /// The scoped name.
    pub(super) path: Vec<String>,
    /// The name of the entity whose scope this is.
    own_name: Option<Ident>,
    /// By name in lower case.
    names: HashMap<Rc<str>, EntityId>,
    /// By name, those that differ from one of `names` in case only.
    variants: HashMap<Rc<str>, EntityId>,
    /// Names of other scopes that were used here, by name in lower case.
    used: HashMap<Rc<str>, Ident>,
    /// The scopes of all bases of an interface or value type, and of what it supports.
    pub(super) bases: Vec<ScopeId>,
    /// The operations, attributes and state members.
    pub(super) members: Vec<EntityId>,
}

/// The comparison of names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Case {
    Exact,
    /// Ignores case.
    Any,
}

/// An entity: anything with a name.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    pub(super) name: Rc<str>,
    pub(super) span: Span,
    pub(super) kind: EntityKind,
    scope: ScopeId,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EntityKind {
    Module {
        scope: ScopeId,
        def: DefId,
    },
    /// An interface; without a scope it is only declared.
    Interface {
        scope: Option<ScopeId>,
        def: DefId,
    },
    /// A value type; without a scope it is only declared.
    Value {
        scope: Option<ScopeId>,
        def: DefId,
    },
    ValueBox(DefId),
    /// A struct or union.
    Struct {
        scope: Option<ScopeId>,
        def: DefId,
        state: StructState,
        union: bool,
    },
    Exception {
        scope: ScopeId,
        def: DefId,
    },
    Enum(DefId),
    Enumerator(DefId, u32),
    Bitmask {
        scope: ScopeId,
        def: DefId,
    },
    Bitset {
        scope: ScopeId,
        def: DefId,
    },
    /// A flag of a bit mask, by its bit.
    Flag(u8),
    Typedef(DefId),
    Native(DefId),
    Const(DefId),
    Operation,
    Attribute,
    /// A state member of a value type.
    State,
    /// An initialiser of a value type.
    Factory,
    /// A member or parameter.
    Variable,
    /// A port type; without a number it is only declared.
    PortType(Option<u32>),
    /// A template module.
    Template(u32),
    /// A parameter of a template module whose argument is an anonymous type or a value.
    Bound(u32),
    /// A name whose definition had an error. Further uses of it report no error.
    Refused,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StructState {
    /// `struct X;`
    Declared,
    /// The members are being read.
    Open,
    Complete,
}

impl EntityKind {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Module { .. } => "a module",
            Self::Interface { .. } => "an interface",
            Self::Struct { union: true, .. } => "a union",
            Self::Value { .. } => "a value type",
            Self::ValueBox(_) => "a boxed value type",
            Self::Struct { .. } => "a struct",
            Self::Exception { .. } => "an exception",
            Self::Enum(_) => "an enum",
            Self::Enumerator(..) => "an enumerator",
            Self::Typedef(_) => "a type",
            Self::Bitmask { .. } => "a bit mask",
            Self::Bitset { .. } => "a bit set",
            Self::Flag(_) => "a flag of a bit mask",
            Self::Native(_) => "a native type",
            Self::Const(_) => "a constant",
            Self::Operation => "an operation",
            Self::Attribute => "an attribute",
            Self::State => "a state member",
            Self::Factory => "an initialiser",
            Self::Variable => "a member or parameter",
            Self::PortType(_) => "a port type",
            Self::Template(_) => "a template module",
            Self::Bound(_) => "a parameter of a template module",
            Self::Refused => "a definition with errors",
        }
    }

    pub(super) fn is_member(self) -> bool {
        matches!(self, Self::Operation | Self::Attribute | Self::State)
    }

    pub(super) fn def(self) -> Option<DefId> {
        match self {
            Self::Module { def, .. }
            | Self::Interface { def, .. }
            | Self::Value { def, .. }
            | Self::ValueBox(def)
            | Self::Struct { def, .. }
            | Self::Exception { def, .. }
            | Self::Enum(def)
            | Self::Bitmask { def, .. }
            | Self::Bitset { def, .. }
            | Self::Typedef(def)
            | Self::Native(def)
            | Self::Const(def) => Some(def),
            _ => None,
        }
    }
}

/// All scopes and their entities.
#[derive(Debug)]
pub(super) struct Scopes {
    scopes: Vec<Scope>,
    entities: Vec<Entity>,
    /// The first declaration of a definition.
    declared_as: HashMap<DefId, EntityId>,
}

impl Default for Scopes {
    fn default() -> Self {
        let file = Scope {
            kind: ScopeKind::File,
            parent: None,
            def: None,
            path: Vec::new(),
            own_name: None,
            names: HashMap::new(),
            variants: HashMap::new(),
            used: HashMap::new(),
            bases: Vec::new(),
            members: Vec::new(),
        };
        Self {
            scopes: vec![file],
            entities: Vec::new(),
            declared_as: HashMap::new(),
        }
    }
}

impl Scopes {
    /// The outermost scope.
    pub(super) const FILE: ScopeId = ScopeId(0);

    pub(super) fn add(
        &mut self,
        kind: ScopeKind,
        parent: ScopeId,
        def: Option<DefId>,
        name: &Ident,
    ) -> ScopeId {
        // No definition with a scoped name is in an operation.
        let mut path = Vec::new();
        if kind != ScopeKind::Operation {
            path.clone_from(&self.get(parent).path);
            path.push(name.name.to_string());
        }
        self.scopes.push(Scope {
            kind,
            parent: Some(parent),
            def,
            path,
            own_name: (kind != ScopeKind::Operation).then(|| name.clone()),
            names: HashMap::new(),
            variants: HashMap::new(),
            used: HashMap::new(),
            bases: Vec::new(),
            members: Vec::new(),
        });
        ScopeId(self.scopes.len() as u32 - 1)
    }

    pub(super) fn get(&self, scope: ScopeId) -> &Scope {
        &self.scopes[scope.0 as usize]
    }

    pub(super) fn get_mut(&mut self, scope: ScopeId) -> &mut Scope {
        &mut self.scopes[scope.0 as usize]
    }

    pub(super) fn entity(&self, entity: EntityId) -> &Entity {
        &self.entities[entity.0 as usize]
    }

    pub(super) fn declared_as(&self, def: DefId) -> Option<EntityId> {
        self.declared_as.get(&def).copied()
    }

    pub(super) fn entity_mut(&mut self, entity: EntityId) -> &mut Entity {
        &mut self.entities[entity.0 as usize]
    }

    /// Everything that was declared, without the parameters of template modules.
    pub(super) fn declared(&self) -> impl Iterator<Item = &Entity> {
        let is_parameter = |entity: &&Entity| {
            let scope = self.get(entity.scope);
            scope.kind == ScopeKind::Module && scope.def.is_none()
        };
        let entities = self.entities.iter();
        entities.filter(move |entity| !is_parameter(entity))
    }

    /// Adds a scope between another one and scopes that [`Self::look_up_in`] it. Returns the new
    /// scope.
    pub(super) fn add_around(&mut self, outer: ScopeId) -> ScopeId {
        let path = self.get(outer).path.clone();
        self.scopes.push(Scope {
            kind: ScopeKind::Module,
            parent: Some(outer),
            def: None,
            path,
            own_name: None,
            names: HashMap::new(),
            variants: HashMap::new(),
            used: HashMap::new(),
            bases: Vec::new(),
            members: Vec::new(),
        });
        ScopeId(self.scopes.len() as u32 - 1)
    }

    /// Sets the outer scope for the lookup of names, instead of the enclosing scope.
    pub(super) fn look_up_in(&mut self, scope: ScopeId, outer: ScopeId) {
        self.get_mut(scope).parent = Some(outer);
    }

    /// Returns the scope around a scope.
    pub(super) fn around(&self, scope: ScopeId) -> Option<ScopeId> {
        self.get(scope).parent
    }

    /// Returns the entity of a name in exactly this scope, or else one whose name differs in case
    /// only.
    pub(super) fn own(&self, scope: ScopeId, name: &str) -> Option<EntityId> {
        let key = lower(name);
        self.own_in(scope, name, &key, Case::Exact)
            .or_else(|| self.own_in(scope, name, &key, Case::Any))
    }

    fn own_in(&self, scope: ScopeId, name: &str, lower: &str, case: Case) -> Option<EntityId> {
        let this = self.get(scope);
        let first = this.names.get(lower).copied()?;
        match case {
            Case::Any => Some(first),
            Case::Exact if *self.entity(first).name == *name => Some(first),
            Case::Exact => this.variants.get(name).copied(),
        }
    }

    /// Returns the entities of a name in this scope and the bases of its interface; several if it
    /// is ambiguous. Names that differ in case only are found where none is exact.
    fn inherited(&self, scope: ScopeId, name: &str) -> Vec<EntityId> {
        let key = lower(name);
        let exact = self.inherited_in(scope, name, &key, Case::Exact);
        if exact.is_empty() {
            return self.inherited_in(scope, name, &key, Case::Any);
        }
        exact
    }

    fn inherited_in(&self, scope: ScopeId, name: &str, lower: &str, case: Case) -> Vec<EntityId> {
        let this = self.get(scope);
        if let Some(own) = self.own_in(scope, name, lower, case) {
            return vec![own];
        }
        let bases = this.bases.iter();
        let found: Vec<EntityId> = bases
            .filter_map(|base| self.own_in(*base, name, lower, case))
            .collect();
        if found.len() < 2 {
            return found;
        }
        // A name of a base hides the same name of that base's bases.
        let is_hidden = |entity: &EntityId| {
            let hidden = self.entity(*entity).scope;
            found
                .iter()
                .any(|other| self.get(self.entity(*other).scope).bases.contains(&hidden))
        };
        found.iter().filter(|e| !is_hidden(e)).copied().collect()
    }

    /// Returns the enumerator of an enum with a name.
    fn enumerator(&self, entity: EntityId, name: &str) -> Option<EntityId> {
        let entity = self.entity(entity);
        let EntityKind::Enum(def) = entity.kind else {
            return None;
        };
        let found = self.own(entity.scope, name)?;
        matches!(self.entity(found).kind, EntityKind::Enumerator(of, _) if of == def)
            .then_some(found)
    }

    /// Returns the entities that the first part of a name can mean, seen from a scope.
    ///
    /// Names that differ in case only are found where none is exact, so that a member may have the
    /// name of its type in lower case.
    fn visible(&self, scope: ScopeId, name: &str) -> Vec<EntityId> {
        let key = lower(name);
        for case in [Case::Exact, Case::Any] {
            let mut next = Some(scope);
            while let Some(scope) = next {
                let found = self.inherited_in(scope, name, &key, case);
                if !found.is_empty() {
                    return found;
                }
                next = self.get(scope).parent;
            }
        }
        Vec::new()
    }

    /// Adds a name to a scope. Of several the first one counts.
    fn insert(&mut self, scope: ScopeId, key: Rc<str>, name: &Rc<str>, id: EntityId) {
        let first = *self.get_mut(scope).names.entry(key).or_insert(id);
        if self.entity(first).name != *name {
            let variants = &mut self.get_mut(scope).variants;
            variants.entry(Rc::clone(name)).or_insert(id);
        }
    }

    /// Records the use of another scope's name, which fixes its meaning here, and in the outer
    /// scopes up to a module.
    fn mark_used(&mut self, scope: ScopeId, lower: &Rc<str>, name: &Ident) {
        let mut scope = scope;
        loop {
            let this = self.get_mut(scope);
            if this.names.contains_key(lower) {
                return;
            }
            this.used
                .entry(Rc::clone(lower))
                .or_insert_with(|| name.clone());
            match self.get(scope).parent {
                Some(parent)
                    if !matches!(self.get(parent).kind, ScopeKind::File | ScopeKind::Module) =>
                {
                    scope = parent;
                }
                _ => return,
            }
        }
    }

    /// Returns the name of the outermost scope around this one.
    pub(super) fn outermost(&self, scope: ScopeId) -> Option<&str> {
        let mut scope = self.get(scope);
        while let Some(parent) = scope.parent.filter(|parent| *parent != Self::FILE) {
            scope = self.get(parent);
        }
        scope.own_name.as_ref().map(|name| &*name.name)
    }

    /// Returns some of the names that are visible from a scope, for suggestions.
    fn candidates(&self, scope: ScopeId) -> Vec<Rc<str>> {
        const MOST: usize = 2000;
        let mut names = Vec::new();
        let mut next = Some(scope);
        while let Some(scope) = next {
            let this = self.get(scope);
            for scope in std::iter::once(&scope).chain(&this.bases) {
                for entity in self.get(*scope).names.values() {
                    names.push(Rc::clone(&self.entity(*entity).name));
                }
                if names.len() > MOST {
                    return names;
                }
            }
            next = this.parent;
        }
        names
    }
}

impl Checker<'_> {
    /// Describes an entity with its article. Components, connectors and homes are told from the
    /// interfaces that they are equivalent to.
    pub(super) fn describe(&self, kind: EntityKind) -> &'static str {
        let origin = match kind {
            EntityKind::Interface { def, .. } => self.origin(def).map(|origin| (def, origin)),
            _ => None,
        };
        match origin {
            Some((def, InterfaceOrigin::Component)) => {
                if self.components.connectors.contains(&def) {
                    "a connector"
                } else {
                    "a component"
                }
            }
            Some((_, InterfaceOrigin::Home)) => "a home",
            _ => kind.describe(),
        }
    }

    /// Declares a name in a scope. A clash is reported with the code for this kind of scope.
    pub(super) fn declare(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        kind: EntityKind,
        clash: &'static str,
    ) -> EntityId {
        let key = lower(&name.name);
        self.check_clash(scope, &key, name, kind, clash);
        self.check_inherited(scope, name);
        self.check_hiding(scope, name);
        let id = EntityId(self.scopes.entities.len() as u32);
        self.scopes.entities.push(Entity {
            name: Rc::clone(&name.name),
            span: name.span,
            kind,
            scope,
        });
        if let Some(def) = kind.def() {
            self.scopes.declared_as.entry(def).or_insert(id);
        }
        self.scopes.insert(scope, key, &name.name, id);
        id
    }

    /// Records a name that hides an inherited one, which compilers treat differently.
    fn check_hiding(&mut self, scope: ScopeId, name: &Ident) {
        let mut bases = self.scopes.get(scope).bases.iter();
        if self.sink.is_portable() && bases.any(|base| self.scopes.own(*base, &name.name).is_some())
        {
            self.sink.unportable(&HIDDEN_NAME, name.span);
        }
    }

    /// Makes the names of a scope visible in another one of the same module.
    pub(super) fn merge(&mut self, from: ScopeId, into: ScopeId) {
        let this = self.scopes.get(from);
        let mut names: Vec<_> = this.names.values().chain(this.variants.values()).collect();
        names.sort_by_key(|id| id.0);
        let names: Vec<EntityId> = names.into_iter().copied().collect();
        for id in names {
            let entity = self.scopes.entity(id).clone();
            let name = Ident {
                name: entity.name,
                span: entity.span,
                escaped: false,
            };
            let key = lower(&name.name);
            self.check_clash(into, &key, &name, entity.kind, codes::DUPLICATE);
            self.scopes.insert(into, key, &name.name, id);
        }
    }

    fn check_clash(
        &mut self,
        scope: ScopeId,
        key: &str,
        name: &Ident,
        kind: EntityKind,
        clash: &'static str,
    ) {
        let this = self.scopes.get(scope);
        let new = &name.name;
        if let Some(earlier) = self.scopes.own(scope, new) {
            let earlier = self.scopes.entity(earlier);
            let diagnostic = if earlier.name == *new {
                Diagnostic::error(
                    clash,
                    name.span,
                    format!("`{new}` is defined twice"),
                    "defined again here",
                )
                .hint(match (kind, earlier.kind) {
                    (
                        EntityKind::Operation | EntityKind::Attribute,
                        EntityKind::Operation | EntityKind::Attribute,
                    ) => {
                        "IDL has no overloading: give each operation and attribute a name of its \
                        own"
                    }
                    (EntityKind::Enumerator(..), _) => {
                        "enumerators stand in the scope around their enum, not in it"
                    }
                    _ => "rename one of them",
                })
            } else {
                differs_in_case(name, &earlier.name)
            };
            let diagnostic = diagnostic.label(earlier.span, "first defined here");
            self.sink.push(diagnostic);
        } else if let Some(used) = this.used.get(key) {
            let diagnostic = if used.name == *new {
                Diagnostic::error(
                    codes::REDEFINED_AFTER_USE,
                    name.span,
                    format!("`{new}` is defined after it was used here with another meaning"),
                    "defined here",
                )
                .hint("rename it, or use the other one with its scope, `::` first")
            } else {
                differs_in_case(name, &used.name)
            };
            let diagnostic = diagnostic.label(used.span, "used here");
            self.sink.push(diagnostic);
        } else if let Some(own) = &this.own_name
            && *lower(&own.name) == *key
        {
            let diagnostic = if own.name == *new {
                Diagnostic::error(
                    codes::DUPLICATE,
                    name.span,
                    format!("`{new}` has the name of the scope that it stands in"),
                    "defined here",
                )
                .hint("rename one of them")
            } else {
                differs_in_case(name, &own.name)
            };
            self.sink.push(diagnostic.label(own.span, "the scope"));
        }
    }

    /// Resolves a name. Returns `None` after an error.
    pub(super) fn resolve(&mut self, scope: ScopeId, name: &ScopedName) -> Option<EntityId> {
        let first = name.parts.first()?;
        let key = lower(&first.name);
        let found = if name.absolute {
            self.scopes.inherited(Scopes::FILE, &first.name)
        } else {
            self.scopes.visible(scope, &first.name)
        };
        let mut entity = self.one(scope, name, first, &found)?;
        if !name.absolute {
            self.scopes.mark_used(scope, &key, first);
        }
        for part in &name.parts[1..] {
            if let EntityKind::Enum(def) = self.scopes.entity(entity).kind {
                let found = self.enumerator(entity, def, part)?;
                entity = self.one(scope, name, part, &[found])?;
                continue;
            }
            let inner = self.inner_scope(name, entity)?;
            let found = self.scopes.inherited(inner, &part.name);
            entity = self.one(inner, name, part, &found)?;
        }
        Some(entity)
    }

    /// Resolves a name without reporting errors, and without recording a use.
    pub(super) fn resolve_quietly(&self, scope: ScopeId, name: &ScopedName) -> Option<EntityId> {
        let mut found = None;
        for (i, part) in name.parts.iter().enumerate() {
            let part = &part.name;
            let candidates = match found {
                None if i == 0 && !name.absolute => self.scopes.visible(scope, part),
                None => self.scopes.inherited(Scopes::FILE, part),
                Some(entity) => match self.scopes.enumerator(entity, part) {
                    Some(enumerator) => vec![enumerator],
                    None => self.scopes.inherited(self.scope_of(entity)?, part),
                },
            };
            let [entity] = candidates[..] else {
                return None;
            };
            found = Some(entity);
        }
        found
    }

    fn enumerator(&mut self, of: EntityId, def: DefId, name: &Ident) -> Option<EntityId> {
        if let Some(found) = self.scopes.enumerator(of, &name.name) {
            return Some(found);
        }
        let of = self.scopes.entity(of);
        let DefKind::Enum { enumerators, .. } = &self.definitions[def.0 as usize].kind else {
            return None;
        };
        let names = enumerators.iter().map(|enumerator| &*enumerator.name);
        let hint = match suggest::closest(&name.name, names) {
            Some(closest) => format!("did you mean `{closest}`?"),
            None => "look at the definition of the enum".to_owned(),
        };
        let diagnostic = Diagnostic::error(
            codes::UNDEFINED,
            name.span,
            format!("enum `{}` has no enumerator `{}`", of.name, name.name),
            "not defined",
        )
        .label(of.span, "the enum")
        .hint(hint);
        self.sink.push(diagnostic);
        None
    }

    /// Returns the only entity that was found, and checks the spelling of its name.
    fn one(
        &mut self,
        scope: ScopeId,
        whole: &ScopedName,
        part: &Ident,
        found: &[EntityId],
    ) -> Option<EntityId> {
        match *found {
            [] => {
                self.undefined(scope, whole, part);
                None
            }
            [entity] => {
                let definition = self.scopes.entity(entity);
                if definition.name != part.name {
                    self.sink.push(
                        Diagnostic::error(
                            codes::WRONG_CASE,
                            part.span,
                            format!(
                                "`{}` is spelled `{}` where it is defined",
                                part.name, definition.name
                            ),
                            "differs in case",
                        )
                        .label(definition.span, "defined here")
                        .hint(format!("write `{}`", definition.name)),
                    );
                }
                Some(entity)
            }
            _ => {
                let mut diagnostic = Diagnostic::error(
                    codes::AMBIGUOUS,
                    part.span,
                    format!("`{}` is inherited from several bases", part.name),
                    "which one is meant?",
                );
                for entity in found.iter().take(5) {
                    diagnostic =
                        diagnostic.label(self.scopes.entity(*entity).span, "one is defined here");
                }
                let hint = format!("name the interface: `Base::{}`", part.name);
                self.sink.push(diagnostic.hint(hint));
                None
            }
        }
    }

    fn undefined(&mut self, scope: ScopeId, whole: &ScopedName, part: &Ident) {
        let name = &part.name;
        let is_first = std::ptr::eq(part, &raw const whole.parts[0]);
        let message = if is_first {
            format!("`{name}` is not defined")
        } else {
            format!("there is no `{name}` in this scope")
        };
        let mut diagnostic = Diagnostic::error(codes::UNDEFINED, part.span, message, "not defined");
        let keywords = (is_first && whole.parts.len() == 1).then_some(crate::parser::KEYWORDS);
        let mut candidates = self.scopes.candidates(scope);
        if !is_first {
            candidates.retain(|candidate| self.scopes.own(scope, candidate).is_some());
        }
        let closest = suggest::closest(
            name,
            candidates
                .iter()
                .map(|candidate| &**candidate)
                .chain(keywords.into_iter().flatten()),
        );
        diagnostic = diagnostic.hint(match closest {
            _ if **name == *"TypeCode" => "write `CORBA::TypeCode`".to_owned(),
            _ if is_first && whole.parts.len() > 1 && **name == *"CORBA" => {
                "write `#include <orb.idl>` or `import ::CORBA;` before this".to_owned()
            }
            Some(closest) => match suggest::foreign(name) {
                // `int` is closer to `in` than to `long`.
                Some(hint) if !closest.eq_ignore_ascii_case(name) => hint,
                _ => format!("did you mean `{closest}`?"),
            },
            None if is_first && suggest::foreign(name).is_some() => {
                suggest::foreign(name).unwrap_or_default()
            }
            None if is_first => {
                "define it before its use, or include the file that defines it".to_owned()
            }
            None => "look at the definitions in that scope".to_owned(),
        });
        self.sink.push(diagnostic);
    }

    pub(super) fn scope_of(&self, entity: EntityId) -> Option<ScopeId> {
        match self.scopes.entity(entity).kind {
            EntityKind::Module { scope, .. }
            | EntityKind::Exception { scope, .. }
            | EntityKind::Bitmask { scope, .. }
            | EntityKind::Bitset { scope, .. } => Some(scope),
            EntityKind::Interface { scope, .. }
            | EntityKind::Value { scope, .. }
            | EntityKind::Struct { scope, .. } => scope,
            _ => None,
        }
    }

    fn inner_scope(&mut self, name: &ScopedName, entity: EntityId) -> Option<ScopeId> {
        if let Some(scope) = self.scope_of(entity) {
            return Some(scope);
        }
        let entity = self.scopes.entity(entity);
        let what = &entity.name;
        let diagnostic = match entity.kind {
            EntityKind::Refused => return None,
            EntityKind::Interface { .. } | EntityKind::Value { .. } | EntityKind::Struct { .. } => {
                Diagnostic::error(
                    codes::INCOMPLETE_TYPE,
                    name.span,
                    format!("`{what}` is declared but not yet defined, so nothing in it is known"),
                    "used too early",
                )
            }
            kind => Diagnostic::error(
                codes::NOT_A_SCOPE,
                name.span,
                format!("`{what}` is {}, and has no names in it", kind.describe()),
                "not a scope",
            )
            .hint(
                "only modules, interfaces, value types, structs, unions and exceptions have names \
                in them",
            ),
        };
        let diagnostic = diagnostic.label(entity.span, "defined here");
        self.sink.push(diagnostic);
        None
    }
}

/// Warns of a name that another one differs from in case only. Compilers for most languages, this
/// one among them, tell the two.
pub(super) fn differs_in_case(name: &Ident, other: &str) -> Diagnostic {
    Diagnostic::warning(
        codes::CASE_COLLISION,
        name.span,
        format!("`{}` differs from `{other}` in case only", name.name),
        "collides",
    )
    .hint("identifiers of the standard differ in more than case: rename one of them")
}

/// Returns the key of a name: IDL identifiers that differ in case only are the same.
pub(super) fn lower(name: &str) -> Rc<str> {
    name.to_ascii_lowercase().into()
}
