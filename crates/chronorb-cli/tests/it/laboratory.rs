//! `chronorb lab all` and `chronorb lab compare`, with real processes and files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{chronorb, stderr, stdout};

#[test]
fn experiments_leave_their_reports_with_an_index_and_can_be_compared() {
    let folder = tempfile::tempdir().expect("a directory");
    let command = [
        "lab", "all", "--short", "--only", "failover", "--out", "out", "--json",
    ];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("Experiment 1 of 1, failover"),
        "{}",
        stderr(&output)
    );
    let index: Value = serde_json::from_str(stdout(&output)).expect("exactly one JSON value");
    assert_eq!(index["experiments"][0]["name"], "failover");
    assert!(index["experiments"][0]["failure"].is_null());
    assert_eq!(index["claims"][0]["of"], "failover");

    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name));
    let page = read("index.html").expect("it was written");
    assert!(
        page.contains("<a href=\"failover.html\">failover</a>"),
        "{page}"
    );
    let report = read("failover.html").expect("it was written");
    assert!(report.contains("<svg") && report.ends_with("</html>\n"));
    let figures = read("failover.json").expect("it was written");
    let figures: Value = serde_json::from_str(&figures).expect("JSON");
    assert_eq!(figures["experiment"], "failover");

    let same = "out/failover.json";
    let command = [
        "lab",
        "compare",
        same,
        same,
        "--fail-if-worse",
        "0",
        "--report",
        "same.html",
    ];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let first = stdout(&output).lines().next().expect("a headline");
    assert!(
        first.ends_with("0 changed by more than 10 %; 0 are better and 0 worse"),
        "{first}"
    );
    assert!(!first.contains("of 0 figures"), "{first}");
    let page = fs::read_to_string(folder.path().join("same.html")).expect("it was written");
    assert!(page.contains("<svg"));
}

#[test]
fn an_experiment_that_fails_is_told_and_stops_nobody() {
    let folder = tempfile::tempdir().expect("a directory");
    // Where its report should go is something else.
    fs::create_dir_all(folder.path().join("chronorb/reports/all/demux.html")).expect("a directory");
    let command = ["lab", "all", "--quick", "--only", "demux,failover"];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("demux failed: the report cannot be written"));
    assert!(
        stderr(&output)
            .ends_with("chronorb: not all experiments could be measured: demux failed\n")
    );
    assert!(stdout(&output).contains("failed: the report cannot be written"));
    let page = fs::read_to_string(folder.path().join("chronorb/reports/all/index.html"));
    let page = page.expect("it was written");
    assert!(page.contains("failed: demux") && page.contains("failover.html"));
}

#[test]
fn what_cannot_be_compared_is_said_with_the_file() {
    let folder = tempfile::tempdir().expect("a directory");
    write(folder.path(), "waits.json", &figures("waits", 10.0));
    write(folder.path(), "demux.json", &figures("demux", 10.0));
    write(folder.path(), "other.json", &json!({"name": "package"}));
    fs::write(folder.path().join("text.json"), "no figures\n").expect("it can be written");
    for (second, words) in [
        ("missing.json", "missing.json cannot be read"),
        ("text.json", "text.json is no JSON"),
        ("other.json", "other.json has no figures of an experiment"),
        (
            "demux.json",
            "different experiments, \"waits\" and \"demux\"",
        ),
    ] {
        let output = chronorb(folder.path(), &["lab", "compare", "waits.json", second]);
        assert_eq!(output.status.code(), Some(1), "{second}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert_eq!(stdout(&output), "", "{second}");
    }
}

#[test]
fn what_is_worse_is_a_failure_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a directory");
    write(folder.path(), "old.json", &figures("waits", 10.0));
    write(folder.path(), "new.json", &figures("waits", 13.0));
    let status = |more: &[&str]| {
        let command = [&["lab", "compare", "old.json", "new.json", "--json"], more].concat();
        let output = chronorb(folder.path(), &command);
        let told: Value = serde_json::from_str(stdout(&output)).expect("exactly one JSON value");
        assert_eq!(told["figures"][0]["ratio"], 1.3);
        output.status.code()
    };
    assert_eq!(status(&[]), Some(0));
    assert_eq!(status(&["--fail-if-worse", "31"]), Some(0));
    assert_eq!(status(&["--fail-if-worse", "29"]), Some(1));
    assert_eq!(
        status(&["--fail-if-worse", "29", "--figures", "p50_us"]),
        Some(1)
    );
}

/// The figures of one call that took so long.
fn figures(experiment: &str, us: f64) -> Value {
    json!({"experiment": experiment, "rows": [{"way": "recv", "round": 1, "p50_us": us}]})
}

fn write(folder: &Path, name: &str, figures: &Value) {
    fs::write(folder.join(name), figures.to_string()).expect("it can be written");
}
