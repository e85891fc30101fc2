//! The command line itself.

use std::path::Path;

use crate::support::{chronorb, stderr, stdout};

#[test]
fn a_wrong_command_line_ends_with_status_2() {
    for arguments in [
        &["--no-such-option"][..],
        &["no-such-command"],
        &["demo", "--seconds", "0"],
        &["demo", "--seconds", "ten"],
        &["idl"],
        &["lab"],
        &["lab", "no-such-experiment"],
        &["lab", "all", "--only", "no-such-experiment"],
        &["lab", "compare", "a.json"],
        &["lab", "compare", "a.json", "b.json", "--threshold", "-1"],
        &[
            "lab",
            "compare",
            "a.json",
            "b.json",
            "--fail-if-worse",
            "NaN",
        ],
        &["lab", "demux", "--short", "yes"],
        &["lab", "latency", "--quick", "yes"],
        &["lab", "latency", "--wait", "sleep"],
        &["lab", "latency", "--connections", "-1"],
        &["lab", "os", "--short", "yes"],
        &["lab", "overtake", "--short", "yes"],
        &["lab", "scheduling", "--only", "x2"],
        &["lab", "protocols", "--short", "yes"],
        &["lab", "throughput", "--short", "yes"],
        &["lab", "timeprobes", "--short", "yes"],
        &["lab", "timeprobes", "--transport", "atm"],
        &["lab", "timeprobes", "--transport", "miop"],
        &["lab", "waits", "--short", "yes"],
        &["idl", "check"],
        &["idl", "rust", "clock.idl"],
        &["idl", "check", "-D", "2X=1", "clock.idl"],
    ] {
        let output = chronorb(Path::new("."), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).starts_with("error: ") || arguments == ["idl"] || arguments == ["lab"],
            "{}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn help_shows_the_commands_that_are_for_people() {
    let output = chronorb(Path::new("."), &["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = stdout(&output);
    assert!(help.contains("demo ") && help.contains("idl "), "{help}");
    assert!(!help.contains("lab-child"), "{help}");
    assert!(!help.contains("rio-"), "{help}");
    assert!(help.contains("lab "), "{help}");
    for command in [
        &["demo"][..],
        &["lab", "all"],
        &["lab", "compare"],
        &["lab", "demux"],
        &["lab", "hostile"],
        &["lab", "latency"],
        &["lab", "os"],
        &["lab", "overtake"],
        &["lab", "peer", "client"],
        &["lab", "peer", "server"],
        &["lab", "protocols"],
        &["lab", "scheduling"],
        &["rio", "setup"],
        &["lab", "throughput"],
        &["lab", "timeprobes"],
        &["lab", "waits"],
        &["lab", "whitebox"],
        &["idl", "check"],
        &["idl", "rust"],
    ] {
        let output = chronorb(Path::new("."), &[command, &["--help"]].concat());
        assert!(stdout(&output).contains("Examples:"), "{command:?}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let output = chronorb(Path::new("."), &["--version"]);
    let expected = format!("chronorb {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&output), expected);
}

#[test]
fn an_experiment_whose_report_cannot_be_written_does_not_begin() {
    let folder = tempfile::tempdir().expect("a directory");
    let report = folder.path().join("missing/demux.html");
    let report = report.to_str().expect("text");
    let output = chronorb(folder.path(), &["lab", "demux", "--report", report]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains(report), "{}", stderr(&output));
}
