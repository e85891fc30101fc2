//! `chronorb rio plan` and `chronorb rio status`, as they are used.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{self, Output};

use chronorb_rio::class::ClassId;
use chronorb_rio::plan::Reservation;
use chronorb_rio::status::{Count, Page};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::support::{stderr, stdout};

const PLAN: &str = r#"
[interface]
name = "eth7"
rate = "100 Mbit"

[[class]]
name = "video"
priority = 24000
processing = "periodic"
period = "10 ms"
budget = 8
cost = "20 us"
port = 4000
"#;

/// Runs `chronorb rio` with these arguments.
fn rio(arguments: &[&str]) -> Output {
    crate::support::chronorb(Path::new("/"), &[&["rio"], arguments].concat())
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("it can be written");
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().expect("it is text")
}

#[test]
fn a_plan_that_can_be_kept_is_admitted() {
    let plan = file(PLAN);
    let output = rio(&["plan", path(&plan)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("fifo 72"), "{text}");
    assert!(
        text.ends_with("admitted: all promises can be kept\n"),
        "{text}"
    );
}

#[test]
fn the_mapping_of_the_orb_decides_the_native_priority() {
    let plan = file(&PLAN.replace("24000", "24"));
    let mut output = rio(&["plan", path(&plan), "--json", "--mapping", "direct"]);
    let object: Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(object["classes"][0]["native"], 24);
    output = rio(&["plan", path(&plan), "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(object["classes"][0]["native"], 1);
}

#[test]
fn a_plan_that_cannot_be_kept_fails_with_what_would_fit() {
    let plan = file(&PLAN.replace("budget = 8", "budget = 800"));
    let output = rio(&["plan", path(&plan)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("81 packets in each period would fit"),
        "{}",
        stdout(&output)
    );
    let error = "chronorb: the plan cannot be kept: 3 promises are refused\n";
    assert_eq!(stderr(&output), error);
    let output = rio(&["plan", path(&plan), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let object: Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(object["admitted"], false);
    let reasons = object["refusals"].as_array().expect("a list").iter();
    let reasons: Vec<_> = reasons.map(|refusal| refusal["reason"].clone()).collect();
    assert_eq!(reasons, ["network", "overload", "late"]);
}

#[test]
fn a_file_that_is_no_plan_fails_with_the_place() {
    let plan = file(&PLAN.replace("budget", "bugdet"));
    let output = rio(&["plan", path(&plan)]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains("line 11, column 1: unknown field `bugdet`"),
        "{error}"
    );
    let output = rio(&["plan", "/no/such/plan"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot be read"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn classes_of_a_process_are_shown_by_another_one() {
    let page = Page::create("eth7").expect("a page");
    let class = ClassId::new(0).expect("there is one");
    let counters = page.open(class, &Reservation::default());
    counters.add(Count::PacketsIn, 77);
    let pid = process::id().to_string();
    let status = ["status", "--pid", &pid, "--once", "--interval", "100"];
    let output = rio(&status);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("eth7") && text.contains("best-effort"),
        "{text}"
    );
    let output = rio(&[&status[..], &["--json"]].concat());
    let object: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let class = &object["processes"][0]["interfaces"][0]["classes"][0];
    assert_eq!(class["packets_in"], 77);
    assert_eq!(class["packets_in_per_s"], 0.0);
    assert_eq!(class["latency"]["p50_us"], Value::Null);
}

#[test]
fn a_process_without_classes_is_told_from_one_that_is_not_there() {
    let child = process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("there is sleep");
    let mut child = KillOnDrop(child);
    let pid = child.0.id().to_string();
    let output = rio(&["status", "--pid", &pid]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        format!("chronorb: process {pid} does not run RIO\n")
    );
    child.0.kill().expect("it runs");
    child.0.wait().expect("it ends");
    assert!(fs::metadata(format!("/proc/{pid}")).is_err());
    let output = rio(&["status", "--pid", &pid]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        format!(
            "chronorb: there is no process {pid}
"
        )
    );
}

/// A process that is killed when this is dropped.
struct KillOnDrop(process::Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
