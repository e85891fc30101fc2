//! The schedule and its lock file agree, and no event is lost without being told.

use std::path::{Path, PathBuf};
use std::process::Command;

use chronorb_schedule::Schedule;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn the_lock_file_is_that_of_the_schedule() {
    let text = std::fs::read_to_string(file("sensors.toml")).expect("the schedule");
    let none = &mut |_: &str| Err("nothing is included".to_owned());
    let schedule = Schedule::parse("sensors.toml", &text, none);
    let schedule = schedule.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let assignment = schedule.assign().expect("an assignment");
    assert!(assignment.analysis.feasible);
    let lock = assignment.lock_file(&schedule).to_string();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(file("sensors.rt.lock"), &lock).expect("it can be written");
    }
    let kept = std::fs::read_to_string(file("sensors.rt.lock")).expect("the lock file");
    assert_eq!(lock, kept);
}

/// The cells of the line with this name.
fn cells<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut lines = text.lines().map(str::split_whitespace);
    let line = lines.find_map(|mut words| (words.next() == Some(name)).then_some(words));
    line.unwrap_or_else(|| panic!("{name} is missing:\n{text}"))
        .collect()
}

#[test]
fn every_event_is_logged_or_told_as_lost() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let page = folder.join("sensors.html");
    let output = Command::new(env!("CARGO_BIN_EXE_sensors"))
        .arg("1")
        .arg(&page)
        .output();
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let rates = [
        ("radar", 40),
        ("gyro", 20),
        ("air", 10),
        ("fuel", 5),
        ("hull", 1),
    ];
    for (sensor, pushed) in rates {
        let cells = cells(&text, &format!("Sensor::{sensor}"));
        assert_eq!(cells.last(), Some(&&*pushed.to_string()), "{text}");
    }
    let number = |cell: &str| cell.parse::<u64>().expect("a number");
    let [fusion, display, logger] =
        ["Fusion::track", "Display::draw", "Logger::write"].map(|name| cells(&text, name));
    // A gyro reading makes at most one pair; fewer if a busy machine delays a sensor.
    let pairs = number(fusion[1]);
    assert!((1..=20).contains(&pairs), "{text}");
    let pushed = 76 + pairs;
    for consumer in [display, logger] {
        assert_eq!(number(consumer[2]) + number(consumer[4]), pushed, "{text}");
    }
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("Logger::write"));
}
