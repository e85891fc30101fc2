//! The Rust names of a whole model, made once and free of collisions.

use std::collections::{HashMap, HashSet};

use chronorb_idl::model::{
    Annotation, Attribute, ConstValue, DefId, DefKind, Definition, Factory, Interface, Location,
    Model, Operation, Param, ParamMode, Type, ValueType,
};

use super::method::{Method, MethodError, MethodParam};
use super::parts::{BITMASK_ITEMS, BITSET_ITEMS, Part};
use super::scope::SecondName;
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
    /// By derived interface, and by the interface and the name on the wire of an inherited method:
    /// the method's name in the handle, if another one has its own.
    inherited: HashMap<DefId, InheritedNames>,
    second: Vec<SecondName>,
}

type InheritedNames = HashMap<(DefId, String), String>;

impl<'m> Names<'m> {
    /// Names everything in the model. Where two definitions would get the same name in the same
    /// scope, the second gets underscores behind it. Fails if that name is given by the IDL.
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
            inherited: HashMap::new(),
            second: Vec::new(),
        };
        builder.name_definitions(&model.roots, &[])?;
        builder.name_type_codes()?;
        builder.name_methods()?;
        Ok(Self {
            taken: builder.items.iter().map(|(_, name)| name.clone()).collect(),
            items: builder.items,
            methods: builder.methods,
            factories: builder.factories,
            type_codes: builder.type_codes,
            inherited: builder.inherited,
            second: builder.second,
        })
    }

    /// Returns the definitions whose names would have been those of others.
    pub(crate) fn into_second_names(self) -> Vec<SecondName> {
        self.second
    }

    /// Returns the name of an own or inherited method in the handle of an interface.
    pub(crate) fn in_handle<'n>(&'n self, interface: DefId, method: &'n Method<'_>) -> &'n str {
        let inherited = self.inherited.get(&interface).and_then(|names| {
            // Only few interfaces have such names.
            names.get(&(method.interface, method.wire_name.clone()))
        });
        inherited.unwrap_or(&method.rust_name)
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
    inherited: HashMap<DefId, InheritedNames>,
    second: Vec<SecondName>,
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
            let given = renamed(&definition.annotations, &place)?;
            let wanted = given.clone().unwrap_or_else(|| rust_name(definition));
            let space = match definition.kind {
                DefKind::Const { .. } => Space::Values,
                _ => Space::Types,
            };
            let suffixes = self.suffixes(id);
            let name = if suffixes.is_empty() {
                wanted
            } else {
                let all = |name: &str| -> Vec<String> {
                    let all = suffixes.iter();
                    all.map(|suffix| format!("{name}{suffix}")).collect()
                };
                self.claim_distinct(module, space, &wanted, given.is_some(), &place, all)?
            };
            self.items[id.0 as usize] = (module.to_vec(), name.clone());
            let nested = match &definition.kind {
                DefKind::Module { members } => {
                    self.name_definitions(members, &inner(module, name.clone()))?;
                    continue;
                }
                DefKind::Interface(interface) => &interface.nested[..],
                DefKind::Struct { nested, .. } | DefKind::Exception { nested, .. } => {
                    let members = shape::parts(self.model, id);
                    self.check_parts(members.map(Part::of_struct), &[])?;
                    nested
                }
                DefKind::Union(union) => {
                    let members = shape::parts(self.model, id);
                    self.check_parts(members.map(Part::of_union), &[])?;
                    &union.nested
                }
                DefKind::Enum { enumerators, .. } => {
                    let enumerators = enumerators.iter();
                    let parts = enumerators.map(|e| Part::of_enum(e, &definition.location));
                    self.check_parts(parts, &[])?;
                    &[]
                }
                DefKind::Bitmask { flags, .. } => {
                    self.check_parts(flags.iter().map(Part::of_bitmask), BITMASK_ITEMS)?;
                    &[]
                }
                DefKind::Bitset { .. } => {
                    let fields = shape::bit_fields(self.model, id);
                    let parts = fields.into_iter().flat_map(Part::of_bitset);
                    self.check_parts(parts, BITSET_ITEMS)?;
                    &[]
                }
                DefKind::Value(value) => {
                    let members = value.state.iter().map(|state| &state.member);
                    self.check_parts(members.map(Part::of_struct), &[])?;
                    &value.nested
                }
                DefKind::ValueBox { nested, .. } => nested,
                _ => &[],
            };
            self.name_nested(nested, module, &name, &place)?;
        }
        Ok(())
    }

    /// Returns the ends of the names of the items that are generated for a definition.
    fn suffixes(&self, id: DefId) -> Vec<&'static str> {
        let twin = |mut suffixes: Vec<&'static str>| {
            if shape::has_twin(self.model, &Type::Named(id)) {
                suffixes.push("Buf");
            }
            suffixes
        };
        match &self.model.get(id).kind {
            DefKind::Interface(interface) => {
                let mut suffixes = match (interface.local, interface.is_abstract) {
                    (true, _) => vec![""],
                    (_, true) => vec!["", "Ref", "Servant", "Skeleton"],
                    _ => vec!["", "Servant", "Skeleton"],
                };
                if self.owned_servants && !interface.local {
                    suffixes.push("OwnedServant");
                }
                if self.has_handler(id, interface) {
                    suffixes.push("ReplyHandler");
                }
                suffixes
            }
            DefKind::Struct { .. }
            | DefKind::Exception { .. }
            | DefKind::Union(_)
            | DefKind::Typedef { .. } => twin(vec![""]),
            DefKind::Value(_) => vec!["", "State", "Factory", "Value"],
            DefKind::Module { .. }
            | DefKind::Const { .. }
            | DefKind::Enum { .. }
            | DefKind::Bitmask { .. }
            | DefKind::Bitset { .. }
            | DefKind::ValueBox { .. }
            | DefKind::Native => vec![""],
            _ => Vec::new(),
        }
    }

    /// Returns whether an interface has a trait of reply handlers: it declares an operation or
    /// attribute that can be called asynchronously.
    fn has_handler(&self, id: DefId, interface: &Interface) -> bool {
        let is_asynchronous = |annotations: &[Annotation]| {
            ami::annotated(self.model, id, annotations).unwrap_or(self.ami)
        };
        let mut operations = interface.operations.iter().filter(|o| !o.oneway);
        let mut attributes = interface.attributes.iter();
        operations.any(|operation| is_asynchronous(&operation.annotations))
            || attributes.any(|attribute| is_asynchronous(&attribute.annotations))
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
        let only = |name: &str| vec![name.to_owned()];
        let name = self.claim_distinct(module, Space::Types, &snake(owner), false, place, only)?;
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
            self.distinct_methods(id, &mut methods)?;
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
        &mut self,
        id: DefId,
        operations: &'m [Operation],
    ) -> Result<Vec<Method<'m>>, GenerateError> {
        let mut methods = Vec::new();
        for operation in operations {
            let place = self.place("operation", &operation.name, &operation.location);
            let given = renamed(&operation.annotations, &place)?;
            let is_named = given.is_some();
            let rust_name = given.unwrap_or_else(|| snake(&operation.name));
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
                is_named,
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
        &mut self,
        params: &'m [Param],
        location: &Location,
    ) -> Result<(Vec<MethodParam<'m>>, Claims), GenerateError> {
        let mut claims = Claims::default();
        let mut named = Vec::new();
        for param in params {
            let place = self.place("parameter", &param.name, location);
            let given = renamed(&param.annotations, &place)?;
            let is_named = given.is_some();
            let wanted = given.unwrap_or_else(|| escaped(&param.name, snake));
            let only = |name: &str| vec![name.to_owned()];
            let (rust_name, second) = claims.claim_distinct(&wanted, is_named, &place, only)?;
            self.second.extend(second);
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
        &mut self,
        id: DefId,
        factories: &'m [Factory],
    ) -> Result<Vec<Method<'m>>, GenerateError> {
        let mut claims = Claims::default();
        let unmarshal = self.place_of(self.model.get(id));
        claims.claim(
            "unmarshal",
            Place {
                what: "`unmarshal` of every factory".to_owned(),
                ..unmarshal
            },
        )?;
        let mut methods = Vec::new();
        for factory in factories {
            let place = self.place("factory", &factory.name, &factory.location);
            let given = renamed(&factory.annotations, &place)?;
            let is_named = given.is_some();
            let wanted = given.unwrap_or_else(|| snake(&factory.name));
            let only = |name: &str| vec![name.to_owned()];
            let (rust_name, second) = claims.claim_distinct(&wanted, is_named, &place, only)?;
            self.second.extend(second);
            methods.push(Method {
                interface: id,
                what: format!("factory `{}`", factory.name),
                wire_name: factory.name.clone(),
                rust_name,
                is_named,
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
            let given = renamed(&attribute.annotations, &place)?;
            let is_named = given.is_some();
            let name = given.unwrap_or_else(|| snake(&attribute.name));
            let setter = format!("set_{}", name.trim_end_matches('_'));
            let getter = Method {
                interface: id,
                what: format!("attribute `{}`", attribute.name),
                wire_name: format!("_get_{}", attribute.name),
                rust_name: name,
                is_named,
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
                is_named: false,
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
        let ami = self.ami;
        for method in methods.iter_mut().filter(|m| m.is_asynchronous(ami)) {
            if method.inouts().next().is_none() || method.outputs().len() <= 3 {
                continue;
            }
            let rust_name = self.free_name(id, method, "Reply");
            let names = std::slice::from_ref(&rust_name);
            self.claim_beside(id, names, &self.place_of_method(method))?;
            method.reply = Some(rust_name);
        }
        Ok(())
    }

    /// Returns `GetQuoteError`, or `QuoterGetQuoteError` if that is taken, with underscores behind
    /// it if that is taken too.
    fn free_name(&self, interface: DefId, method: &Method<'m>, suffix: &str) -> String {
        let (module, interface) = &self.items[interface.0 as usize];
        let claims = self.claims.get(&(module.clone(), Space::Types));
        let is_taken = |name: &str| {
            claims.is_some_and(|claims| {
                claims.is_taken(name) || claims.is_taken(&format!("{name}Buf"))
            })
        };
        let mut name = pascal(&method.rust_name) + suffix;
        if is_taken(&name) {
            name = format!("{interface}{name}");
        }
        while is_taken(&name) {
            name.push('_');
        }
        name
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

    /// Gives the methods of an interface or value type different names, also from inherited and
    /// generated ones. In a handle, a method that is inherited from a second base may have another
    /// name than in the base.
    fn distinct_methods(
        &mut self,
        id: DefId,
        methods: &mut [Method<'m>],
    ) -> Result<(), GenerateError> {
        let (model, ami) = (self.model, self.ami);
        let (bases, has_handle): (Vec<DefId>, bool) = match &model.get(id).kind {
            DefKind::Interface(interface) => (interface.all_bases.clone(), !interface.local),
            DefKind::Value(value) => (self.interfaces_and_bases(value), false),
            _ => return Ok(()),
        };
        let mut claims = Claims::default();
        for name in HANDLE_METHODS.iter().filter(|_| has_handle) {
            let mut place = self.place_of(model.get(id));
            place.what = format!("`{name}` of every object reference");
            claims.claim(name, place)?;
        }
        let names = |method: &Method<'m>| {
            let (has_twin, is_asynchronous) = (method.has_twin(model), method.is_asynchronous(ami));
            move |name: &str| {
                let mut names = vec![name.to_owned()];
                if has_twin {
                    names.push(format!("{name}_in"));
                }
                if is_asynchronous {
                    names.extend([format!("begin_{name}"), format!("send_{name}")]);
                }
                names
            }
        };
        let mut inherited = InheritedNames::new();
        for method in bases
            .iter()
            .filter_map(|base| self.methods.get(base))
            .flatten()
        {
            let place = self.place_of_method(method);
            // A trait may inherit methods of one name; those of interfaces with handles are in the
            // trait itself.
            if !has_handle && !self.has_handle(method.interface) {
                if !claims.is_taken(&method.rust_name) {
                    claims.claim(&method.rust_name, place)?;
                }
                continue;
            }
            let given = method.is_named || !has_handle;
            let (name, second) =
                claims.claim_distinct(&method.rust_name, given, &place, names(method))?;
            if let Some(mut second) = second {
                let key = (method.interface, method.wire_name.clone());
                let mut others = bases.iter().filter_map(|base| self.inherited.get(base));
                if !others.any(|names| names.contains_key(&key)) {
                    let name = &self.items[id.0 as usize].1;
                    second.second.what += &format!(" in handles of `{name}`");
                    self.second.push(second);
                }
                inherited.insert(key, name);
            }
        }
        for method in methods {
            let place = self.place_of_method(method);
            let wanted = method.rust_name.clone();
            let (name, second) =
                claims.claim_distinct(&wanted, method.is_named, &place, names(method))?;
            method.rust_name = name;
            self.second.extend(second);
        }
        if !inherited.is_empty() {
            self.inherited.insert(id, inherited);
        }
        Ok(())
    }

    fn has_handle(&self, id: DefId) -> bool {
        match &self.model.get(id).kind {
            DefKind::Interface(interface) => !interface.local && !interface.is_abstract,
            _ => false,
        }
    }

    /// Returns the value types and the interfaces whose methods a value type has, each once.
    fn interfaces_and_bases(&self, value: &ValueType) -> Vec<DefId> {
        let bases = value
            .all_bases
            .iter()
            .filter_map(|base| match &self.model.get(*base).kind {
                DefKind::Value(base) => Some(base),
                _ => None,
            });
        let mut all = value.all_bases.clone();
        for supported in bases.chain([value]).flat_map(|value| &value.supports) {
            if let DefKind::Interface(interface) = &self.model.get(*supported).kind {
                all.extend(interface.all_bases.iter().chain([supported]));
            }
        }
        let mut seen = HashSet::new();
        all.retain(|id| seen.insert(*id));
        all
    }

    /// Takes the names of a definition, as [`Claims::claim_distinct`] does. Returns the first.
    fn claim_distinct(
        &mut self,
        module: &[String],
        space: Space,
        wanted: &str,
        given: bool,
        place: &Place,
        all: impl Fn(&str) -> Vec<String>,
    ) -> Result<String, GenerateError> {
        let claims = self.claims.entry((module.to_vec(), space)).or_default();
        let (name, second) = claims.claim_distinct(wanted, given, place, all)?;
        self.second.extend(second);
        Ok(name)
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

/// Returns the Rust name of a definition without a given one.
fn rust_name(definition: &Definition) -> String {
    match definition.kind {
        DefKind::Module { .. } => snake(&definition.name),
        DefKind::Const { .. } => screaming(&definition.name),
        _ => pascal(&definition.name),
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
