//! Template modules. An instance consists of the module's definitions, checked again with the
//! parameters bound to the arguments (IDL 4.2, 7.4.12).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Checker;
use super::scope::{EntityKind, ScopeId, ScopeKind};
use crate::ast::TemplateParamKind as Kind;
use crate::ast::{
    Expr, ExprKind, Ident, Instance, Meta, ScopedName, TemplateArg, TemplateModule, TypeKind,
    TypeSpec,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{ConstValue, DefId, DefKind, Type};
use crate::span::Span;

/// The number of definitions in all instances.
const MAX_ITEMS: usize = 100_000;
/// The maximum nesting of modules and instances.
const MAX_DEPTH: usize = 200;

/// The state for template modules.
#[derive(Default)]
pub(super) struct Templates {
    modules: Vec<(Rc<TemplateModule>, ScopeId)>,
    /// The first instance of each template module with each list of arguments.
    instances: HashMap<String, EntityKind>,
    /// The modules of all instances.
    instance_modules: HashSet<DefId>,
    /// The arguments of parameters, other than named entities.
    bound: Vec<Bound>,
    /// The number of definitions in instances so far.
    items: usize,
}

/// A type or constant without a name.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    Type(Type),
    Value(ConstValue),
}

/// A template module with arguments.
struct Binding {
    module: Rc<TemplateModule>,
    /// The scope with the names of the parameters.
    params: ScopeId,
    /// The arguments as text. Instances with equal arguments have equal keys.
    key: String,
}

impl Checker<'_> {
    pub(super) fn template(&mut self, scope: ScopeId, module: &Rc<TemplateModule>) {
        let index = self.templates.modules.len() as u32;
        self.templates.modules.push((Rc::clone(module), scope));
        let kind = EntityKind::Template(index);
        self.declare(scope, &module.name, kind, codes::DUPLICATE);
    }

    /// `module M<A> Name;`
    pub(super) fn instance(&mut self, scope: ScopeId, instance: &Instance) {
        match self.bind(scope, instance) {
            Some(binding) => self.instantiate(scope, instance, binding),
            None => {
                self.declare(scope, &instance.name, EntityKind::Refused, codes::DUPLICATE);
            }
        }
    }

    /// Resolves `alias M<A> Name;`: the existing instance with these arguments, or a new one.
    pub(super) fn template_alias(&mut self, scope: ScopeId, alias: &Instance) {
        let Some(binding) = self.bind(scope, alias) else {
            self.declare(scope, &alias.name, EntityKind::Refused, codes::DUPLICATE);
            return;
        };
        match self.templates.instances.get(&binding.key) {
            Some(&kind) => {
                self.declare(scope, &alias.name, kind, codes::DUPLICATE);
            }
            None => self.instantiate(scope, alias, binding),
        }
    }

    /// Returns the argument of a parameter.
    pub(super) fn bound(&self, index: u32) -> &Bound {
        &self.templates.bound[index as usize]
    }

    fn bind(&mut self, scope: ScopeId, instance: &Instance) -> Option<Binding> {
        let id = self.resolve(scope, &instance.template)?;
        let entity = self.scopes.entity(id);
        let EntityKind::Template(index) = entity.kind else {
            if entity.kind != EntityKind::Refused {
                let name = &instance.template;
                let diagnostic = Diagnostic::error(
                    codes::NOT_A_TEMPLATE,
                    name.span,
                    format!(
                        "`{name}` is {}, not a template module",
                        entity.kind.describe()
                    ),
                    "has no parameters",
                )
                .label(entity.span, "defined here")
                .hint("a template module is defined with `module Name<typename T> { … };`");
                self.sink.push(diagnostic);
            }
            return None;
        };
        let (module, outer) = self.templates.modules[index as usize].clone();
        if module.params.len() != instance.args.len() {
            self.sink.push(
                Diagnostic::error(
                    codes::TEMPLATE_ARGUMENT,
                    instance.span,
                    format!(
                        "the parameters of `{}` are {}, but the arguments are {}",
                        instance.template,
                        module.params.len(),
                        instance.args.len()
                    ),
                    "wrong number of arguments",
                )
                .label(module.name.span, "defined here")
                .hint("give one argument for each parameter"),
            );
            return None;
        }
        let params = self.scopes.add_around(outer);
        let mut key = index.to_string();
        for (param, arg) in module.params.iter().zip(&instance.args) {
            let kind = self.argument(scope, params, &param.kind, arg)?;
            key.push_str(&match kind {
                EntityKind::Bound(index) => format!(", {:?}", self.bound(index)),
                kind => format!(", {kind:?}"),
            });
            let id = self.declare(params, &param.name, kind, codes::DUPLICATE);
            self.scopes.entity_mut(id).span = arg_span(arg);
        }
        Some(Binding {
            module,
            params,
            key,
        })
    }

    fn instantiate(&mut self, scope: ScopeId, instance: &Instance, binding: Binding) {
        let Binding {
            module,
            params,
            key,
        } = binding;
        self.templates.items += module.items.len();
        if self.templates.items > MAX_ITEMS {
            self.sink.stop(Diagnostic::error(
                codes::TEMPLATE_LIMIT,
                instance.span,
                format!("the instances of template modules have more than {MAX_ITEMS} definitions"),
                "too many with this one",
            ));
            return;
        }
        let meta = Meta {
            doc: instance
                .meta
                .doc
                .clone()
                .or_else(|| module.meta.doc.clone()),
            annotations: [&*module.meta.annotations, &*instance.meta.annotations].concat(),
        };
        let existing = self.existing_module(scope, &instance.name);
        let def = match existing {
            Some((_, def)) => def,
            None => self.introduce_module(scope, &instance.name, &meta),
        };
        let inner = self
            .scopes
            .add(ScopeKind::Module, scope, Some(def), &instance.name);
        self.scopes.look_up_in(inner, params);
        let kind = EntityKind::Module { scope: inner, def };
        if existing.is_none() {
            self.declare(scope, &instance.name, kind, codes::DUPLICATE);
        }
        self.sink.enter(instance.span);
        self.module_items(inner, &module.items, instance.span);
        if let Some((existing, _)) = existing {
            self.merge(inner, existing);
        }
        self.sink.leave();
        self.templates.instance_modules.insert(def);
        self.templates.instances.entry(key).or_insert(kind);
    }

    /// Returns the module of exactly this name in exactly this scope, unless it is an instance. A
    /// new instance of this name reopens it.
    fn existing_module(&self, scope: ScopeId, name: &Ident) -> Option<(ScopeId, DefId)> {
        let entity = self.scopes.entity(self.scopes.own(scope, &name.name)?);
        match entity.kind {
            EntityKind::Module { scope, def } if entity.name == name.name => {
                (!self.templates.instance_modules.contains(&def)).then_some((scope, def))
            }
            _ => None,
        }
    }

    /// Enters a module or an instance, unless the limit is reached.
    pub(super) fn deeper(&mut self, at: Span) -> bool {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.sink.stop(Diagnostic::error(
                codes::NESTING,
                at,
                format!("modules are nested deeper than {MAX_DEPTH}, instances counted"),
                "too deep",
            ));
        }
        self.depth <= MAX_DEPTH
    }

    /// Resolves a parameter's argument in an instance.
    fn argument(
        &mut self,
        scope: ScopeId,
        params: ScopeId,
        wanted: &Kind,
        arg: &TemplateArg,
    ) -> Option<EntityKind> {
        if let Kind::Const(ty) = wanted {
            let ty = self.const_type(params, ty)?;
            let value = match arg {
                TemplateArg::Value(value) => value.clone(),
                TemplateArg::Name(name) => name_expr(name),
                TemplateArg::Type(spec) => {
                    self.bad_argument(spec.span, "a type", wanted);
                    return None;
                }
            };
            let value = self.evaluate_as(scope, &value, &ty)?;
            return Some(self.bound_to(Bound::Value(value)));
        }
        match arg {
            TemplateArg::Value(value) => {
                self.bad_argument(value.span, "a value", wanted);
                None
            }
            TemplateArg::Type(spec) => {
                let ty = self.complete_type(scope, spec)?;
                if self.fits(params, &ty, wanted) {
                    return Some(self.bound_to(Bound::Type(ty)));
                }
                self.bad_argument(spec.span, "such a type", wanted);
                None
            }
            TemplateArg::Name(name) => self.named_argument(scope, params, wanted, name),
        }
    }

    fn named_argument(
        &mut self,
        scope: ScopeId,
        params: ScopeId,
        wanted: &Kind,
        name: &ScopedName,
    ) -> Option<EntityKind> {
        let found = self.resolve_quietly(scope, name);
        let kind = found.map(|id| self.scopes.entity(id).kind);
        if let Some(kind @ EntityKind::Exception { .. }) = kind
            && matches!(wanted, Kind::Exception)
        {
            return Some(kind);
        }
        let spec = TypeSpec::new(TypeKind::Named(name.clone()), name.span);
        let ty = self.complete_type(scope, &spec)?;
        let fits = match (wanted, kind) {
            // Inheritance from the parameter needs the entity itself, not an alias.
            (Kind::Interface, Some(kind)) => matches!(kind, EntityKind::Interface { .. }),
            (Kind::Value | Kind::Event, Some(kind)) => {
                matches!(kind, EntityKind::Value { .. }) && self.fits(params, &ty, wanted)
            }
            _ => self.fits(params, &ty, wanted),
        };
        if !fits {
            let what = kind.map_or("such a type", EntityKind::describe);
            self.bad_argument(name.span, what, wanted);
            return None;
        }
        Some(kind.unwrap_or_else(|| self.bound_to(Bound::Type(ty))))
    }

    fn bound_to(&mut self, bound: Bound) -> EntityKind {
        self.templates.bound.push(bound);
        EntityKind::Bound(self.templates.bound.len() as u32 - 1)
    }

    /// Returns whether a type satisfies the kind of a parameter.
    fn fits(&mut self, params: ScopeId, ty: &Type, wanted: &Kind) -> bool {
        let ty = self.without_aliases(ty);
        if let Kind::SequenceOf(element) = wanted {
            let spec = TypeSpec::new(TypeKind::Named(element.clone()), element.span);
            let Some(wanted) = self.resolve_type(params, &spec, false) else {
                return false;
            };
            let wanted = self.without_aliases(&wanted);
            return match ty {
                Type::Sequence { element, .. } => self.without_aliases(&element) == wanted,
                _ => false,
            };
        }
        let kind = match &ty {
            Type::Named(def) => Some(&self.definitions[def.0 as usize].kind),
            _ => None,
        };
        match (wanted, kind) {
            (Kind::Typename, _)
            | (Kind::Interface, Some(DefKind::Interface(_)))
            | (Kind::Struct, Some(DefKind::Struct { .. }))
            | (Kind::Union, Some(DefKind::Union(_)))
            | (Kind::Enum, Some(DefKind::Enum { .. })) => true,
            (Kind::Value, Some(DefKind::Value(value))) => !value.event,
            (Kind::Event, Some(DefKind::Value(value))) => value.event,
            (Kind::Sequence, _) => matches!(ty, Type::Sequence { .. }),
            _ => false,
        }
    }

    fn bad_argument(&mut self, at: Span, what: &str, wanted: &Kind) {
        let wanted = match wanted {
            Kind::Typename => "a type",
            Kind::Interface => "an interface",
            Kind::Value => "a value type",
            Kind::Event => "an event type",
            Kind::Struct => "a struct",
            Kind::Union => "a union",
            Kind::Exception => "an exception",
            Kind::Enum => "an enum",
            Kind::Sequence => "a sequence",
            Kind::SequenceOf(_) => "a sequence of an earlier argument",
            Kind::Const(_) => "a constant",
        };
        self.sink.push(
            Diagnostic::error(
                codes::TEMPLATE_ARGUMENT,
                at,
                format!("{what} is given where the template module takes {wanted}"),
                format!("expected {wanted}"),
            )
            .hint(format!("give {wanted}")),
        );
    }
}

fn name_expr(name: &ScopedName) -> Expr {
    Expr {
        kind: ExprKind::Name(name.clone()),
        span: name.span,
        depth: 1,
    }
}

fn arg_span(arg: &TemplateArg) -> Span {
    match arg {
        TemplateArg::Name(name) => name.span,
        TemplateArg::Type(spec) => spec.span,
        TemplateArg::Value(value) => value.span,
    }
}
