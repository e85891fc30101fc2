//! `chronorb idl`: what it says and what it writes.

use std::fs;
use std::path::Path;

use crate::support::{chronorb, stderr, stdout};

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
fn methods_for_asynchronous_calls_are_generated_on_demand() {
    let folder = folder(&[("clock.idl", RIGHT)]);
    for (option, has_them) in [("--disable-comments", false), ("--ami", true)] {
        let command = ["idl", "rust", "clock.idl", option, "--out", "made"];
        let output = chronorb(folder.path(), &command);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let clock = fs::read_to_string(folder.path().join("made/clock.rs")).expect("written");
        assert_eq!(
            clock.contains("pub trait ClockReplyHandler"),
            has_them,
            "{option}"
        );
    }
}

#[test]
fn a_trait_with_owned_results_is_generated_on_demand() {
    let folder = folder(&[("clock.idl", RIGHT)]);
    for (option, has_it) in [("--disable-comments", false), ("--owned-servants", true)] {
        let command = ["idl", "rust", "clock.idl", option, "--out", "made"];
        let output = chronorb(folder.path(), &command);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let clock = fs::read_to_string(folder.path().join("made/clock.rs")).expect("written");
        assert_eq!(clock.contains("OwnedServant"), has_it, "{option}");
    }
}

#[test]
fn code_of_others_is_refused_on_demand() {
    let text = r#"@verbatim(language="rust", text="fn f() {}") struct S { long x; };"#;
    let folder = folder(&[("s.idl", text)]);
    let command = ["idl", "rust", "s.idl", "--out", "made"];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = chronorb(folder.path(), &[&command[..], &["--no-verbatim"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("s.idl:1"), "{}", stderr(&output));
}

#[test]
fn when_one_file_is_wrong_nothing_is_written() {
    let files = [
        ("right.idl", RIGHT),
        ("wrong.idl", WRONG),
        // Correct IDL, but a given name is taken.
        (
            "no_rust.idl",
            "interface I { void onTime(); @rust::name(\"on_time\") void late(); };",
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

/// Parses the output of `--message-format json`, which has an object in each line.
fn findings(output: &std::process::Output) -> Vec<serde_json::Value> {
    let lines = stdout(output).lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn findings_are_json_for_programs() {
    let folder = folder(&[("wrong.idl", WRONG), ("right.idl", RIGHT)]);
    let command = ["idl", "check", "--message-format", "json"];
    let command = [&command[..], &["wrong.idl", "right.idl", "missing.idl"]].concat();
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "");
    let findings = findings(&output);
    assert_eq!(findings.len(), 2, "{findings:#?}");
    let wrong = &findings[0];
    assert_eq!(wrong["severity"], "error");
    assert_eq!(wrong["code"], "E0200");
    assert_eq!(wrong["hint"], "did you mean `long`?");
    assert_eq!(
        wrong["spans"],
        serde_json::json!([{
            "file": "wrong.idl", "line": 2, "column": 5, "end_line": 2, "end_column": 9,
            "byte_start": 22, "byte_end": 26, "primary": true, "label": "not defined",
        }])
    );
    let rendered = wrong["rendered"].as_str().expect("text");
    assert!(rendered.contains("wrong.idl:2:5"), "{rendered}");
    assert_eq!(findings[1]["code"], "E0001");
    assert_eq!(findings[1]["spans"], serde_json::json!([]));
}

#[test]
fn what_has_no_rust_form_is_json_too() {
    let folder = folder(&[(
        "no_rust.idl",
        "interface I { void onTime(); @rust::name(\"on_time\") void late(); };",
    )]);
    let command = ["idl", "rust", "no_rust.idl", "--out", "out"];
    let command = [&command[..], &["--message-format", "json"]].concat();
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(1));
    let findings = findings(&output);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0]["code"], serde_json::Value::Null);
    assert_eq!(findings[0]["severity"], "error");
}

#[test]
fn warnings_are_errors_when_they_are_denied() {
    let folder = folder(&[("old.idl", "#warning old\nstruct S { long a; };\n")]);
    let status = |options: &[&str]| {
        let check = [&["idl", "check", "old.idl"], options].concat();
        chronorb(folder.path(), &check).status.code()
    };
    assert_eq!(status(&[]), Some(0));
    assert_eq!(status(&["--deny", "warnings"]), Some(1));
    assert_eq!(status(&["--deny", "W0001"]), Some(1));
    assert_eq!(status(&["--deny", "W0002"]), Some(0));
    assert_eq!(status(&["--deny", "nonsense"]), Some(2));

    let rust = ["idl", "rust", "old.idl", "--out", "out", "--deny=warnings"];
    let output = chronorb(folder.path(), &rust);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("[W0001] Error: old"),
        "{}",
        stderr(&output)
    );
    assert_eq!(files_in(folder.path()), ["old.idl"]);
}

#[test]
fn idl_that_other_compilers_refuse_is_warned_of_on_demand() {
    let text = "#pragma prefix \"example.org\"\nstruct S { @key long a; };\n";
    let folder = folder(&[("s.idl", text)]);
    let check = |more: &[&str]| {
        let arguments = [&["idl", "check", "s.idl"], more].concat();
        chronorb(folder.path(), &arguments)
    };
    assert_eq!(stderr(&check(&[])), "");
    let output = check(&["--portable"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), "s.idl: no errors\n");
    for part in [
        "[W0031] Warning",
        "s.idl:2:12",
        "omniidl 4.3 and JacORB 3.9 refuse it",
    ] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    let output = check(&["--portable", "--deny", "W0031"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("[W0031] Error"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_check_warns_of_what_has_no_rust_form() {
    let text = "struct S { long max_level; @rust::name(\"max_level\") long most; };\n";
    let folder = folder(&[("s.idl", text)]);
    let output = chronorb(folder.path(), &["idl", "check", "s.idl"]);
    assert_eq!(output.status.code(), Some(0));
    let told = stderr(&output);
    assert!(
        told.contains("warning: s.idl cannot be compiled to Rust"),
        "{told}"
    );
    assert!(told.contains("max_level"), "{told}");
    let output = chronorb(
        folder.path(),
        &["idl", "check", "--deny", "warnings", "s.idl"],
    );
    assert_eq!(output.status.code(), Some(1));
    // The generator refuses it indeed.
    let output = chronorb(folder.path(), &["idl", "rust", "s.idl", "--out", "out"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn names_that_become_one_in_rust_are_warned_of() {
    let text = "interface Log { void write_records(); void writeRecords(); };\n";
    let folder = folder(&[("log.idl", text)]);
    let warning = "chronorb: warning: operation `writeRecords` (log.idl:1:44) is `write_records_` \
                   in Rust, because operation `write_records` (log.idl:1:22) has the name \
                   `write_records`\n";
    let output = chronorb(folder.path(), &["idl", "check", "log.idl"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
    let command = ["idl", "rust", "log.idl", "--out", "out"];
    let denied = [&command[..], &["--deny", "warnings"]].concat();
    assert_eq!(chronorb(folder.path(), &denied).status.code(), Some(1));
    assert!(!folder.path().join("out").exists());
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
}

#[test]
fn files_of_one_name_are_shared_and_other_encodings_are_read() {
    let folder = folder(&[
        ("types.idl", "module X { struct P { long a; }; };\n"),
        (
            "m.idl",
            "#include \"types.idl\"\n#include \"y/types.idl\"\nmodule M { typedef Y::P Q; };\n",
        ),
    ]);
    fs::create_dir(folder.path().join("y")).expect("a folder");
    let other = b"module Y { struct P { long a; }; const string E = \"\xe9\"; };\n";
    fs::write(folder.path().join("y/types.idl"), other).expect("written");
    let command = [
        "idl",
        "rust",
        "m.idl",
        "--shared",
        "crate::idl",
        "--out",
        "out",
    ];
    assert_eq!(chronorb(folder.path(), &command).status.code(), Some(1));
    let command = [&command[..], &["--encoding", "latin-1"]].concat();
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made = files_in(&folder.path().join("out"));
    assert_eq!(made, ["m.rs", "mod.rs", "types.rs", "y_types.rs"]);
    let text = fs::read_to_string(folder.path().join("out/m.rs")).expect("written");
    assert!(text.contains("crate::idl::y_types::y::P"), "{text}");
}

#[test]
fn dependencies_are_rules_or_json() {
    let folder = folder(&[
        (
            "main.idl",
            "#include \"with blank.idl\"\n#if 0\n#include \"no.idl\"\n#endif\nnonsense",
        ),
        ("with blank.idl", "#include \"inner.idl\"\n"),
        ("inner.idl", ""),
    ]);
    let deps = ["idl", "deps", "main.idl", "inner.idl", "--out", "made"];
    let output = chronorb(folder.path(), &deps);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        stdout(&output),
        "made/main.rs: \\\n  main.idl \\\n  with\\ blank.idl \\\n  inner.idl\n\
         made/inner.rs: \\\n  inner.idl\n"
    );
    let output = chronorb(folder.path(), &["idl", "deps", "main.idl", "--json"]);
    let report: serde_json::Value = serde_json::from_str(stdout(&output)).expect("JSON");
    assert_eq!(
        report,
        serde_json::json!({
            "format": "chronorb-idl-deps/1",
            "files": [{
                "file": "main.idl",
                "output": "main.rs",
                "reads": ["main.idl", "with blank.idl", "inner.idl"],
            }],
        })
    );
    let output = chronorb(folder.path(), &["idl", "deps", "inner.idl", "missing.idl"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
}

#[test]
fn preprocessed_text_has_line_markers_and_needs_no_options() {
    let folder = folder(&[
        (
            "main.idl",
            "#include \"part.idl\"\ntypedef sequence<long, LIMIT> Items;\n",
        ),
        ("part.idl", "const long MOST = 9;"),
    ]);
    let command = ["idl", "preprocess", "-DLIMIT=64", "main.idl"];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output).to_owned();
    assert!(
        text.contains("# 1 \"part.idl\" 1\nconst long MOST = 9;\n"),
        "{text}"
    );
    assert!(text.contains("sequence<long, 64>"), "{text}");
    fs::write(folder.path().join("made.idl"), text).expect("written");
    let output = chronorb(folder.path(), &["idl", "check", "made.idl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_file_can_come_by_standard_input() {
    let folder = folder(&[("part.idl", "typedef long T;\n")]);
    let text = "#include \"part.idl\"\nstruct S { T t1; U u1; };\n";
    let output = crate::support::chronorb_reading(folder.path(), &["idl", "check", "-"], text);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("<stdin>:2:18"),
        "{}",
        stderr(&output)
    );
    let rust = ["idl", "rust", "-", "--out", "out"];
    let output = crate::support::chronorb_reading(folder.path(), &rust, "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("standard input"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_another_crate_has_generated_can_be_taken() {
    let folder = folder(&[
        (
            "main.idl",
            "#include \"base.idl\"\nstruct Line { Base::Point a; };\n",
        ),
        ("base.idl", "module Base { struct Point { long x; }; };\n"),
    ]);
    let command = ["idl", "rust", "main.idl", "--out", "out"];
    let command = [&command[..], &["--extern-path", "::Base=::base_idl::base"]].concat();
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = fs::read_to_string(folder.path().join("out/main.rs")).expect("written");
    assert!(text.contains("::base_idl::base::Point"), "{text}");
    assert!(!text.contains("struct Point"), "{text}");
}

#[test]
fn imported_files_are_dependencies_and_part_of_the_preprocessed_text() {
    let folder = folder(&[
        (
            "m.idl",
            "import ::Base;\nmodule M { typedef Base::T U; };\n",
        ),
        ("Base.idl", "module Base { typedef long T; };\n"),
    ]);
    let output = chronorb(folder.path(), &["idl", "deps", "m.idl"]);
    assert!(stdout(&output).contains("Base.idl"), "{}", stdout(&output));
    let output = chronorb(folder.path(), &["idl", "preprocess", "m.idl"]);
    assert!(
        stdout(&output).contains("module Base"),
        "{}",
        stdout(&output)
    );
    let output = chronorb(folder.path(), &["idl", "check", "m.idl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
