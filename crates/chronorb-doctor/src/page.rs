//! The report: a page with the findings and plots of the measurement.

use std::fmt::Write;

use chronorb_report::{PlotError, document, escape, figure, pairs, units};

use crate::diagnosis::Diagnosis;
use crate::finding::{Finding, Verdict};
use crate::plot::{by_lateness, over_time};
use crate::text::{scheduling, table};
use crate::wake_ups::WakeUps;

/// Renders the report as one HTML page, for light and dark screens, without anything from the
/// network.
///
/// # Errors
///
/// [`PlotError`] when a plot cannot be drawn.
pub fn html(diagnosis: &Diagnosis) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{}</p>\n", escape(&diagnosis.advice()));
    let mut repeat = "chronorb doctor";
    if let Some(wake_ups) = &diagnosis.measurement {
        measurement(&mut body, wake_ups)?;
        repeat = "chronorb doctor --measure";
    }
    for verdict in Verdict::ALL {
        findings(&mut body, diagnosis, verdict);
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>{repeat}\n{repeat} --json</pre>\n",
        pairs(&diagnosis.environment.rows())
    );
    Ok(document(&diagnosis.headline(), &body))
}

fn measurement(body: &mut String, wake_ups: &WakeUps) -> Result<(), PlotError> {
    for caveat in wake_ups.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&table(wake_ups).html());
    let caption = format!(
        "How late wake-ups were, on all CPUs: one thread on each, under {}, slept until a time \
         fixed beforehand, each {} for {}. A wake-up so late that the next one was due too makes \
         that one late as well.",
        scheduling(wake_ups),
        units::setting(wake_ups.period),
        units::setting(wake_ups.length),
    );
    body.push_str(&figure(&by_lateness(wake_ups)?, &caption));
    let caption = "When they were late. Of neighbouring wake-ups the latest is shown.";
    body.push_str(&figure(&over_time(wake_ups)?, caption));
    Ok(())
}

fn findings(body: &mut String, diagnosis: &Diagnosis, verdict: Verdict) {
    let number = diagnosis.with(verdict).count();
    if number == 0 {
        return;
    }
    let name = verdict.name();
    let _ = writeln!(
        body,
        "<h2>{name} ({number})</h2>\n<table class=\"findings\">"
    );
    for finding in diagnosis.with(verdict) {
        let _ = writeln!(
            body,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(finding.title),
            details(finding)
        );
    }
    body.push_str("</table>\n");
}

/// Renders what was found, what it costs and how to mend it.
fn details(finding: &Finding) -> String {
    let mut text = escape(&finding.found).into_owned();
    let (cost_label, remedy_label) = finding.labels();
    if let Some(cost) = &finding.cost {
        let _ = write!(text, "<br><b>{}:</b> {}", capital(cost_label), escape(cost));
    }
    let mut separator = format!("<br><b>{}:</b> ", capital(remedy_label));
    let mut is_command = false;
    for line in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
        let command = line.strip_prefix("  ");
        match (command.is_some(), is_command) {
            (true, false) => text.push_str("<pre>"),
            (false, true) => text.push_str("</pre>"),
            (true, true) => text.push('\n'),
            (false, false) => text.push_str(&separator),
        }
        separator = "<br>".to_owned();
        text.push_str(&escape(command.unwrap_or(line)));
        is_command = command.is_some();
    }
    if is_command {
        text.push_str("</pre>");
    }
    text
}

/// Capitalises a label.
fn capital(label: &str) -> String {
    let (first, rest) = label.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::tests::diagnosis;
    use crate::wake_ups::tests::wake_ups;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let mut diagnosis = diagnosis();
        diagnosis.measurement = Some(wake_ups());
        let page = html(&diagnosis).unwrap();
        assert!(page.contains("<title>Wake-ups are late by 90.0 µs (p99) and 3.60 ms at most:"));
        assert_eq!(page.matches("<svg").count(), 2);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn without_a_measurement_the_page_has_the_findings() {
        let page = html(&diagnosis()).unwrap();
        assert!(page.contains("<title>This machine: 1 missing for real time"));
        assert!(!page.contains("<svg"));
        for heading in ["Missing", "Costs latency", "Cannot be told", "Good"] {
            assert!(
                page.contains(&format!("<h2>{heading} (1)</h2>")),
                "{heading}"
            );
        }
    }

    #[test]
    fn commands_stand_apart_and_nothing_becomes_markup() {
        let finding = Finding {
            found: "<b>".to_owned(),
            remedy: Some("one:\n  a > b\n  c\nor two:\n  d\nor three".to_owned()),
            ..diagnosis().findings[3].clone()
        };
        assert_eq!(
            details(&finding),
            "&lt;b&gt;<br><b>Costs:</b> tens of µs<br><b>To mend:</b> one:<pre>a &gt; b\nc</pre>\
             or two:<pre>d</pre>or three"
        );
    }

    #[test]
    fn figures_that_are_not_real_time_are_marked() {
        let mut diagnosis = diagnosis();
        let mut measured = wake_ups();
        measured.scheduling = chronorb_rt::Scheduling::OTHER;
        diagnosis.measurement = Some(measured);
        let page = html(&diagnosis).unwrap();
        assert!(page.contains("class=\"caveat\">NOT REAL-TIME"));
    }
}
