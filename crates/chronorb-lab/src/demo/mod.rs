//! `chronorb demo`: the same load without priorities and with them, each for some seconds.
//!
//! [`run`] runs two phases (`trial`): in each, one client of high priority calls at fixed times,
//! and others of low priority keep the server saturated.

mod report;
mod trial;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronorb_report::{check_writable, write_page};
use chronorb_rt::Rights;

use crate::comparison::{Comparison, Setup};
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::report::folder;
use crate::work::Speed;

/// What `chronorb demo` was asked to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print one JSON object instead of the table.
    pub json: bool,
    /// Where the HTML report goes. Without it, to `chronorb/reports/demo.html` in the user's folder
    /// for state (`XDG_STATE_HOME`, or `.local/state` in `HOME`).
    pub report: Option<PathBuf>,
    /// The load.
    pub setup: Setup,
}

/// Runs the demonstration, prints its outcome on standard output and writes the report.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON
/// object.
///
/// # Errors
///
/// See [`LabError`]. All processes that were started have ended when this returns.
pub fn run(options: &Options) -> Result<(), LabError> {
    let path = folder::file(options.report.as_deref(), "demo")?;
    check_writable(&path)?;
    let comparison = compare(&options.setup)?;
    write_page(&report::document(&comparison).html(), &path)?;
    print(options.json, &path, &comparison).map_err(LabError::Output)
}

fn compare(setup: &Setup) -> Result<Comparison, LabError> {
    let mut environment = Environment::probe();
    let speed = Speed::measure();
    let start = ProcessorTime::now();
    let without = trial::run(setup, speed, false)?;
    let middle = ProcessorTime::now();
    let with = trial::run(setup, speed, true)?;
    let end = ProcessorTime::now();
    environment.stolen_percent = vec![start.stolen_percent(middle), middle.stolen_percent(end)];
    Ok(Comparison {
        real_time: with.real_time,
        setup: setup.clone(),
        without_priorities: without.calls,
        with_priorities: with.calls,
        environment,
    })
}

fn print(json: bool, file: &Path, comparison: &Comparison) -> io::Result<()> {
    let path = file.canonicalize();
    let path = path.as_deref().unwrap_or(file).display();
    let caveats = caveats(comparison);
    let mut out = io::stdout().lock();
    if json {
        eprint!("{caveats}");
        serde_json::to_writer(&mut out, &comparison.figures())?;
        writeln!(out)?;
        eprintln!("Report with plots: {path}");
    } else {
        writeln!(out, "{}", report::table(comparison).text())?;
        writeln!(out, "{}", comparison.meaning())?;
        write!(out, "{caveats}")?;
        writeln!(out, "Report with plots: {path}")?;
    }
    out.flush()
}

/// What has to be known beside the figures, and how to get better ones.
fn caveats(comparison: &Comparison) -> String {
    let mut text = String::new();
    for caveat in comparison.caveats() {
        let _ = writeln!(text, "{caveat}");
    }
    if !comparison.real_time {
        for missing in Rights::probe().missing() {
            let _ = writeln!(text, "  {}: {}", missing.what, missing.cost);
            let _ = writeln!(text, "  to get it: {}", missing.remedy);
        }
    }
    text
}
