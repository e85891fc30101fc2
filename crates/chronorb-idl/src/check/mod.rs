//! Semantic analysis from the syntax tree to the model: names, types, constants, inheritance.

mod annotations;
mod bases;
mod bits;
mod components;
mod consts;
mod corba;
mod enums;
mod fixed;
mod ids;
mod interfaces;
mod local;
mod marks;
mod order;
mod ports;
mod ranges;
mod scope;
mod standard;
mod structs;
mod templates;
mod types;
mod unions;
mod values;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::ast::{self, Event, Ident, Item, Meta};
use crate::builtin;
use crate::codes;
use crate::diagnostics::{Diagnostic, Sink};
use crate::model::{ConstValue, DefId, DefKind, Definition, Model, Type};
use crate::source::Sources;
use crate::span::Span;

use annotations::Target;
use components::Components;
use ids::Prefix;
use scope::{EntityKind, ScopeId, ScopeKind, Scopes};
use templates::Templates;
use types::Incomplete;

/// Checks everything. The model is sound when no error was recorded.
pub(crate) fn check(items: &[Item], sources: &Sources, sink: &mut Sink) -> Model {
    let mut checker = Checker {
        sources,
        sink,
        scopes: Scopes::default(),
        definitions: Vec::new(),
        spans: Vec::new(),
        completed: Vec::new(),
        clock: 0,
        explicit_ids: HashMap::new(),
        prefix: Prefix::default(),
        type_prefixes: HashMap::new(),
        early_type_prefixes: Vec::new(),
        is_at_end: false,
        file_prefixes: Vec::new(),
        string_bytes: 0,
        alias_roots: HashMap::new(),
        incomplete: HashMap::new(),
        declared_annotations: HashMap::new(),
        unknown_annotations: HashSet::new(),
        local: HashSet::new(),
        components: Components::default(),
        templates: Templates::default(),
        depth: 0,
        size: 0,
    };
    checker.items(Scopes::FILE, items);
    checker.check_all_defined();
    checker.set_early_type_prefixes();
    checker.apply_type_prefixes();
    checker.check_ids();
    if checker.sink.has_errors() {
        return Model::default();
    }
    order::model(checker.definitions, &checker.completed)
}

struct Checker<'a> {
    sources: &'a Sources,
    sink: &'a mut Sink,
    scopes: Scopes,
    /// In order of introduction, which is not yet that of the model.
    definitions: Vec<Definition>,
    /// The place of each definition's name.
    spans: Vec<Span>,
    /// The time on `clock` at which each definition was complete.
    completed: Vec<u32>,
    clock: u32,
    /// Definitions with an explicit repository identifier, and its place.
    explicit_ids: HashMap<DefId, Span>,
    /// The prefix of repository identifiers here.
    prefix: Prefix,
    /// The prefixes by `typeprefix` of modules, interfaces and value types, and their places.
    type_prefixes: HashMap<DefId, (Rc<str>, Span)>,
    /// Each `typeprefix` before its definition: scope, name, prefix and place.
    early_type_prefixes: Vec<(ScopeId, ast::ScopedName, Rc<str>, Span)>,
    /// Whether everything was read.
    is_at_end: bool,
    /// The prefixes of the files around the one that is being read.
    file_prefixes: Vec<Prefix>,
    /// Bytes of all string constants.
    string_bytes: usize,
    /// The end of each chain of typedefs.
    alias_roots: HashMap<DefId, DefId>,
    /// Types that are only complete when a declared struct or union is.
    incomplete: HashMap<DefId, Incomplete>,
    /// The declared annotations, by scope and name in lower case.
    declared_annotations: HashMap<(ScopeId, Rc<str>), DefId>,
    /// The unknown annotations that were reported.
    unknown_annotations: HashSet<String>,
    /// The definitions that are local types.
    local: HashSet<DefId>,
    components: Components,
    templates: Templates,
    /// The nesting depth of modules and instances.
    depth: usize,
    /// The approximate size of the model in bytes.
    size: usize,
}

/// The maximum size of the model in bytes, approximately.
const MAX_MODEL: usize = 256 * 1024 * 1024;

impl Checker<'_> {
    fn items(&mut self, scope: ScopeId, items: &[Item]) {
        for item in items {
            if self.is_exhausted() {
                return;
            }
            match item {
                Item::Module(module) => self.module(scope, module),
                Item::Interface(interface) => self.interface(scope, interface),
                Item::InterfaceForward(head) => self.interface_forward(scope, head),
                Item::Struct(definition) => {
                    self.structure(scope, definition);
                }
                Item::StructForward(meta, name) => self.struct_forward(scope, meta, name),
                Item::UnionForward(meta, name) => self.union_forward(scope, meta, name),
                Item::Union(definition) => {
                    self.union(scope, definition);
                }
                Item::Native(meta, name) => self.native(scope, meta, name),
                Item::Bitmask(definition) => self.bitmask(scope, definition),
                Item::Bitset(definition) => self.bitset(scope, definition),
                Item::Annotation(declaration) => self.annotation_declaration(scope, declaration),
                Item::Exception(definition) => self.exception(scope, definition),
                Item::Enum(definition) => {
                    self.enumeration(scope, definition);
                }
                Item::Typedef(definition) => self.typedef(scope, definition),
                Item::Const(definition) => self.constant(scope, definition),
                Item::Operation(operation) => self.operation(scope, operation),
                Item::Attribute(attribute) => self.attribute(scope, attribute),
                Item::Value(value) => self.value(scope, value),
                Item::ValueForward(head) => self.value_forward(scope, head),
                Item::ValueBox(definition) => self.value_box(scope, definition),
                Item::State(state) => self.state(scope, state),
                Item::Factory(factory) => self.factory(scope, factory),
                Item::Finder(finder) => self.home_operation(scope, finder, "FinderFailure"),
                Item::Component(component) => self.component(scope, component),
                Item::Home(home) => self.home(scope, home),
                Item::Port(port) => self.port(scope, port),
                Item::PortType(port_type) => self.port_type(scope, port_type),
                Item::PortTypeForward(name) => self.port_type_forward(scope, name),
                Item::Template(module) => self.template(scope, module),
                Item::Instance(instance) => self.instance(scope, instance),
                Item::Alias(alias) => self.template_alias(scope, alias),
                Item::Import(import) => self.import(import),
                Item::TypeId { name, id, span } => self.set_id(scope, name, id, *span),
                Item::TypePrefix { name, prefix, span } => {
                    self.set_type_prefix(scope, name, prefix, *span);
                }
                Item::Event(event) => self.event(scope, event),
            }
        }
    }

    fn event(&mut self, scope: ScopeId, event: &Event) {
        match event {
            Event::FileEnter => {
                let outer = std::mem::take(&mut self.prefix);
                self.file_prefixes.push(outer);
            }
            Event::FileLeave => {
                if let Some(outer) = self.file_prefixes.pop() {
                    self.prefix = outer;
                }
            }
            Event::Prefix { prefix, span } => {
                if self.check_prefix(prefix, *span) {
                    self.prefix = Prefix {
                        text: Rc::clone(prefix),
                        depth: self.scopes.get(scope).path.len(),
                    };
                }
            }
            Event::Id { name, id, span } => self.set_id(scope, name, id, *span),
            Event::Version {
                name,
                version,
                span,
            } => self.set_version(scope, name, version, *span),
        }
    }

    fn module(&mut self, scope: ScopeId, module: &ast::Module) {
        let doc = self.doc(&module.meta);
        let own = self.scopes.own(scope, &module.name.name);
        let own = own.map(|entity| self.scopes.entity(entity));
        let own = own.filter(|entity| entity.name == module.name.name);
        let inner = match own.map(|entity| entity.kind) {
            Some(EntityKind::Module { scope, def }) => {
                let written = &module.meta.annotations;
                let annotations = self.annotations_of(scope, written, Target::Module, None);
                let definition = &mut self.definitions[def.0 as usize];
                definition.annotations.extend(annotations);
                if definition.doc.is_none() {
                    definition.doc = doc;
                }
                scope
            }
            _ => {
                let def = self.introduce_module(scope, &module.name, &module.meta);
                let inner = self
                    .scopes
                    .add(ScopeKind::Module, scope, Some(def), &module.name);
                let kind = EntityKind::Module { scope: inner, def };
                self.declare(scope, &module.name, kind, codes::DUPLICATE);
                inner
            }
        };
        self.module_items(inner, &module.items, module.name.span);
    }

    fn introduce_module(&mut self, scope: ScopeId, name: &Ident, meta: &Meta) -> DefId {
        let members = Vec::new();
        self.introduce(scope, name, meta, DefKind::Module { members })
    }

    /// Checks the contents of a module or of an instance of a template module.
    fn module_items(&mut self, inner: ScopeId, items: &[Item], at: Span) {
        if self.deeper(at) {
            let outer = self.prefix.clone();
            self.items(inner, items);
            self.prefix = outer;
        }
        self.depth -= 1;
    }

    fn native(&mut self, scope: ScopeId, meta: &Meta, name: &Ident) {
        let def = self.introduce(scope, name, meta, DefKind::Native);
        self.declare(scope, name, EntityKind::Native(def), codes::DUPLICATE);
    }

    fn typedef(&mut self, scope: ScopeId, definition: &ast::Typedef) {
        let ty = self.resolve_type(scope, &definition.ty, true);
        let ty = ty.map(|ty| self.marked(ty, &definition.meta));
        for declarator in &definition.declarators {
            if self.is_exhausted() {
                return;
            }
            let ty = ty
                .clone()
                .and_then(|ty| self.with_dimensions(scope, ty, declarator));
            let Some(ty) = ty else {
                self.declare(
                    scope,
                    &declarator.name,
                    EntityKind::Refused,
                    codes::DUPLICATE,
                );
                continue;
            };
            let aliased = match &ty {
                Type::Named(def) => Some(*def),
                _ => None,
            };
            let incomplete = self.incomplete_part(&ty);
            let kind = DefKind::Typedef { ty };
            let def = self.introduce(scope, &declarator.name, &definition.meta, kind);
            self.incomplete.extend(incomplete.map(|found| (def, found)));
            if let Some(aliased) = aliased {
                let root = self.alias_roots.get(&aliased).copied().unwrap_or(aliased);
                self.alias_roots.insert(def, root);
            }
            self.declare(
                scope,
                &declarator.name,
                EntityKind::Typedef(def),
                codes::DUPLICATE,
            );
        }
    }

    fn constant(&mut self, scope: ScopeId, definition: &ast::ConstDef) {
        let value = self
            .const_type(scope, &definition.ty)
            .and_then(|ty| Some((self.evaluate_as(scope, &definition.value, &ty)?, ty)));
        let Some((value, ty)) = value else {
            self.declare(
                scope,
                &definition.name,
                EntityKind::Refused,
                codes::DUPLICATE,
            );
            return;
        };
        let ty = match value {
            ConstValue::Fixed { digits, scale, .. } if ty == fixed::ANY_FIXED => {
                Type::Fixed { digits, scale }
            }
            _ => ty,
        };
        self.check_integral(scope, &definition.value, &ty);
        let kind = DefKind::Const { ty, value };
        let def = self.introduce(scope, &definition.name, &definition.meta, kind);
        self.declare(
            scope,
            &definition.name,
            EntityKind::Const(def),
            codes::DUPLICATE,
        );
    }

    /// Adds a definition, complete unless [`Self::complete`] follows.
    fn introduce(&mut self, scope: ScopeId, name: &Ident, meta: &Meta, kind: DefKind) -> DefId {
        let outer = self.scopes.get(scope);
        let mut scoped_name = outer.path.clone();
        scoped_name.push(name.name.to_string());
        let parent = outer.def;
        let repository_id = match kind {
            DefKind::Module { .. } | DefKind::Annotation { .. } => String::new(),
            _ => self.prefix.id(&scoped_name),
        };
        let ty = match &kind {
            DefKind::Typedef { ty } | DefKind::Const { ty, .. } => Some(ty),
            _ => None,
        };
        let annotations = self.annotations_of(scope, &meta.annotations, Target::of(&kind), ty);
        let doc = self.doc(meta);
        let names: usize = scoped_name.iter().map(|part| part.len() + 32).sum();
        self.charge(2 * names + 128, name.span);
        self.definitions.push(Definition {
            name: name.name.to_string(),
            scoped_name,
            repository_id,
            parent,
            location: self.sources.location(name.span),
            in_main_file: self.sources.is_main(name.span),
            doc,
            annotations,
            kind,
        });
        self.spans.push(name.span);
        self.completed.push(self.clock);
        self.clock += 1;
        let def = DefId(self.definitions.len() as u32 - 1);
        self.note_local(def);
        def
    }

    /// Completes a definition. Everything that it uses was introduced before.
    fn complete(&mut self, def: DefId, kind: DefKind) {
        self.definitions[def.0 as usize].kind = kind;
        self.close(def);
    }

    /// Ends a definition that was completed in its place.
    fn close(&mut self, def: DefId) {
        self.completed[def.0 as usize] = self.clock;
        self.clock += 1;
        self.note_local(def);
    }

    fn doc(&mut self, meta: &Meta) -> Option<String> {
        let doc = meta.doc.as_deref()?;
        self.size += doc.len();
        (self.size <= MAX_MODEL).then(|| doc.to_owned())
    }

    /// Accounts for an addition to the model.
    fn charge(&mut self, bytes: usize, at: Span) {
        self.size += bytes;
        if self.size > MAX_MODEL {
            self.sink.stop(Diagnostic::error(
                codes::MODEL_TOO_LARGE,
                at,
                "the definitions need more than 256 MiB",
                "checking stops here",
            ));
        }
    }

    /// Returns whether to stop because of too many errors or definitions.
    fn is_exhausted(&self) -> bool {
        self.sink.is_full() || self.size > MAX_MODEL
    }

    /// Reports names that were declared and never defined.
    fn check_all_defined(&mut self) {
        if self.sink.is_full() {
            return;
        }
        for entity in self.scopes.declared() {
            // A built-in file may declare names that another built-in file defines.
            if builtin::is_built_in(self.sources.path(entity.span)) {
                continue;
            }
            let what = entity.name.clone();
            match entity.kind {
                EntityKind::Struct {
                    state: scope::StructState::Declared,
                    union,
                    ..
                } => self.sink.push(
                    Diagnostic::error(
                        codes::NEVER_DEFINED,
                        entity.span,
                        format!(
                            "{} `{what}` is declared but never defined",
                            if union { "union" } else { "struct" }
                        ),
                        "declared here",
                    )
                    .hint("define it in the same scope"),
                ),
                EntityKind::Interface { scope: None, .. } => self.sink.push(
                    Diagnostic::warning(
                        codes::FORWARD_ONLY,
                        entity.span,
                        format!("interface `{what}` is declared but never defined"),
                        "declared here",
                    )
                    .hint("include the file that defines it"),
                ),
                EntityKind::Value { scope: None, .. } => self.sink.push(
                    Diagnostic::warning(
                        codes::FORWARD_ONLY,
                        entity.span,
                        format!("value type `{what}` is declared but never defined"),
                        "declared here",
                    )
                    .hint("include the file that defines it"),
                ),
                _ => {}
            }
        }
    }
}
