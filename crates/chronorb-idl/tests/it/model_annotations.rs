//! Annotations in the model.

use chronorb_idl::model::{Annotation, ConstValue, DefKind, Enumerator, Member, Model, Type};
use chronorb_idl::{Options, compile_text};

use crate::lookup::{find, kind, model};

fn members<'a>(model: &'a Model, name: &str) -> &'a [Member] {
    match kind(model, name) {
        DefKind::Struct { members, .. } => members,
        other => panic!("{name} is {other:?}"),
    }
}

fn enumerators<'a>(model: &'a Model, name: &str) -> (&'a [Enumerator], u32, u8) {
    match kind(model, name) {
        DefKind::Enum {
            enumerators,
            default,
            bit_bound,
        } => (enumerators, *default, *bit_bound),
        other => panic!("{name} is {other:?}"),
    }
}

fn annotation(name: &str, params: &[(&str, ConstValue)]) -> Annotation {
    let params = params.iter();
    Annotation {
        name: name.to_owned(),
        params: params
            .map(|(key, v)| ((*key).to_owned(), v.clone()))
            .collect(),
    }
}

fn warnings(text: &str) -> Vec<String> {
    let compilation = compile_text("test.idl", text, &Options::default()).unwrap();
    let warnings = compilation.warnings.iter();
    warnings
        .map(|w| format!("{} {}", w.code, w.message))
        .collect()
}

#[test]
fn members_are_optional_where_they_say_so() {
    let model = model(
        "struct S { long a; @optional long b; @optional(FALSE) long c; @optional(value = TRUE) \
        long d, e; };",
    );
    let optional: Vec<_> = members(&model, "S").iter().map(|m| m.optional).collect();
    assert_eq!(optional, [false, true, false, true, true]);
}

#[test]
fn enumerators_have_values_and_one_is_the_default() {
    let model = model(
        r"
        @bit_bound(8) enum Level { LOW, @value(10) @default_literal MIDDLE, ABOVE, @value(2) ODD };
        enum Plain { FIRST, SECOND };
        ",
    );
    let (all, default, bit_bound) = enumerators(&model, "Level");
    let values: Vec<_> = all.iter().map(|e| e.value).collect();
    assert_eq!((values, default, bit_bound), (vec![0, 10, 11, 2], 1, 8));
    assert_eq!(all[1].annotations.len(), 2);
    let (all, default, bit_bound) = enumerators(&model, "Plain");
    let values: Vec<_> = all.iter().map(|e| e.value).collect();
    assert_eq!((values, default, bit_bound), (vec![0, 1], 0, 32));
}

#[test]
fn values_have_the_type_of_what_they_are_applied_to() {
    let model = model(
        r"
        enum Colour { RED, GREEN };
        typedef double Metres;
        struct S {
          @default(3) Metres a;
          @default(GREEN) Colour b;
          @range(min = -1, max = 2 + 3) short c;
        };
        ",
    );
    let (colour, _) = find(&model, "Colour");
    let all = members(&model, "S");
    let value = |value| annotation("default", &[("value", value)]);
    assert_eq!(all[0].annotations, [value(ConstValue::Float(3.0))]);
    assert_eq!(
        all[1].annotations,
        [value(ConstValue::Enumerator(colour, 1))]
    );
    let range = [
        ("min", ConstValue::Integer(-1)),
        ("max", ConstValue::Integer(5)),
    ];
    assert_eq!(all[2].annotations, [annotation("range", &range)]);
}

#[test]
fn a_declared_annotation_is_a_definition_and_is_found_by_scope() {
    let model = model(
        r#"
        module M {
          @annotation note {
            enum Kind { GOOD, BAD };
            Kind how default GOOD;
            string text;
            any more default 1;
          };
          @note(text = "x") struct S { @::M::note(how = BAD, text = "y") long a; };
        };
        @annotation priority { short level; };
        @M::note(text = "z") @priority(3) struct T { };
        "#,
    );
    let (id, note) = find(&model, "M::note");
    assert_eq!(note.repository_id, "");
    let DefKind::Annotation { members, nested } = &note.kind else {
        panic!("no annotation");
    };
    let (of_kind, _) = find(&model, "M::note::Kind");
    assert_eq!(nested, &[of_kind]);
    let types: Vec<_> = members.iter().map(|m| m.ty.clone()).collect();
    let text = Type::String { bound: None };
    assert_eq!(types, [Some(Type::Named(of_kind)), Some(text), None]);
    let defaults: Vec<_> = members.iter().map(|m| m.default.clone()).collect();
    let good = ConstValue::Enumerator(of_kind, 0);
    assert_eq!(defaults, [Some(good), None, Some(ConstValue::Integer(1))]);
    let (user, s) = find(&model, "M::S");
    assert!(id < user);
    let text = |text: &str| ("text", ConstValue::String(text.to_owned()));
    assert_eq!(s.annotations, [annotation("note", &[text("x")])]);
    let bad = ("how", ConstValue::Enumerator(of_kind, 1));
    let a = &self::members(&model, "M::S")[0];
    assert_eq!(a.annotations, [annotation("M::note", &[bad, text("y")])]);
    let level = ("level", ConstValue::Integer(3));
    assert_eq!(
        find(&model, "T").1.annotations,
        [
            annotation("M::note", &[text("z")]),
            annotation("priority", &[level])
        ]
    );
}

#[test]
fn words_of_standard_annotations_are_text() {
    let model = model("@extensibility(APPENDABLE) enum E { A };");
    let word = ConstValue::String("APPENDABLE".to_owned());
    assert_eq!(
        find(&model, "E").1.annotations,
        [annotation("extensibility", &[("value", word)])]
    );
}

#[test]
fn unknown_annotations_are_kept_with_one_warning_for_each_name() {
    let text = "@novel(a = 1, b = two) struct S { @novel long x; @optoinal long y; };";
    let found = warnings(text);
    assert_eq!(
        found,
        [
            "W0011 there is no annotation `@novel`",
            "W0011 there is no annotation `@optoinal`"
        ]
    );
    let model = model(text);
    let params = [
        ("a", ConstValue::Integer(1)),
        ("b", ConstValue::String("two".to_owned())),
    ];
    assert_eq!(
        find(&model, "S").1.annotations,
        [annotation("novel", &params)]
    );
}

#[test]
fn annotations_in_the_wrong_place_have_no_effect() {
    let found = warnings(
        r"
        @optional struct S { @value(3) long a; };
        union U switch (long) { case 1: @optional long a; };
        @bit_bound(8) module M { const long A = 1; };
        ",
    );
    assert_eq!(
        found,
        [
            "W0004 `@optional` has no effect here",
            "W0004 `@value` has no effect here",
            "W0004 `@optional` has no effect here",
            "W0004 `@bit_bound` has no effect here"
        ]
    );
}

#[test]
fn a_declaration_goes_before_a_standard_annotation() {
    let model = model("@annotation id { string value; };\nstruct S { @id(\"one\") long a; };");
    let one = ConstValue::String("one".to_owned());
    assert_eq!(
        members(&model, "S")[0].annotations,
        [annotation("id", &[("value", one)])]
    );
}

#[test]
fn annotations_before_a_definition_in_a_type_belong_to_it() {
    let model = model("typedef @final struct S { long a; } T;");
    assert_eq!(find(&model, "S").1.annotations, [annotation("final", &[])]);
    assert_eq!(find(&model, "T").1.annotations, []);
}
