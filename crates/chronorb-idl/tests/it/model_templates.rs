//! Instances of template modules in the model.

use chronorb_idl::model::{ConstValue, DefId, DefKind, Definition, Model, Type};
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

fn typedef(model: &Model, name: &str) -> Type {
    match &find(model, name).1.kind {
        DefKind::Typedef { ty } => ty.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn an_instance_is_a_module_with_the_arguments_in_place_of_the_parameters() {
    let model = model(
        r#"
        #pragma prefix "example.org"
        /// A ring.
        module Ring<typename T, const unsigned long N> {
          typedef T Items[N];
          const unsigned long LAST = N - 1;
          interface Access { T get(in unsigned long i); };
        };
        module Outer {
          struct Price { double px; };
          module Ring<Price, 8> Prices;
          module Ring<sequence<octet>, 2> Blobs;
        };
        "#,
    );
    let price = Type::Named(find(&model, "Outer::Price").0);
    assert_eq!(
        typedef(&model, "Outer::Prices::Items"),
        Type::Array {
            element: Box::new(price.clone()),
            dimensions: vec![8],
        }
    );
    let octets = Type::Sequence {
        element: Box::new(Type::Octet),
        bound: None,
    };
    assert_eq!(
        typedef(&model, "Outer::Blobs::Items"),
        Type::Array {
            element: Box::new(octets),
            dimensions: vec![2],
        }
    );
    let (_, access) = find(&model, "Outer::Prices::Access");
    assert_eq!(
        access.repository_id,
        "IDL:example.org/Outer/Prices/Access:1.0"
    );
    let DefKind::Interface(interface) = &access.kind else {
        panic!("not an interface");
    };
    assert_eq!(interface.operations[0].result, Some(price));
    let DefKind::Const { value, .. } = &find(&model, "Outer::Prices::LAST").1.kind else {
        panic!("not a constant");
    };
    assert_eq!(*value, ConstValue::Integer(7));
    assert_eq!(
        find(&model, "Outer::Prices").1.doc.as_deref(),
        Some("A ring.")
    );
    assert!(
        model
            .iter()
            .all(|(_, definition)| definition.name != "Ring")
    );
}

#[test]
fn names_in_a_template_are_those_of_the_place_where_it_is_defined() {
    let model = model(
        r"
        module A { typedef long Unit; module Box<typename T> { typedef Unit U; typedef T V; }; };
        module B { typedef string Unit; module A::Box<Unit> Mine; };
        ",
    );
    let unit = |name| Type::Named(find(&model, name).0);
    assert_eq!(typedef(&model, "B::Mine::U"), unit("A::Unit"));
    assert_eq!(typedef(&model, "B::Mine::V"), unit("B::Unit"));
}

#[test]
fn an_alias_is_the_instance_that_there_is() {
    let model = model(
        r"
        module List<typename T> { typedef sequence<T> Seq; };
        module Table<typename T> { alias List<T> Values; typedef Values::Seq Column; };
        module List<long> Longs;
        module Table<long> OfLong;
        module Table<short> OfShort;
        ",
    );
    let (longs, _) = find(&model, "Longs::Seq");
    assert_eq!(typedef(&model, "OfLong::Column"), Type::Named(longs));
    let (own, _) = find(&model, "OfShort::Values::Seq");
    assert_eq!(typedef(&model, "OfShort::Column"), Type::Named(own));
    let mut definitions = model.iter();
    assert!(definitions.all(|(_, d)| d.scoped_name.join("::") != "OfLong::Values"));
}

#[test]
fn a_template_without_instances_defines_nothing() {
    let model = model("module M<typename T> { typedef T A; }; struct S { long a1; };");
    assert_eq!(model.definitions.len(), 1);
}
