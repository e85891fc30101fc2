//! `chronorb lab compare`: the figures of two runs of one experiment, side by side.
//!
//! Rows of both files are matched by their identity (`rows` has the rule). Their figures are shown
//! with their ratios, the greatest change first; then claims with another verdict, and differences
//! of the plans and machines. The contents of the files are not trusted: any names and numbers can
//! be shown.

mod change;
mod claims;
mod comparison;
mod report;
mod rows;
mod run;

use std::path::{Path, PathBuf};

use chronorb_report::{Target, check_writable, write_page};

use crate::error::LabError;
use crate::experiment::{print_json, print_text};
use comparison::RunComparison;
use run::RecordedRun;

/// The settings of `chronorb lab compare`.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The figures of one run.
    pub first: PathBuf,
    /// The figures of the other run, which are divided by those of the first.
    pub second: PathBuf,
    /// Whether one JSON object is printed instead of tables.
    pub json: bool,
    /// The file of the HTML report, if there is to be one.
    pub report: Option<PathBuf>,
    /// The names of the figures that are compared; all if it is empty.
    pub figures: Vec<String>,
    /// The change, in hundredths, above which a figure is listed by itself.
    pub threshold: f64,
    /// The deterioration of a figure, in hundredths, above which the comparison fails.
    pub fail_if_worse: Option<f64>,
}

/// Compares two runs, prints the comparison on standard output, and writes the report if there is
/// to be one.
///
/// # Errors
///
/// [`LabError`]; [`LabError::Outcome`] only with [`CompareOptions::fail_if_worse`], after the
/// comparison was printed.
pub fn run(options: &CompareOptions) -> Result<(), LabError> {
    if let Some(report) = &options.report {
        check_writable(report)?;
    }
    let comparison = RunComparison::new(
        RecordedRun::read(&options.first)?,
        RecordedRun::read(&options.second)?,
        &options.figures,
        options.threshold,
    )?;
    if let Some(report) = &options.report {
        write_page(&report::document(&comparison, usize::MAX).html(), report)?;
    }
    let files = options.report.iter();
    let files: Vec<(&str, &Path)> = files.map(|file| ("Report", file.as_path())).collect();
    if options.json {
        print_json(&comparison.figures(), &[""; 0], &files)
    } else {
        print_text(
            report::document(&comparison, MOST).text(Target::Plain),
            &files,
        )
    }
    .map_err(LabError::Output)?;
    options
        .fail_if_worse
        .map_or(Ok(()), |percent| comparison.check(percent))
}

/// The changes that a terminal shows.
const MOST: usize = 40;
