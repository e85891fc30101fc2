//! The trait of servants with owned results: off by default, and its names.

use chronorb_build::{GenerateError, GenerateOptions, generate};

fn generated(idl: &str, options: &GenerateOptions) -> Result<String, GenerateError> {
    let compilation = chronorb_idl::compile_text("x.idl", idl, &chronorb_idl::Options::default())
        .unwrap_or_else(|failure| panic!("{failure}"));
    generate(&compilation.model, options)
}

fn owned() -> GenerateOptions {
    let mut options = GenerateOptions::default();
    options.owned_servants = true;
    options
}

const SOURCE: &str = "
    exception Unknown { string name; };
    interface Source { string get(in string name) raises (Unknown); };
    interface Venue : Source { void close(); };
    local interface Inside { string get(); };
";

#[test]
fn the_option_only_adds_the_traits_and_their_adapters() {
    let plain = generated(SOURCE, &GenerateOptions::default()).expect("it has a Rust form");
    assert!(!plain.contains("Owned"), "{plain}");
    let text = generated(SOURCE, &owned()).expect("it has a Rust form");
    for part in [
        "pub trait SourceOwnedServant: ::core::marker::Send",
        "pub trait VenueOwnedServant: SourceOwnedServant",
        "impl<T: SourceOwnedServant> SourceServant for T",
        "impl<T: VenueOwnedServant> VenueServant for T",
        "-> ::core::result::Result<::std::string::String, GetErrorBuf>",
    ] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    // No request reaches a local interface, so it has no servant.
    assert!(!text.contains("InsideOwnedServant"), "{text}");
    let mut rest = text.lines();
    for line in plain.lines() {
        assert!(rest.any(|l| l == line), "`{line}` is changed in:\n{text}");
    }
}

#[test]
fn without_allocations_there_are_none() {
    let idl = "interface Source { string get(in string name); };";
    let mut options = owned();
    options.no_alloc = true;
    let text = generated(idl, &options).expect("it has a Rust form");
    assert!(!text.contains("OwnedServant"), "{text}");
}

#[test]
fn a_type_with_the_name_of_the_trait_gets_an_underscore() {
    let idl = "interface I { void f(); }; struct IOwnedServant { long n; };";
    let text = generated(idl, &GenerateOptions::default()).expect("there is no such trait");
    assert!(text.contains("pub struct IOwnedServant "), "{text}");
    let text = generated(idl, &owned()).expect("generated");
    assert!(text.contains("pub struct IOwnedServant_ "), "{text}");
}

#[test]
fn parameters_may_have_the_names_of_variables_of_the_adapter() {
    let idl = "
        exception E { string text; };
        interface I {
            string f(inout string owned, inout string arena, inout string new_0, inout string call,
                out string values, out string error, out string exception_) raises (E);
        };
    ";
    let text = generated(idl, &owned()).expect("it has a Rust form");
    assert!(
        text.contains("let mut new_0_: ::std::string::String"),
        "{text}"
    );
}
