//! The processor time of CI: each step is measured, and the sum of a run may not exceed the record
//! in `xtask/ledger.toml` by much.
//!
//! Machines differ by a factor of two, and one machine differs from hour to hour. So the seconds of
//! a run are multiplied by the ratio of two times of a fixed job ([`calibration`]): that of the
//! record, and that of this run.

mod calibration;
mod measure;
mod programs;
mod record;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::run::{Failure, own_processor_seconds, target_dir};
use measure::MachineTimes;
use record::Record;

pub(crate) use programs::as_runner;

/// The times of a part of CI.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Step {
    name: String,
    /// Elapsed time.
    seconds: f64,
    /// User and system time of its processes.
    processor_seconds: f64,
    /// Whether it depends on what the machine has already, and so has no record.
    is_set_up: bool,
}

/// The times of a whole run, as they are in `target/ledger.json`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Run {
    /// Processor seconds of each run of the calibration job.
    calibrations: Vec<f64>,
    steps: Vec<Step>,
    /// Elapsed time.
    seconds: f64,
    /// Seconds that the hypervisor took from all processors.
    stolen_seconds: f64,
    /// Processes that could run or did, on average.
    load: f64,
}

impl Run {
    /// Returns the processor seconds of the calibration job.
    fn calibration(&self) -> f64 {
        self.calibrations.iter().sum::<f64>() / self.calibrations.len() as f64
    }

    /// Returns the processor seconds of all steps that are recorded.
    fn processor_seconds(&self) -> f64 {
        let steps = self.steps.iter().filter(|step| !step.is_set_up);
        steps.map(|step| step.processor_seconds).sum()
    }
}

/// The measurement of a run.
pub(crate) struct Ledger {
    run: Run,
    /// When the calibration job last ended; `None` if this run is not compared.
    calibrated: Option<Instant>,
    began: Instant,
    machine: MachineTimes,
}

impl Ledger {
    /// A measurement that is printed, and compared with nothing.
    pub(crate) fn uncalibrated() -> Self {
        Self {
            run: Run::default(),
            calibrated: None,
            began: Instant::now(),
            machine: MachineTimes::now(),
        }
    }

    /// A measurement that is compared with the record.
    pub(crate) fn calibrated() -> Result<Self, Failure> {
        let mut ledger = Self::uncalibrated();
        ledger.calibrate()?;
        Ok(ledger)
    }

    /// Runs and measures a part of CI.
    pub(crate) fn step(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.measured(name, false, work)
    }

    /// Runs and measures what a machine needs once: downloads, and packages of the distribution.
    pub(crate) fn set_up<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.measured(name, true, work)
    }

    /// Runs tests by this command of cargo, and measures each program among them.
    pub(crate) fn tests(&mut self, cargo: Command) -> Result<(), Failure> {
        let programs = programs::TimedTests::new()?;
        let before = self.run.steps.len();
        let outcome = self.measured("documentation tests", false, || programs.run(cargo));
        // The rest of the time of cargo is that of the tests in documentation.
        let mut ran = programs.steps()?;
        for program in &ran {
            self.run.steps[before].processor_seconds -= program.processor_seconds;
            self.run.steps[before].seconds -= program.seconds;
        }
        self.run.steps.append(&mut ran);
        outcome
    }

    fn measured<T>(
        &mut self,
        name: &str,
        is_set_up: bool,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // The speed of a shared machine changes within minutes.
        if self
            .calibrated
            .is_some_and(|at| at.elapsed() > CALIBRATE_EVERY)
        {
            self.calibrate()?;
        }
        let (began, before) = (Instant::now(), own_processor_seconds());
        let outcome = work();
        self.run.steps.push(Step {
            name: name.to_owned(),
            seconds: began.elapsed().as_secs_f64(),
            processor_seconds: own_processor_seconds() - before,
            is_set_up,
        });
        outcome
    }

    fn calibrate(&mut self) -> Result<(), Failure> {
        self.run.calibrations.push(calibration::run()?);
        self.calibrated = Some(Instant::now());
        Ok(())
    }

    /// Prints the times, and fails where a calibrated run exceeds the record.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if self.calibrated.is_some() {
            self.calibrate()?;
        }
        let elapsed = self.began.elapsed();
        self.run.seconds = elapsed.as_secs_f64();
        (self.run.stolen_seconds, self.run.load) = self.machine.since(elapsed);
        if self.calibrated.is_none() {
            print!("{}", record::table(&self.run, None));
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.run).expect("it is plain data");
        fs::write(path(), text).map_err(|e| Failure(format!("{}: {e}", path().display())))?;
        judge(&self.run)
    }
}

fn judge(run: &Run) -> Result<(), Failure> {
    let record = Record::read()?;
    print!("{}", record::table(run, Some(&record)));
    let excesses = record.excesses(run);
    if excesses.is_empty() {
        return Ok(());
    }
    Err(Failure(format!(
        "the run needs more processor time than xtask/ledger.toml records:\n  {}\nMake something \
         cheaper, move it to `cargo xtask nightly`, or record the run by `cargo xtask ledger \
         --track`; the commit says what became cheaper for it.",
        excesses.join("\n  ")
    )))
}

/// Compares the last whole run with the record, or records it.
pub(crate) fn ledger(options: &[&str]) -> Result<(), Failure> {
    let bad = |problem: String| {
        Failure(format!(
            "{}: {problem}; `cargo xtask ci` writes it",
            path().display()
        ))
    };
    let text = fs::read_to_string(path()).map_err(|e| bad(e.to_string()))?;
    let run: Run = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    match *options {
        [] => judge(&run),
        ["--track"] => Record::from_run(&run).write(),
        _ => Err(Failure("the option is --track".to_owned())),
    }
}

/// The times of the last whole run.
fn path() -> PathBuf {
    target_dir().join("ledger.json")
}

/// The least time between two runs of the calibration job.
const CALIBRATE_EVERY: Duration = Duration::from_secs(120);
