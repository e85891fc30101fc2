//! What all experiments have in common: how they are run, and how they tell what they found.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::claim::Claim;
use crate::error::LabError;
use crate::report::{PlotError, check_writable, folder, write_page};

/// An experiment of the laboratory.
pub trait Experiment {
    /// Its name on the command line, in its figures and in the names of its files.
    const NAME: &'static str;

    /// What it measures, in a few words, for people.
    const TITLE: &'static str;

    /// What is run, and how much of it.
    type Plan;

    /// What was found.
    type Findings: Findings;

    /// All of it.
    fn full() -> Self::Plan;

    /// As much as shows the same in little time.
    fn short() -> Self::Plan;

    /// Runs it. Progress goes to standard error.
    ///
    /// # Errors
    /// As the experiment says. All processes that were started have ended when this returns.
    fn measure(plan: &Self::Plan) -> Result<Self::Findings, LabError>;
}

/// What an experiment found.
pub trait Findings {
    /// The finding, in one line.
    fn headline(&self) -> String;

    /// What has to be known beside the figures, a sentence each; nothing in the best case.
    fn caveats(&self) -> Vec<String>;

    /// What papers claim, and what chronorb aims at, held against the figures.
    fn claims(&self) -> Vec<Claim>;

    /// The figures for programs: an object with `experiment` (its name), `environment`, `rows` (flat objects, with
    /// units in their names) and `claims`, and what else there is to say.
    fn figures(&self) -> Value;

    /// The figures for terminals: tables, claims, and notes.
    fn text(&self) -> String;

    /// The report: one HTML page that needs nothing else.
    ///
    /// # Errors
    /// [`PlotError`] when a plot cannot be drawn.
    fn html(&self) -> Result<String, PlotError>;
}

/// What an experiment was asked to do.
#[derive(Clone, Debug)]
pub struct Options<P> {
    /// Print one JSON object instead of the tables.
    pub json: bool,
    /// Where the report goes; its figures go beside it, to the same name with `.json`. Without it,
    /// to `chronorb/reports/NAME.html` in the user's folder for state (`XDG_STATE_HOME`, or
    /// `.local/state` in `HOME`), where it replaces that of the run before.
    pub report: Option<PathBuf>,
    /// What is run.
    pub plan: P,
}

/// Runs an experiment, writes its report with its figures beside it, and prints what was found on standard output.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON object. A claim that
/// does not hold is no failure: it is said.
///
/// # Errors
/// [`LabError`]. Whether the report can be written is found out before anything is measured.
pub fn run<E: Experiment>(options: &Options<E::Plan>) -> Result<E::Findings, LabError> {
    let report = folder::file(options.report.as_deref(), E::NAME)?;
    let (findings, figures) = measure_and_write::<E>(&options.plan, &report)?;
    print(options.json, &report, &findings, &figures).map_err(LabError::Output)?;
    Ok(findings)
}

/// Runs an experiment, and writes its report with its figures beside it: [`run`] without a word on standard output.
pub(crate) fn measure_and_write<E: Experiment>(
    plan: &E::Plan,
    report: &Path,
) -> Result<(E::Findings, Value), LabError> {
    let data = beside(report);
    check_writable(report)?;
    check_writable(&data)?;
    let findings = E::measure(plan)?;
    let figures = findings.figures();
    write_page(&findings.html()?, report)?;
    write_page(&format!("{figures:#}\n"), &data)?;
    Ok((findings, figures))
}

/// Where the figures of a report are.
fn beside(report: &Path) -> PathBuf {
    report.with_extension("json")
}

/// Figures, which are plain data, as JSON.
pub(crate) fn plain_data(figures: &impl Serialize) -> Value {
    serde_json::to_value(figures).expect("figures are numbers, words, and names for them")
}

fn print(json: bool, report: &Path, findings: &impl Findings, figures: &Value) -> io::Result<()> {
    let shown = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (report, data) = (shown(report), shown(&beside(report)));
    let mut out = io::stdout().lock();
    if json {
        for caveat in findings.caveats() {
            eprintln!("{caveat}");
        }
        writeln!(out, "{figures}")?;
        eprintln!("Report with plots: {}", report.display());
    } else {
        writeln!(out, "{}", findings.text())?;
        writeln!(out, "Report with plots: {}", report.display())?;
        writeln!(out, "Its figures: {}", data.display())?;
    }
    out.flush()
}
