//! The diagnosis for a terminal of 80 columns.

use std::fmt::Write;

use super::diagnosis::Diagnosis;
use super::finding::{Finding, Verdict};
use super::wake_ups::{WakeUps, from_us};
use crate::stats::Record;
use crate::units;

/// The findings by verdict, what was measured, and last what to do first.
#[must_use]
pub fn text(diagnosis: &Diagnosis) -> String {
    let environment = &diagnosis.environment;
    let mut text = String::new();
    let machine = format!(
        "Linux {}, {} × {}",
        environment.kernel, environment.cpus, environment.cpu
    );
    paragraph(&mut text, &machine);
    for verdict in Verdict::ALL {
        let number = diagnosis.with(verdict).count();
        if number > 0 {
            let _ = writeln!(text, "\n{} ({number})", verdict.name().to_uppercase());
            diagnosis
                .with(verdict)
                .for_each(|one| finding(&mut text, one));
        }
    }
    if let Some(wake_ups) = &diagnosis.measurement {
        measurement(&mut text, wake_ups);
        if let [stolen] = environment.stolen_percent[..]
            && stolen > 0.0
        {
            text.push('\n');
            paragraph(
                &mut text,
                &format!(
                    "The hypervisor took the CPUs away for {stolen:.2} % of the time: no thread \
                     in here runs then, whatever its priority."
                ),
            );
        }
    }
    text.push('\n');
    paragraph(&mut text, &diagnosis.advice());
    text
}

fn finding(text: &mut String, finding: &Finding) {
    if finding.remedy.is_some() {
        text.push('\n');
    }
    entry(text, "  ", finding.title, &finding.found);
    if let Some(cost) = &finding.cost {
        let label = match finding.verdict {
            Verdict::CannotBeTold => "may cost",
            _ => "costs",
        };
        entry(text, "    ", label, cost);
    }
    let mut label = match finding.verdict {
        Verdict::CannotBeTold => "to find out",
        _ => "to mend",
    };
    for line in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
        match line.starts_with("  ") {
            // Not wrapped, so that it can be copied.
            true => {
                let _ = writeln!(text, "      {}", line.trim_start());
            }
            false => entry(text, "    ", label, line),
        }
        label = "";
    }
}

/// A label, and beside it a text in a column of its own.
fn entry(text: &mut String, indent: &str, label: &str, content: &str) {
    let mut label = format!("{indent}{label}");
    for line in wrap(content, WIDTH - COLUMN) {
        let _ = writeln!(text, "{label:COLUMN$}{line}");
        label.clear();
    }
}

fn paragraph(text: &mut String, content: &str) {
    for line in wrap(content, WIDTH) {
        let _ = writeln!(text, "{line}");
    }
}

fn measurement(text: &mut String, wake_ups: &WakeUps) {
    let _ = writeln!(
        text,
        "\nWAKE-UPS\n  How late they were: one each {} on each CPU, for {}, {}\n",
        units::setting(wake_ups.period),
        units::setting(wake_ups.length),
        scheduling(wake_ups),
    );
    for caveat in wake_ups.caveats() {
        paragraph(text, &caveat);
        text.push('\n');
    }
    let _ = write!(text, "  {:8}", "");
    for column in COLUMNS {
        let _ = write!(text, "{column:>12}");
    }
    text.push('\n');
    for (name, cells) in rows(wake_ups) {
        let _ = write!(text, "  {name:8}");
        for cell in cells {
            let _ = write!(text, "{cell:>12}");
        }
        text.push('\n');
    }
    text.push('\n');
    histogram(text, &wake_ups.all());
}

/// How the threads were scheduled, in words.
pub(super) fn scheduling(wake_ups: &WakeUps) -> String {
    match wake_ups.is_real_time() {
        true => format!("SCHED_FIFO {}", wake_ups.scheduling.priority),
        false => "SCHED_OTHER".to_owned(),
    }
}

/// The headings of the figures.
pub(super) const COLUMNS: [&str; 5] = ["wake-ups", "p50", "p99", "p99.9", "max"];

/// A row for each CPU, and one for all.
pub(super) fn rows(wake_ups: &WakeUps) -> Vec<(String, [String; 5])> {
    let cells = |record: &Record| {
        let summary = record.summary();
        [
            units::count(summary.calls),
            units::time(summary.p50_us),
            units::time(summary.p99_us),
            units::time(summary.p999_us),
            units::time(summary.max_us),
        ]
    };
    let mut rows: Vec<_> = (wake_ups.cpus.iter())
        .map(|cpu| (format!("CPU {}", cpu.cpu), cells(&cpu.late)))
        .collect();
    if rows.len() > 1 {
        rows.push(("all".to_owned(), cells(&wake_ups.all())));
    }
    rows
}

/// A bar for each power of two; from the first that is not empty.
fn histogram(text: &mut String, record: &Record) {
    let counts = record.by_powers_of_two();
    // A step more than the logarithm, so that a single one is seen.
    let height = |count: u64| match count {
        0 => 0.0,
        count => 1.0 + (count as f64).log10(),
    };
    let highest = counts.iter().copied().map(height).fold(1.0, f64::max);
    let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
    for (power, count) in counts.iter().copied().enumerate().skip(first) {
        let eighths = (height(count) / highest * (BAR * 8) as f64).round() as usize;
        let line = format!(
            "  {:>7} to {:>7} {:>12}  {}",
            bound(from_us(power)),
            bound(1 << power),
            units::count(count),
            bar(eighths)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push_str("  (bars are logarithmic)\n");
}

/// A power of two of µs, short.
pub(super) fn bound(us: u64) -> String {
    match us {
        0..1024 => format!("{us} µs"),
        1024..1_048_576 => format!("{} ms", us >> 10),
        _ => format!("{} s", us >> 20),
    }
}

fn bar(eighths: usize) -> String {
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(
        [
            None,
            Some('▏'),
            Some('▎'),
            Some('▍'),
            Some('▌'),
            Some('▋'),
            Some('▊'),
            Some('▉'),
        ][eighths % 8],
    );
    bar
}

/// Lines of at most `width` characters. Paths longer than that are broken behind a slash; other
/// words stay whole.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for mut word in text.split_whitespace() {
        if !line.is_empty() {
            if length(&line) + 1 + length(word) <= width {
                line.push(' ');
            } else {
                lines.push(std::mem::take(&mut line));
            }
        }
        while length(word) > width
            && let Some(slash) = last_slash(word, width)
        {
            let (head, tail) = word.split_at(slash + 1);
            lines.push(head.to_owned());
            word = tail;
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Where the last slash stands among the first `width` characters, but for the first one.
fn last_slash(word: &str, width: usize) -> Option<usize> {
    let slashes = word.char_indices().take(width).skip(1);
    let last = slashes.filter(|(_, character)| *character == '/').last();
    last.map(|(index, _)| index)
}

const WIDTH: usize = 80;
/// Where the texts begin.
const COLUMN: usize = 24;
/// The longest bar, in characters.
const BAR: usize = 40;

#[cfg(test)]
mod tests {
    use super::super::checks::CHECKS;
    use super::super::diagnosis::tests::diagnosis;
    use super::super::fixture::Fixture;
    use super::super::wake_ups::tests::wake_ups;
    use super::*;

    #[test]
    fn findings_are_grouped_by_verdict_and_the_last_line_says_what_to_do() {
        let text = text(&diagnosis());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}:\n{text}"));
        assert!(at("MISSING (1)") < at("  Kernel"));
        assert!(at("  Kernel") < at("COSTS LATENCY (1)"));
        assert!(at("COSTS LATENCY (1)") < at("CANNOT BE TOLD (1)"));
        assert!(at("CANNOT BE TOLD (1)") < at("GOOD (1)"));
        assert!(at("    costs               tens of µs") < at("    to mend             move:"));
        assert!(
            text.contains("\n      irq   0   # all\n      irq 1\n"),
            "{text}"
        );
        assert!(at("    may cost ") < at("    to find out         look at it"));
        assert_eq!(text.lines().last(), Some("First: IRQs (irq): move: irq 0"));
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let fixture = Fixture::new(&[]);
        let findings = CHECKS.iter().map(|check| fixture.finding(check.id));
        let mut diagnosis = diagnosis();
        diagnosis.findings = findings.collect();
        diagnosis.measurement = Some(wake_ups());
        let text = text(&diagnosis);
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn what_was_measured_is_a_table_and_a_histogram() {
        let mut diagnosis = diagnosis();
        diagnosis.measurement = Some(wake_ups());
        let text = text(&diagnosis);
        let words: Vec<Vec<_>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        for row in [
            &["wake-ups", "p50", "p99", "p99.9", "max"][..],
            &[
                "CPU", "0", "1", "000", "9.01", "µs", "9.01", "µs", "9.01", "µs", "360", "µs",
            ],
            &[
                "8",
                "µs",
                "to",
                "16",
                "µs",
                "999",
                "████████████████████████████████████████",
            ],
            &["16", "µs", "to", "32", "µs", "0"],
            &["256", "µs", "to", "512", "µs", "1", "██████████"],
            &["2", "ms", "to", "4", "ms", "1", "██████████"],
        ] {
            assert!(words.iter().any(|line| line == row), "{row:?}:\n{text}");
        }
        assert!(!text.contains("NOT REAL-TIME"));
        diagnosis.measurement.as_mut().unwrap().scheduling = chronorb_rt::Scheduling::OTHER;
        let text = super::text(&diagnosis);
        assert!(text.contains("NOT REAL-TIME"), "{text}");
    }

    #[test]
    fn bars_are_as_long_as_they_say() {
        assert_eq!(bar(0), "");
        assert_eq!(bar(3), "▍");
        assert_eq!(bar(8), "█");
        assert_eq!(bar(17), "██▏");
    }

    #[test]
    fn long_words_stay_whole() {
        assert_eq!(
            wrap("a bb  ccc dddddd e", 5),
            ["a bb", "ccc", "dddddd", "e"]
        );
        assert_eq!(wrap("", 5), [""]);
    }
}
