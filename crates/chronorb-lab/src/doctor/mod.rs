//! `chronorb doctor`: what costs latency on this machine, and how to mend it.
//!
//! [`examine`] looks at the kernel, the rights of the process, CPUs, timers, memory and network,
//! one check after the other, and says of each what was found, what it costs and how to mend it.
//! It changes nothing. What cannot be read is said to be unreadable, and why. [`measure`] shows
//! what comes of it all: how late a thread wakes up that sleeps until a fixed time.

mod checks;
mod cpu_list;
mod diagnosis;
mod error;
mod finding;
#[cfg(test)]
mod fixture;
mod machine;
mod page;
mod plot;
mod text;
mod wake_ups;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use crate::environment::{Environment, ProcessorTime};
use crate::report::{check_writable, write_page};

use checks::CHECKS;
use machine::Machine;

pub use diagnosis::{Diagnosis, Figures};
pub use error::DoctorError;
pub use finding::{Finding, Verdict};
pub use page::html;
pub use text::text;
pub use wake_ups::{CpuWakeUps, WakeUps, measure};

/// What `chronorb doctor` was asked to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print one JSON object instead of the list.
    pub json: bool,
    /// How long wake-ups are measured; not at all if nothing.
    pub measure: Option<Duration>,
    /// Where the HTML report goes; nowhere if nothing.
    pub report: Option<PathBuf>,
}

/// Examines this machine, measures it if asked to, prints what was found on standard output and
/// writes the report.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON
/// object. Findings are no failure, however bad.
///
/// # Errors
///
/// See [`DoctorError`].
pub fn run(options: &Options) -> Result<(), DoctorError> {
    if let Some(report) = &options.report {
        check_writable(report)?;
    }
    let mut diagnosis = examine();
    if let Some(length) = options.measure {
        let before = ProcessorTime::now();
        diagnosis.measurement = Some(measure(length)?);
        let stolen = before.stolen_percent(ProcessorTime::now());
        diagnosis.environment.stolen_percent = vec![stolen];
    }
    if let Some(report) = &options.report {
        write_page(&html(&diagnosis)?, report)?;
    }
    print(options, &diagnosis).map_err(DoctorError::Output)
}

/// Makes all checks on this machine, without a measurement.
#[must_use]
pub fn examine() -> Diagnosis {
    let environment = Environment::probe();
    let machine = Machine::this();
    Diagnosis {
        environment,
        findings: CHECKS.iter().map(|check| check.run(&machine)).collect(),
        measurement: None,
    }
}

/// What some of the checks find on this machine, in words, each by its id.
pub(crate) fn look_at<const N: usize>(ids: [&str; N]) -> [String; N] {
    let machine = Machine::this();
    ids.map(|id| {
        let check = CHECKS.iter().find(|check| check.id == id);
        check.map_or_else(|| "unknown".to_owned(), |check| check.run(&machine).found)
    })
}

fn print(options: &Options, diagnosis: &Diagnosis) -> io::Result<()> {
    let path = options.report.as_ref().map(|report| {
        let path = report.canonicalize();
        format!("Report: {}\n", path.as_ref().unwrap_or(report).display())
    });
    let path = path.unwrap_or_default();
    let mut out = io::stdout().lock();
    if options.json {
        for caveat in diagnosis.measurement.iter().flat_map(WakeUps::caveats) {
            eprintln!("{caveat}");
        }
        serde_json::to_writer(&mut out, &diagnosis.figures())?;
        writeln!(out)?;
        eprint!("{path}");
    } else {
        // What to do first stays the last line.
        eprint!("{path}");
        write!(out, "{}", text(diagnosis))?;
    }
    out.flush()
}
