//! The doctor of chronorb: everything that costs latency on this machine, and how to mend it.
//!
//! [`examine`] checks the kernel, the rights of the process, CPUs, timers, memory and network. Each
//! [`Finding`] has what was found, what it costs and how to mend it, and a file that cannot be read
//! is named with the reason. Nothing is changed. [`measure`] shows the result of it all: the
//! lateness of threads that sleep until a fixed time. Beside it stand the round trips between CPUs
//! by polling.
//!
//! | module | content |
//! |---|---|
//! | `machine` | one reader of files below a root, and answers of the kernel to calls |
//! | `check` | a check as data, its parser, and the evaluator of its rules |
//! | `checks` | the readers of the checks by subject; their texts and rules are in `checks.txt` |
//! | [`environment`] | the description of the machine beside figures |
//! | `text`, `page` | the diagnosis for a terminal and as HTML |

mod check;
mod checks;
mod cpu_list;
mod diagnosis;
pub mod environment;
mod error;
mod finding;
mod machine;
mod page;
mod round_trips;
#[cfg(test)]
mod tests;
mod text;
mod wake_ups;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_report::{check_writable, write_page};

use checks::CHECKS;
use machine::Machine;

pub use diagnosis::Diagnosis;
pub use environment::Environment;
pub use error::DoctorError;
pub use finding::{Finding, Verdict};
pub use page::html;
pub use round_trips::CpuRoundTrips;
pub use text::text;
pub use wake_ups::{CpuWakeUps, WakeUps, measure};

/// The options of `chronorb doctor`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print one JSON object instead of the list.
    pub json: bool,
    /// The length of the measurement of wake-ups, if they are measured.
    pub measure: Option<Duration>,
    /// The path of the HTML report, if one is written.
    pub report: Option<PathBuf>,
}

/// Examines this machine, measures it on request, prints the diagnosis on standard output and
/// writes the report.
///
/// Progress goes to standard error. With [`Options::json`], standard output gets exactly one JSON
/// object. Findings are not errors, however bad.
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
        diagnosis.round_trips = round_trips(length)?;
        diagnosis.measurement = Some(measure(length)?);
        diagnosis.environment.finish();
    }
    if let Some(report) = &options.report {
        write_page(&html(&diagnosis), report)?;
    }
    print(options, &diagnosis).map_err(DoctorError::Output)
}

/// Runs all checks on this machine, without a measurement.
#[must_use]
pub fn examine() -> Diagnosis {
    let machine = Machine::this();
    Diagnosis {
        environment: Environment::of(&machine),
        findings: CHECKS.iter().map(|check| check.run(&machine)).collect(),
        measurement: None,
        round_trips: Vec::new(),
    }
}

/// Measures the round trips between CPUs, in a part of the length of the measurement of wake-ups.
fn round_trips(length: Duration) -> Result<Vec<CpuRoundTrips>, DoctorError> {
    let cpus = Machine::this().allowed_cpus();
    let cpus = cpus.map_err(|unreadable| DoctorError::Cpus(unreadable.to_string()))?;
    let length = (length / ROUND_TRIPS_PART).min(MOST_ROUND_TRIPS);
    round_trips::measure(&cpus.iter().collect::<Vec<_>>(), length)
}

fn print(options: &Options, diagnosis: &Diagnosis) -> io::Result<()> {
    let path = options.report.as_ref().map(|report| {
        let path = report.canonicalize();
        format!("Report: {}\n", path.as_ref().unwrap_or(report).display())
    });
    let path = path.unwrap_or_default();
    let mut out = io::stdout().lock();
    if options.json {
        for caveat in diagnosis.caveats() {
            eprintln!("{caveat}");
        }
        writeln!(out, "{}", diagnosis.figures())?;
        eprint!("{path}");
    } else {
        // What to do first stays the last line.
        eprint!("{path}");
        write!(out, "{}", text(diagnosis))?;
    }
    out.flush()
}

/// The part of the measurement that round trips take.
const ROUND_TRIPS_PART: u32 = 5;
/// The longest measurement of round trips.
const MOST_ROUND_TRIPS: Duration = Duration::from_secs(10);
