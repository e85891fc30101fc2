//! `chronorb idl`: what it says and what it writes.

mod support;

use std::fs;
use std::path::Path;

use support::{chronorb, stderr, stdout};

const RIGHT: &str = "interface Clock { long long now(); };";
const WRONG: &str = "interface Clock {\n    lnog now();\n};\n";

fn files_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("the directory is there")
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

#[test]
fn a_correct_file_is_said_to_be_correct() {
    let folder = folder(&[("clock.idl", RIGHT)]);
    let output = chronorb(folder.path(), &["idl", "check", "clock.idl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "clock.idl: no errors\n");
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_wrong_file_is_shown_with_its_line_an_excerpt_and_a_hint() {
    let folder = folder(&[("wrong.idl", WRONG)]);
    let output = chronorb(folder.path(), &["idl", "check", "wrong.idl"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    for part in ["wrong.idl:2:5", "lnog now();", "did you mean `long`?"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    // Colours are for terminals.
    assert!(!stderr(&output).contains('\x1b'), "{}", stderr(&output));
}

#[test]
fn one_wrong_file_does_not_hide_another() {
    let folder = folder(&[("a.idl", WRONG), ("b.idl", RIGHT), ("c.idl", WRONG)]);
    for command in [
        &["idl", "check", "a.idl", "b.idl", "c.idl"][..],
        &["idl", "rust", "a.idl", "b.idl", "c.idl", "--out", "out"],
    ] {
        let output = chronorb(folder.path(), command);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("a.idl:2:5"), "{}", stderr(&output));
        assert!(stderr(&output).contains("c.idl:2:5"), "{}", stderr(&output));
    }
}

#[test]
fn a_missing_file_is_named() {
    let folder = folder(&[]);
    let output = chronorb(folder.path(), &["idl", "check", "missing.idl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("missing.idl"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn each_file_becomes_a_rust_file() {
    let folder = folder(&[
        ("clock.idl", RIGHT),
        ("point.idl", "struct Point { double x; };"),
    ]);
    let command = [
        "idl",
        "rust",
        "clock.idl",
        "point.idl",
        "--out",
        "made/for/it",
    ];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let out = folder.path().join("made/for/it");
    assert_eq!(files_in(&out), ["clock.rs", "point.rs"]);
    let clock = fs::read_to_string(out.join("clock.rs")).expect("written");
    assert!(clock.contains("pub trait ClockServant"), "{clock}");
}

#[test]
fn when_one_file_is_wrong_nothing_is_written() {
    let files = [
        ("right.idl", RIGHT),
        ("wrong.idl", WRONG),
        // Correct IDL, but both names become `on_time` in Rust.
        (
            "no_rust.idl",
            "interface I { void onTime(); void on_time(); };",
        ),
    ];
    for wrong in ["wrong.idl", "no_rust.idl"] {
        let folder = folder(&files);
        let command = ["idl", "rust", "right.idl", wrong, "--out", "out"];
        let output = chronorb(folder.path(), &command);
        assert_eq!(output.status.code(), Some(1), "{wrong}");
        assert!(stderr(&output).contains(wrong), "{}", stderr(&output));
        assert_eq!(files_in(folder.path()).len(), files.len(), "{wrong}");
    }
}

#[test]
fn earlier_output_survives_a_wrong_file() {
    let folder = folder(&[("clock.idl", RIGHT)]);
    let command = ["idl", "rust", "clock.idl", "--out", "out"];
    assert!(chronorb(folder.path(), &command).status.success());
    let read = || fs::read_to_string(folder.path().join("out/clock.rs")).expect("written");
    let before = read();
    fs::write(folder.path().join("clock.idl"), WRONG).expect("written");
    assert_eq!(chronorb(folder.path(), &command).status.code(), Some(1));
    assert_eq!(read(), before);
    assert_eq!(files_in(&folder.path().join("out")), ["clock.rs"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let folder = folder(&[("clock.idl", RIGHT), ("occupied", "")]);
    let output = chronorb(
        folder.path(),
        &["idl", "rust", "clock.idl", "--out", "occupied"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("occupied"), "{}", stderr(&output));
}

#[test]
fn included_files_and_macros_are_found() {
    let folder = folder(&[(
        "main.idl",
        "#include <limits.idl>\n#ifndef HISTORY\n#error no history\n#endif\n\
         typedef sequence<long, LIMIT> Items;\ntypedef sequence<long, MOST> More;\n",
    )]);
    fs::create_dir(folder.path().join("common")).expect("made");
    fs::write(
        folder.path().join("common/limits.idl"),
        "const long MOST = 9;",
    )
    .expect("written");
    let options = ["-I", "common", "-D", "HISTORY", "-DLIMIT=64"];
    let check = [&["idl", "check", "main.idl"][..], &options].concat();
    let output = chronorb(folder.path(), &check);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rust = [&["idl", "rust", "main.idl", "--out", "out"][..], &options].concat();
    let output = chronorb(folder.path(), &rust);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    let output = chronorb(folder.path(), &["idl", "check", "main.idl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("limits.idl"),
        "{}",
        stderr(&output)
    );
}
