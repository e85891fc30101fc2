//! Tests of schedule files.

mod assignment;
mod case_studies;
mod comparison;
mod files;
mod generated;
mod messages;
mod real_time_io;
mod shared_locks;
mod simulation;
mod soundness;

use chronorb_sched::Response;
use chronorb_schedule::{Schedule, ScheduleErrors};

/// Parses a schedule without includes.
fn parse(text: &str) -> Result<Schedule, ScheduleErrors> {
    Schedule::parse("test.toml", text, &mut |_| Err("there is none".to_owned()))
}

fn schedule(text: &str) -> Schedule {
    parse(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the mistakes of a text.
fn mistakes(text: &str) -> String {
    parse(text).expect_err("it has mistakes").to_string()
}

fn millis(time: u64) -> Response {
    Response::Bounded(time * 1_000_000)
}
