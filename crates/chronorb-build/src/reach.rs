//! The definitions of the language's built-in files that other files use.

use std::collections::HashSet;

use chronorb_idl::model::{
    Attribute, DefId, DefKind, Definition, Factory, Model, Operation, Param, Type,
};

/// The built-in files that define the modules `CORBA` and `Components`. The model of a file with a
/// single event type contains all of them. Other built-in files are only in a model if they are
/// included by name, and are generated as a whole, like files on disk.
const LANGUAGE: [&str; 4] = [
    "<orb.idl>",
    "<CORBA.idl>",
    "<InterfaceRepository.idl>",
    "<Components.idl>",
];

/// Returns the definitions of these files that no other file uses, directly or through others.
pub(crate) fn unused_built_in(model: &Model) -> HashSet<DefId> {
    let is_built_in = |definition: &Definition| {
        let path = model.path(&definition.location);
        path.is_some_and(|path| LANGUAGE.iter().any(|name| path.as_os_str() == *name))
    };
    let (mut unused, mut open) = (HashSet::new(), Vec::new());
    for (id, definition) in model.iter() {
        if is_built_in(definition) {
            unused.insert(id);
        } else {
            open.push(id);
        }
    }
    while let Some(id) = open.pop() {
        for used in uses(model, id) {
            if unused.remove(&used) {
                open.push(used);
            }
        }
    }
    // Modules are generated if something in them is.
    unused.retain(|&id| !matches!(model.get(id).kind, DefKind::Module { .. }));
    unused
}

/// Returns the definitions that the code of a definition names.
fn uses(model: &Model, id: DefId) -> Vec<DefId> {
    let definition = model.get(id);
    let mut uses = Uses { ids: Vec::new() };
    // A nested definition is generated with its parent, and the parent with all that it contains.
    uses.ids.extend(definition.parent);
    match &definition.kind {
        DefKind::Module { .. } => return Vec::new(),
        DefKind::Interface(interface) => {
            uses.ids.extend(&interface.all_bases);
            uses.ids.extend(&interface.nested);
            uses.operations(&interface.operations);
            uses.attributes(&interface.attributes);
        }
        DefKind::Struct {
            base,
            members,
            nested,
        } => {
            uses.ids.extend(base);
            uses.ids.extend(nested);
            members.iter().for_each(|member| uses.ty(&member.ty));
        }
        DefKind::Exception { members, nested } => {
            uses.ids.extend(nested);
            members.iter().for_each(|member| uses.ty(&member.ty));
        }
        DefKind::Union(union) => {
            uses.ids.extend(&union.nested);
            uses.ty(&union.discriminator);
            let cases = union.cases.iter();
            cases.for_each(|case| uses.ty(&case.member.ty));
        }
        DefKind::Bitset { base, fields } => {
            uses.ids.extend(base);
            fields.iter().for_each(|field| uses.ty(&field.ty));
        }
        DefKind::Value(value) => {
            uses.ids.extend(&value.all_bases);
            uses.ids.extend(&value.supports);
            uses.ids.extend(&value.nested);
            let state = value.state.iter();
            state.for_each(|state| uses.ty(&state.member.ty));
            value.factories.iter().for_each(|f| uses.factory(f));
            uses.operations(&value.operations);
            uses.attributes(&value.attributes);
        }
        DefKind::ValueBox { ty, nested } => {
            uses.ids.extend(nested);
            uses.ty(ty);
        }
        DefKind::Typedef { ty } | DefKind::Const { ty, .. } => uses.ty(ty),
        _ => {}
    }
    uses.ids
}

struct Uses {
    ids: Vec<DefId>,
}

impl Uses {
    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Named(id) => self.ids.push(*id),
            Type::Sequence { element, .. }
            | Type::Array { element, .. }
            | Type::NonNil(element) => self.ty(element),
            Type::Map { key, value, .. } => {
                self.ty(key);
                self.ty(value);
            }
            _ => {}
        }
    }

    fn operations(&mut self, operations: &[Operation]) {
        for operation in operations {
            operation.result.iter().for_each(|ty| self.ty(ty));
            self.params(&operation.params);
            self.ids.extend(&operation.raises);
        }
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            self.ty(&attribute.ty);
            self.ids.extend(&attribute.get_raises);
            self.ids.extend(&attribute.set_raises);
        }
    }

    fn factory(&mut self, factory: &Factory) {
        self.params(&factory.params);
        self.ids.extend(&factory.raises);
    }

    fn params(&mut self, params: &[Param]) {
        params.iter().for_each(|param| self.ty(&param.ty));
    }
}
