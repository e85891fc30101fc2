//! `chronorb demo`, with real processes.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{chronorb, stderr, stdout};

#[test]
fn the_figures_are_one_json_object_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a directory");
    let command = ["demo", "--json", "--seconds", "1", "--report", "lanes.html"];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    let figures: Value = serde_json::from_str(stdout(&output)).expect("exactly one JSON value");
    let mut names: Vec<_> = figures.as_object().expect("an object").keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "environment",
            "real_time",
            "with_priorities",
            "without_priorities"
        ]
    );
    assert!(figures["real_time"].is_boolean());
    assert!(figures["environment"].is_object());
    for phase in ["without_priorities", "with_priorities"] {
        for class in ["high", "low"] {
            let summary = figures[phase][class].as_object().expect("an object");
            let mut names: Vec<_> = summary.keys().map(String::as_str).collect();
            names.sort_unstable();
            assert_eq!(
                names,
                [
                    "calls",
                    "jitter_us",
                    "max_us",
                    "mean_us",
                    "p50_us",
                    "p999_us",
                    "p99_us"
                ]
            );
            assert!(summary["p50_us"].as_f64() <= summary["p99_us"].as_f64());
            assert!(summary["p99_us"].as_f64() <= summary["max_us"].as_f64());
        }
        // Every period of 50 ms has its call, however late.
        assert_eq!(figures[phase]["high"]["calls"], 20);
        assert!(figures[phase]["low"]["calls"].as_u64() > Some(20));
    }

    let report = fs::read_to_string(folder.path().join("lanes.html")).expect("it was written");
    assert!(report.contains("<svg") && report.ends_with("</html>\n"));
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
}

#[test]
fn people_get_a_table_its_meaning_and_the_path_of_the_report() {
    let home = tempfile::tempdir().expect("a directory");
    let folder = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_chronorb"))
        .args(["demo", "--seconds", "1"])
        .current_dir(folder.path())
        // A relative path is ignored, and there is the folder in the home.
        .env("XDG_STATE_HOME", "relative")
        .env("HOME", home.path())
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "p99.9",
        "without priorities",
        "high, 20 Hz",
        "99 of 100",
        "chronorb/reports/demo.html",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let reports = home.path().canonicalize().expect("it is there");
    let report = reports.join(".local/state/chronorb/reports/demo.html");
    let told = format!("Report with plots: {}\n", report.display());
    assert!(text.ends_with(&told), "{text}");
    assert!(report.is_file());
    // Nothing is left in the current folder.
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
    let confesses = text.contains("not real-time");
    match chronorb_rt::Rights::probe().max_fifo {
        Some(99) => assert!(!confesses, "{text}"),
        None => assert!(confesses, "{text}"),
        // It depends on the priority that the demonstration uses.
        Some(_) => {}
    }
}

#[test]
fn a_report_that_cannot_be_written_is_found_out_before_the_measurement() {
    let folder = tempfile::tempdir().expect("a directory");
    let report = folder.path().join("missing/report.html");
    let report = report.to_str().expect("text");
    let output = chronorb(
        folder.path(),
        &["demo", "--seconds", "3600", "--report", report],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(report), "{}", stderr(&output));
}
