//! What all experiments have in common: how they are run, and how they tell what they found.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use chronorb_report::{Document, Target, check_writable, write_page};
use serde::Serialize;
use serde_json::Value;

use crate::Claim;
use crate::error::LabError;
use crate::report::folder;

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

    /// The report.
    fn document(&self) -> Document;

    /// The report as text.
    fn text(&self) -> String {
        self.document().text(Target::Plain)
    }

    /// The report as one HTML page.
    fn html(&self) -> String {
        self.document().html()
    }
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
    write_page(&findings.html(), report)?;
    write_page(&format!("{figures:#}\n"), &data)?;
    Ok((findings, figures))
}

/// Where the figures of a report are.
fn beside(report: &Path) -> PathBuf {
    report.with_extension("json")
}

/// Returns the figures of an outcome for programs: the name of its experiment, its fields, its claims, and what else
/// there is to say.
pub(crate) fn figures<F: Findings + Serialize>(
    experiment: &str,
    outcome: &F,
    more: Value,
) -> Value {
    let mut figures = plain_data(outcome);
    figures["experiment"] = experiment.into();
    figures["claims"] = plain_data(&outcome.claims());
    if let Value::Object(more) = more {
        for (name, value) in more {
            figures[name] = value;
        }
    }
    figures
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
        let colours = out.is_terminal() && env::var_os("NO_COLOR").is_none();
        match colours {
            true => writeln!(out, "{}", findings.document().text(Target::Terminal))?,
            false => writeln!(out, "{}", findings.text())?,
        }
        writeln!(out, "Report with plots: {}", report.display())?;
        writeln!(out, "Its figures: {}", data.display())?;
    }
    out.flush()
}
