//! The IDL files that are part of the compiler.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use chronorb_idl::model::Model;
use chronorb_idl::{Failure, Options, codes, compile, compile_text, preprocess};

#[test]
fn each_is_included_by_its_name_without_a_finding() {
    let names = names();
    assert!(names.len() > 40, "only {names:?}");
    for name in names {
        for include in [format!("#include <{name}>"), format!("#include \"{name}\"")] {
            let text = format!("{include}\nstruct Last {{ long n; }};\n");
            let compilation = compile_text("main.idl", &text, &Options::default())
                .unwrap_or_else(|failure| panic!("{include}: {failure}"));
            assert_eq!(compilation.warnings.len(), 0, "{include}");
            let model = compilation.model;
            let built_in = PathBuf::from(format!("<{name}>"));
            assert!(
                model.files.contains(&built_in),
                "{include}: {:?}",
                model.files
            );
            assert_eq!(on_disk(&model), [Path::new("main.idl")], "{include}");
        }
    }
}

#[test]
fn a_directory_with_a_file_of_the_name_goes_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("TimeBase.idl");
    fs::write(&own, "module TimeBase { typedef long Own; };").unwrap();
    let options = Options {
        include_dirs: vec![dir.path().to_owned()],
        ..Options::default()
    };
    let text = "#include <TimeBase.idl>\nstruct S { TimeBase::Own time; };";
    let model = compile_text("main.idl", text, &options).unwrap().model;
    assert_eq!(model.files[1], own);
    // Built-in files see the macro too.
    let text = "#include <CosTime.idl>\n";
    let failure = compile_text("main.idl", text, &options).unwrap_err();
    assert_eq!(first_code(&failure), codes::UNDEFINED);
    // A file beside the including one, in quotes, takes precedence too.
    let main = dir.path().join("main.idl");
    fs::write(&main, "#include \"TimeBase.idl\"\n").unwrap();
    let model = compile(&main, &Options::default()).unwrap().model;
    assert_eq!(on_disk(&model).len(), 2);
}

#[test]
fn an_own_version_that_defines_the_same_replaces_the_built_in_file() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("main.idl");
    fs::create_dir(dir.path().join("tao")).unwrap();
    // Without a guard; the built-in file in its place is `CORBA.idl`.
    let orb = "#pragma prefix \"omg.org\"\nmodule CORBA { typedef unsigned long PolicyType; \
               local interface Policy {}; exception Own {}; };\n";
    let compile_main = |includes: &str, include_dir: &Path| {
        let used = "interface I { void f() raises (CORBA::Own); };";
        fs::write(&main, format!("{includes}{used}\n")).unwrap();
        let options = Options {
            include_dirs: vec![include_dir.to_owned()],
            ..Options::default()
        };
        let compilation = compile(&main, &options);
        // The text without directives means the same.
        let text = preprocess(&main, &options).unwrap().text;
        let again = compile_text("text.idl", &text, &Options::default());
        assert_eq!(again.is_ok(), compilation.is_ok(), "{text}");
        compilation
    };
    for (own, includes) in [
        (
            "orb.idl",
            "#include \"orb.idl\"\n#include <BiDirPolicy.idl>\n",
        ),
        (
            "orb.idl",
            "#include <BiDirPolicy.idl>\n#include \"orb.idl\"\n",
        ),
        (
            "orb.idl",
            "import ::CORBA;\n#include \"orb.idl\"\n#include <BiDirPolicy.idl>\n",
        ),
        (
            "tao/orb.idl",
            "#include <tao/orb.idl>\n#include <BiDirPolicy.idl>\n",
        ),
        (
            "tao/orb.idl",
            "#include <BiDirPolicy.idl>\n#include <tao/orb.idl>\n",
        ),
    ] {
        let own = dir.path().join(own);
        fs::write(&own, orb).unwrap();
        let include_dir = match own.parent() {
            Some(parent) if parent == dir.path() => Path::new("elsewhere"),
            _ => dir.path(),
        };
        let compilation = compile_main(includes, include_dir);
        let model = compilation
            .unwrap_or_else(|failure| panic!("{includes}{failure}"))
            .model;
        let mut names = model.definitions.iter().map(|definition| &definition.name);
        assert!(!names.any(|name| name == "PolicyError"), "{includes}");
        fs::remove_file(own).unwrap();
    }
    // A built-in file that needs more than the own version has tells what.
    fs::write(dir.path().join("orb.idl"), orb).unwrap();
    let includes = "#include \"orb.idl\"\n#include <Compression.idl>\n";
    let failure = compile_main(includes, Path::new("elsewhere")).unwrap_err();
    assert_eq!(first_code(&failure), codes::UNDEFINED);
}

#[test]
fn an_include_of_another_compiler_is_told_the_name() {
    for include in ["<tao/orb.idl>", "\"COS/cosnaming.idl\""] {
        let failure = compile_text(
            "main.idl",
            &format!("#include {include}\n"),
            &Options::default(),
        );
        let failure = failure.unwrap_err();
        assert_eq!(first_code(&failure), codes::INCLUDE_NOT_FOUND);
        let told = failure.to_string();
        assert!(told.contains("part of this compiler"), "{told}");
    }
}

#[test]
fn a_finding_in_one_names_it_in_brackets() {
    let text = "#include <TimeBase.idl>\nmodule TimeBase { typedef long TimeT; };";
    let failure = compile_text("main.idl", text, &Options::default()).unwrap_err();
    let told = failure.to_string();
    assert!(told.contains("<TimeBase.idl>"), "{told}");
}

#[test]
fn the_book_lists_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let book = fs::read_to_string(root.join("../../docs/src/idl-compiler.md")).unwrap();
    let (_, rest) = book.split_once("\n## Files of the compiler\n").unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let listed: Vec<String> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap().split('`'))
        .filter(|name| name.ends_with(".idl"))
        .map(str::to_owned)
        .collect();
    let names = names();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), names);
    assert_eq!(listed.len(), names.len(), "each once");
}

fn first_code(failure: &Failure) -> &'static str {
    failure.diagnostics.iter().next().unwrap().code
}

fn on_disk(model: &Model) -> Vec<&Path> {
    model.files_on_disk().collect()
}

/// Returns the files of the folder `idl`.
fn names() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("idl");
    let entries = folder.read_dir().unwrap().map(Result::unwrap);
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}
