//! Inheritance: the lists of bases, and inherited members.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Checker;
use super::scope::{EntityId, EntityKind, ScopeId, StructState, differs_in_case, lower};
use crate::ast::{Ident, ScopedName};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, InterfaceOrigin, Type};
use crate::span::Span;

/// The number of bases, inherited ones included.
const MAX_BASES: usize = 250;
/// The cost of a check of an inherited member, in bytes of the model.
const MEMBER_COST: usize = 64;

/// A base that was found and is defined.
#[derive(Clone, Debug)]
pub(super) struct Base {
    pub(super) def: DefId,
    pub(super) scope: ScopeId,
    /// The name in the list.
    pub(super) name: ScopedName,
    /// The place of its definition.
    pub(super) defined: Span,
}

/// The kind of a list of bases.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BaseKind {
    /// The bases of an interface, or the interfaces that something supports.
    Interface,
    /// The bases of a value type.
    Value,
    /// The base of a struct.
    Struct,
    /// The base of a bit set.
    Bitset,
    /// The base of a component.
    Component,
    /// The base of a connector.
    Connector,
    /// The base of a home.
    Home,
    /// The bases of the equivalent interface of any of these: interfaces that were checked before.
    Equivalent,
}

impl BaseKind {
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Interface | Self::Equivalent => {
                ("interface", "an interface", codes::BASE_NOT_INTERFACE)
            }
            Self::Component => ("component", "a component", codes::BASE_NOT_COMPONENT),
            Self::Connector => ("connector", "a connector", codes::BASE_NOT_COMPONENT),
            Self::Home => ("home", "a home", codes::BASE_NOT_COMPONENT),
            Self::Value => ("value type", "a value type", codes::BASE_NOT_VALUE),
            Self::Bitset => ("bit set", "a bit set", codes::BASE_NOT_STRUCT),
            Self::Struct => ("struct", "a struct", codes::BASE_NOT_STRUCT),
        }
    }
}

impl Checker<'_> {
    /// Returns the bases of a list that are known, defined, of the right kind, and not listed
    /// before.
    pub(super) fn bases(
        &mut self,
        scope: ScopeId,
        own: Option<DefId>,
        names: &[ScopedName],
        wanted: BaseKind,
    ) -> Vec<Base> {
        let mut bases: Vec<Base> = Vec::new();
        let mut seen: HashMap<DefId, Span> = HashMap::new();
        for name in names {
            let Some(base) = self.base(scope, own, name, wanted) else {
                continue;
            };
            if let Some(&earlier) = seen.get(&base.def) {
                self.sink.push(
                    Diagnostic::error(
                        codes::BASE_DUPLICATE,
                        name.span,
                        format!("`{name}` is listed twice"),
                        "again here",
                    )
                    .label(earlier, "first here")
                    .hint("remove one of them"),
                );
                continue;
            }
            seen.insert(base.def, name.span);
            bases.push(base);
        }
        bases
    }

    /// Returns the definition and the scope of an entity if it is of the wanted kind.
    fn base_of_kind(&self, wanted: BaseKind, kind: EntityKind) -> Option<(DefId, Option<ScopeId>)> {
        let (def, scope) = match kind {
            EntityKind::Interface { def, scope } => (def, scope),
            EntityKind::Value { def, scope } => {
                return (wanted == BaseKind::Value).then_some((def, scope));
            }
            EntityKind::Bitset { def, scope } => {
                return (wanted == BaseKind::Bitset).then_some((def, Some(scope)));
            }
            EntityKind::Struct {
                def,
                scope,
                state,
                union: false,
            } => {
                let complete = scope.filter(|_| state == StructState::Complete);
                return (wanted == BaseKind::Struct).then_some((def, complete));
            }
            _ => return None,
        };
        let is_connector = self.components.connectors.contains(&def);
        let fits = match self.origin(def) {
            Some(InterfaceOrigin::Component) if is_connector => wanted == BaseKind::Connector,
            Some(InterfaceOrigin::Component) => wanted == BaseKind::Component,
            Some(InterfaceOrigin::Home) => wanted == BaseKind::Home,
            _ => wanted == BaseKind::Interface,
        };
        (fits || wanted == BaseKind::Equivalent).then_some((def, scope))
    }

    /// Returns the interface or value type behind a typedef: a base may be named by one, too.
    fn aliased(&self, id: EntityId, wanted: BaseKind) -> EntityId {
        let by_alias = matches!(
            wanted,
            BaseKind::Interface | BaseKind::Value | BaseKind::Equivalent
        );
        let EntityKind::Typedef(def) = self.scopes.entity(id).kind else {
            return id;
        };
        match self.without_aliases(&Type::Named(def)) {
            Type::Named(root) if by_alias => self.scopes.declared_as(root).unwrap_or(id),
            _ => id,
        }
    }

    pub(super) fn base(
        &mut self,
        scope: ScopeId,
        own: Option<DefId>,
        name: &ScopedName,
        wanted: BaseKind,
    ) -> Option<Base> {
        let (noun, with_article, wrong_kind) = wanted.names();
        let id = self.resolve(scope, name)?;
        let entity = self.scopes.entity(self.aliased(id, wanted)).clone();
        let diagnostic = match self.base_of_kind(wanted, entity.kind) {
            Some((def, _)) if Some(def) == own => Diagnostic::error(
                codes::BASE_ITSELF,
                name.span,
                format!("{noun} `{name}` inherits from itself"),
                format!("this is the {noun} that is being defined"),
            )
            .hint("remove it from the list"),
            Some((def, Some(scope))) => {
                return Some(Base {
                    def,
                    scope,
                    name: name.clone(),
                    defined: entity.span,
                });
            }
            Some((_, None)) => Diagnostic::error(
                codes::BASE_INCOMPLETE,
                name.span,
                format!("{noun} `{name}` is declared but not yet defined"),
                "must be defined before",
            )
            .label(entity.span, "declared here")
            .hint("define it first"),
            None if entity.kind == EntityKind::Refused => return None,
            None => Diagnostic::error(
                wrong_kind,
                name.span,
                format!(
                    "`{name}` is {}, not {with_article}",
                    self.describe(entity.kind)
                ),
                "not possible here",
            )
            .label(entity.span, "defined here")
            .hint(format!("only the name of {with_article} can stand here")),
        };
        self.sink.push(diagnostic);
        None
    }

    /// Returns every base once, bases before what is derived from them.
    pub(super) fn all_bases(&mut self, bases: &[Base], name: &Ident) -> Vec<(DefId, ScopeId)> {
        let mut all: Vec<(DefId, ScopeId)> = Vec::new();
        let mut seen = HashSet::new();
        for base in bases {
            let inherited = match &self.definitions[base.def.0 as usize].kind {
                DefKind::Interface(interface) => &interface.all_bases,
                DefKind::Value(value) => &value.all_bases,
                _ => continue,
            };
            let scopes = self.scopes.get(base.scope).bases.iter().copied();
            let line = inherited.iter().copied().zip(scopes);
            let line = line.chain([(base.def, base.scope)]);
            all.extend(line.filter(|(def, _)| seen.insert(*def)));
            if all.len() > MAX_BASES {
                self.sink.push(Diagnostic::error(
                    codes::TOO_MANY_BASES,
                    name.span,
                    format!("`{}` has more than {MAX_BASES} bases", name.name),
                    "inherited bases count",
                ));
                return Vec::new();
            }
        }
        all
    }

    /// Adds the names of a base to the scope of a struct or bit set.
    pub(super) fn inherit_members(&mut self, scope: ScopeId, base: &Base) {
        let mut bases = self.scopes.get(base.scope).bases.clone();
        bases.push(base.scope);
        if bases.len() > MAX_BASES {
            self.sink.push(Diagnostic::error(
                codes::TOO_MANY_BASES,
                base.name.span,
                format!("there are more than {MAX_BASES} bases"),
                "inherited bases count",
            ));
            bases.clear();
        }
        self.charge(16 * bases.len(), base.name.span);
        self.scopes.get_mut(scope).bases = bases;
    }

    /// Reports a member that has the name of a base's member.
    pub(super) fn check_inherited_variable(&mut self, scope: ScopeId, name: &Ident) {
        if self.scopes.get(scope).bases.is_empty() {
            return;
        }
        let inherited = self.scopes.get(scope).bases.iter().find_map(|base| {
            let entity = self.scopes.entity(self.scopes.own(*base, &name.name)?);
            (entity.kind == EntityKind::Variable).then_some(entity)
        });
        if let Some(inherited) = inherited {
            let diagnostic = if inherited.name == name.name {
                Diagnostic::error(
                    codes::DUPLICATE_MEMBER,
                    name.span,
                    format!("`{}` is a member of a base already", name.name),
                    "defined again here",
                )
                .hint("rename it: the derived one has the members of its bases too")
            } else {
                differs_in_case(name, &inherited.name)
            };
            let diagnostic = diagnostic.label(inherited.span, "inherited from here");
            self.sink.push(diagnostic);
        }
    }

    /// Adds the names of the bases to a scope, and reports operations, attributes and state members
    /// that several of them define.
    pub(super) fn inherit(
        &mut self,
        scope: ScopeId,
        bases: &[(DefId, ScopeId)],
        listed: &[ScopedName],
        name: &Ident,
    ) {
        self.charge(16 * bases.len(), name.span);
        let scopes: Vec<ScopeId> = bases.iter().map(|(_, scope)| *scope).collect();
        if let Some(second) = listed.get(1) {
            self.check_inherited_members(&scopes, second.span);
        }
        self.scopes.get_mut(scope).bases = scopes;
    }

    fn check_inherited_members(&mut self, bases: &[ScopeId], at: Span) {
        let mut seen: HashMap<Rc<str>, Vec<EntityId>> = HashMap::new();
        for scope in bases {
            let members = self.scopes.get(*scope).members.len();
            self.charge(MEMBER_COST * members, at);
            if self.is_exhausted() {
                return;
            }
            for &id in &self.scopes.get(*scope).members {
                let entity = self.scopes.entity(id);
                let alike = seen.entry(lower(&entity.name)).or_default();
                alike.push(id);
                let earlier = alike[..alike.len() - 1].iter();
                let earlier = earlier.map(|id| self.scopes.entity(*id));
                let exact = earlier.clone().find(|other| other.name == entity.name);
                let Some(earlier) = exact.or_else(|| earlier.clone().next()) else {
                    continue;
                };
                let diagnostic = if earlier.name == entity.name {
                    Diagnostic::error(
                        codes::BASE_AMBIGUOUS,
                        at,
                        format!("`{}` is inherited from two bases", entity.name),
                        "these bases cannot be combined",
                    )
                    .hint("rename it in one base, or move it into a base that both share")
                } else {
                    let name = Ident {
                        name: Rc::clone(&entity.name),
                        span: at,
                        escaped: false,
                    };
                    differs_in_case(&name, &earlier.name)
                };
                let diagnostic = diagnostic
                    .label(earlier.span, "defined by one base here")
                    .label(entity.span, "and by another here");
                self.sink.push(diagnostic);
            }
        }
    }

    /// Reports a definition with the name of an inherited operation, attribute or state member.
    pub(super) fn check_inherited(&mut self, scope: ScopeId, name: &Ident) {
        if self.scopes.get(scope).bases.is_empty() {
            return;
        }
        let inherited = self.scopes.get(scope).bases.iter().find_map(|base| {
            let id = self.scopes.own(*base, &name.name)?;
            let entity = self.scopes.entity(id);
            entity.kind.is_member().then_some(entity)
        });
        // The place of an implied operation, as `push_Event`, is the name that implies it.
        let is_implied = ((name.span.end - name.span.start) as usize) < name.name.len();
        let inherited = inherited.filter(|other| other.name == name.name || !is_implied);
        if let Some(inherited) = inherited {
            let diagnostic = if inherited.name == name.name {
                Diagnostic::error(
                    codes::REDEFINED_MEMBER,
                    name.span,
                    format!("`{}` is inherited, and cannot be defined again", name.name),
                    "defined again here",
                )
                .hint("remove it: what is derived has it already")
            } else {
                differs_in_case(name, &inherited.name)
            };
            let diagnostic = diagnostic.label(inherited.span, "inherited from here");
            self.sink.push(diagnostic);
        }
    }
}
