//! The report: a page with the findings and charts of the measurement.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Unit, units};

use crate::diagnosis::Diagnosis;
use crate::finding::{Finding, Verdict};
use crate::round_trips;
use crate::text::{bound, scheduling, table};
use crate::wake_ups::{WakeUps, from_us};

/// Renders the report as one HTML page, for light and dark screens, without anything from the
/// network.
#[must_use]
pub fn html(diagnosis: &Diagnosis) -> String {
    let mut document = Document::new(diagnosis.headline()).lead(diagnosis.advice());
    let mut repeat = "chronorb doctor";
    if let Some(wake_ups) = &diagnosis.measurement {
        document = document
            .caveats(diagnosis.caveats())
            .tables([table(wake_ups), round_trips::table(&diagnosis.round_trips)])
            .chart(by_lateness(wake_ups))
            .chart(over_time(wake_ups));
        repeat = "chronorb doctor --measure";
    }
    for verdict in Verdict::ALL {
        let number = diagnosis.with(verdict).count();
        if number > 0 {
            let findings = diagnosis.with(verdict);
            document = document
                .section(format!("{} ({number})", verdict.name()))
                .facts(findings.map(|finding| (finding.title, details(finding))));
        }
    }
    document
        .environment(diagnosis.environment.rows())
        .commands(format!("{repeat}\n{repeat} --json"))
        .html()
}

/// Returns what was found, what it costs and how to mend it, a paragraph each.
fn details(finding: &Finding) -> String {
    let (cost_label, remedy_label) = finding.labels();
    let parts = [(cost_label, &finding.cost), (remedy_label, &finding.remedy)];
    let mut text = finding.found.clone();
    for (label, part) in parts {
        if let Some(part) = part {
            let (first, rest) = label.split_at(1);
            text += &format!("\n{}{rest}: {part}", first.to_uppercase());
        }
    }
    text
}

/// The number of wake-ups by lateness.
fn by_lateness(wake_ups: &WakeUps) -> Chart {
    let counts = wake_ups.all().by_powers_of_two();
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    let bounds = (first..counts.len()).map(|power| bound(from_us(power)));
    let numbers = counts[first..].iter();
    let numbers = numbers.map(|count| (*count > 0).then_some(*count as f64));
    let caption = format!(
        "How late wake-ups were, on all CPUs: one thread on each, under {}, slept until a time \
         fixed beforehand, each {} for {}. A wake-up so late that the next one was due too makes \
         that one late as well.",
        scheduling(wake_ups),
        units::setting(wake_ups.period),
        units::setting(wake_ups.length),
    );
    let x = Axis::groups("late by so much, up to twice as much", bounds);
    let y = Axis::log("wake-ups", Unit::Count);
    Chart::new(caption, x, y).series([Series::of_groups(Mark::Bars, "", numbers)])
}

/// The latest wake-ups of all CPUs over time.
fn over_time(wake_ups: &WakeUps) -> Chart {
    let all = wake_ups.all();
    let points = all.points().iter();
    let points = points.map(|point| (point.at_ns as f64 / 1e9, point.latency_ns as f64 / 1e3));
    let caption = "When they were late. Of neighbouring wake-ups the latest is shown.";
    let x = Axis::linear("time since the start", Unit::Of("s"));
    let y = Axis::log("late by", Unit::Time);
    Chart::new(caption, x, y).series([Series::new(Mark::Dots, "", points)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::tests::diagnosis;
    use crate::round_trips::tests::round_trips;
    use crate::wake_ups::tests::wake_ups;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let mut diagnosis = diagnosis();
        diagnosis.measurement = Some(wake_ups());
        diagnosis.round_trips = vec![round_trips(1)];
        let page = html(&diagnosis);
        assert!(page.contains("<title>Wake-ups are late by 90.0 µs (p99) and 3.60 ms at most:"));
        assert_eq!(page.matches("<svg").count(), 2);
        for part in [
            "late by",
            "wake-ups",
            "8 µs",
            "2 ms",
            "time since the start",
            "CPUs 0 and 1",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("class=\"caveat\""));
        for outside in ["src=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        diagnosis.measurement.as_mut().unwrap().scheduling = chronorb_rt::Scheduling::OTHER;
        assert!(html(&diagnosis).contains("class=\"caveat\">NOT REAL-TIME"));
    }

    #[test]
    fn without_a_measurement_the_page_has_the_findings() {
        let page = html(&diagnosis());
        assert!(page.contains("<title>This machine: 1 missing for real time"));
        assert!(!page.contains("<svg"));
        for heading in ["Missing", "Costs latency", "Cannot be told", "Good"] {
            assert!(page.contains(&format!(">{heading} (1)</h2>")), "{heading}");
        }
        let remedy = "<br>Costs: tens of µs<br>To mend: move:<pre>irq   0   # all\nirq 1</pre>";
        assert!(page.contains(remedy), "{page}");
    }

    #[test]
    fn a_measurement_without_wake_ups_can_be_drawn() {
        let mut wake_ups = wake_ups();
        wake_ups.cpus.clear();
        assert!(by_lateness(&wake_ups).is_empty());
        assert!(over_time(&wake_ups).is_empty());
    }
}
