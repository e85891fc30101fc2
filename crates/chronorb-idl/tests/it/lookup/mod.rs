//! Lookup in the model of a text.

use chronorb_idl::model::{ConstValue, DefId, DefKind, Definition, Model};
use chronorb_idl::{Options, compile_text};

/// Returns the model of a correct text.
pub(crate) fn model(text: &str) -> Model {
    match compile_text("test.idl", text, &Options::default()) {
        Ok(compilation) => compilation.model,
        Err(failure) => panic!("{failure}"),
    }
}

/// Returns the definition with this scoped name.
pub(crate) fn find<'a>(model: &'a Model, name: &str) -> (DefId, &'a Definition) {
    model
        .iter()
        .find(|(_, definition)| definition.scoped_name.join("::") == name)
        .unwrap_or_else(|| panic!("there is no {name}"))
}

/// Returns the kind of the definition with this scoped name.
pub(crate) fn kind<'a>(model: &'a Model, name: &str) -> &'a DefKind {
    &find(model, name).1.kind
}

/// Returns the value of the constant with this scoped name.
#[allow(dead_code, reason = "not every test file looks at constants")]
pub(crate) fn constant(model: &Model, name: &str) -> ConstValue {
    match kind(model, name) {
        DefKind::Const { value, .. } => value.clone(),
        other => panic!("{name} is {other:?}"),
    }
}
