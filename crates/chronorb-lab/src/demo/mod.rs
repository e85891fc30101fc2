//! `chronorb demo`: the same load without priorities and with them, each for some seconds.
//!
//! [`run`] runs two phases (`trial`): in each, one client of high priority calls at fixed times,
//! and others of low priority keep the server saturated.

mod report;
mod trial;

use std::path::PathBuf;

use chronorb_report::{check_writable, write_page};
use chronorb_rt::Rights;

use crate::comparison::{LoadSetup, PriorityComparison};
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::{print_json, print_text};
use crate::report::folder;
use crate::work::Speed;

/// The settings of `chronorb demo`.
#[derive(Clone, Debug, Default)]
pub struct DemoOptions {
    /// Whether one JSON object is printed instead of the table.
    pub json: bool,
    /// The file of the HTML report. Without it, `chronorb/reports/demo.html` in the user's folder
    /// for state (`XDG_STATE_HOME`, or `.local/state` in `HOME`).
    pub report: Option<PathBuf>,
    /// The load.
    pub setup: LoadSetup,
}

/// Runs the demonstration, prints its result on standard output and writes the report.
///
/// Progress goes to standard error. With [`DemoOptions::json`], standard output gets exactly one
/// JSON object.
///
/// # Errors
///
/// See [`LabError`]. All processes that were started have ended when this returns.
pub fn run(options: &DemoOptions) -> Result<(), LabError> {
    let path = folder::file(options.report.as_deref(), "demo")?;
    check_writable(&path)?;
    let comparison = compare(&options.setup)?;
    write_page(&report::document(&comparison).html(), &path)?;
    let caveats = caveats(&comparison);
    let files = [("Report with plots", path.as_path())];
    if options.json {
        print_json(&comparison.figures(), &caveats, &files)
    } else {
        let table = report::table(&comparison).text();
        let mut lines = vec![table, comparison.meaning()];
        lines.extend(caveats);
        print_text(lines.join("\n") + "\n", &files)
    }
    .map_err(LabError::Output)
}

fn compare(setup: &LoadSetup) -> Result<PriorityComparison, LabError> {
    let mut environment = Environment::probe();
    let speed = Speed::measure();
    let start = ProcessorTime::now();
    let without = trial::run(setup, speed, false)?;
    let middle = ProcessorTime::now();
    let with = trial::run(setup, speed, true)?;
    let end = ProcessorTime::now();
    environment.stolen_percent = vec![start.stolen_percent(middle), middle.stolen_percent(end)];
    Ok(PriorityComparison {
        real_time: with.real_time,
        setup: setup.clone(),
        without_priorities: without.calls,
        with_priorities: with.calls,
        environment,
    })
}

/// Returns the restrictions of the figures, with the remedies for missing rights.
fn caveats(comparison: &PriorityComparison) -> Vec<String> {
    let mut lines = comparison.caveats();
    if !comparison.real_time {
        for missing in Rights::probe().missing() {
            lines.push(format!("  {}: {}", missing.what, missing.cost));
            lines.push(format!("  to get it: {}", missing.remedy));
        }
    }
    lines
}
