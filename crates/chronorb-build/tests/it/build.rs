//! The builder as a program uses it: files in, files out.

use std::fs;
use std::path::Path;

use chronorb_build::{BuildError, configure};

fn write(dir: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).expect("written");
    path
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("readable")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn each_file_becomes_a_rust_file_and_annotations_a_list_beside_it() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let a = write(
        idl.path(),
        "a.idl",
        "interface A { @rt::priority(3) void f(); };",
    );
    let b = write(idl.path(), "b.idl", "struct B { long n; };");
    configure()
        .out_dir(out.path())
        .emit_rerun_if_changed(false)
        .compile(&[a, b])
        .expect("compiled");
    assert_eq!(names(out.path()), ["a.rs", "a.rt.toml", "b.rs"]);
}

#[test]
fn includes_and_definitions_reach_the_compiler() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let include = idl.path().join("common");
    fs::create_dir(&include).expect("created");
    write(&include, "common.idl", "struct Common { long n; };");
    let main = write(
        idl.path(),
        "main.idl",
        "#include <common.idl>\n#ifdef WITH\nstruct Main { Common c; };\n#endif\n",
    );
    configure()
        .out_dir(out.path())
        .include(&include)
        .define("WITH", "1")
        .emit_rerun_if_changed(false)
        .compile(&[main])
        .expect("compiled");
    let text = fs::read_to_string(out.path().join("main.rs")).expect("readable");
    assert!(text.contains("pub struct Common") && text.contains("pub struct Main"));
}

#[test]
fn a_wrong_file_leaves_nothing_behind_not_even_of_the_right_ones() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let right = write(idl.path(), "right.idl", "struct A { long n; };");
    let wrong = write(idl.path(), "wrong.idl", "struct B { lnog n; };");
    let error = configure()
        .out_dir(out.path())
        .emit_rerun_if_changed(false)
        .compile(&[right, wrong])
        .expect_err("a wrong file");
    assert_eq!(names(out.path()), [""; 0]);
    // The output of a build script that returns the error.
    let printed = format!("{error:?}");
    assert!(printed.contains("wrong.idl:1:12"), "{printed}");
    assert!(printed.contains("did you mean `long`?"), "{printed}");
}

#[test]
fn two_files_for_one_output_are_refused() {
    let idl = tempfile::tempdir().expect("a directory");
    let other = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let first = write(idl.path(), "x.idl", "struct A { long n; };");
    let second = write(other.path(), "x.idl", "struct B { long n; };");
    let error = configure()
        .out_dir(out.path())
        .emit_rerun_if_changed(false)
        .compile(&[first, second])
        .expect_err("the same output");
    assert!(matches!(error, BuildError::SameName { .. }), "{error}");
    assert_eq!(names(out.path()), [""; 0]);
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let idl = tempfile::tempdir().expect("a directory");
    let main = write(idl.path(), "x.idl", "struct A { long n; };");
    let error = configure()
        .out_dir(idl.path().join("missing"))
        .emit_rerun_if_changed(false)
        .compile(&[main])
        .expect_err("no directory");
    assert!(matches!(error, BuildError::Write { .. }), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn an_external_path_that_no_file_has_is_named() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let main = write(idl.path(), "x.idl", "struct A { long n; };");
    for name in ["::CosNaming", "TimeBase.idl"] {
        let error = configure()
            .out_dir(out.path())
            .emit_rerun_if_changed(false)
            .extern_path(name, "::other")
            .compile(&[&main])
            .expect_err("it is not there");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn an_external_path_that_is_none_is_refused() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let main = write(idl.path(), "x.idl", "module m { struct A { long n; }; };");
    for (name, rust) in [("::m", "other"), ("::m", "::a b"), ("m", "::other")] {
        let error = configure()
            .out_dir(out.path())
            .emit_rerun_if_changed(false)
            .extern_path(name, rust)
            .compile(&[&main])
            .expect_err("no path");
        assert!(matches!(error, BuildError::Generate(_)), "{error}");
    }
}

#[test]
fn renames_of_the_builder_and_of_a_file_beside_the_idl_are_used() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    write(
        idl.path(),
        "base.idl",
        "interface Base { readonly attribute long on_time; };",
    );
    write(
        idl.path(),
        "base.rename",
        "# Both would be on_time.\n\n::Base::on_time = punctual # the attribute\n",
    );
    let main = write(
        idl.path(),
        "main.idl",
        "#include \"base.idl\"\nmodule M {\n  enum Colour { RED, GREEN };\n\
         struct S { long a; };\n  union U switch (long) { case 1: long only; };\n\
         bitmask Flags { READ };\n  bitset Bits { bitfield<3> low; };\n\
         exception Bad { string why; };\n  const long LIMIT = 3;\n\
         valuetype V { public long held; factory make(in long n); };\n\
         interface I : Base { void onTime(in long x) raises (Bad); attribute long rate; };\n};\n",
    );
    let renames = [
        ("::M::Colour::RED", "Rot"),
        ("M::S", "Structure"),
        ("::M::S::a", "first"),
        ("::M::U::only", "Single"),
        ("::M::Flags::READ", "LESEN"),
        ("::M::Bits::low", "lowest"),
        ("::M::Bad::why", "reason"),
        ("::M::LIMIT", "MOST"),
        ("::M::V::held", "kept"),
        ("::M::V::make", "produce"),
        ("::M::V::make::n", "number"),
        ("::M::I::onTime", "at_time"),
        ("::M::I::onTime::x", "moment"),
        ("::M::I::rate", "speed"),
        ("::M", "market"),
        ("::Base::on_time", "prompt"),
    ];
    let builder = || configure().out_dir(out.path()).emit_rerun_if_changed(false);
    builder()
        .compile(&[&main])
        .expect("the file beside the included one renames");
    let text = fs::read_to_string(out.path().join("main.rs")).expect("written");
    assert!(text.contains("fn punctual("));

    let all = renames.iter();
    all.fold(builder(), |builder, (idl, rust)| {
        builder.rename(*idl, *rust)
    })
    .compile(&[&main])
    .expect("compiled");
    let text = fs::read_to_string(out.path().join("main.rs")).expect("written");
    assert!(
        !text.contains("fn punctual("),
        "the builder takes precedence"
    );
    for (idl, rust) in renames {
        assert!(text.contains(rust), "{idl} is not {rust}:\n{text}");
    }
}

#[test]
fn renames_of_nothing_and_malformed_ones_are_refused() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let a = write(idl.path(), "a.idl", "interface A { void f(); };");
    let fails = |rename: Option<(&str, &str)>| {
        let mut builder = configure().out_dir(out.path()).emit_rerun_if_changed(false);
        if let Some((idl, rust)) = rename {
            builder = builder.rename(idl, rust);
        }
        let error = builder.compile(&[&a]).expect_err("refused");
        assert_eq!(names(out.path()), [""; 0]);
        error
    };
    let error = fails(Some(("::A::g", "x")));
    assert!(matches!(&error, BuildError::UnusedRename { idl, file: None } if idl == "::A::g"));
    assert!(
        error
            .to_string()
            .starts_with("no file defines `::A::g`, which the builder renames")
    );
    let error = fails(Some(("::A::f", "not a name")));
    assert!(matches!(error, BuildError::Generate(_)), "{error}");
    for (text, line, what) in [
        ("::A::f\n", 1, "has no `=`"),
        ("\n::A::f =\n", 2, "has no name on one side of `=`"),
        ("::A::f = g\nA::f = h\n", 2, "renames a second time"),
    ] {
        write(idl.path(), "a.rename", text);
        let error = fails(None).to_string();
        let expected = format!("a.rename:{line}: this line {what}\n");
        assert!(error.contains(&expected), "{error}");
    }
    write(idl.path(), "a.rename", "::A::h = g\n");
    let error = fails(None);
    assert!(
        matches!(error, BuildError::UnusedRename { file: Some(_), .. }),
        "{error}"
    );
}

#[test]
fn strict_refuses_what_is_a_warning_otherwise() {
    let idl = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let a = write(idl.path(), "a.idl", "const double D = 14;");
    for strict in [false, true] {
        let compiled = configure()
            .out_dir(out.path())
            .emit_rerun_if_changed(false)
            .strict(strict)
            .compile(&[&a]);
        assert_eq!(compiled.is_err(), strict);
    }
}
