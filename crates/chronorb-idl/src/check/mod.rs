//! From the syntax tree to the model: names, types, constants, inheritance.

mod bases;
mod consts;
mod fixed;
mod ids;
mod interfaces;
mod local;
mod marks;
mod order;
mod scope;
mod structs;
mod types;
mod unions;
mod values;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::ast::{self, Event, Ident, Item, Meta};
use crate::codes;
use crate::diagnostics::{Diagnostic, Sink};
use crate::model::{Annotation, ConstValue, DefId, DefKind, Definition, Model, Type};
use crate::source::{Sources, Span};

use ids::Prefix;
use scope::{EntityId, EntityKind, ScopeId, ScopeKind, Scopes};

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
        file_prefixes: Vec::new(),
        string_bytes: 0,
        alias_roots: HashMap::new(),
        incomplete: HashMap::new(),
        local: HashSet::new(),
        size: 0,
    };
    checker.items(Scopes::FILE, items);
    checker.check_all_defined();
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
    /// Where the name of each definition stands.
    spans: Vec<Span>,
    /// When each definition was complete, on `clock`.
    completed: Vec<u32>,
    clock: u32,
    /// Definitions whose repository identifier was given, and where.
    explicit_ids: HashMap<DefId, Span>,
    /// The prefix of repository identifiers here.
    prefix: Prefix,
    /// What `typeprefix` gave to modules and interfaces.
    type_prefixes: HashMap<DefId, Rc<str>>,
    /// The prefixes of the files around the one that is being read.
    file_prefixes: Vec<Prefix>,
    /// Bytes of all string constants.
    string_bytes: usize,
    /// The end of each chain of typedefs.
    alias_roots: HashMap<DefId, DefId>,
    /// What is complete only when a struct or union is that was declared, by that.
    incomplete: HashMap<DefId, EntityId>,
    /// The definitions that are local types.
    local: HashSet<DefId>,
    /// About how many bytes the model has.
    size: usize,
}

/// The greatest size of the model in bytes, about.
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
                Item::TypeId { name, id, span } => self.set_id(scope, name, id, *span),
                Item::TypePrefix { name, prefix, span } => {
                    self.set_type_prefix(scope, name, prefix, *span);
                }
                Item::Refused(name) => {
                    self.declare(scope, name, EntityKind::Refused, codes::DUPLICATE);
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
        let inner = match self.scopes.own(scope, &module.name.name) {
            Some(entity)
                if self.scopes.entity(entity).name == module.name.name
                    && let EntityKind::Module { scope, def } = self.scopes.entity(entity).kind =>
            {
                let annotations = self.annotations(scope, &module.meta.annotations);
                let definition = &mut self.definitions[def.0 as usize];
                definition.annotations.extend(annotations);
                if definition.doc.is_none() {
                    definition.doc = doc;
                }
                scope
            }
            _ => {
                let kind = DefKind::Module {
                    members: Vec::new(),
                };
                let def = self.introduce(scope, &module.name, &module.meta, kind);
                let inner = self
                    .scopes
                    .add(ScopeKind::Module, scope, Some(def), &module.name);
                let kind = EntityKind::Module { scope: inner, def };
                self.declare(scope, &module.name, kind, codes::DUPLICATE);
                inner
            }
        };
        let outer = self.prefix.clone();
        self.items(inner, &module.items);
        self.prefix = outer;
    }

    fn enumeration(&mut self, scope: ScopeId, definition: &ast::EnumDef) -> DefId {
        let def = self.introduce(
            scope,
            &definition.name,
            &definition.meta,
            enum_of(Vec::new()),
        );
        self.declare(
            scope,
            &definition.name,
            EntityKind::Enum(def),
            codes::DUPLICATE,
        );
        let mut enumerators = Vec::with_capacity(definition.enumerators.len());
        for (index, (meta, name)) in definition.enumerators.iter().enumerate() {
            if let Some(annotation) = meta.annotations.first() {
                self.sink.push(Diagnostic::warning(
                    codes::ANNOTATION_IGNORED,
                    annotation.span,
                    "annotations of enumerators have no effect",
                    "ignored",
                ));
            }
            let kind = EntityKind::Enumerator(def, index as u32);
            self.declare(scope, name, kind, codes::DUPLICATE_ENUMERATOR);
            enumerators.push(crate::model::Enumerator {
                name: name.name.to_string(),
                doc: self.doc(meta),
                annotations: Vec::new(),
                value: index as u32,
            });
        }
        self.complete(def, enum_of(enumerators));
        def
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
            let part = self.incomplete_part(&ty);
            let kind = DefKind::Typedef { ty };
            let def = self.introduce(scope, &declarator.name, &definition.meta, kind);
            self.incomplete.extend(part.map(|part| (def, part)));
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
            DefKind::Module { .. } => String::new(),
            _ => self.prefix.id(&scoped_name),
        };
        let annotations = self.annotations(scope, &meta.annotations);
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

    /// Completes a definition: everything that it uses was introduced before this.
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

    /// Counts what is added to the model.
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

    /// Whether to stop: there are too many errors, or definitions.
    fn is_exhausted(&self) -> bool {
        self.sink.is_full() || self.size > MAX_MODEL
    }

    fn annotations(&mut self, scope: ScopeId, written: &[ast::Annotation]) -> Vec<Annotation> {
        written
            .iter()
            .map(|annotation| Annotation {
                name: annotation.name.clone(),
                params: annotation
                    .params
                    .iter()
                    .filter_map(|(key, value)| {
                        let value = self.annotation_value(scope, value)?;
                        Some((key.to_string(), value))
                    })
                    .collect(),
            })
            .collect()
    }

    /// Reports what was declared and never defined.
    fn check_all_defined(&mut self) {
        if self.sink.is_full() {
            return;
        }
        for entity in self.scopes.entities() {
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

fn enum_of(enumerators: Vec<crate::model::Enumerator>) -> DefKind {
    DefKind::Enum {
        enumerators,
        default: 0,
        bit_bound: 32,
    }
}
