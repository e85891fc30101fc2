//! Interfaces: inheritance, operations, attributes.

use std::collections::HashMap;

use super::Checker;
use super::annotations::Target;
use super::bases::{Base, BaseKind};
use super::scope::{EntityId, EntityKind, ScopeId, ScopeKind};
use super::types::type_size;
use crate::ast::{
    AttributeDef, Ident, InterfaceDef, InterfaceHead, Item, OperationDef, ParamDef, ScopedName,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{
    Attribute, DefId, DefKind, Interface, InterfaceOrigin, Operation, Param, ParamMode,
};
use crate::span::Span;

impl Checker<'_> {
    /// `interface X;`
    pub(super) fn interface_forward(&mut self, scope: ScopeId, head: &InterfaceHead) {
        if let Some((id, def, _)) = self.declared_interface(scope, &head.name) {
            self.check_same_kind(id, def, head);
            return;
        }
        // The files of other ORBs declare this type of the language as an interface.
        if &*head.name.name == "TypeCode" && self.scopes.get(scope).path == ["CORBA"] {
            return;
        }
        self.declare_interface(scope, head);
    }

    pub(super) fn interface(&mut self, scope: ScopeId, interface: &InterfaceDef) {
        self.interface_with(scope, &interface.head, &interface.bases, &interface.items);
    }

    /// Checks an interface, or the equivalent interface of another definition.
    pub(super) fn interface_with(
        &mut self,
        scope: ScopeId,
        head: &InterfaceHead,
        listed: &[ScopedName],
        items: &[Item],
    ) -> DefId {
        let name = &head.name;
        let (id, def) = match self.declared_interface(scope, name) {
            Some((id, def, None)) => {
                self.check_same_kind(id, def, head);
                self.complete_declaration(scope, def, name, &head.meta);
                (id, def)
            }
            _ => self.declare_interface(scope, head),
        };
        let kind = match head.origin {
            InterfaceOrigin::Interface => BaseKind::Interface,
            _ => BaseKind::Equivalent,
        };
        let bases = self.bases(scope, Some(def), listed, kind);
        for base in &bases {
            self.check_base_kind(head, base);
        }
        let inner = self
            .scopes
            .add(ScopeKind::Interface, scope, Some(def), name);
        let all_bases = self.all_bases(&bases, name);
        self.inherit(inner, &all_bases, listed, name);
        let entity = self.scopes.entity_mut(id);
        entity.span = name.span;
        entity.kind = EntityKind::Interface {
            scope: Some(inner),
            def,
        };
        self.definitions[def.0 as usize].kind = DefKind::Interface(Interface {
            origin: head.origin,
            forward_only: false,
            local: head.local,
            is_abstract: head.is_abstract,
            bases: bases.iter().map(|base| base.def).collect(),
            all_bases: all_bases.iter().map(|(def, _)| *def).collect(),
            ..Interface::default()
        });
        let outer = self.prefix.clone();
        self.items(inner, items);
        self.prefix = outer;
        self.close(def);
        def
    }

    fn declare_interface(&mut self, scope: ScopeId, head: &InterfaceHead) -> (EntityId, DefId) {
        let kind = DefKind::Interface(Interface {
            origin: head.origin,
            forward_only: true,
            local: head.local,
            is_abstract: head.is_abstract,
            ..Interface::default()
        });
        let def = self.introduce(scope, &head.name, &head.meta, kind);
        let kind = EntityKind::Interface { scope: None, def };
        (self.declare(scope, &head.name, kind, codes::DUPLICATE), def)
    }

    fn declared_interface(
        &self,
        scope: ScopeId,
        name: &Ident,
    ) -> Option<(EntityId, DefId, Option<ScopeId>)> {
        let id = self.scopes.own(scope, &name.name)?;
        let entity = self.scopes.entity(id);
        match entity.kind {
            EntityKind::Interface { def, scope } if entity.name == name.name => {
                Some((id, def, scope))
            }
            _ => None,
        }
    }

    fn check_same_kind(&mut self, id: EntityId, def: DefId, head: &InterfaceHead) {
        let DefKind::Interface(declared) = &self.definitions[def.0 as usize].kind else {
            return;
        };
        let before = (declared.local, declared.is_abstract, declared.origin);
        if before == (head.local, head.is_abstract, head.origin) {
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

    fn check_base_kind(&mut self, head: &InterfaceHead, base: &Base) {
        let name = &base.name;
        let DefKind::Interface(of_base) = &self.definitions[base.def.0 as usize].kind else {
            return;
        };
        let (message, hint) = if head.is_abstract && !of_base.is_abstract {
            (
                format!(
                    "an abstract interface cannot inherit from `{name}`, which is not abstract"
                ),
                "declare the base `abstract`",
            )
        } else if !head.local && of_base.local {
            (
                format!("only local interfaces can inherit from `{name}`, which is local"),
                "declare this interface `local`",
            )
        } else {
            return;
        };
        self.sink.push(
            Diagnostic::error(
                codes::BASE_KIND,
                name.span,
                message,
                "not possible as a base",
            )
            .label(base.defined, "defined here")
            .hint(hint),
        );
    }

    /// Declares an operation or attribute.
    pub(super) fn declare_member(&mut self, scope: ScopeId, name: &Ident, kind: EntityKind) {
        let id = self.declare(scope, name, kind, codes::OVERLOADED);
        self.scopes.get_mut(scope).members.push(id);
    }

    pub(super) fn operation(&mut self, scope: ScopeId, operation: &OperationDef) {
        let name = &operation.name;
        let result = match &operation.result {
            Some(spec) => {
                let ty = self.complete_type(scope, spec);
                ty.map(|ty| Some(self.marked(ty, &operation.meta)))
            }
            None => Some(None),
        };
        self.declare_member(scope, name, EntityKind::Operation);
        let inner = self.scopes.add(ScopeKind::Operation, scope, None, name);
        if let (Some(Some(ty)), Some(spec)) = (&result, &operation.result) {
            self.check_local_use(scope, ty, spec.span, "result");
        }
        let params = self.params(scope, inner, &operation.params);
        let raises = self.exceptions(scope, &operation.raises);
        self.check_oneway(operation);
        let context = self.context(operation);
        let annotations = self.annotations_of(
            scope,
            &operation.meta.annotations,
            Target::Operation,
            result.as_ref().and_then(Option::as_ref),
        );
        let Some(result) = result else {
            return;
        };
        let location = self.sources.location(name.span);
        let doc = self.doc(&operation.meta);
        if let Some((operations, _)) = self.exports_of(scope) {
            operations.push(Operation {
                name: name.name.to_string(),
                location,
                doc,
                annotations,
                oneway: operation.oneway.is_some(),
                result,
                params,
                raises,
                context,
            });
        }
    }

    /// Checks and returns the parameters of an operation in `scope`; `inner` has their names.
    pub(super) fn params(
        &mut self,
        scope: ScopeId,
        inner: ScopeId,
        written: &[ParamDef],
    ) -> Vec<Param> {
        let mut params = Vec::with_capacity(written.len());
        for param in written {
            let ty = self.complete_type(inner, &param.ty);
            let ty = ty.map(|ty| self.marked(ty, &param.meta));
            self.check_lazy(param, ty.as_ref());
            self.declare(
                inner,
                &param.name,
                EntityKind::Variable,
                codes::DUPLICATE_PARAM,
            );
            let annotations = self.annotations_of(
                scope,
                &param.meta.annotations,
                Target::Parameter,
                ty.as_ref(),
            );
            let Some(ty) = ty else {
                continue;
            };
            let what = format!("parameter `{}`", param.name.name);
            self.check_local_use(scope, &ty, param.ty.span, &what);
            params.push(Param {
                name: param.name.name.to_string(),
                mode: param.mode,
                ty,
                annotations,
            });
        }
        params
    }

    /// Returns the names of a `context` clause (CORBA 3.3 part 1, 7.13.6).
    fn context(&mut self, operation: &OperationDef) -> Vec<String> {
        let is_name = |text: &str| {
            let name = text.strip_suffix('*').unwrap_or(text);
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(legal)
        };
        for (name, span) in &operation.context {
            if !is_name(name) {
                self.sink.push(
                    Diagnostic::error(
                        codes::BAD_CONTEXT,
                        *span,
                        format!("`{}` is no name of a property", name.escape_debug()),
                        "malformed",
                    )
                    .hint(
                        "begin with a letter, go on with letters, digits, `_` and `.`; only the \
                        last character may be `*`",
                    ),
                );
            }
        }
        let names = operation.context.iter();
        names.map(|(name, _)| name.to_string()).collect()
    }

    fn check_oneway(&mut self, operation: &OperationDef) {
        let Some(oneway) = operation.oneway else {
            return;
        };
        let mut report = |code, at: Span, message: &str, hint: &str| {
            self.sink.push(
                Diagnostic::error(
                    code,
                    at,
                    message,
                    "nothing comes back from a oneway operation",
                )
                .label(oneway, "declared oneway here")
                .hint(hint),
            );
        };
        if let Some(result) = &operation.result {
            report(
                codes::ONEWAY_RESULT,
                result.span,
                "a oneway operation cannot have a result",
                "make the result `void`, or remove `oneway`",
            );
        }
        for param in &operation.params {
            if param.mode != ParamMode::In {
                report(
                    codes::ONEWAY_OUT,
                    param.mode_span,
                    "a oneway operation can have `in` parameters only",
                    "make the parameter `in`, or remove `oneway`",
                );
            }
        }
        if let Some(first) = operation.raises.first() {
            report(
                codes::ONEWAY_RAISES,
                first.span,
                "a oneway operation cannot raise exceptions",
                "remove the `raises` clause, or `oneway`",
            );
        }
    }

    pub(super) fn attribute(&mut self, scope: ScopeId, attribute: &AttributeDef) {
        self.attribute_from(scope, scope, attribute);
    }

    /// Declares an attribute in `scope`. Its types and exceptions are looked up in `outer`.
    pub(super) fn attribute_from(
        &mut self,
        scope: ScopeId,
        outer: ScopeId,
        attribute: &AttributeDef,
    ) {
        let ty = self.complete_type(outer, &attribute.ty);
        let ty = ty.map(|ty| self.marked(ty, &attribute.meta));
        if let Some(ty) = &ty {
            self.check_local_use(scope, ty, attribute.ty.span, "attribute");
        }
        let get_raises = self.exceptions(outer, &attribute.get_raises);
        let set_raises = self.exceptions(outer, &attribute.set_raises);
        let def = self.scopes.get(scope).def;
        let has_ports = def.and_then(|def| self.origin(def)) == Some(InterfaceOrigin::Component);
        for name in &attribute.names {
            if has_ports && !self.check_port_name(scope, "", name) {
                continue;
            }
            self.declare_member(scope, name, EntityKind::Attribute);
            let location = self.sources.location(name.span);
            let Some(ty) = ty.clone() else {
                continue;
            };
            if self.is_exhausted() {
                return;
            }
            let lists = 4 * (get_raises.len() + set_raises.len());
            self.charge(type_size(&ty) + lists, name.span);
            let annotations = self.annotations_of(
                scope,
                &attribute.meta.annotations,
                Target::Attribute,
                Some(&ty),
            );
            let doc = self.doc(&attribute.meta);
            if let Some((_, attributes)) = self.exports_of(scope) {
                attributes.push(Attribute {
                    name: name.name.to_string(),
                    location,
                    doc,
                    annotations,
                    readonly: attribute.readonly,
                    ty,
                    get_raises: get_raises.clone(),
                    set_raises: set_raises.clone(),
                });
            }
        }
    }

    /// Returns the operations and attributes of the interface or value type with this scope.
    fn exports_of(&mut self, scope: ScopeId) -> Option<(&mut Vec<Operation>, &mut Vec<Attribute>)> {
        let def = self.scopes.get(scope).def?;
        match &mut self.definitions[def.0 as usize].kind {
            DefKind::Interface(interface) => {
                Some((&mut interface.operations, &mut interface.attributes))
            }
            DefKind::Value(value) => Some((&mut value.operations, &mut value.attributes)),
            _ => None,
        }
    }

    /// Resolves the exceptions of a `raises` list.
    pub(super) fn exceptions(&mut self, scope: ScopeId, names: &[ScopedName]) -> Vec<DefId> {
        let mut exceptions = Vec::new();
        let mut seen: HashMap<DefId, Span> = HashMap::new();
        for name in names {
            let Some(id) = self.resolve(scope, name) else {
                continue;
            };
            let entity = self.scopes.entity(id);
            let diagnostic = match entity.kind {
                EntityKind::Refused => continue,
                EntityKind::Exception { def, .. } => match seen.insert(def, name.span) {
                    None => {
                        exceptions.push(def);
                        self.check_local_exception(scope, def, name.span);
                        continue;
                    }
                    Some(earlier) => listed_twice(name, earlier),
                },
                EntityKind::Native(def) if self.may_raise_natives(scope) => {
                    match seen.insert(def, name.span) {
                        None => {
                            exceptions.push(def);
                            continue;
                        }
                        Some(earlier) => listed_twice(name, earlier),
                    }
                }
                kind => Diagnostic::error(
                    codes::RAISES_NOT_EXCEPTION,
                    name.span,
                    format!("`{name}` is {}, not an exception", kind.describe()),
                    "cannot be raised",
                )
                .label(entity.span, "defined here")
                .hint(match kind {
                    EntityKind::Native(_) => {
                        "only local interfaces and value types can raise a native type"
                    }
                    _ => "only what is defined with `exception` can be raised",
                }),
            };
            self.sink.push(diagnostic);
        }
        exceptions
    }

    /// Returns whether the operations of this scope may raise native types, because no request
    /// leaves the process (CORBA 3.3 part 1, 7.13.3).
    fn may_raise_natives(&self, scope: ScopeId) -> bool {
        let def = self.scopes.get(scope).def;
        def.is_some_and(|def| match &self.definitions[def.0 as usize].kind {
            DefKind::Interface(interface) => interface.local,
            DefKind::Value(_) => true,
            _ => false,
        })
    }
}

/// The warning about a second exception of the same name in a `raises` list.
fn listed_twice(name: &ScopedName, earlier: Span) -> Diagnostic {
    Diagnostic::warning(
        codes::RAISES_DUPLICATE,
        name.span,
        format!("exception `{name}` is listed twice"),
        "again here",
    )
    .label(earlier, "first here")
    .hint("remove one of them")
}
