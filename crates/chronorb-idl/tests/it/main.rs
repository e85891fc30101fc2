//! Tests of the IDL compiler.

mod built_in;
mod codes;
mod corpus;
mod diagnostics;
mod diagnostics_declarations;
mod limits;
mod limits_templates;
mod lookup;
mod model;
mod model_annotations;
mod model_components;
mod model_templates;
mod model_types;
mod model_unions;
mod model_values;
mod omniidl;
mod portable;
mod preprocess;
