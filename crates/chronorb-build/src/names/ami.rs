//! The selection of operations that can be called asynchronously.

use chronorb_idl::model::{Annotation, ConstValue, DefId, DefKind, Model};

/// Returns the value of `@ami` for an operation or attribute of an interface with these
/// annotations: its own, else that of the interface, else that of the innermost module around it
/// that has one; `None` if there is none.
pub(super) fn annotated(model: &Model, interface: DefId, own: &[Annotation]) -> Option<bool> {
    match &model.get(interface).kind {
        DefKind::Interface(interface) if !interface.local && !interface.is_abstract => {}
        // Local interfaces and values are called directly.
        _ => return Some(false),
    }
    let mut found = value(own);
    let mut scope = Some(interface);
    while let (None, Some(id)) = (found, scope) {
        let definition = model.get(id);
        found = value(&definition.annotations);
        scope = definition.parent;
    }
    found
}

fn value(annotations: &[Annotation]) -> Option<bool> {
    let annotation = annotations.iter().rfind(|a| a.name == "ami")?;
    let off = |(_, value): &(String, ConstValue)| *value == ConstValue::Boolean(false);
    Some(!annotation.params.iter().any(off))
}
