//! The final order of the definitions: each behind everything that it uses.

use crate::model::{
    Annotation, Attribute, ConstValue, DefId, DefKind, Definition, Member, Model, Operation, Type,
};

/// The model of definitions that are complete.
///
/// They come in the order of introduction; `completed` says when each was complete,
/// which is when everything that it uses was.
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

/// Fills the lists of what stands in modules, interfaces, structs and exceptions.
fn collect_children(model: &mut Model) {
    for i in 0..model.definitions.len() {
        let id = DefId(i as u32);
        let list = match model.definitions[i].parent {
            None => &mut model.roots,
            Some(parent) => match &mut model.definitions[parent.0 as usize].kind {
                DefKind::Module { members } => members,
                DefKind::Interface(interface) => &mut interface.nested,
                DefKind::Struct { nested, .. } | DefKind::Exception { nested, .. } => nested,
                DefKind::Enum { .. } | DefKind::Typedef { .. } | DefKind::Const { .. } => continue,
            },
        };
        list.push(id);
    }
}

/// Gives every reference its new number.
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
            DefKind::Module { .. } | DefKind::Enum { .. } => {}
            DefKind::Interface(interface) => {
                self.ids(&mut interface.bases);
                self.ids(&mut interface.all_bases);
                interface
                    .operations
                    .iter_mut()
                    .for_each(|o| self.operation(o));
                interface
                    .attributes
                    .iter_mut()
                    .for_each(|a| self.attribute(a));
            }
            DefKind::Struct { members, .. } | DefKind::Exception { members, .. } => {
                members.iter_mut().for_each(|m| self.member(m));
            }
            DefKind::Typedef { ty } => self.ty(ty),
            DefKind::Const { ty, value } => {
                self.ty(ty);
                self.value(value);
            }
        }
    }

    fn operation(&self, operation: &mut Operation) {
        self.annotations(&mut operation.annotations);
        if let Some(result) = &mut operation.result {
            self.ty(result);
        }
        for param in &mut operation.params {
            self.annotations(&mut param.annotations);
            self.ty(&mut param.ty);
        }
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
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.ty(element),
            _ => {}
        }
    }
}
