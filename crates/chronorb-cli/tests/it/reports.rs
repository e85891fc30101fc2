//! The default folder of reports.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `chronorb` in this directory, with this folder for state and without a home.
fn chronorb(dir: &Path, state: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronorb"));
    match state {
        Some(state) => command.env("XDG_STATE_HOME", state),
        None => command.env_remove("XDG_STATE_HOME"),
    };
    command.env_remove("HOME");
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
            let output = chronorb(folder.path(), state, command);
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
