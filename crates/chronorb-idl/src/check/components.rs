//! Components, connectors and homes as their equivalent interfaces (CORBA 3.3 part 3, 6).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Checker;
use super::bases::BaseKind;
use super::ports::PortType;
use super::scope::{EntityKind, ScopeId};
use crate::ast::{
    ComponentDef, FactoryDef, HomeDef, Ident, InterfaceHead, Item, Meta, OperationDef, ParamDef,
    ScopedName, TypeKind, TypeSpec, ValueHead,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, Interface, InterfaceOrigin, ParamMode, Type, ValueType};
use crate::span::Span;

/// The state for components, ports, homes and events.
#[derive(Default)]
pub(super) struct Components {
    /// The components that are connectors.
    pub(super) connectors: HashSet<DefId>,
    homes: HashMap<DefId, Home>,
    /// The component of the home that is being read.
    managed: Option<DefId>,
    /// The interface `EVENTConsumer` of each event type.
    pub(super) consumers: HashMap<DefId, DefId>,
    pub(super) port_types: Vec<PortType>,
    /// The ports and attributes of components and port types: scope, port type, name.
    pub(super) port_names: HashMap<(ScopeId, Rc<str>, Rc<str>), Span>,
    /// The number of ports that port types have produced.
    pub(super) expanded: usize,
}

/// The properties that derived homes must match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    /// The interface `NAMEExplicit`.
    explicit: DefId,
    component: DefId,
    key: Option<DefId>,
}

impl Checker<'_> {
    pub(super) fn component(&mut self, scope: ScopeId, component: &ComponentDef) {
        let name = &component.head.name;
        let kind = if component.connector {
            BaseKind::Connector
        } else {
            BaseKind::Component
        };
        let own = self.own_interface(scope, name);
        let mut bases = match &component.base {
            None => vec![in_components("CCMObject", name.span)],
            Some(base) => self.checked(scope, own, std::slice::from_ref(base), kind),
        };
        bases.extend(self.checked(scope, own, &component.supports, BaseKind::Interface));
        let def = self.interface_with(scope, &component.head, &bases, &component.items);
        if component.connector {
            self.components.connectors.insert(def);
        }
    }

    pub(super) fn home(&mut self, scope: ScopeId, home: &HomeDef) {
        let name = &home.name;
        let component = self.managed(scope, &home.manages);
        let key = match &home.primary_key {
            None => None,
            Some(written) => match self.primary_key(scope, written) {
                None => return self.refused(scope, name),
                key => key,
            },
        };
        let Some(component) = component else {
            return self.refused(scope, name);
        };
        let mut bases = vec![in_components("CCMHome", name.span)];
        if let Some(base) = &home.base {
            let own = self.own_interface(scope, name);
            let found = self.bases(scope, own, std::slice::from_ref(base), BaseKind::Home);
            let known = found
                .first()
                .and_then(|found| self.components.homes.get(&found.def));
            if let Some(of_base) = known.copied() {
                self.check_derived_home(home, of_base, component, key);
                bases = vec![self.absolute(of_base.explicit, base.span)];
            }
        }
        bases.extend(self.checked(scope, None, &home.supports, BaseKind::Interface));
        let outer = self.components.managed.replace(component);
        let head = implied_head(name, "Explicit", InterfaceOrigin::HomeExplicit);
        let explicit = self.interface_with(scope, &head, &bases, &home.items);
        self.components.managed = outer;
        let implicit = self.implicit_home(scope, name, component, key);
        let head = InterfaceHead {
            meta: home.meta.clone(),
            name: name.clone(),
            local: false,
            is_abstract: false,
            origin: InterfaceOrigin::Home,
        };
        let bases = [explicit, implicit].map(|def| self.absolute(def, name.span));
        let def = self.interface_with(scope, &head, &bases, &[]);
        let home = Home {
            explicit,
            component,
            key,
        };
        self.components.homes.insert(def, home);
    }

    /// Declares the operations that every home of a component has.
    fn implicit_home(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        component: DefId,
        key: Option<DefId>,
    ) -> DefId {
        let at = name.span;
        let made = Some(Type::Named(component));
        let operation = |name: &str, result, params: &[(&str, Type)], raises: &[&str]| {
            Item::Operation(implied_operation(at, name, result, params, raises))
        };
        let (bases, items) = match key {
            None => (
                vec![in_components("KeylessCCMHome", name.span)],
                vec![operation("create", made, &[], &["CreateFailure"])],
            ),
            Some(key) => {
                let key = Type::Named(key);
                let by_key = [("key", key.clone())];
                let of_component = [("comp", Type::Named(component))];
                let bad_keys = ["CreateFailure", "DuplicateKeyValue", "InvalidKey"];
                let not_found = ["FinderFailure", "UnknownKeyValue", "InvalidKey"];
                let not_removed = ["RemoveFailure", "UnknownKeyValue", "InvalidKey"];
                let items = vec![
                    operation("create", made.clone(), &by_key, &bad_keys),
                    operation("find_by_primary_key", made, &by_key, &not_found),
                    operation("remove", None, &by_key, &not_removed),
                    operation("get_primary_key", Some(key), &of_component, &[]),
                ];
                (Vec::new(), items)
            }
        };
        let head = implied_head(name, "Implicit", InterfaceOrigin::HomeImplicit);
        self.interface_with(scope, &head, &bases, &items)
    }

    /// A factory or finder of a home: an operation that gives the component.
    pub(super) fn home_operation(&mut self, scope: ScopeId, factory: &FactoryDef, failure: &str) {
        let Some(component) = self.components.managed else {
            return;
        };
        let at = factory.name.span;
        let mut raises = vec![in_components(failure, at)];
        raises.extend(factory.raises.iter().cloned());
        let operation = OperationDef {
            meta: factory.meta.clone(),
            oneway: None,
            result: Some(resolved(Type::Named(component), at)),
            name: factory.name.clone(),
            params: factory.params.clone(),
            raises,
            context: Vec::new(),
        };
        self.operation(scope, &operation);
    }

    /// The interface `EVENTConsumer` of an event type, defined or only declared.
    pub(super) fn event_consumer(&mut self, scope: ScopeId, head: &ValueHead, event: DefId) {
        let name = &head.name;
        let consumer = implied_head(name, "Consumer", InterfaceOrigin::Implied);
        let at = name.span;
        let DefKind::Value(ValueType { forward_only, .. }) =
            self.definitions[event.0 as usize].kind
        else {
            return;
        };
        if forward_only {
            self.interface_forward(scope, &consumer);
        } else {
            let param = format!("the_{}", name.name);
            let params = [(param.as_str(), Type::Named(event))];
            let push = implied_operation(at, &format!("push_{}", name.name), None, &params, &[]);
            let bases = [in_components("EventConsumerBase", at)];
            self.interface_with(scope, &consumer, &bases, &[Item::Operation(push)]);
        }
        if let Some(def) = self.own_interface(scope, &consumer.name) {
            self.components.consumers.insert(event, def);
        }
    }

    /// Returns the valid names of a list.
    fn checked(
        &mut self,
        scope: ScopeId,
        own: Option<DefId>,
        names: &[ScopedName],
        kind: BaseKind,
    ) -> Vec<ScopedName> {
        let bases = self.bases(scope, own, names, kind);
        bases.into_iter().map(|base| base.name).collect()
    }

    /// Returns the component that a home manages.
    fn managed(&mut self, scope: ScopeId, name: &ScopedName) -> Option<DefId> {
        let id = self.resolve(scope, name)?;
        let entity = self.scopes.entity(id);
        if let EntityKind::Interface { def, .. } = entity.kind
            && self.origin(def) == Some(InterfaceOrigin::Component)
            && !self.components.connectors.contains(&def)
        {
            return Some(def);
        }
        if entity.kind != EntityKind::Refused {
            let diagnostic = Diagnostic::error(
                codes::BAD_HOME,
                name.span,
                format!(
                    "`{name}` is {}, not a component",
                    self.describe(entity.kind)
                ),
                "cannot be managed by a home",
            )
            .label(entity.span, "defined here")
            .hint("a home manages what is defined with `component`");
            self.sink.push(diagnostic);
        }
        None
    }

    /// Returns the value type that is the primary key of a home.
    fn primary_key(&mut self, scope: ScopeId, name: &ScopedName) -> Option<DefId> {
        let id = self.resolve(scope, name)?;
        let entity = self.scopes.entity(id).clone();
        let (message, hint) = match entity.kind {
            EntityKind::Refused => return None,
            EntityKind::Value { def, .. } => match self.fault_of_key(def) {
                None => return Some(def),
                Some((fault, hint)) => (format!("`{name}` {fault}"), hint),
            },
            kind => (
                format!("`{name}` is {}, not a value type", kind.describe()),
                "a key is a value type that inherits from `Components::PrimaryKeyBase`",
            ),
        };
        self.sink.push(
            Diagnostic::error(
                codes::BAD_HOME,
                name.span,
                message,
                "cannot be a primary key",
            )
            .label(entity.span, "defined here")
            .hint(hint),
        );
        None
    }

    fn fault_of_key(&self, key: DefId) -> Option<(&'static str, &'static str)> {
        let DefKind::Value(value) = &self.definitions[key.0 as usize].kind else {
            return None;
        };
        let is_base = |def: &DefId| {
            self.definitions[def.0 as usize].scoped_name == ["Components", "PrimaryKeyBase"]
        };
        if value.forward_only {
            return Some(("is declared but not yet defined", "define it first"));
        }
        if !value.all_bases.iter().any(is_base) {
            return Some((
                "does not inherit from `Components::PrimaryKeyBase`",
                "write `: Components::PrimaryKeyBase` behind its name",
            ));
        }
        let mut values = value.all_bases.iter().chain([&key]);
        let state = values.try_fold(0, |count, def| {
            let DefKind::Value(value) = &self.definitions[def.0 as usize].kind else {
                return Some(count);
            };
            let good = value
                .state
                .iter()
                .all(|state| state.public && !self.is_reference(&state.member.ty));
            good.then_some(count + value.state.len())
        });
        match state {
            None => Some((
                "has a member that is private or refers to an object",
                "every member of a key is public, and none is an interface",
            )),
            Some(0) => Some(("has no members", "a key needs at least one public member")),
            Some(_) => None,
        }
    }

    fn is_reference(&self, ty: &Type) -> bool {
        match self.without_aliases(ty) {
            Type::Object | Type::AbstractBase => true,
            Type::Named(def) => {
                matches!(self.definitions[def.0 as usize].kind, DefKind::Interface(_))
            }
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.is_reference(&element)
            }
            _ => false,
        }
    }

    fn check_derived_home(
        &mut self,
        home: &HomeDef,
        base: Home,
        component: DefId,
        key: Option<DefId>,
    ) {
        let derives = |def: DefId, base: DefId| {
            def == base
                || match &self.definitions[def.0 as usize].kind {
                    DefKind::Interface(Interface { all_bases, .. })
                    | DefKind::Value(ValueType { all_bases, .. }) => all_bases.contains(&base),
                    _ => false,
                }
        };
        let key_fits = match (key, base.key) {
            (Some(key), Some(of_base)) => derives(key, of_base),
            (key, of_base) => key == of_base,
        };
        let (at, message, other) = if !derives(component, base.component) {
            (
                home.manages.span,
                "this component is not derived from the one that the base manages",
                base.component,
            )
        } else if !key_fits {
            (
                home.primary_key
                    .as_ref()
                    .map_or(home.name.span, |key| key.span),
                "the primary key is not that of the base, nor derived from it",
                base.key.unwrap_or(base.explicit),
            )
        } else {
            return;
        };
        let other = self.spans[other.0 as usize];
        self.sink.push(
            Diagnostic::error(codes::BAD_HOME, at, message, "does not fit to the base")
                .label(other, "what the base has is defined here")
                .hint(
                    "a derived home manages the same component or a derived one, with such a key",
                ),
        );
    }

    /// Returns the interface of this name in exactly this scope.
    fn own_interface(&self, scope: ScopeId, name: &Ident) -> Option<DefId> {
        let id = self.scopes.own(scope, &name.name)?;
        match self.scopes.entity(id).kind {
            EntityKind::Interface { def, .. } => Some(def),
            _ => None,
        }
    }

    pub(super) fn origin(&self, def: DefId) -> Option<InterfaceOrigin> {
        match &self.definitions[def.0 as usize].kind {
            DefKind::Interface(interface) => Some(interface.origin),
            _ => None,
        }
    }

    /// Returns the name by which a definition is found from everywhere.
    fn absolute(&self, def: DefId, span: Span) -> ScopedName {
        let path = &self.definitions[def.0 as usize].scoped_name;
        let parts = path.iter().map(|part| ident(part, span)).collect();
        ScopedName {
            absolute: true,
            parts,
            span,
        }
    }

    fn refused(&mut self, scope: ScopeId, name: &Ident) {
        self.declare(scope, name, EntityKind::Refused, codes::DUPLICATE);
    }
}

/// `::Components::NAME`
pub(super) fn in_components(name: &str, span: Span) -> ScopedName {
    ScopedName {
        absolute: true,
        parts: vec![ident("Components", span), ident(name, span)],
        span,
    }
}

pub(super) fn ident(name: &str, span: Span) -> Ident {
    Ident {
        name: Rc::from(name),
        span,
        escaped: true,
    }
}

/// Returns a resolved type in its written form.
pub(super) fn resolved(ty: Type, span: Span) -> TypeSpec {
    TypeSpec::new(TypeKind::Basic(ty), span)
}

fn implied_head(name: &Ident, suffix: &str, origin: InterfaceOrigin) -> InterfaceHead {
    InterfaceHead {
        meta: Meta::default(),
        name: ident(&format!("{}{suffix}", name.name), name.span),
        local: false,
        is_abstract: false,
        origin,
    }
}

pub(super) fn implied_operation(
    at: Span,
    name: &str,
    result: Option<Type>,
    params: &[(&str, Type)],
    raises: &[&str],
) -> OperationDef {
    let param = |(name, ty): &(&str, Type)| ParamDef {
        meta: Meta::default(),
        mode: ParamMode::In,
        mode_span: at,
        ty: resolved(ty.clone(), at),
        name: ident(name, at),
    };
    OperationDef {
        meta: Meta::default(),
        oneway: None,
        result: result.map(|ty| resolved(ty, at)),
        name: ident(name, at),
        params: params.iter().map(param).collect(),
        raises: raises.iter().map(|name| in_components(name, at)).collect(),
        context: Vec::new(),
    }
}
