//! Value types, event types, boxed values and local types in the model.

use chronorb_idl::model::{DefId, DefKind, Definition, Model, ParamMode, Type, ValueType};
use chronorb_idl::{Options, compile_text};

fn model(text: &str) -> Model {
    match compile_text("test.idl", text, &Options::default()) {
        Ok(compilation) => compilation.model,
        Err(failure) => panic!("{failure}"),
    }
}

fn find<'a>(model: &'a Model, name: &str) -> (DefId, &'a Definition) {
    model
        .iter()
        .find(|(_, definition)| definition.scoped_name.join("::") == name)
        .unwrap_or_else(|| panic!("there is no {name}"))
}

fn value<'a>(model: &'a Model, name: &str) -> &'a ValueType {
    match &find(model, name).1.kind {
        DefKind::Value(value) => value,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn a_value_type_has_state_initialisers_and_operations() {
    let model = model(
        r"
        module M {
          valuetype Node {
            typedef sequence<Node> Nodes;
            exception Empty { };
            public long size, sizes[3];
            private Nodes below;
            /// From nothing.
            factory make(in long size0) raises (Empty);
            readonly attribute long depth;
            Node find(in string text, out long at) raises (Empty);
          };
        };
        ",
    );
    let (node, definition) = find(&model, "M::Node");
    assert_eq!(definition.repository_id, "IDL:M/Node:1.0");
    let found = value(&model, "M::Node");
    assert!(!found.forward_only && !found.is_abstract && !found.custom && !found.event);
    let state: Vec<_> = found
        .state
        .iter()
        .map(|state| (state.public, state.member.name.as_str(), &state.member.ty))
        .collect();
    let sizes = Type::Array {
        element: Box::new(Type::Long),
        dimensions: vec![3],
    };
    let nodes = Type::Named(find(&model, "M::Node::Nodes").0);
    assert_eq!(
        state,
        [
            (true, "size", &Type::Long),
            (true, "sizes", &sizes),
            (false, "below", &nodes),
        ]
    );
    let empty = find(&model, "M::Node::Empty").0;
    assert_eq!(found.nested, [find(&model, "M::Node::Nodes").0, empty]);
    let make = &found.factories[0];
    assert_eq!(make.name, "make");
    assert_eq!(make.doc.as_deref(), Some("From nothing."));
    assert_eq!(make.params[0].mode, ParamMode::In);
    assert_eq!(make.raises, [empty]);
    assert_eq!(found.attributes[0].name, "depth");
    assert_eq!(found.operations[0].result, Some(Type::Named(node)));
}

#[test]
fn a_value_type_knows_its_bases_and_what_it_supports() {
    let model = model(
        r"
        interface I { };
        abstract interface J { };
        abstract valuetype A { };
        valuetype B : A supports I { public long a1; };
        abstract valuetype C : A { };
        valuetype D : truncatable B, C supports I, J { };
        ",
    );
    let id = |name| find(&model, name).0;
    let found = value(&model, "D");
    assert!(found.truncatable);
    assert_eq!(found.bases, [id("B"), id("C")]);
    assert_eq!(found.concrete_base, Some(id("B")));
    assert_eq!(found.all_bases, [id("A"), id("B"), id("C")]);
    assert_eq!(found.supports, [id("I"), id("J")]);
    assert!(value(&model, "C").is_abstract);
    assert_eq!(value(&model, "C").concrete_base, None);
    assert_eq!(value(&model, "B").supports, [id("I")]);
}

#[test]
fn values_may_contain_themselves() {
    let model = model(
        r"
        valuetype Leaf;
        valuetype Tree { public Tree left; public Leaf leaf1; };
        valuetype Leaf { private Tree above; };
        ",
    );
    let id = |name| Type::Named(find(&model, name).0);
    assert_eq!(value(&model, "Tree").state[0].member.ty, id("Tree"));
    assert_eq!(value(&model, "Tree").state[1].member.ty, id("Leaf"));
    assert_eq!(value(&model, "Leaf").state[0].member.ty, id("Tree"));
}

#[test]
fn custom_values_and_events_are_marked() {
    let model = model(
        r"
        custom valuetype C { };
        eventtype E { public long level; };
        abstract eventtype F { };
        ",
    );
    assert!(value(&model, "C").custom);
    assert!(value(&model, "E").event && !value(&model, "E").is_abstract);
    assert!(value(&model, "F").event && value(&model, "F").is_abstract);
}

#[test]
fn a_value_type_that_is_only_declared_is_marked_and_warned_of() {
    let text = "valuetype V; struct S { V v1; };";
    let compilation = compile_text("test.idl", text, &Options::default()).unwrap();
    assert!(value(&compilation.model, "V").forward_only);
    let codes: Vec<_> = compilation.warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, [chronorb_idl::codes::FORWARD_ONLY]);
}

#[test]
fn a_boxed_value_names_what_is_inside() {
    let model = model("valuetype Text string<8>; valuetype Pair struct Both { long a1; };");
    let inside = |name| match &find(&model, name).1.kind {
        DefKind::ValueBox { ty, .. } => ty.clone(),
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(inside("Text"), Type::String { bound: Some(8) });
    assert_eq!(inside("Pair"), Type::Named(find(&model, "Both").0));
    assert_eq!(find(&model, "Text").1.repository_id, "IDL:Text:1.0");
}

#[test]
fn any_value_is_a_type() {
    let model = model("struct S { ValueBase v; };");
    match &find(&model, "S").1.kind {
        DefKind::Struct { members, .. } => assert_eq!(members[0].ty, Type::ValueBase),
        other => panic!("{other:?}"),
    }
}
