//! The final order of the definitions: each one behind everything that it uses.

use crate::model::{
    Annotation, Attribute, ConstValue, DefId, DefKind, Definition, Factory, Member, Model,
    Operation, Param, Type, ValueType,
};

/// Returns the model of complete definitions.
///
/// They are in the order of introduction; `completed` is the time at which each was complete, which
/// is after everything that it uses.
pub(super) fn model(definitions: Vec<Definition>, completed: &[u32]) -> Model {
    let mut order: Vec<usize> = (0..definitions.len()).collect();
    order.sort_by_key(|&i| completed[i]);
    let mut place = vec![DefId(0); definitions.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = DefId(new as u32);
    }
    let renumber = Renumber { place };
    let mut old: Vec<Option<Definition>> = definitions.into_iter().map(Some).collect();
    let mut model = Model::default();
    for i in order {
        if let Some(mut definition) = old[i].take() {
            renumber.definition(&mut definition);
            model.definitions.push(definition);
        }
    }
    collect_children(&mut model);
    model
}

/// Fills the lists of the children of modules, interfaces, structs and exceptions.
fn collect_children(model: &mut Model) {
    for i in 0..model.definitions.len() {
        let id = DefId(i as u32);
        let list = match model.definitions[i].parent {
            None => &mut model.roots,
            Some(parent) => match &mut model.definitions[parent.0 as usize].kind {
                DefKind::Module { members } => members,
                DefKind::Interface(interface) => &mut interface.nested,
                DefKind::Union(union) => &mut union.nested,
                DefKind::Value(value) => &mut value.nested,
                DefKind::Struct { nested, .. }
                | DefKind::Exception { nested, .. }
                | DefKind::ValueBox { nested, .. }
                | DefKind::Annotation { nested, .. } => nested,
                DefKind::Enum { .. }
                | DefKind::Bitmask { .. }
                | DefKind::Bitset { .. }
                | DefKind::Native
                | DefKind::Typedef { .. }
                | DefKind::Const { .. } => continue,
            },
        };
        list.push(id);
    }
}

/// Renumbers all references.
struct Renumber {
    /// By old number.
    place: Vec<DefId>,
}

impl Renumber {
    fn id(&self, id: &mut DefId) {
        *id = self.place[id.0 as usize];
    }

    fn ids(&self, ids: &mut [DefId]) {
        ids.iter_mut().for_each(|id| self.id(id));
    }

    fn definition(&self, definition: &mut Definition) {
        if let Some(parent) = &mut definition.parent {
            self.id(parent);
        }
        self.annotations(&mut definition.annotations);
        match &mut definition.kind {
            DefKind::Module { .. } | DefKind::Native => {}
            DefKind::Interface(interface) => {
                self.ids(&mut interface.bases);
                self.ids(&mut interface.all_bases);
                self.operations(&mut interface.operations);
                self.attributes(&mut interface.attributes);
            }
            DefKind::Struct { base, members, .. } => {
                base.iter_mut().for_each(|base| self.id(base));
                members.iter_mut().for_each(|m| self.member(m));
            }
            DefKind::Exception { members, .. } => {
                members.iter_mut().for_each(|m| self.member(m));
            }
            DefKind::Union(union) => {
                self.ty(&mut union.discriminator);
                self.annotations(&mut union.discriminator_annotations);
                for case in &mut union.cases {
                    case.labels.iter_mut().for_each(|label| self.value(label));
                    self.member(&mut case.member);
                }
                union.unlabelled.iter_mut().for_each(|v| self.value(v));
            }
            DefKind::Enum { enumerators, .. } => {
                for enumerator in enumerators {
                    self.annotations(&mut enumerator.annotations);
                }
            }
            DefKind::Bitmask { flags, .. } => {
                for flag in flags {
                    self.annotations(&mut flag.annotations);
                }
            }
            DefKind::Bitset { base, fields } => {
                base.iter_mut().for_each(|base| self.id(base));
                for field in fields {
                    self.annotations(&mut field.annotations);
                    self.ty(&mut field.ty);
                }
            }
            DefKind::Value(value) => self.value_type(value),
            DefKind::ValueBox { ty, .. } | DefKind::Typedef { ty } => self.ty(ty),
            DefKind::Annotation { members, .. } => {
                for member in members {
                    member.ty.iter_mut().for_each(|ty| self.ty(ty));
                    member.default.iter_mut().for_each(|v| self.value(v));
                }
            }
            DefKind::Const { ty, value } => {
                self.ty(ty);
                self.value(value);
            }
        }
    }

    fn value_type(&self, value: &mut ValueType) {
        self.ids(&mut value.bases);
        value.concrete_base.iter_mut().for_each(|id| self.id(id));
        self.ids(&mut value.all_bases);
        self.ids(&mut value.supports);
        for state in &mut value.state {
            self.member(&mut state.member);
        }
        for factory in &mut value.factories {
            self.factory(factory);
        }
        self.operations(&mut value.operations);
        self.attributes(&mut value.attributes);
    }

    fn factory(&self, factory: &mut Factory) {
        self.annotations(&mut factory.annotations);
        self.params(&mut factory.params);
        self.ids(&mut factory.raises);
    }

    fn params(&self, params: &mut [Param]) {
        for param in params {
            self.annotations(&mut param.annotations);
            self.ty(&mut param.ty);
        }
    }

    fn operations(&self, operations: &mut [Operation]) {
        operations.iter_mut().for_each(|o| self.operation(o));
    }

    fn attributes(&self, attributes: &mut [Attribute]) {
        attributes.iter_mut().for_each(|a| self.attribute(a));
    }

    fn operation(&self, operation: &mut Operation) {
        self.annotations(&mut operation.annotations);
        if let Some(result) = &mut operation.result {
            self.ty(result);
        }
        self.params(&mut operation.params);
        self.ids(&mut operation.raises);
    }

    fn attribute(&self, attribute: &mut Attribute) {
        self.annotations(&mut attribute.annotations);
        self.ty(&mut attribute.ty);
        self.ids(&mut attribute.get_raises);
        self.ids(&mut attribute.set_raises);
    }

    fn member(&self, member: &mut Member) {
        self.annotations(&mut member.annotations);
        self.ty(&mut member.ty);
    }

    fn annotations(&self, annotations: &mut [Annotation]) {
        for annotation in annotations {
            for (_, value) in &mut annotation.params {
                self.value(value);
            }
        }
    }

    fn value(&self, value: &mut ConstValue) {
        if let ConstValue::Enumerator(def, _) = value {
            self.id(def);
        }
    }

    fn ty(&self, ty: &mut Type) {
        match ty {
            Type::Named(def) => self.id(def),
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
}
