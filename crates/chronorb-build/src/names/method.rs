//! Operations and attributes as methods.

use std::sync::LazyLock;

use chronorb_idl::model::{DefId, Location, Model, ParamMode, Type};

use crate::shape;

/// A method for an operation, or for reading or setting an attribute.
#[derive(Clone, Debug)]
pub(crate) struct Method<'m> {
    /// The interface that declares it.
    pub(crate) interface: DefId,
    /// A description as in the IDL, for documentation: ``operation `ping` ``.
    pub(crate) what: String,
    /// The name on the wire.
    pub(crate) wire_name: String,
    /// The name of the Rust method.
    pub(crate) rust_name: String,
    /// Whether the IDL or a rename gives the name of the Rust method.
    pub(crate) is_named: bool,
    pub(crate) doc: Option<&'m str>,
    pub(crate) location: &'m Location,
    pub(crate) oneway: bool,
    /// The value of `@ami`; `None` without one.
    pub(crate) ami: Option<bool>,
    pub(crate) result: Option<&'m Type>,
    pub(crate) params: Vec<MethodParam<'m>>,
    /// The exceptions; `None` if it raises none.
    pub(crate) error: Option<MethodError>,
    /// The name of the struct for result and outs in the module around the interface, if there are
    /// more than three.
    pub(crate) outs: Option<String>,
    /// The name of the struct for all values of a reply, if there are more than three, some of them
    /// inouts, and the operation can be called asynchronously.
    pub(crate) reply: Option<String>,
}

impl<'m> Method<'m> {
    /// Returns the types of the result and of the out parameters, with their names.
    pub(crate) fn values(&self) -> Vec<(&str, &'m Type)> {
        let outs = self.params.iter().filter(|p| p.mode == ParamMode::Out);
        let outs = outs.map(|p| (p.rust_name.as_str(), p.ty));
        let is_free = |name: &&str| self.params.iter().all(|p| p.rust_name != *name);
        let name = ["result", "return_value", "result_"]
            .into_iter()
            .find(is_free);
        let result = self.result.map(|ty| (name.unwrap_or("result_"), ty));
        result.into_iter().chain(outs).collect()
    }

    /// Returns all values of a reply with their names: result, outs and inouts, in the order of the
    /// reply.
    pub(crate) fn outputs(&self) -> Vec<(&str, &'m Type)> {
        let values = self.values();
        let result = values.first().filter(|_| self.result.is_some());
        let params = self.params.iter().filter(|p| p.mode != ParamMode::In);
        let params = params.map(|p| (p.rust_name.as_str(), p.ty));
        result.copied().into_iter().chain(params).collect()
    }

    /// Whether the method can be called asynchronously. `by_default` decides if it has no `@ami`
    /// annotation.
    pub(crate) fn is_asynchronous(&self, by_default: bool) -> bool {
        !self.oneway && self.ami.unwrap_or(by_default)
    }

    pub(crate) fn inouts(&self) -> impl Iterator<Item = &MethodParam<'m>> {
        self.params.iter().filter(|p| p.mode == ParamMode::InOut)
    }

    /// Returns whether a result borrows from the reply, so that the handle has the method twice:
    /// owned, and borrowed with the suffix `_in`.
    pub(crate) fn has_twin(&self, model: &Model) -> bool {
        self.outputs()
            .iter()
            .any(|(_, ty)| shape::has_twin(model, ty))
    }
}

/// A parameter of a [`Method`].
#[derive(Clone, Debug)]
pub(crate) struct MethodParam<'m> {
    pub(crate) rust_name: String,
    pub(crate) mode: ParamMode,
    pub(crate) ty: &'m Type,
    /// Whether the servant gets a sequence that is decoded element by element (`@rt::lazy`).
    pub(crate) lazy: bool,
    /// The names in the `context` clause, for the parameter with these properties.
    pub(crate) clause: Option<&'m [String]>,
}

impl<'m> MethodParam<'m> {
    /// Returns the parameter behind all others for the properties of the client.
    pub(crate) fn of_context(rust_name: String, clause: &'m [String]) -> Self {
        Self {
            rust_name,
            mode: ParamMode::In,
            ty: &PROPERTIES,
            lazy: false,
            clause: Some(clause),
        }
    }
}

/// The type of names and values.
static PROPERTIES: LazyLock<Type> = LazyLock::new(|| {
    let string = || Box::new(Type::String { bound: None });
    Type::Map {
        key: string(),
        value: string(),
        bound: None,
    }
});

/// The exceptions of a method, and the Rust enum for them.
#[derive(Clone, Debug)]
pub(crate) struct MethodError {
    /// The enum's name, in the module around the interface.
    pub(crate) rust_name: String,
    /// The exceptions in the order of the raises clause.
    pub(crate) raises: Vec<DefId>,
    /// The enum of an earlier method with the same exceptions.
    pub(crate) alias_of: Option<String>,
}
