//! Rust of the IDL files that are part of the compiler.

use std::fs;

use chronorb_build::configure;
use tempfile::TempDir;

/// Returns the generated file of a main file with this text.
fn generated(text: &str, extern_path: Option<(&str, &str)>) -> String {
    let dir = TempDir::new().expect("a directory");
    let main = dir.path().join("main.idl");
    fs::write(&main, text).expect("written");
    let mut builder = configure().out_dir(dir.path()).emit_rerun_if_changed(false);
    if let Some((idl, rust)) = extern_path {
        builder = builder.extern_path(idl, rust);
    }
    builder.compile(&[main]).expect("correct IDL");
    fs::read_to_string(dir.path().join("main.rs")).expect("generated")
}

#[test]
fn an_included_service_is_generated_as_a_whole() {
    let text = generated("#include <CosNaming.idl>\n", None);
    for item in [
        "pub trait NamingContextServant",
        "pub struct NamingContextExt",
        "pub enum BindingType",
    ] {
        assert!(text.contains(item), "{item}");
    }
}

#[test]
fn of_the_module_corba_only_what_is_used_is_generated() {
    let text = generated(
        "#include <orb.idl>\nstruct Names { CORBA::StringSeq all; };",
        None,
    );
    assert!(text.contains("StringSeq"));
    assert!(!text.contains("LongSeq"));
}

#[test]
fn an_included_service_may_be_that_of_another_crate() {
    let text = "#include <TimeBase.idl>\nstruct Event { TimeBase::TimeT at; TimeBase::UtcT utc; };";
    for idl in ["TimeBase.idl", "::TimeBase"] {
        let text = generated(text, Some((idl, "::times")));
        assert!(text.contains("::times::"), "{idl}: {text}");
        assert!(!text.contains("pub struct UtcT"), "{idl}");
    }
}
