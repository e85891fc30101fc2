//! The Rust names of a whole model, made once and free of collisions.

use std::collections::{HashMap, HashSet};

use chronorb_idl::model::{
    Annotation, Attribute, ConstValue, DefId, DefKind, Definition, Factory, Interface, Location,
    Model, Operation, Param, ParamMode, Type,
};

use super::method::{Method, MethodError, MethodParam};
use super::parts::{BITMASK_ITEMS, BITSET_ITEMS, Part};
use super::{Claims, Place, ami, escaped, pascal, screaming, snake};
use crate::generate::GenerateError;
use crate::shape;

/// The Rust names of all definitions, and the methods of all interfaces.
#[derive(Debug)]
pub(crate) struct Names<'m> {
    /// By definition: the modules around the item, then its own name.
    items: Vec<(Vec<String>, String)>,
    /// The names of all items in all modules.
    taken: HashSet<String>,
    /// By interface: its own operations and attribute accessors, in order.
    methods: HashMap<DefId, Vec<Method<'m>>>,
    /// By value type: its initialisers, in order.
    factories: HashMap<DefId, Vec<Method<'m>>>,
    /// By typedef: the constant for its type code.
    type_codes: HashMap<DefId, String>,
}

impl<'m> Names<'m> {
    /// Names everything in the model. Fails if two definitions get the same name in the same scope.
    ///
    /// With `ami`, operations without annotations about it can be called asynchronously.
    /// With `owned_servants`, interfaces have a trait for those.
    pub(crate) fn new(
        model: &'m Model,
        ami: bool,
        owned_servants: bool,
    ) -> Result<Self, GenerateError> {
        let mut builder = Builder {
            model,
            ami,
            owned_servants,
            items: vec![(Vec::new(), String::new()); model.definitions.len()],
            claims: HashMap::new(),
            methods: HashMap::new(),
            factories: HashMap::new(),
            type_codes: HashMap::new(),
        };
        builder.name_definitions(&model.roots, &[])?;
        builder.name_type_codes()?;
        builder.name_methods()?;
        builder.check_methods()?;
        Ok(Self {
            taken: builder.items.iter().map(|(_, name)| name.clone()).collect(),
            items: builder.items,
            methods: builder.methods,
            factories: builder.factories,
            type_codes: builder.type_codes,
        })
    }

    /// Returns the constant for the type code of a typedef, beside it.
    pub(crate) fn type_code(&self, typedef: DefId) -> &str {
        self.type_codes.get(&typedef).map_or("", String::as_str)
    }

    /// Returns the modules around the Rust item of the definition.
    pub(crate) fn module(&self, id: DefId) -> &[String] {
        &self.items[id.0 as usize].0
    }

    /// Returns whether some definition has that name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// Returns the Rust name of the definition.
    pub(crate) fn name(&self, id: DefId) -> &str {
        &self.items[id.0 as usize].1
    }

    /// Returns the interface's own methods.
    pub(crate) fn own_methods(&self, interface: DefId) -> &[Method<'m>] {
        self.methods.get(&interface).map_or(&[], Vec::as_slice)
    }

    /// Returns the initialisers of a value type.
    pub(crate) fn factories(&self, value: DefId) -> &[Method<'m>] {
        self.factories.get(&value).map_or(&[], Vec::as_slice)
    }

    /// Returns the methods of its bases and its own.
    pub(crate) fn all_methods(&self, id: DefId, interface: &Interface) -> Vec<&Method<'m>> {
        let bases = interface.all_bases.iter().copied();
        bases
            .chain([id])
            .flat_map(|id| self.own_methods(id))
            .collect()
    }
}

struct Builder<'m> {
    model: &'m Model,
    ami: bool,
    owned_servants: bool,
    items: Vec<(Vec<String>, String)>,
    /// The names taken in each module; those of constants are separate.
    claims: HashMap<(Vec<String>, Space), Claims>,
    methods: HashMap<DefId, Vec<Method<'m>>>,
    factories: HashMap<DefId, Vec<Method<'m>>>,
    type_codes: HashMap<DefId, String>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Space {
    Types,
    Values,
}

impl<'m> Builder<'m> {
    fn name_definitions(&mut self, ids: &[DefId], module: &[String]) -> Result<(), GenerateError> {
        for &id in ids {
            let definition = self.model.get(id);
            let place = self.place_of(definition);
            let name = self.rust_name(definition)?;
            self.items[id.0 as usize] = (module.to_vec(), name.clone());
            match &definition.kind {
                DefKind::Module { members } => {
                    self.claim(module, Space::Types, &name, &place)?;
                    self.name_definitions(members, &inner(module, name))?;
                }
                DefKind::Const { .. } => self.claim(module, Space::Values, &name, &place)?,
                DefKind::Interface(interface) => {
                    let suffixes: &[&str] = match (interface.local, interface.is_abstract) {
                        (true, _) => &[""],
                        (_, true) => &["", "Ref", "Servant", "Skeleton"],
                        _ => &["", "Servant", "Skeleton"],
                    };
                    let owned = (self.owned_servants && !interface.local).then_some("OwnedServant");
                    for suffix in suffixes.iter().copied().chain(owned) {
                        self.claim(module, Space::Types, &(name.clone() + suffix), &place)?;
                    }
                    self.name_nested(&interface.nested, module, &name, &place)?;
                }
                DefKind::Struct { nested, .. } | DefKind::Exception { nested, .. } => {
                    self.claim_with_twin(module, id, &name, &place)?;
                    let members = shape::parts(self.model, id);
                    self.check_parts(members.map(Part::of_struct), &[])?;
                    self.name_nested(nested, module, &name, &place)?;
                }
                DefKind::Union(union) => {
                    self.claim_with_twin(module, id, &name, &place)?;
                    let members = shape::parts(self.model, id);
                    self.check_parts(members.map(Part::of_union), &[])?;
                    self.name_nested(&union.nested, module, &name, &place)?;
                }
                DefKind::Enum { enumerators, .. } => {
                    self.claim(module, Space::Types, &name, &place)?;
                    let enumerators = enumerators.iter();
                    let parts = enumerators.map(|e| Part::of_enum(e, &definition.location));
                    self.check_parts(parts, &[])?;
                }
                DefKind::Bitmask { flags, .. } => {
                    self.claim(module, Space::Types, &name, &place)?;
                    self.check_parts(flags.iter().map(Part::of_bitmask), BITMASK_ITEMS)?;
                }
                DefKind::Bitset { .. } => {
                    self.claim(module, Space::Types, &name, &place)?;
                    let fields = shape::bit_fields(self.model, id);
                    let parts = fields.into_iter().flat_map(Part::of_bitset);
                    self.check_parts(parts, BITSET_ITEMS)?;
                }
                DefKind::Value(value) => {
                    for suffix in ["", "State", "Factory", "Value"] {
                        self.claim(module, Space::Types, &(name.clone() + suffix), &place)?;
                    }
                    let members = value.state.iter().map(|state| &state.member);
                    self.check_parts(members.map(Part::of_struct), &[])?;
                    self.name_nested(&value.nested, module, &name, &place)?;
                }
                DefKind::ValueBox { nested, .. } => {
                    self.claim(module, Space::Types, &name, &place)?;
                    self.name_nested(nested, module, &name, &place)?;
                }
                DefKind::Native => self.claim(module, Space::Types, &name, &place)?,
                DefKind::Typedef { .. } => self.claim_with_twin(module, id, &name, &place)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Names the definitions inside an interface, struct or exception, which are in a module with
    /// its name.
    fn name_nested(
        &mut self,
        nested: &[DefId],
        module: &[String],
        owner: &str,
        place: &Place,
    ) -> Result<(), GenerateError> {
        if nested.is_empty() {
            return Ok(());
        }
        let name = snake(owner);
        self.claim(module, Space::Types, &name, place)?;
        self.name_definitions(nested, &inner(module, name))
    }

    /// Checks that the Rust names within a type are different from each other, and from those of
    /// generated items.
    fn check_parts<'p>(
        &self,
        parts: impl Iterator<Item = Part<'p>>,
        generated: &[&str],
    ) -> Result<(), GenerateError> {
        let mut claims = Claims::default();
        for part in parts {
            let place = self.place(part.what, part.name, part.location);
            renamed(part.annotations, &place)?;
            if generated.contains(&part.rust_name.as_str()) {
                let what = format!("what is generated as `{}`", part.rust_name);
                let first = Place {
                    what,
                    at: place.at.clone(),
                };
                claims.claim(&part.rust_name, first)?;
            }
            claims.claim(&part.rust_name, place)?;
        }
        Ok(())
    }

    /// Claims the name of a type, and that of its twin if it has one.
    fn claim_with_twin(
        &mut self,
        module: &[String],
        id: DefId,
        name: &str,
        place: &Place,
    ) -> Result<(), GenerateError> {
        self.claim(module, Space::Types, name, place)?;
        if shape::has_twin(self.model, &Type::Named(id)) {
            self.claim(module, Space::Types, &format!("{name}Buf"), place)?;
        }
        Ok(())
    }

    /// Names the constants beside typedefs, after all names of the IDL.
    fn name_type_codes(&mut self) -> Result<(), GenerateError> {
        for (id, definition) in self.model.iter() {
            let DefKind::Typedef { .. } = definition.kind else {
                continue;
            };
            let (module, name) = self.items[id.0 as usize].clone();
            let mut name = screaming(&name) + "_TYPE_CODE";
            let values = self.claims.get(&(module.clone(), Space::Values));
            while values.is_some_and(|values| values.is_taken(&name)) {
                name.push('_');
            }
            self.claim(&module, Space::Values, &name, &self.place_of(definition))?;
            self.type_codes.insert(id, name);
        }
        Ok(())
    }

    /// Names the methods of all interfaces, after all definitions have their names: the error enums
    /// and result structs get unused ones.
    fn name_methods(&mut self) -> Result<(), GenerateError> {
        let model = self.model;
        for (id, definition) in model.iter() {
            let (operations, attributes) = match &definition.kind {
                DefKind::Interface(interface) => (&interface.operations, &interface.attributes),
                DefKind::Value(value) => (&value.operations, &value.attributes),
                _ => continue,
            };
            let mut methods = self.operations(id, operations)?;
            self.attributes(id, attributes, &mut methods)?;
            self.name_errors(id, &mut methods)?;
            self.name_outs(id, &mut methods)?;
            self.name_replies(id, &mut methods)?;
            self.methods.insert(id, methods);
            if let DefKind::Value(value) = &definition.kind {
                let mut factories = self.initialisers(id, &value.factories)?;
                self.name_errors(id, &mut factories)?;
                self.factories.insert(id, factories);
            }
        }
        Ok(())
    }

    fn operations(
        &self,
        id: DefId,
        operations: &'m [Operation],
    ) -> Result<Vec<Method<'m>>, GenerateError> {
        let mut methods = Vec::new();
        for operation in operations {
            let place = self.place("operation", &operation.name, &operation.location);
            let rust_name =
                renamed(&operation.annotations, &place)?.unwrap_or_else(|| snake(&operation.name));
            let (mut params, claims) = self.params(&operation.params, &operation.location)?;
            if !operation.context.is_empty() {
                let mut name = "context".to_owned();
                while claims.is_taken(&name) {
                    name.push('_');
                }
                params.push(MethodParam::of_context(name, &operation.context));
            }
            methods.push(Method {
                interface: id,
                what: format!("operation `{}`", operation.name),
                wire_name: operation.name.clone(),
                rust_name,
                doc: operation.doc.as_deref(),
                location: &operation.location,
                oneway: operation.oneway,
                ami: ami::annotated(self.model, id, &operation.annotations),
                result: operation.result.as_ref(),
                params,
                error: unnamed_error(&operation.raises),
                outs: None,
                reply: None,
            });
        }
        Ok(methods)
    }

    fn params(
        &self,
        params: &'m [Param],
        location: &Location,
    ) -> Result<(Vec<MethodParam<'m>>, Claims), GenerateError> {
        let mut claims = Claims::default();
        let mut named = Vec::new();
        for param in params {
            let place = self.place("parameter", &param.name, location);
            let rust_name =
                renamed(&param.annotations, &place)?.unwrap_or_else(|| escaped(&param.name, snake));
            claims.claim(&rust_name, place)?;
            named.push(MethodParam {
                rust_name,
                mode: param.mode,
                ty: &param.ty,
                lazy: param.annotations.iter().any(|mark| mark.name == "rt::lazy"),
                clause: None,
            });
        }
        Ok((named, claims))
    }

    fn initialisers(
        &self,
        id: DefId,
        factories: &'m [Factory],
    ) -> Result<Vec<Method<'m>>, GenerateError> {
        let mut claims = Claims::default();
        let mut methods = Vec::new();
        for factory in factories {
            let place = self.place("factory", &factory.name, &factory.location);
            let rust_name =
                renamed(&factory.annotations, &place)?.unwrap_or_else(|| snake(&factory.name));
            if rust_name == "unmarshal" {
                let mut first = place.clone();
                first.what = "`unmarshal` of every factory".to_owned();
                claims.claim(&rust_name, first)?;
            }
            claims.claim(&rust_name, place)?;
            methods.push(Method {
                interface: id,
                what: format!("factory `{}`", factory.name),
                wire_name: factory.name.clone(),
                rust_name,
                doc: factory.doc.as_deref(),
                location: &factory.location,
                oneway: false,
                ami: Some(false),
                result: None,
                params: self.params(&factory.params, &factory.location)?.0,
                error: unnamed_error(&factory.raises),
                outs: None,
                reply: None,
            });
        }
        Ok(methods)
    }

    fn attributes(
        &self,
        id: DefId,
        attributes: &'m [Attribute],
        methods: &mut Vec<Method<'m>>,
    ) -> Result<(), GenerateError> {
        for attribute in attributes {
            let place = self.place("attribute", &attribute.name, &attribute.location);
            let name =
                renamed(&attribute.annotations, &place)?.unwrap_or_else(|| snake(&attribute.name));
            let setter = format!("set_{}", name.trim_end_matches('_'));
            let getter = Method {
                interface: id,
                what: format!("attribute `{}`", attribute.name),
                wire_name: format!("_get_{}", attribute.name),
                rust_name: name,
                doc: attribute.doc.as_deref(),
                location: &attribute.location,
                oneway: false,
                ami: ami::annotated(self.model, id, &attribute.annotations),
                result: Some(&attribute.ty),
                params: Vec::new(),
                error: unnamed_error(&attribute.get_raises),
                outs: None,
                reply: None,
            };
            let setter = Method {
                what: format!("setting of attribute `{}`", attribute.name),
                wire_name: format!("_set_{}", attribute.name),
                rust_name: setter,
                result: None,
                params: vec![MethodParam {
                    rust_name: "value".to_owned(),
                    mode: ParamMode::In,
                    ty: &attribute.ty,
                    lazy: false,
                    clause: None,
                }],
                error: unnamed_error(&attribute.set_raises),
                ..getter.clone()
            };
            methods.push(getter);
            if !attribute.readonly {
                methods.push(setter);
            }
        }
        Ok(())
    }

    fn name_errors(&mut self, id: DefId, methods: &mut [Method<'m>]) -> Result<(), GenerateError> {
        let mut enums: HashMap<Vec<DefId>, String> = HashMap::new();
        for method in methods {
            let free = self.free_name(id, method, "Error");
            let place = self.place_of_method(method);
            let Some(error) = &mut method.error else {
                continue;
            };
            error.rust_name = free;
            let mut key = error.raises.clone();
            key.sort_unstable();
            error.alias_of = enums.get(&key).cloned();
            if error.alias_of.is_none() {
                enums.insert(key, error.rust_name.clone());
            }
            let names = [error.rust_name.clone(), error.rust_name.clone() + "Buf"];
            self.claim_beside(id, &names, &place)?;
        }
        Ok(())
    }

    fn name_outs(&mut self, id: DefId, methods: &mut [Method<'m>]) -> Result<(), GenerateError> {
        for method in methods {
            let outs = method.params.iter().filter(|p| p.mode == ParamMode::Out);
            if usize::from(method.result.is_some()) + outs.count() <= 3 {
                continue;
            }
            let rust_name = self.free_name(id, method, "Out");
            let names = [rust_name.clone(), rust_name.clone() + "Buf"];
            self.claim_beside(id, &names, &self.place_of_method(method))?;
            method.outs = Some(rust_name);
        }
        Ok(())
    }

    /// Names the result structs and reply handlers of asynchronous calls.
    fn name_replies(&mut self, id: DefId, methods: &mut [Method<'m>]) -> Result<(), GenerateError> {
        let (definition, ami) = (self.model.get(id), self.ami);
        let mut has_handler = false;
        for method in methods.iter_mut().filter(|m| m.is_asynchronous(ami)) {
            has_handler = true;
            if method.inouts().next().is_none() || method.outputs().len() <= 3 {
                continue;
            }
            let rust_name = self.free_name(id, method, "Reply");
            let names = std::slice::from_ref(&rust_name);
            self.claim_beside(id, names, &self.place_of_method(method))?;
            method.reply = Some(rust_name);
        }
        if has_handler {
            let name = self.items[id.0 as usize].1.clone() + "ReplyHandler";
            self.claim_beside(id, &[name], &self.place_of(definition))?;
        }
        Ok(())
    }

    /// Returns `GetQuoteError`, or `QuoterGetQuoteError` if that is taken.
    fn free_name(&self, interface: DefId, method: &Method<'m>, suffix: &str) -> String {
        let (module, interface) = &self.items[interface.0 as usize];
        let name = pascal(&method.rust_name) + suffix;
        let taken = self
            .claims
            .get(&(module.clone(), Space::Types))
            .is_some_and(|claims| claims.is_taken(&name) || claims.is_taken(&format!("{name}Buf")));
        if taken {
            format!("{interface}{name}")
        } else {
            name
        }
    }

    /// Claims type names in the module around the interface.
    fn claim_beside(
        &mut self,
        interface: DefId,
        names: &[String],
        place: &Place,
    ) -> Result<(), GenerateError> {
        let module = self.items[interface.0 as usize].0.clone();
        for name in names {
            self.claim(&module, Space::Types, name, place)?;
        }
        Ok(())
    }

    /// Checks that the methods of a handle, including inherited and generated ones, have different
    /// names.
    fn check_methods(&self) -> Result<(), GenerateError> {
        for (id, definition) in self.model.iter() {
            let DefKind::Interface(interface) = &definition.kind else {
                continue;
            };
            let mut claims = Claims::default();
            let generated = if interface.local { &[] } else { HANDLE_METHODS };
            for name in generated {
                let mut place = self.place_of(definition);
                place.what = format!("`{name}` of every object reference");
                claims.claim(name, place)?;
            }
            let all = interface.all_bases.iter().copied().chain([id]);
            for method in all.filter_map(|id| self.methods.get(&id)).flatten() {
                let place = self.place_of_method(method);
                claims.claim(&method.rust_name, place.clone())?;
                if method.has_twin(self.model) {
                    claims.claim(&format!("{}_in", method.rust_name), place.clone())?;
                }
                if method.is_asynchronous(self.ami) {
                    claims.claim(&format!("begin_{}", method.rust_name), place.clone())?;
                    claims.claim(&format!("send_{}", method.rust_name), place)?;
                }
            }
        }
        Ok(())
    }

    fn rust_name(&self, definition: &Definition) -> Result<String, GenerateError> {
        if let Some(name) = renamed(&definition.annotations, &self.place_of(definition))? {
            return Ok(name);
        }
        Ok(match definition.kind {
            DefKind::Module { .. } => snake(&definition.name),
            DefKind::Const { .. } => screaming(&definition.name),
            _ => pascal(&definition.name),
        })
    }

    fn claim(
        &mut self,
        module: &[String],
        space: Space,
        name: &str,
        place: &Place,
    ) -> Result<(), GenerateError> {
        let claims = self.claims.entry((module.to_vec(), space)).or_default();
        claims.claim(name, place.clone())
    }

    fn place_of(&self, definition: &Definition) -> Place {
        let what = shape::kind_name(&definition.kind);
        self.place(what, &definition.name, &definition.location)
    }

    fn place_of_method(&self, method: &Method<'_>) -> Place {
        Place {
            what: method.what.clone(),
            at: Place::at(self.model, method.location),
        }
    }

    fn place(&self, what: &str, name: &str, location: &Location) -> Place {
        Place::of(self.model, what, name, location)
    }
}

fn inner(module: &[String], name: String) -> Vec<String> {
    let mut inner = module.to_vec();
    inner.push(name);
    inner
}

/// Returns an error enum whose name is not determined yet.
fn unnamed_error(raises: &[DefId]) -> Option<MethodError> {
    (!raises.is_empty()).then(|| MethodError {
        rust_name: String::new(),
        raises: raises.to_vec(),
        alias_of: None,
    })
}

/// Returns the name that `@rust::name("x")` gives, if it is one.
fn renamed(annotations: &[Annotation], place: &Place) -> Result<Option<String>, GenerateError> {
    let Some(name) = rename(annotations) else {
        return Ok(None);
    };
    // Names that begin with two underscores are reserved for generated code.
    if syn::parse_str::<syn::Ident>(&name).is_err() || name.starts_with("__") {
        return Err(GenerateError::InvalidName {
            name,
            place: place.clone(),
        });
    }
    Ok(Some(name))
}

/// Returns the string in `@rust::name("x")`; `None` if it holds no string.
pub(crate) fn rename(annotations: &[Annotation]) -> Option<String> {
    let annotation = annotations.iter().find(|a| a.name == "rust::name")?;
    Some(match annotation.params.as_slice() {
        [(_, ConstValue::String(name))] => name.clone(),
        _ => String::new(),
    })
}

/// The methods of every object reference besides its operations.
const HANDLE_METHODS: &[&str] = &["as_object", "narrow", "unchecked_narrow"];
