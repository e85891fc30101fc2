//! The selection of operations that can be called asynchronously.

use chronorb_build::{GenerateError, GenerateOptions, generate};

fn generated(idl: &str, options: &GenerateOptions) -> Result<String, GenerateError> {
    let compilation = chronorb_idl::compile_text("x.idl", idl, &chronorb_idl::Options::default())
        .unwrap_or_else(|failure| panic!("{failure}"));
    generate(&compilation.model, options)
}

/// Returns the methods of handles that begin a call.
fn begun(idl: &str, options: &GenerateOptions) -> Vec<String> {
    let text = generated(idl, options).unwrap_or_else(|error| panic!("{error}"));
    let methods = text.split("pub fn begin_").skip(1);
    methods
        .filter_map(|rest| rest.split_once('('))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn annotated(idl: &str) -> Vec<String> {
    begun(idl, &GenerateOptions::default())
}

fn all() -> GenerateOptions {
    let mut options = GenerateOptions::default();
    options.ami = true;
    options
}

#[test]
fn nothing_is_asynchronous_unless_it_is_asked_for() {
    let idl = "interface I { void f(); attribute long n; };";
    assert!(annotated(idl).is_empty());
    assert_eq!(begun(idl, &all()), ["f", "n", "set_n"]);
}

#[test]
fn an_annotation_holds_for_what_is_within_unless_that_has_its_own() {
    let idl = "
        @ami module m {
            interface I { void f(); @ami(FALSE) void g(); };
            @ami(value=FALSE) interface J { void h(); @ami(TRUE) readonly attribute long n; };
            module inner { interface K { void i(); }; };
        };
        interface L { void j(); @ami void k(); };
    ";
    assert_eq!(annotated(idl), ["f", "n", "i", "k"]);
    assert_eq!(begun(idl, &all()), ["f", "n", "i", "j", "k"]);
}

#[test]
fn what_has_no_reply_or_is_called_within_the_process_is_not_asynchronous() {
    let idl = "
        interface I { oneway void f(); @ami oneway void g(); };
        @ami local interface L { void h(); };
        @ami abstract interface A { void i(); };
        @ami valuetype V { void j(); };
    ";
    assert!(begun(idl, &all()).is_empty());
}

#[test]
fn nothing_is_asynchronous_where_nothing_is_to_be_allocated() {
    let mut options = all();
    options.no_alloc = true;
    assert!(begun("@ami interface I { long f(); };", &options).is_empty());
}

#[test]
fn inherited_operations_can_be_begun_at_derived_objects() {
    let idl =
        "interface B { @ami void f(); }; interface M : B {}; interface D : M { @ami void g(); };";
    assert_eq!(annotated(idl), ["f", "f", "f", "g"]);
    let text = generated(idl, &GenerateOptions::default()).expect("it has a Rust form");
    assert!(
        text.contains("pub trait DReplyHandler: BReplyHandler"),
        "{text}"
    );
    assert!(!text.contains("MReplyHandler"), "{text}");
}

#[test]
fn names_of_the_idl_that_are_those_of_generated_items_get_an_underscore() {
    for (idl, second) in [
        (
            "@ami interface I { void f(); void begin_f(); };",
            "fn begin_f_(",
        ),
        (
            "@ami interface I { void f(); void send_f(); };",
            "fn send_f_(",
        ),
        (
            "@ami interface I { void f(); }; struct IReplyHandler { long n; };",
            "pub struct IReplyHandler_ ",
        ),
    ] {
        let text = generated(idl, &GenerateOptions::default()).expect("generated");
        assert!(text.contains(second), "{text}");
    }
}
