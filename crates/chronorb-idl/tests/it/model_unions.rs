//! Unions in the model.

use chronorb_idl::model::{ConstValue, DefKind, Model, Type, Union};

use crate::lookup::{find, kind, model};

fn union<'a>(model: &'a Model, name: &str) -> &'a Union {
    match kind(model, name) {
        DefKind::Union(union) => union,
        other => panic!("{name} is {other:?}"),
    }
}

fn integers(values: &[ConstValue]) -> Vec<i128> {
    values
        .iter()
        .map(|value| match value {
            ConstValue::Integer(value) => *value,
            other => panic!("{other:?} is no integer"),
        })
        .collect()
}

/// Returns the value that no label names, of a union over a type with some cases.
fn unlabelled(discriminator: &str, cases: &str) -> Option<ConstValue> {
    let text = format!("enum E {{ X, Y, Z }};\nunion U switch ({discriminator}) {{ {cases} }};");
    union(&model(&text), "U").unlabelled.clone()
}

#[test]
fn each_case_has_its_labels_and_its_member() {
    let model = model(
        r#"
        const short FIRST = 10;
        typedef long Key;
        union U switch (@key Key) {
          /// The first one.
          case FIRST: case FIRST + 1: long a[2];
          @unit("s") case -3: @id(7) string b;
          default: case 4: sequence<U> c;
        };
        "#,
    );
    let u = union(&model, "U");
    assert_eq!(u.discriminator, Type::Named(find(&model, "Key").0));
    assert_eq!(u.discriminator_annotations[0].name, "key");
    let labels: Vec<_> = u.cases.iter().map(|case| integers(&case.labels)).collect();
    assert_eq!(labels, [vec![10, 11], vec![-3], vec![4]]);
    let defaults: Vec<_> = u.cases.iter().map(|case| case.is_default).collect();
    assert_eq!(defaults, [false, false, true]);
    let names: Vec<_> = u.cases.iter().map(|case| &*case.member.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(u.cases[0].member.doc.as_deref(), Some("The first one."));
    let annotations = &u.cases[1].member.annotations;
    let names: Vec<_> = annotations.iter().map(|a| &*a.name).collect();
    assert_eq!(names, ["unit", "id"]);
    let element = Box::new(Type::Named(find(&model, "U").0));
    assert_eq!(
        u.cases[2].member.ty,
        Type::Sequence {
            element,
            bound: None
        }
    );
}

#[test]
fn the_least_value_without_a_label_is_known() {
    let integer = |value| Some(ConstValue::Integer(value));
    assert_eq!(unlabelled("long", "case 0: long a;"), integer(-(1 << 31)));
    assert_eq!(unlabelled("octet", "case 1: case 0: long a;"), integer(2));
    assert_eq!(unlabelled("int8", "case -128: long a;"), integer(-127));
    let most = "case 0: case 1: case 3: long a;";
    assert_eq!(unlabelled("unsigned long long", most), integer(2));
    let boolean = |value| Some(ConstValue::Boolean(value));
    assert_eq!(unlabelled("boolean", "case FALSE: long a;"), boolean(true));
    assert_eq!(unlabelled("boolean", "case TRUE: long a;"), boolean(false));
    let wide = Some(ConstValue::WChar('\u{1}'));
    assert_eq!(unlabelled("wchar", r"case L'\u0000': long a;"), wide);
    let enumerator = unlabelled("E", "case X: case Z: long a;");
    assert!(matches!(enumerator, Some(ConstValue::Enumerator(_, 1))));
}

#[test]
fn labels_may_name_every_value() {
    let all = "case TRUE: long a; case FALSE: long b;";
    assert_eq!(unlabelled("boolean", all), None);
    assert_eq!(unlabelled("E", "case Z: case X: case Y: long a;"), None);
    let octets: String = (0..256).map(|i| format!("case {i}: ")).collect();
    assert_eq!(unlabelled("octet", &format!("{octets} long a;")), None);
    let chars: String = (0..256).map(|i| format!("case '\\{i:o}': ")).collect();
    assert_eq!(unlabelled("char", &format!("{chars} long a;")), None);
}

#[test]
fn types_inside_a_union_come_before_it() {
    let model = model(
        r"
        union Shape switch (enum Kind { ROUND, EDGED }) {
          case ROUND: struct Circle { double radius; } c;
          case EDGED: union Square switch (boolean) { case TRUE: double side; } s;
        };
        ",
    );
    let (id, definition) = find(&model, "Shape");
    assert_eq!(definition.repository_id, "IDL:Shape:1.0");
    let shape = union(&model, "Shape");
    let inner = ["Shape::Kind", "Shape::Circle", "Shape::Square"].map(|name| find(&model, name));
    assert_eq!(shape.nested, inner.map(|(id, _)| id));
    for (inner, definition) in inner {
        assert!(inner < id);
        assert_eq!(definition.parent, Some(id));
    }
    assert_eq!(inner[1].1.repository_id, "IDL:Shape/Circle:1.0");
    assert_eq!(
        shape.cases[0].labels,
        [ConstValue::Enumerator(inner[0].0, 0)]
    );
}

#[test]
fn a_declared_union_is_defined_once() {
    let model = model(
        r#"
        union Tree;
        typedef sequence<Tree> Trees;
        union Tree switch (boolean) { case TRUE: Trees branches; };
        #pragma version Tree 2.1
        "#,
    );
    assert_eq!(model.definitions.len(), 2);
    assert_eq!(find(&model, "Tree").1.repository_id, "IDL:Tree:2.1");
    assert_eq!(find(&model, "Tree").1.location.line, 4);
}
