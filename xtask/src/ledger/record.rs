//! The recorded times: `xtask/ledger.toml`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use super::Run;
use crate::run::{Failure, root};

/// The times of the recorded run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// Processor seconds of the calibration job.
    calibration: f64,
    /// Processor seconds of each step, above a second.
    steps: BTreeMap<String, f64>,
}

impl Record {
    pub(super) fn read() -> Result<Self, Failure> {
        let bad = |problem: String| Failure(format!("{}: {problem}", path().display()));
        let text = fs::read_to_string(path()).map_err(|e| bad(e.to_string()))?;
        toml::from_str(&text).map_err(|e| bad(e.to_string()))
    }

    pub(super) fn from_run(run: &Run) -> Self {
        let mut steps: BTreeMap<String, f64> = BTreeMap::new();
        for step in run.steps.iter().filter(|step| !step.is_set_up) {
            let name = if step.processor_seconds < SMALL {
                OTHERS
            } else {
                &step.name
            };
            *steps.entry(name.to_owned()).or_default() += step.processor_seconds;
        }
        Self {
            calibration: run.calibration(),
            steps,
        }
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        fs::write(path(), self.text()).map_err(|e| Failure(format!("{}: {e}", path().display())))
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}calibration = {:.2}\n\n[steps]\n", self.calibration);
        for (name, seconds) in &self.steps {
            let _ = writeln!(text, "{name:?} = {seconds:.1}");
        }
        text
    }

    fn total(&self) -> f64 {
        self.steps.values().sum()
    }

    /// Returns the factor from processor seconds of this run to those of the recorded one.
    fn scale(&self, run: &Run) -> f64 {
        self.calibration / run.calibration()
    }

    /// Says what needs more than it may.
    pub(super) fn excesses(&self, run: &Run) -> Vec<String> {
        let scale = self.scale(run);
        let mut excesses = Vec::new();
        let (whole, recorded) = (run.processor_seconds() * scale, self.total());
        if whole > recorded * WHOLE {
            excesses.push(format!(
                "the whole: {whole:.0} s of the recorded machine, {recorded:.0} s recorded \
                 (at most {:+.0} %)",
                (WHOLE - 1.0) * 100.0
            ));
        }
        for step in run.steps.iter().filter(|step| !step.is_set_up) {
            let recorded = self.steps.get(&step.name).copied().unwrap_or(0.0);
            let now = step.processor_seconds * scale;
            if now > recorded * STEP && now > recorded + STEP_SECONDS {
                excesses.push(format!(
                    "{}: {now:.0} s of the recorded machine, {recorded:.0} s recorded (at most \
                     {:+.0} % or {STEP_SECONDS} s)",
                    step.name,
                    (STEP - 1.0) * 100.0
                ));
            }
        }
        excesses
    }
}

/// Returns the times of a run as lines of text.
pub(super) fn table(run: &Run, record: Option<&Record>) -> String {
    let mut text = format!("{:>8} {:>9}", "seconds", "processor");
    if record.is_some() {
        let _ = write!(text, " {:>8} {:>8}", "scaled", "recorded");
    }
    text.push_str("  step\n");
    let mut steps: Vec<_> = run.steps.iter().collect();
    steps.sort_by(|a, b| b.processor_seconds.total_cmp(&a.processor_seconds));
    let mut line = |name: &str, seconds: f64, processor: f64, recorded: Option<f64>| {
        let _ = write!(text, "{seconds:8.1} {processor:9.1}");
        if let Some(record) = record {
            let recorded = recorded.map_or_else(|| "–".to_owned(), |s| format!("{s:.1}"));
            let _ = write!(text, " {:8.1} {recorded:>8}", processor * record.scale(run));
        }
        let _ = writeln!(text, "  {name}");
    };
    for step in steps.iter().filter(|step| step.processor_seconds >= SMALL) {
        let recorded = record.and_then(|record| record.steps.get(&step.name));
        let name = if step.is_set_up {
            format!("{} (set-up, not recorded)", step.name)
        } else {
            step.name.clone()
        };
        line(
            &name,
            step.seconds,
            step.processor_seconds,
            recorded.copied(),
        );
    }
    let small = steps.iter().filter(|step| step.processor_seconds < SMALL);
    let (seconds, processor) = small.fold((0.0, 0.0), |(seconds, processor), step| {
        (seconds + step.seconds, processor + step.processor_seconds)
    });
    let recorded = record.and_then(|record| record.steps.get(OTHERS).copied());
    line(OTHERS, seconds, processor, recorded);
    let whole = run.processor_seconds();
    line(
        "the whole, without set-up",
        run.seconds,
        whole,
        record.map(Record::total),
    );
    let _ = writeln!(
        text,
        "{:.2} processors busy on average, {:.1} s stolen by the hypervisor",
        run.load, run.stolen_seconds
    );
    if let Some(record) = record {
        let _ = writeln!(
            text,
            "calibration job: {:.2} s ({} runs), {:.2} s recorded",
            run.calibration(),
            run.calibrations.len(),
            record.calibration
        );
    }
    text
}

fn path() -> PathBuf {
    root().join("xtask/ledger.toml")
}

/// By how much the whole may exceed its record.
const WHOLE: f64 = 1.15;
/// By how much a step may, if it also exceeds it by [`STEP_SECONDS`].
const STEP: f64 = 1.3;
const STEP_SECONDS: f64 = 30.0;
/// The processor seconds below which steps are recorded together.
const SMALL: f64 = 2.0;
const OTHERS: &str = "others";

const HEAD: &str = "\
# The processor seconds of the steps of `.ci/run`, and of the job that calibrates them; see
# CONTRIBUTING.md. `cargo xtask ledger --track` writes this file from the last whole run.

";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Step;

    fn record() -> Record {
        Record {
            calibration: 2.0,
            steps: [("clippy", 200.0), ("tests", 100.0), (OTHERS, 3.0)]
                .map(|(name, seconds)| (name.to_owned(), seconds))
                .into(),
        }
    }

    /// A run on a machine whose calibration job takes that long.
    fn run(calibration: f64, steps: &[(&str, f64)]) -> Run {
        let steps = steps.iter().map(|(name, seconds)| Step {
            name: (*name).to_owned(),
            seconds: *seconds,
            processor_seconds: *seconds,
            is_set_up: *name == "downloads",
        });
        Run {
            calibrations: vec![calibration * 0.9, calibration * 1.1],
            steps: steps.collect(),
            ..Run::default()
        }
    }

    #[test]
    fn a_slower_machine_may_take_longer() {
        let slow = run(4.0, &[("clippy", 400.0), ("tests", 200.0), ("tidy", 2.0)]);
        assert_eq!(record().excesses(&slow), Vec::<String>::new());
        let fast = run(1.0, &[("clippy", 200.0), ("tests", 100.0)]);
        assert_eq!(
            record().excesses(&fast).len(),
            3,
            "the whole and both steps"
        );
    }

    #[test]
    fn the_whole_may_exceed_its_record_by_15_percent() {
        let within = run(2.0, &[("clippy", 220.0), ("tests", 125.0)]);
        assert_eq!(record().excesses(&within), Vec::<String>::new());
        let above = run(2.0, &[("clippy", 225.0), ("tests", 126.0)]);
        let excesses = record().excesses(&above);
        assert_eq!(excesses.len(), 1);
        assert!(excesses[0].starts_with("the whole: 351 s"), "{excesses:?}");
    }

    #[test]
    fn a_step_may_exceed_its_record_by_30_percent_or_30_seconds() {
        let by_seconds = run(2.0, &[("clippy", 150.0), ("tests", 129.0), ("new", 29.0)]);
        assert_eq!(record().excesses(&by_seconds), Vec::<String>::new());
        let by_percent = run(2.0, &[("clippy", 259.0), ("tests", 10.0)]);
        assert_eq!(record().excesses(&by_percent), Vec::<String>::new());
        let above = run(2.0, &[("clippy", 150.0), ("tests", 131.0), ("new", 31.0)]);
        let excesses = record().excesses(&above);
        assert_eq!(excesses.len(), 2);
        assert!(excesses[0].starts_with("tests: 131 s"), "{excesses:?}");
        assert!(excesses[1].starts_with("new: 31 s"), "{excesses:?}");
    }

    #[test]
    fn set_up_has_no_record() {
        let fresh = run(2.0, &[("clippy", 200.0), ("downloads", 500.0)]);
        assert_eq!(record().excesses(&fresh), Vec::<String>::new());
        assert!(!Record::from_run(&fresh).steps.contains_key("downloads"));
    }

    #[test]
    fn the_file_is_as_it_is_written() {
        let text = fs::read_to_string(path()).expect("it can be read");
        assert_eq!(Record::read().expect("it can be read").text(), text);
    }
}
