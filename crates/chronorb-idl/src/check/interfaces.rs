//! Interfaces: inheritance, operations, attributes.

use std::collections::{HashMap, HashSet};

use super::Checker;
use super::scope::{EntityId, EntityKind, ScopeId, ScopeKind, lower};
use super::types::type_size;
use crate::ast::{AttributeDef, Ident, InterfaceDef, InterfaceHead, OperationDef, ScopedName};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{Attribute, DefId, DefKind, Interface, Operation, Param, ParamMode};
use crate::source::Span;

/// The number of bases, inherited ones included.
const MAX_BASES: usize = 250;
/// What looking at an inherited member counts, in bytes of the model.
const MEMBER_COST: usize = 64;

impl Checker<'_> {
    /// `interface X;`
    pub(super) fn interface_forward(&mut self, scope: ScopeId, head: &InterfaceHead) {
        if let Some((id, def, _)) = self.declared_interface(scope, &head.name) {
            self.check_same_kind(id, def, head);
            return;
        }
        self.declare_interface(scope, head);
    }

    pub(super) fn interface(&mut self, scope: ScopeId, interface: &InterfaceDef) {
        let head = &interface.head;
        let name = &head.name;
        let (id, def) = match self.declared_interface(scope, name) {
            Some((id, def, None)) => {
                self.check_same_kind(id, def, head);
                self.complete_declaration(scope, def, name, &head.meta);
                (id, def)
            }
            _ => self.declare_interface(scope, head),
        };
        let bases = self.bases(scope, def, interface);
        let inner = self
            .scopes
            .add(ScopeKind::Interface, scope, Some(def), name);
        let all_bases = self.all_bases(&bases, name);
        self.charge(16 * all_bases.len(), name.span);
        self.scopes.get_mut(inner).bases = all_bases.iter().map(|(_, scope)| *scope).collect();
        self.check_inherited_members(interface, &all_bases);
        let entity = self.scopes.entity_mut(id);
        entity.span = name.span;
        entity.kind = EntityKind::Interface {
            scope: Some(inner),
            def,
        };
        self.definitions[def.0 as usize].kind = DefKind::Interface(Interface {
            forward_only: false,
            local: head.local,
            is_abstract: head.is_abstract,
            bases: bases.iter().map(|(def, _)| *def).collect(),
            all_bases: all_bases.iter().map(|(def, _)| *def).collect(),
            ..Interface::default()
        });
        let outer = self.prefix.clone();
        self.items(inner, &interface.items);
        self.prefix = outer;
        let kind = self.definitions[def.0 as usize].kind.clone();
        self.complete(def, kind);
    }

    fn declare_interface(&mut self, scope: ScopeId, head: &InterfaceHead) -> (EntityId, DefId) {
        let kind = DefKind::Interface(Interface {
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
        if (declared.local, declared.is_abstract) == (head.local, head.is_abstract) {
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
            .hint("write `local` or `abstract` before both, or before none"),
        );
    }

    /// The direct bases that are correct.
    fn bases(
        &mut self,
        scope: ScopeId,
        def: DefId,
        interface: &InterfaceDef,
    ) -> Vec<(DefId, ScopeId)> {
        let mut bases: Vec<(DefId, ScopeId)> = Vec::new();
        let mut seen: HashMap<DefId, Span> = HashMap::new();
        for name in &interface.bases {
            let Some(id) = self.resolve(scope, name) else {
                continue;
            };
            let entity = self.scopes.entity(id).clone();
            let (base, base_scope) = match entity.kind {
                EntityKind::Refused => continue,
                EntityKind::Interface { def: base, .. } if base == def => {
                    self.sink.push(
                        Diagnostic::error(
                            codes::BASE_ITSELF,
                            name.span,
                            format!("interface `{name}` inherits from itself"),
                            "this is the interface that is being defined",
                        )
                        .hint("remove it from the list of bases"),
                    );
                    continue;
                }
                EntityKind::Interface {
                    def: base,
                    scope: Some(base_scope),
                } => (base, base_scope),
                EntityKind::Interface { scope: None, .. } => {
                    self.sink.push(
                        Diagnostic::error(
                            codes::BASE_INCOMPLETE,
                            name.span,
                            format!("base `{name}` is declared but not yet defined"),
                            "must be defined before",
                        )
                        .label(entity.span, "declared here")
                        .hint("define the base first"),
                    );
                    continue;
                }
                kind => {
                    self.sink.push(
                        Diagnostic::error(
                            codes::BASE_NOT_INTERFACE,
                            name.span,
                            format!("`{name}` is {}, not an interface", kind.describe()),
                            "cannot be a base",
                        )
                        .label(entity.span, "defined here")
                        .hint("interfaces inherit from interfaces only"),
                    );
                    continue;
                }
            };
            if let Some(&earlier) = seen.get(&base) {
                self.sink.push(
                    Diagnostic::error(
                        codes::BASE_DUPLICATE,
                        name.span,
                        format!("base `{name}` is listed twice"),
                        "again here",
                    )
                    .label(earlier, "first here")
                    .hint("remove one of them"),
                );
                continue;
            }
            seen.insert(base, name.span);
            self.check_base_kind(&interface.head, base, name, entity.span);
            bases.push((base, base_scope));
        }
        bases
    }

    fn check_base_kind(&mut self, head: &InterfaceHead, base: DefId, name: &ScopedName, at: Span) {
        let DefKind::Interface(of_base) = &self.definitions[base.0 as usize].kind else {
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
            .label(at, "defined here")
            .hint(hint),
        );
    }

    /// Every base once, bases before what is derived from them.
    fn all_bases(&mut self, bases: &[(DefId, ScopeId)], name: &Ident) -> Vec<(DefId, ScopeId)> {
        let mut all: Vec<(DefId, ScopeId)> = Vec::new();
        let mut seen = HashSet::new();
        for &(base, scope) in bases {
            let DefKind::Interface(interface) = &self.definitions[base.0 as usize].kind else {
                continue;
            };
            let inherited = interface.all_bases.iter().copied();
            let scopes = self.scopes.get(scope).bases.iter().copied();
            let line = inherited.zip(scopes).chain([(base, scope)]);
            all.extend(line.filter(|(def, _)| seen.insert(*def)));
            if all.len() > MAX_BASES {
                self.sink.push(Diagnostic::error(
                    codes::TOO_MANY_BASES,
                    name.span,
                    format!("interface `{}` has more than {MAX_BASES} bases", name.name),
                    "inherited bases count",
                ));
                return Vec::new();
            }
        }
        all
    }

    /// Reports operations and attributes that several bases define.
    fn check_inherited_members(
        &mut self,
        interface: &InterfaceDef,
        all_bases: &[(DefId, ScopeId)],
    ) {
        if interface.bases.len() < 2 {
            return;
        }
        let mut seen: HashMap<String, EntityId> = HashMap::new();
        let at = interface.bases[1].span;
        for (_, scope) in all_bases {
            let members = self.scopes.get(*scope).members.len();
            self.charge(MEMBER_COST * members, at);
            if self.is_exhausted() {
                return;
            }
            for &id in &self.scopes.get(*scope).members {
                let entity = self.scopes.entity(id);
                let Some(earlier) = seen.insert(entity.name.to_ascii_lowercase(), id) else {
                    continue;
                };
                let earlier = self.scopes.entity(earlier);
                self.sink.push(
                    Diagnostic::error(
                        codes::BASE_AMBIGUOUS,
                        at,
                        format!("`{}` is inherited from two bases", entity.name),
                        "these bases cannot be combined",
                    )
                    .label(earlier.span, "defined by one base here")
                    .label(entity.span, "and by another here")
                    .hint("rename it in one base, or move it into a base that both share"),
                );
            }
        }
    }

    /// Declares an operation or attribute.
    fn declare_member(&mut self, scope: ScopeId, name: &Ident, kind: EntityKind) {
        let key = lower(&name.name);
        let inherited = self.scopes.get(scope).bases.iter().find_map(|base| {
            let id = self.scopes.own_key(*base, &key)?;
            let entity = self.scopes.entity(id);
            entity.kind.is_member().then_some(entity.span)
        });
        if let Some(at) = inherited {
            self.sink.push(
                Diagnostic::error(
                    codes::REDEFINED_MEMBER,
                    name.span,
                    format!("`{}` is inherited, and cannot be defined again", name.name),
                    "defined again here",
                )
                .label(at, "inherited from here")
                .hint("remove it: the derived interface has it already"),
            );
        }
        let id = self.declare(scope, name, kind, codes::OVERLOADED);
        self.scopes.get_mut(scope).members.push(id);
    }

    pub(super) fn operation(&mut self, scope: ScopeId, operation: &OperationDef) {
        let name = &operation.name;
        let result = match &operation.result {
            Some(spec) => self.complete_type(scope, spec).map(Some),
            None => Some(None),
        };
        self.declare_member(scope, name, EntityKind::Operation);
        let inner = self.scopes.add(ScopeKind::Operation, scope, None, name);
        let mut params = Vec::with_capacity(operation.params.len());
        for param in &operation.params {
            let ty = self.complete_type(inner, &param.ty);
            self.declare(
                inner,
                &param.name,
                EntityKind::Variable,
                codes::DUPLICATE_PARAM,
            );
            let annotations = self.annotations(scope, &param.meta.annotations);
            let Some(ty) = ty else {
                continue;
            };
            params.push(Param {
                name: param.name.name.to_string(),
                mode: param.mode,
                ty,
                annotations,
            });
        }
        let raises = self.exceptions(scope, &operation.raises);
        self.check_oneway(operation);
        let annotations = self.annotations(scope, &operation.meta.annotations);
        let Some(result) = result else {
            return;
        };
        let location = self.sources.location(name.span);
        let doc = self.doc(&operation.meta);
        if let Some(interface) = self.interface_of(scope) {
            interface.operations.push(Operation {
                name: name.name.to_string(),
                location,
                doc,
                annotations,
                oneway: operation.oneway.is_some(),
                result,
                params,
                raises,
                context: Vec::new(),
            });
        }
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
        let ty = self.complete_type(scope, &attribute.ty);
        let get_raises = self.exceptions(scope, &attribute.get_raises);
        let set_raises = self.exceptions(scope, &attribute.set_raises);
        for name in &attribute.names {
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
            let annotations = self.annotations(scope, &attribute.meta.annotations);
            let doc = self.doc(&attribute.meta);
            if let Some(interface) = self.interface_of(scope) {
                interface.attributes.push(Attribute {
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

    fn interface_of(&mut self, scope: ScopeId) -> Option<&mut Interface> {
        let def = self.scopes.get(scope).def?;
        match &mut self.definitions[def.0 as usize].kind {
            DefKind::Interface(interface) => Some(interface),
            _ => None,
        }
    }

    /// The exceptions of a `raises` list.
    fn exceptions(&mut self, scope: ScopeId, names: &[ScopedName]) -> Vec<DefId> {
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
                        continue;
                    }
                    Some(earlier) => Diagnostic::error(
                        codes::RAISES_DUPLICATE,
                        name.span,
                        format!("exception `{name}` is listed twice"),
                        "again here",
                    )
                    .label(earlier, "first here")
                    .hint("remove one of them"),
                },
                kind => Diagnostic::error(
                    codes::RAISES_NOT_EXCEPTION,
                    name.span,
                    format!("`{name}` is {}, not an exception", kind.describe()),
                    "cannot be raised",
                )
                .label(entity.span, "defined here")
                .hint("only what is defined with `exception` can be raised"),
            };
            self.sink.push(diagnostic);
        }
        exceptions
    }
}
