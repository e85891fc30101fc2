//! `chronorb doctor`, on the machine that the tests run on.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{chronorb, stderr, stdout};

fn keys(object: &Value) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    let mut keys: Vec<_> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn what_was_found_is_one_json_object_and_nothing_else() {
    let output = chronorb(Path::new("."), &["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let diagnosis: Value = serde_json::from_str(stdout(&output)).expect("exactly one JSON value");
    assert_eq!(
        keys(&diagnosis),
        ["environment", "findings", "measurement", "round_trips"]
    );
    assert!(diagnosis["measurement"].is_null());
    assert_eq!(diagnosis["round_trips"], serde_json::json!([]));
    let findings = diagnosis["findings"].as_array().expect("a list");
    for finding in findings {
        assert_eq!(
            keys(finding),
            ["cost", "found", "id", "remedy", "verdict"],
            "{finding}"
        );
        let verdict = finding["verdict"].as_str().expect("text");
        assert!(
            ["good", "costs-latency", "missing", "cannot-be-told"].contains(&verdict),
            "{finding}"
        );
        for key in ["cost", "remedy"] {
            assert_eq!(finding[key].is_null(), verdict == "good", "{finding}");
        }
    }
    for id in ["rt-priorities", "preemption", "clock-source", "swap"] {
        assert!(findings.iter().any(|finding| finding["id"] == id), "{id}");
    }
}

#[test]
fn rights_are_judged_as_they_were_tried() {
    let output = chronorb(Path::new("."), &["doctor", "--json"]);
    let diagnosis: Value = serde_json::from_str(stdout(&output)).expect("exactly one JSON value");
    let findings = diagnosis["findings"].as_array().expect("a list");
    let is_good = |id| {
        let finding = findings.iter().find(|finding| finding["id"] == id);
        finding.expect("there is one")["verdict"] == "good"
    };
    let rights = chronorb_rt::Rights::probe();
    let all = rights.max_fifo.is_some_and(|max| max >= 98);
    assert_eq!(is_good("rt-priorities"), all);
    let unlimited = rights.memory_lock == chronorb_rt::MemoryLock::Unlimited;
    assert_eq!(is_good("memory-lock"), unlimited);
}

#[test]
fn people_get_a_list_and_at_its_end_what_to_do_first() {
    let output = chronorb(Path::new("."), &["doctor"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("Linux "), "{text}");
    assert!(!text.contains("WAKE-UPS"), "{text}");
    let last = text.trim_end().rsplit("\n\n").next().expect("there is one");
    assert!(
        last.starts_with("First: ") || last.contains("othing to mend"),
        "{last}"
    );
}

#[test]
fn wake_ups_are_measured_on_request_and_reported_where_asked_for() {
    let folder = tempfile::tempdir().expect("a directory");
    let command = [
        "doctor",
        "--json",
        "--measure",
        "--seconds",
        "1",
        "--report",
        "machine.html",
    ];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("machine.html"));
    let diagnosis: Value = serde_json::from_str(stdout(&output)).expect("exactly one JSON value");
    let measurement = &diagnosis["measurement"];
    assert_eq!(
        keys(measurement),
        [
            "all",
            "cpus",
            "memory_locked",
            "period_us",
            "real_time",
            "scheduling",
            "seconds"
        ]
    );
    for cpu in measurement["cpus"].as_array().expect("a list") {
        assert_eq!(
            keys(cpu),
            [
                "cpu",
                "histogram",
                "max_us",
                "p50_us",
                "p999_us",
                "p99_us",
                "wake_ups"
            ]
        );
        // Every period has its wake-up, however late.
        assert_eq!(cpu["wake_ups"], 1000, "{cpu}");
    }
    let report = fs::read_to_string(folder.path().join("machine.html")).expect("it was written");
    assert!(report.contains("<svg") && report.ends_with("</html>\n"));
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
}

#[test]
fn figures_that_are_not_real_time_are_said_to_be_so() {
    let output = chronorb(Path::new("."), &["doctor", "--measure", "--seconds", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("WAKE-UPS") && text.contains('█'), "{text}");
    let may = chronorb_rt::Rights::probe().max_fifo.is_some();
    assert_eq!(text.contains("NOT REAL-TIME"), !may, "{text}");
}

#[test]
fn a_report_that_cannot_be_written_is_found_out_before_the_measurement() {
    let folder = tempfile::tempdir().expect("a directory");
    let report = folder.path().join("missing/machine.html");
    let report = report.to_str().expect("text");
    let command = [
        "doctor",
        "--measure",
        "--seconds",
        "86400",
        "--report",
        report,
    ];
    let output = chronorb(folder.path(), &command);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains(report), "{}", stderr(&output));
}

#[test]
fn a_length_without_a_measurement_is_a_wrong_command_line() {
    for arguments in [
        &["doctor", "--seconds", "5"][..],
        &["doctor", "--measure", "--seconds", "0"],
        &["doctor", "--report"],
    ] {
        let output = chronorb(Path::new("."), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).starts_with("error: "), "{arguments:?}");
    }
    let output = chronorb(Path::new("."), &["doctor", "--help"]);
    let help = stdout(&output);
    assert!(
        help.contains("Examples:") && help.contains("Exit status: 0 also"),
        "{help}"
    );
}
