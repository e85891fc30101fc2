//! The shortfall of a client that is not admitted.

use std::fmt::Write;
use std::time::Duration;

use chronorb_sched::{
    AdmissionControl, AdmissionError, AnalysisError, Resource, Shortfall, StepOwner, Transaction,
};

/// Checks whether a client's executions fit beside those of others, in at most so many steps.
/// Returns the rest of the steps.
///
/// # Errors
/// The shortfall as text.
pub(super) fn check(
    running: Vec<Transaction>,
    added: &[Transaction],
    steps: u64,
) -> Result<u64, String> {
    let control = AdmissionControl::bounded(vec![Resource::default()], running, steps);
    let left = control.and_then(|mut control| {
        control.admit(added)?;
        Ok(control.steps_left())
    });
    left.map_err(|error| match error {
        AdmissionError::Late(shortfall) => described(&shortfall),
        AdmissionError::Analysis(AnalysisError::TooComplex) => TOO_MUCH_WORK.to_owned(),
        other => other.to_string(),
    })
}

/// The shortfall of a client whose analysis takes more steps than it may.
pub(super) const TOO_MUCH_WORK: &str = "the analysis takes more steps than it may for so many \
                                        streams of events: use coarser or fewer different periods";

fn described(shortfall: &Shortfall) -> String {
    let mut text = String::new();
    if let Some(late) = shortfall.late.first() {
        let consumer = match late.owner {
            StepOwner::Candidate => "its consumer",
            _ => "another consumer",
        };
        let deadline = Duration::from_nanos(late.deadline);
        let _ = match late.response.time() {
            Some(time) => write!(
                text,
                "{consumer} could end {:?} after an event, and has {deadline:?}",
                Duration::from_nanos(time)
            ),
            None => write!(
                text,
                "the processor is overloaded: {consumer} could end at any time, and has \
                 {deadline:?}"
            ),
        };
    }
    if shortfall.costs > 0 {
        let percent = shortfall.costs / 10_000;
        let _ = write!(text, "; {percent} % of the execution times would fit");
    }
    if let Some(periods) = shortfall.periods {
        let (whole, hundredths) = (periods / 1_000_000, periods % 1_000_000 / 10_000);
        let _ = write!(
            text,
            "; periods {whole}.{hundredths:02} times as long would fit"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use chronorb_sched::Step;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_shortfall_says_what_would_fit() {
        let task = |cost, period| Transaction::new(period, vec![Step::new(0, cost, 1)]);
        let running = vec![task(30 * MS, 100 * MS)];
        assert_eq!(
            check(running.clone(), &[task(20 * MS, 60 * MS)], 1 << 20).map(drop),
            Ok(())
        );
        let text = check(running.clone(), &[task(40 * MS, 60 * MS)], 1 << 20).unwrap_err();
        let expected = "its consumer could end 80ms after an event, and has 60ms; 75 % of the \
                        execution times would fit";
        assert_eq!(text, expected);
        let text = check(running, &[task(40 * MS, 60 * MS)], 100).unwrap_err();
        assert_eq!(text, TOO_MUCH_WORK);
    }
}
