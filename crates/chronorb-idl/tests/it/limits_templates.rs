//! Hostile templates and port types: none makes the compiler hang or grow without bound.

use std::fmt::Write as _;

use chronorb_idl::{Options, compile_text};

fn first_error(text: &str) -> &'static str {
    let failure = compile_text("hostile.idl", text, &Options::default()).unwrap_err();
    failure.to_string();
    failure.diagnostics.iter().next().unwrap().code
}

#[test]
fn templates_that_double_each_other_are_refused() {
    let mut text = "module M0<typename T> { typedef T A; };\n".to_owned();
    for i in 1..20 {
        let before = i - 1;
        let _ = writeln!(
            text,
            "module M{i}<typename T> {{ module M{before}<T> A{i}; module M{before}<T> B{i}; }};"
        );
    }
    text.push_str("module M19<long> Bomb;\n");
    assert_eq!(first_error(&text), "E0830");
}

#[test]
fn aliases_of_templates_do_not_double() {
    let mut text = "module M0<typename T> { typedef T A; };\n".to_owned();
    for i in 1..60 {
        let before = i - 1;
        let _ = writeln!(
            text,
            "module M{i}<typename T> {{ alias M{before}<T> A{i}; alias M{before}<T> B{i}; }};"
        );
    }
    text.push_str("module M59<long> Shared;\n");
    let model = compile_text("shared.idl", &text, &Options::default())
        .unwrap()
        .model;
    assert_eq!(model.definitions.len(), 61);
}

#[test]
fn templates_nest_at_most_200_deep() {
    let mut text = "module M0<typename T> { typedef T A; };\n".to_owned();
    for i in 1..300 {
        let before = i - 1;
        let _ = writeln!(
            text,
            "module M{i}<typename T> {{ module M{before}<T> B{i}; }};"
        );
    }
    text.push_str("module M299<long> Deep;\n");
    assert_eq!(first_error(&text), "E0804");
}

#[test]
fn port_types_that_double_each_other_are_refused() {
    let mut text = "interface I { };\nporttype P0 { provides I a; };\n".to_owned();
    for i in 1..30 {
        let before = i - 1;
        let _ = writeln!(
            text,
            "porttype P{i} {{ port P{before} a; port P{before} b; }};"
        );
    }
    text.push_str("component C { port P29 bomb; };\n");
    assert_eq!(first_error(&text), "E0830");
}

#[test]
fn port_types_nest_at_most_32_deep() {
    let mut text = "interface I { };\nporttype P0 { provides I a; };\n".to_owned();
    for i in 1..100 {
        let _ = writeln!(text, "porttype P{i} {{ port P{} a; }};", i - 1);
    }
    text.push_str("component C { port P99 deep; };\n");
    assert_eq!(first_error(&text), "E0830");
}

#[test]
fn value_types_have_at_most_250_bases() {
    let mut text = String::new();
    for i in 0..300 {
        let _ = writeln!(text, "abstract valuetype V{i} {{ }};");
    }
    let bases: Vec<String> = (0..300).map(|i| format!("V{i}")).collect();
    let _ = writeln!(text, "valuetype W : {} {{ }};", bases.join(", "));
    assert_eq!(first_error(&text), "E0806");
}
