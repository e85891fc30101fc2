//! The schedule and its lock file agree, and the programs run by it.

use std::path::{Path, PathBuf};
use std::process::Command;

use chronorb_schedule::Schedule;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn the_lock_file_is_that_of_the_schedule() {
    let text = std::fs::read_to_string(file("avionics.toml")).expect("the schedule");
    let none = &mut |_: &str| Err("nothing is included".to_owned());
    let schedule = Schedule::parse("avionics.toml", &text, none);
    let schedule = schedule.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let assignment = schedule.assign().expect("an assignment");
    assert!(assignment.analysis.feasible);
    let lock = assignment.lock_file(&schedule).to_string();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(file("avionics.rt.lock"), &lock).expect("it can be written");
    }
    let kept = std::fs::read_to_string(file("avionics.rt.lock")).expect("the lock file");
    assert_eq!(lock, kept);
}

#[test]
fn all_activities_are_compared_with_the_analysis() {
    let output = Command::new(env!("CARGO_BIN_EXE_avionics"))
        .arg("1")
        .output();
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    for (activity, calls) in [
        ("Cockpit::fly", "20"),
        ("Cockpit::navigate", "10"),
        ("Cockpit::show", "5"),
        ("Cockpit::monitor", "1"),
    ] {
        let mut lines = text.lines().map(str::split_whitespace);
        let line = lines.find_map(|mut words| (words.next() == Some(activity)).then_some(words));
        let mut words = line.unwrap_or_else(|| panic!("{activity} is missing:\n{text}"));
        assert_eq!(words.next(), Some(calls), "{text}");
        let executed = words.clone().rev().nth(1);
        let executed = executed.and_then(|time| time.parse::<f64>().ok());
        assert!(executed.is_some_and(|time| time > 5.0), "{text}");
    }
}
