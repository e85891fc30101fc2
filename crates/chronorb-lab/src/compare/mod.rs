//! `chronorb lab compare`: the figures of two runs of one experiment, side by side.
//!
//! Rows of both files are matched by what identifies them (`rows` has the rule), and their figures told with their
//! ratios, what changed most first; then claims that became true or false, and in what the runs differ. What stands in
//! the files is not trusted: any names and numbers can be told.

mod change;
mod claims;
mod comparison;
mod report;
mod rows;
mod run;

use std::io::{self, Write};
use std::path::PathBuf;

use chronorb_report::{Target, check_writable, write_page};

use crate::error::LabError;
use comparison::Comparison;
use run::Run;

/// What `chronorb lab compare` was asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The figures of one run.
    pub first: PathBuf,
    /// Those of the other, which are told by those of the first.
    pub second: PathBuf,
    /// Print one JSON object instead of tables.
    pub json: bool,
    /// Where the HTML report goes; nowhere if nothing.
    pub report: Option<PathBuf>,
    /// Which figures are compared, by their names; all where it is empty.
    pub figures: Vec<String>,
    /// What changed by more than so many hundredths is told one by one.
    pub threshold: f64,
    /// Fail where a figure is worse by more than so many hundredths.
    pub fail_if_worse: Option<f64>,
}

/// Compares, prints the comparison on standard output and writes the report if asked to.
///
/// # Errors
///
/// [`LabError`]; [`LabError::Outcome`] only with [`Options::fail_if_worse`], after all was told.
pub fn run(options: &Options) -> Result<(), LabError> {
    if let Some(report) = &options.report {
        check_writable(report)?;
    }
    let comparison = Comparison::new(
        Run::read(&options.first)?,
        Run::read(&options.second)?,
        &options.figures,
        options.threshold,
    )?;
    if let Some(report) = &options.report {
        write_page(&report::document(&comparison, usize::MAX).html(), report)?;
    }
    print(options, &comparison).map_err(LabError::Output)?;
    match options.fail_if_worse {
        Some(percent) => comparison.check(percent),
        None => Ok(()),
    }
}

fn print(options: &Options, comparison: &Comparison) -> io::Result<()> {
    let path = options.report.as_ref().map(|report| {
        let path = report.canonicalize();
        format!("Report: {}\n", path.as_ref().unwrap_or(report).display())
    });
    let report_line = path.unwrap_or_default();
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", comparison.figures())?;
        eprint!("{report_line}");
    } else {
        let text = report::document(comparison, MOST).text(Target::Plain);
        write!(out, "{text}{report_line}")?;
    }
    out.flush()
}

/// The changes that a terminal shows.
const MOST: usize = 40;
