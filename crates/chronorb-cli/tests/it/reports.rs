//! The default folder of reports.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `chronorb` in this directory, with these folders of the user.
fn chronorb(dir: &Path, state: Option<&str>, home: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronorb"));
    for (name, value) in [("XDG_STATE_HOME", state), ("HOME", home)] {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.args(arguments).current_dir(dir).output();
    output.expect("the command starts")
}

#[test]
fn without_a_folder_of_the_user_nothing_is_measured_and_the_way_out_is_told() {
    let folder = tempfile::tempdir().expect("a directory");
    let occupied = folder.path().join("occupied");
    fs::write(&occupied, "").expect("it can be written");
    let occupied = occupied.to_str().expect("text");
    let commands = [
        &["demo", "--seconds", "3600"][..],
        &["lab", "demux"],
        &["lab", "all"],
    ];
    for command in commands {
        for (state, told) in [
            (None, "XDG_STATE_HOME"),
            (Some("relative"), "XDG_STATE_HOME"),
            (Some(occupied), occupied),
        ] {
            let output = chronorb(folder.path(), state, None, command);
            let error = String::from_utf8(output.stderr).expect("text");
            assert_eq!(output.status.code(), Some(1), "{error}");
            for part in [told, "--report FILE", "--out DIR"] {
                assert!(error.contains(part), "{error}");
            }
            assert!(output.stdout.is_empty());
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
}

#[test]
fn a_run_leaves_nothing_in_the_current_folder() {
    let home = tempfile::tempdir().expect("a directory");
    let folder = tempfile::tempdir().expect("a directory");
    let path = home.path().to_str().expect("text");
    let command = ["demo", "--seconds", "1", "--json"];
    let output = chronorb(folder.path(), Some("relative"), Some(path), &command);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{error}");

    let reports = home.path().canonicalize().expect("it is there");
    let reports = reports.join(".local/state/chronorb/reports");
    let told = format!(
        "Report with plots: {}\n",
        reports.join("demo.html").display()
    );
    assert!(error.ends_with(&told), "{error}");
    assert!(reports.join("demo.html").is_file());
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
}
