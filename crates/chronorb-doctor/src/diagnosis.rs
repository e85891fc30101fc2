//! The diagnosis: all findings, and the measurement.

use chronorb_report::units;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::finding::{Finding, Verdict};
use crate::round_trips::CpuRoundTrips;
use crate::wake_ups::WakeUps;

/// The findings of all checks, and the measurement.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The machine.
    pub environment: Environment,
    /// A finding for each check, by its cost at worst.
    pub findings: Vec<Finding>,
    /// The wake-ups, if they were measured.
    pub measurement: Option<WakeUps>,
    /// The round trips between neighbouring CPUs, if they were measured.
    pub round_trips: Vec<CpuRoundTrips>,
}

impl Diagnosis {
    /// Returns the findings with a verdict, most costly first.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Finding> {
        let findings = self.findings.iter();
        findings.filter(move |finding| finding.verdict == verdict)
    }

    /// Summarises the findings in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let number = |verdict| self.with(verdict).count();
        let (missing, costs) = (number(Verdict::Missing), number(Verdict::CostsLatency));
        let verb = if costs == 1 { "costs" } else { "cost" };
        let findings = format!("{missing} missing for real time, {costs} that {verb} latency");
        let Some(wake_ups) = &self.measurement else {
            return format!("This machine: {findings}");
        };
        let all = wake_ups.all();
        let is_real_time = wake_ups.is_real_time();
        let marked = if is_real_time { "" } else { " (not real-time)" };
        format!(
            "Wake-ups are late by {} (p99) and {} at most{marked}: {findings}",
            units::time(all.quantile_us(0.99)),
            units::time(all.max_us()),
        )
    }

    /// Returns the first step in one sentence: of all remedies that of the most costly finding.
    #[must_use]
    pub fn advice(&self) -> String {
        let bad = |finding: &&Finding| {
            matches!(finding.verdict, Verdict::Missing | Verdict::CostsLatency)
        };
        let first = self.findings.iter().find(bad);
        let Some((first, remedy)) = first.and_then(|first| Some((first, first.remedy.as_ref()?)))
        else {
            return match self.with(Verdict::CannotBeTold).count() {
                0 => "There is nothing to mend.".to_owned(),
                1 => "Nothing to mend was found; one thing cannot be told.".to_owned(),
                number => format!("Nothing to mend was found; {number} things cannot be told."),
            };
        };
        // The first sentence and the first command, on one line.
        let mut lines = remedy.lines();
        let sentence = lines.next().unwrap_or_default();
        let command = lines.next().filter(|line| line.starts_with("  "));
        let command = command.and_then(|line| line.split(" # ").next());
        let words = [sentence, command.unwrap_or_default()].into_iter();
        let words: Vec<_> = words.flat_map(str::split_whitespace).collect();
        format!("First: {} ({}): {}", first.title, first.id, words.join(" "))
    }

    /// Returns the reasons to distrust the measurement, a text each.
    pub(crate) fn caveats(&self) -> Vec<String> {
        let wake_ups = self.measurement.iter().flat_map(WakeUps::caveats);
        let pairs = self.round_trips.iter();
        wake_ups
            .chain(pairs.filter_map(CpuRoundTrips::caveat))
            .collect()
    }

    /// Returns the figures for programs.
    #[must_use]
    pub fn figures(&self) -> Value {
        json!({
            "environment": self.environment,
            "findings": self.findings,
            "measurement": self.measurement.as_ref().map(WakeUps::figures),
            "round_trips": self.round_trips.iter().map(CpuRoundTrips::figures).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::round_trips::tests::round_trips;
    use crate::wake_ups::tests::wake_ups;

    /// A diagnosis with a finding of each verdict, without a measurement.
    pub(crate) fn diagnosis() -> Diagnosis {
        let finding = |id, title, verdict, remedy: Option<&str>| Finding {
            id,
            title,
            verdict,
            found: format!("what is {title}"),
            cost: remedy.map(|_| "tens of µs".to_owned()),
            remedy: remedy.map(str::to_owned),
        };
        Diagnosis {
            environment: Environment::probe(),
            findings: vec![
                finding("rights", "Rights", Verdict::Good, None),
                finding("clock", "Clock", Verdict::CannotBeTold, Some("look at it")),
                finding(
                    "irq",
                    "IRQs",
                    Verdict::CostsLatency,
                    Some("move:\n  irq   0   # all\n  irq 1"),
                ),
                finding("kernel", "Kernel", Verdict::Missing, Some("boot another")),
            ],
            measurement: None,
            round_trips: Vec::new(),
        }
    }

    #[test]
    fn the_first_thing_to_do_is_the_most_costly_one_that_can_be_mended() {
        let mut diagnosis = diagnosis();
        assert_eq!(diagnosis.advice(), "First: IRQs (irq): move: irq 0");
        diagnosis.findings.remove(2);
        assert_eq!(diagnosis.advice(), "First: Kernel (kernel): boot another");
        diagnosis.findings.remove(2);
        assert!(diagnosis.advice().ends_with("one thing cannot be told."));
        diagnosis.findings.remove(1);
        assert_eq!(diagnosis.advice(), "There is nothing to mend.");
    }

    #[test]
    fn the_headline_says_what_was_found_and_measured() {
        let mut diagnosis = diagnosis();
        let findings = "1 missing for real time, 1 that costs latency";
        assert_eq!(diagnosis.headline(), format!("This machine: {findings}"));
        let mut wake_ups = wake_ups();
        diagnosis.measurement = Some(wake_ups.clone());
        assert_eq!(
            diagnosis.headline(),
            format!("Wake-ups are late by 90.0 µs (p99) and 3.60 ms at most: {findings}")
        );
        wake_ups.scheduling = chronorb_rt::Scheduling::OTHER;
        diagnosis.measurement = Some(wake_ups);
        assert!(diagnosis.headline().contains("(not real-time)"));
    }

    #[test]
    fn figures_for_programs_have_the_documented_shape() {
        let mut diagnosis = diagnosis();
        let figures = diagnosis.figures();
        assert!(figures["environment"]["kernel"].is_string());
        assert!(figures["measurement"].is_null());
        assert_eq!(
            figures["findings"][2],
            serde_json::json!({
                "id": "irq",
                "verdict": "costs-latency",
                "found": "what is IRQs",
                "cost": "tens of µs",
                "remedy": "move:\n  irq   0   # all\n  irq 1",
            })
        );
        assert_eq!(figures["findings"][0]["verdict"], "good");
        assert_eq!(figures["findings"][1]["verdict"], "cannot-be-told");
        assert_eq!(figures["findings"][3]["verdict"], "missing");
        assert!(figures["findings"][0]["remedy"].is_null());
        diagnosis.measurement = Some(wake_ups());
        diagnosis.round_trips = vec![round_trips(4)];
        let figures = diagnosis.figures();
        assert!(figures["measurement"].is_object());
        assert_eq!(figures["round_trips"][0]["cpus"], json!([0, 1]));
        assert_eq!(diagnosis.caveats().len(), 1);
    }
}
