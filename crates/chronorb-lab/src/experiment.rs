//! The common frame of experiments: plan, measurement, findings and files.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use chronorb_report::{Document, Target, check_writable, write_page};
use chronorb_rt::{MemoryLock, Rights};
use serde::Serialize;
use serde_json::Value;

use crate::Claim;
use crate::environment::Environment;
use crate::error::LabError;
use crate::report::folder;

/// An experiment of the laboratory.
pub trait Experiment {
    /// The name of the experiment: its command, the field `experiment` of its JSON, and the name of
    /// its files.
    const NAME: &'static str;

    /// The subject in a few words, for people.
    const TITLE: &'static str;

    /// The amount of work.
    type Plan;

    /// The result.
    type Findings: Findings;

    /// Returns the plan whose figures can be quoted.
    fn full() -> Self::Plan;

    /// Returns a plan that shows the same in little time.
    fn short() -> Self::Plan;

    /// Runs the experiment. Progress goes to standard error.
    ///
    /// # Errors
    ///
    /// The experiment documents its errors. All processes that were started have ended when this
    /// returns.
    fn measure(plan: &Self::Plan) -> Result<Self::Findings, LabError>;
}

/// The result of an experiment.
pub trait Findings {
    /// Returns the main result in one line.
    fn headline(&self) -> String;

    /// Returns the restrictions of the figures, a sentence each; nothing in the best case.
    fn caveats(&self) -> Vec<String>;

    /// Returns the claims of papers and the aims of chronorb, judged by the figures.
    fn claims(&self) -> Vec<Claim>;

    /// Returns the figures for programs: an object with `experiment` (its name), `environment`,
    /// `rows` (flat objects, with units in their names), `claims`, and what the experiment adds.
    fn figures(&self) -> Value;

    /// Returns the report.
    fn document(&self) -> Document;

    /// Returns the report as text.
    fn text(&self) -> String {
        self.document().text(Target::Plain)
    }

    /// Returns the report as one HTML page.
    fn html(&self) -> String {
        self.document().html()
    }
}

/// The settings of one run of an experiment.
#[derive(Clone, Debug)]
pub struct Options<P> {
    /// Whether one JSON object is printed instead of the tables.
    pub json: bool,
    /// The file of the report; its figures go beside it, to the same name with `.json`. Without
    /// it, `chronorb/reports/NAME.html` in the user's folder for state (`XDG_STATE_HOME`, or
    /// `.local/state` in `HOME`), where it replaces that of the run before.
    pub report: Option<PathBuf>,
    /// The amount of work.
    pub plan: P,
}

/// Runs an experiment, writes its report with its figures beside it, and prints the result on
/// standard output.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON
/// object. A claim that does not hold is reported, and is no error.
///
/// # Errors
///
/// [`LabError`]. A report that cannot be written is an error before anything is measured.
pub fn run<E: Experiment>(options: &Options<E::Plan>) -> Result<E::Findings, LabError> {
    let report = folder::file(options.report.as_deref(), E::NAME)?;
    let (findings, figures) = measure_and_write::<E>(&options.plan, &report)?;
    let colours = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none();
    let target = if colours {
        Target::Terminal
    } else {
        Target::Plain
    };
    let data = beside(&report);
    let files = [("Report with plots", &*report), ("Its figures", &*data)];
    if options.json {
        print_json(&figures, &findings.caveats(), &files[..1])
    } else {
        print_text(findings.document().text(target) + "\n", &files)
    }
    .map_err(LabError::Output)?;
    Ok(findings)
}

/// Runs an experiment, and writes its report with its figures beside it, without a word on
/// standard output.
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

/// Describes the machine, and the share of the processors that its host took during `work`.
pub(crate) fn observed<T>(
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(Environment, T), LabError> {
    let mut environment = Environment::probe();
    let result = work()?;
    environment.finish();
    Ok((environment, result))
}

/// Whether processes may lock all their memory.
pub(crate) fn may_lock_memory() -> bool {
    Rights::probe().memory_lock == MemoryLock::Unlimited
}

/// Returns the file of the figures of a report.
fn beside(report: &Path) -> PathBuf {
    report.with_extension("json")
}

/// Returns the figures of an outcome for programs: the name of its experiment, its fields, its
/// claims, and more.
pub(crate) fn figures<F: Findings + Serialize>(
    experiment: &str,
    outcome: &F,
    more: Value,
) -> Value {
    let mut figures = plain_data(outcome);
    figures["experiment"] = experiment.into();
    figures["claims"] = plain_data(&outcome.claims());
    merge(&mut figures, more);
    figures
}

/// Adds the members of another object to an object.
pub(crate) fn merge(object: &mut Value, more: Value) {
    if let Value::Object(more) = more {
        for (name, value) in more {
            object[name] = value;
        }
    }
}

/// Returns figures, which are plain data, as JSON.
pub(crate) fn plain_data(figures: &impl Serialize) -> Value {
    serde_json::to_value(figures).expect("figures are numbers, words, and names for them")
}

/// Prints figures on standard output as one JSON object, and caveats and files on standard error.
pub(crate) fn print_json(
    figures: &Value,
    caveats: &[impl Display],
    files: &[(&str, &Path)],
) -> io::Result<()> {
    for caveat in caveats {
        eprintln!("{caveat}");
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{figures}")?;
    out.flush()?;
    eprint!("{}", file_lines(files));
    Ok(())
}

/// Prints a report, and the files that were written, on standard output.
pub(crate) fn print_text(report: String, files: &[(&str, &Path)]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{report}{}", file_lines(files))?;
    out.flush()
}

/// Returns a line for each file: its meaning and its path.
fn file_lines(files: &[(&str, &Path)]) -> String {
    let lines = files.iter().map(|(meaning, path)| {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        format!("{meaning}: {}\n", path.display())
    });
    lines.collect()
}
