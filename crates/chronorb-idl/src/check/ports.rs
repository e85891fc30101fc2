//! Ports of components, and port types (CORBA 3.3 part 3, 6.4 to 6.6).

use std::rc::Rc;

use super::Checker;
use super::components::{ident, implied_operation, in_components, resolved};
use super::scope::{EntityKind, ScopeId, lower};
use crate::ast::{
    AttributeDef, Declarator, Ident, InterfaceRef, Item, MemberDef, Meta, Port, PortKind,
    PortTypeDef, ScopedName, StructDef, TypeKind, TypeSpec, Typedef,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{DefId, DefKind, InterfaceOrigin, Type};
use crate::span::Span;

/// The maximum nesting of port types.
const MAX_DEPTH: usize = 32;
/// The total number of ports that port types produce.
const MAX_PORTS: usize = 100_000;

/// A defined port type.
#[derive(Clone, Debug)]
pub(super) struct PortType {
    definition: Rc<PortTypeDef>,
    /// The scope of its definition.
    scope: ScopeId,
}

/// The destination of a port type's ports.
struct Expansion {
    /// The scope of the component.
    component: ScopeId,
    /// The scope in which names are looked up.
    scope: ScopeId,
    /// The prefix of each name.
    prefix: String,
    /// Whether provided and used ports are exchanged.
    mirrored: bool,
    depth: usize,
}

/// A port of a component, with its name there.
struct ImpliedPort<'a> {
    /// The scope of the component.
    scope: ScopeId,
    port: &'a Ident,
    /// The documentation and the annotations of all operations that the port implies.
    meta: &'a Meta,
}

impl Checker<'_> {
    pub(super) fn port_type(&mut self, scope: ScopeId, definition: &Rc<PortTypeDef>) {
        let name = &definition.name;
        let before = self.scopes.own(scope, &name.name);
        let declared =
            before.filter(|id| self.scopes.entity(*id).kind == EntityKind::PortType(None));
        if declared.is_none() && before.is_some() {
            self.declare(scope, name, EntityKind::Refused, codes::DUPLICATE);
            return;
        }
        for item in &definition.items {
            match item {
                Item::Port(port) => {
                    self.port_of(scope, port);
                    self.check_port_name(scope, &definition.name.name, &port.name);
                }
                Item::Attribute(attribute) => {
                    self.complete_type(scope, &attribute.ty);
                    for name in &attribute.names {
                        self.check_port_name(scope, &definition.name.name, name);
                    }
                }
                _ => {}
            }
        }
        let kind = EntityKind::PortType(Some(self.components.port_types.len() as u32));
        self.components.port_types.push(PortType {
            definition: Rc::clone(definition),
            scope,
        });
        match declared {
            Some(id) => {
                let entity = self.scopes.entity_mut(id);
                entity.kind = kind;
                entity.span = name.span;
            }
            None => {
                self.declare(scope, name, kind, codes::DUPLICATE);
            }
        }
    }

    pub(super) fn port_type_forward(&mut self, scope: ScopeId, name: &Ident) {
        let known = self.scopes.own(scope, &name.name);
        let is_known =
            known.is_some_and(|id| matches!(self.scopes.entity(id).kind, EntityKind::PortType(_)));
        if !is_known {
            self.declare(scope, name, EntityKind::PortType(None), codes::DUPLICATE);
        }
    }

    /// A port of a component or connector.
    pub(super) fn port(&mut self, scope: ScopeId, port: &Port) {
        let component = Expansion {
            component: scope,
            scope,
            prefix: String::new(),
            mirrored: false,
            depth: 0,
        };
        if self.check_port_name(scope, "", &port.name) {
            self.expand_port(&component, port);
        }
    }

    /// Reports a second port or attribute with a name. `within` is the port type, if there is one.
    pub(super) fn check_port_name(&mut self, scope: ScopeId, within: &str, name: &Ident) -> bool {
        let key = (scope, lower(within), lower(&name.name));
        let Some(&earlier) = self.components.port_names.get(&key) else {
            self.components.port_names.insert(key, name.span);
            return true;
        };
        self.sink.push(
            Diagnostic::error(
                codes::DUPLICATE_PORT,
                name.span,
                format!("there is a port or attribute `{}` already", name.name),
                "defined again here",
            )
            .label(earlier, "first defined here")
            .hint("rename one of them"),
        );
        false
    }

    fn expand_port(&mut self, to: &Expansion, port: &Port) {
        let Some(found) = self.port_of(to.scope, port) else {
            return;
        };
        let name = ident(&format!("{}{}", to.prefix, port.name.name), port.name.span);
        let ty = match found {
            PortTarget::Type(ty) => ty,
            PortTarget::PortType(port_type) => {
                self.expand_port_type(to, port, &port_type, &name);
                return;
            }
        };
        let kind = match (port.kind, to.mirrored) {
            (PortKind::Provides, true) => PortKind::Uses,
            (PortKind::Uses | PortKind::UsesMultiple, true) => PortKind::Provides,
            (kind, _) => kind,
        };
        self.charge(512, port.name.span);
        // A local interface is connected within the container. The equivalent interface can be
        // called from other processes, so it has no operation for such a port.
        if self.is_local(&ty) {
            return;
        }
        let implied = ImpliedPort {
            scope: to.component,
            port: &name,
            meta: &port.meta,
        };
        self.equivalent(kind, &implied, ty);
    }

    /// Adds the operations that a port implies.
    fn equivalent(&mut self, kind: PortKind, port: &ImpliedPort<'_>, ty: Type) {
        let name = &port.port.name;
        let with = |verb: &str| format!("{verb}_{name}");
        let some = |ty: &Type| Some(ty.clone());
        match kind {
            PortKind::Provides => {
                self.imply(port, &with("provide"), some(&ty), &[], &[]);
            }
            PortKind::Consumes => {
                self.imply(port, &with("get_consumer"), some(&ty), &[], &[]);
            }
            PortKind::Uses => {
                let given = [("conxn", ty.clone())];
                let raises = ["AlreadyConnected", "InvalidConnection"];
                self.imply(port, &with("connect"), None, &given, &raises);
                let raises = ["NoConnection"];
                self.imply(port, &with("disconnect"), some(&ty), &[], &raises);
                self.imply(port, &with("get_connection"), some(&ty), &[], &[]);
            }
            PortKind::Emits => {
                let given = [("consumer", ty.clone())];
                let raises = ["AlreadyConnected"];
                self.imply(port, &with("connect"), None, &given, &raises);
                let raises = ["NoConnection"];
                self.imply(port, &with("disconnect"), some(&ty), &[], &raises);
            }
            PortKind::UsesMultiple => self.connections(port, &ty),
            PortKind::Publishes => {
                let Some(cookie) = self.cookie(port) else {
                    return;
                };
                let given = [("consumer", ty.clone())];
                let raises = ["ExceededConnectionLimit"];
                self.imply(port, &with("subscribe"), some(&cookie), &given, &raises);
                let given = [("ck", cookie)];
                let raises = ["InvalidConnection"];
                self.imply(port, &with("unsubscribe"), some(&ty), &given, &raises);
            }
            PortKind::Port | PortKind::MirrorPort => {}
        }
    }

    /// Adds the operations that `uses multiple` implies.
    fn connections(&mut self, port: &ImpliedPort<'_>, ty: &Type) {
        let (name, at, scope) = (&port.port.name, port.port.span, port.scope);
        let Some(cookie) = self.cookie(port) else {
            return;
        };
        let member = |name: &str, ty: &Type| MemberDef {
            meta: Meta::default(),
            ty: resolved(ty.clone(), at),
            declarators: vec![declarator(name, at)],
        };
        let connection = StructDef {
            meta: Meta::default(),
            name: ident(&format!("{name}Connection"), at),
            base: None,
            members: vec![member("objref", ty), member("ck", &cookie)],
        };
        let connection = Type::Named(self.structure(scope, &connection));
        let list = ident(&format!("{name}Connections"), at);
        let sequence = TypeKind::Sequence {
            element: Box::new(resolved(connection, at)),
            bound: None,
        };
        let typedef = Typedef {
            meta: Meta::default(),
            ty: TypeSpec::new(sequence, at),
            declarators: vec![declarator(&list.name, at)],
        };
        self.typedef(scope, &typedef);
        let given = [("connection", ty.clone())];
        let raises = ["ExceededConnectionLimit", "InvalidConnection"];
        let connect = format!("connect_{name}");
        self.imply(port, &connect, Some(cookie.clone()), &given, &raises);
        let given = [("ck", cookie)];
        let raises = ["InvalidConnection"];
        let disconnect = format!("disconnect_{name}");
        self.imply(port, &disconnect, Some(ty.clone()), &given, &raises);
        let list = ScopedName {
            absolute: false,
            parts: vec![list],
            span: at,
        };
        let spec = TypeSpec::new(TypeKind::Named(list), at);
        if let Some(list) = self.resolve_type(scope, &spec, false) {
            let get = format!("get_connections_{name}");
            self.imply(port, &get, Some(list), &[], &[]);
        }
    }

    fn cookie(&mut self, port: &ImpliedPort<'_>) -> Option<Type> {
        let at = port.port.span;
        let spec = TypeSpec::new(TypeKind::Named(in_components("Cookie", at)), at);
        self.resolve_type(port.scope, &spec, false)
    }

    /// Adds an operation that a port implies, with exceptions of `Components`.
    fn imply(
        &mut self,
        port: &ImpliedPort<'_>,
        name: &str,
        result: Option<Type>,
        params: &[(&str, Type)],
        raises: &[&str],
    ) {
        let mut operation = implied_operation(port.port.span, name, result, params, raises);
        operation.meta = port.meta.clone();
        self.operation(port.scope, &operation);
    }

    fn expand_port_type(&mut self, to: &Expansion, port: &Port, of: &PortType, name: &Ident) {
        if to.depth >= MAX_DEPTH || self.components.expanded > MAX_PORTS {
            self.sink.stop(Diagnostic::error(
                codes::TEMPLATE_LIMIT,
                port.name.span,
                format!(
                    "port types are nested deeper than {MAX_DEPTH}, or make more than {MAX_PORTS} \
                    ports"
                ),
                "too many with this one",
            ));
            return;
        }
        let inner = Expansion {
            component: to.component,
            scope: of.scope,
            prefix: format!("{}_", name.name),
            mirrored: to.mirrored != (port.kind == PortKind::MirrorPort),
            depth: to.depth + 1,
        };
        for item in &of.definition.items {
            self.components.expanded += 1;
            if self.is_exhausted() {
                return;
            }
            match item {
                Item::Port(port) => self.expand_port(&inner, port),
                Item::Attribute(attribute) => {
                    let names = attribute.names.iter();
                    let attribute = AttributeDef {
                        names: names
                            .map(|name| ident(&format!("{}{}", inner.prefix, name.name), name.span))
                            .collect(),
                        ..attribute.clone()
                    };
                    self.attribute_from(inner.component, inner.scope, &attribute);
                }
                _ => {}
            }
        }
    }

    /// Returns the type of a port, if it is of the right kind.
    fn port_of(&mut self, scope: ScopeId, port: &Port) -> Option<PortTarget> {
        let name = match &port.ty {
            InterfaceRef::Object => return Some(PortTarget::Type(Type::Object)),
            InterfaceRef::Named(name) => name,
        };
        let id = self.resolve(scope, name)?;
        let entity = self.scopes.entity(id).clone();
        let wanted = match (port.kind, entity.kind) {
            (_, EntityKind::Refused) => return None,
            (
                PortKind::Provides | PortKind::Uses | PortKind::UsesMultiple,
                EntityKind::Interface { def, .. },
            ) if !self.is_component_or_home(def) => {
                return Some(PortTarget::Type(Type::Named(def)));
            }
            (PortKind::Provides | PortKind::Uses | PortKind::UsesMultiple, _) => "an interface",
            (
                PortKind::Emits | PortKind::Publishes | PortKind::Consumes,
                EntityKind::Value { def, .. },
            ) if self.is_event(def) => {
                let consumer = self.components.consumers.get(&def)?;
                return Some(PortTarget::Type(Type::Named(*consumer)));
            }
            (PortKind::Emits | PortKind::Publishes | PortKind::Consumes, _) => "an event type",
            (PortKind::Port | PortKind::MirrorPort, EntityKind::PortType(Some(index))) => {
                return Some(PortTarget::PortType(
                    self.components.port_types[index as usize].clone(),
                ));
            }
            (PortKind::Port | PortKind::MirrorPort, EntityKind::PortType(None)) => {
                "a port type that is defined before"
            }
            (PortKind::Port | PortKind::MirrorPort, _) => "a port type",
        };
        self.sink.push(
            Diagnostic::error(
                codes::PORT_TYPE,
                name.span,
                format!("`{name}` is {}, not {wanted}", self.describe(entity.kind)),
                format!("expected {wanted}"),
            )
            .label(entity.span, "defined here")
            .hint(
                "provides and uses take interfaces, port and mirrorport take port types, the \
                others take event types",
            ),
        );
        None
    }

    fn is_component_or_home(&self, def: DefId) -> bool {
        matches!(
            self.origin(def),
            Some(InterfaceOrigin::Component | InterfaceOrigin::Home)
        )
    }

    fn is_event(&self, def: DefId) -> bool {
        matches!(&self.definitions[def.0 as usize].kind, DefKind::Value(value) if value.event)
    }
}

/// The definition that the name of a port type refers to.
enum PortTarget {
    Type(Type),
    PortType(PortType),
}

fn declarator(name: &str, at: Span) -> Declarator {
    Declarator {
        name: ident(name, at),
        dimensions: Vec::new(),
    }
}
