//! The diagnosis for a terminal of 80 columns.

use std::fmt::Write;

use chronorb_report::stats::{Record, Summary};
use chronorb_report::{Table, counted, units};

use crate::diagnosis::Diagnosis;
use crate::finding::{Finding, Verdict};
use crate::round_trips::{self, CpuRoundTrips};
use crate::wake_ups::{WakeUps, from_us};

/// Renders the findings by verdict, the measurement, and as the last line the first step.
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
        if !diagnosis.round_trips.is_empty() {
            round_trips(&mut text, &diagnosis.round_trips);
        }
        if let [stolen] = environment.stolen_percent[..]
            && stolen > 0.0
        {
            text.push('\n');
            let stolen = format!(
                "The hypervisor took the CPUs away for {stolen:.2} % of the time: no thread in \
                 here runs then, whatever its priority."
            );
            paragraph(&mut text, &stolen);
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
    let (cost_label, mut label) = finding.labels();
    if let Some(cost) = &finding.cost {
        entry(text, "    ", cost_label, cost);
    }
    for line in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
        if line.starts_with("  ") {
            // Commands are not wrapped, so that they can be copied.
            let _ = writeln!(text, "      {}", line.trim_start());
        } else {
            entry(text, "    ", label, line);
        }
        label = "";
    }
}

/// Writes a label, and beside it a text in a column of its own.
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
    text.push_str(&table(wake_ups).text());
    text.push('\n');
    histogram(text, &wake_ups.all());
}

fn round_trips(text: &mut String, pairs: &[CpuRoundTrips]) {
    text.push_str("\nBETWEEN CPUS\n  A counter between threads that poll, means of 100\n\n");
    text.push_str(&round_trips::table(pairs).text());
    for caveat in pairs.iter().filter_map(CpuRoundTrips::caveat) {
        text.push('\n');
        paragraph(text, &caveat);
    }
}

/// Returns the name of the scheduling of the threads.
pub(crate) fn scheduling(wake_ups: &WakeUps) -> String {
    if wake_ups.is_real_time() {
        format!("SCHED_FIFO {}", wake_ups.scheduling.priority)
    } else {
        "SCHED_OTHER".to_owned()
    }
}

/// Returns the figures: a line for each CPU, and one for all.
pub(crate) fn table(wake_ups: &WakeUps) -> Table {
    let cells = |record: &Record| {
        let figures = record.summary();
        let Summary {
            p50_us,
            p99_us,
            p999_us,
            max_us,
            ..
        } = figures;
        counted(figures.calls, [p50_us, p99_us, p999_us, max_us])
    };
    let cpus = wake_ups.cpus.iter();
    let cpus = cpus.map(|cpu| (format!("CPU {}", cpu.cpu), cells(&cpu.late)));
    let all = ("all".to_owned(), cells(&wake_ups.all()));
    let lines = cpus.chain((wake_ups.cpus.len() > 1).then_some(all));
    let columns = ["wake-ups", "p50", "p99", "p99.9", "max"];
    Table::new("Lateness", columns, lines)
}

/// Writes a bar for each power of two, from the first that is not empty.
fn histogram(text: &mut String, record: &Record) {
    let counts = record.by_powers_of_two();
    // A step above the logarithm, so that a single wake-up is visible.
    let height = |count: u64| match count {
        0 => 0.0,
        _ => 1.0 + (count as f64).log10(),
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

/// Formats a power of two of µs.
pub(crate) fn bound(us: u64) -> String {
    match us {
        0..1024 => format!("{us} µs"),
        1024..1_048_576 => format!("{} ms", us >> 10),
        _ => format!("{} s", us >> 20),
    }
}

fn bar(eighths: usize) -> String {
    let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    "█".repeat(eighths / 8) + parts[eighths % 8]
}

/// Wraps a text into lines of at most `width` characters. Longer paths are broken behind a slash;
/// other words stay whole.
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

/// Returns the last slash among the first `width` characters, but for the first one.
fn last_slash(word: &str, width: usize) -> Option<usize> {
    let slashes = word.char_indices().take(width).skip(1);
    let last = slashes.filter(|(_, character)| *character == '/').last();
    last.map(|(index, _)| index)
}

const WIDTH: usize = 80;
/// The column in which texts begin.
const COLUMN: usize = 24;
/// The longest bar, in characters.
const BAR: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::CHECKS;
    use crate::diagnosis::tests::diagnosis;
    use crate::round_trips::tests::round_trips;
    use crate::tests::Fixture;
    use crate::wake_ups::tests::wake_ups;

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
        let mut diagnosis = diagnosis();
        let findings = CHECKS.iter().map(|check| check.run(&fixture.machine));
        diagnosis.findings = findings.collect();
        diagnosis.measurement = Some(wake_ups());
        diagnosis.round_trips = vec![round_trips(4)];
        let text = text(&diagnosis);
        // Commands have their own indentation, and are not wrapped.
        let is_command = |line: &&str| line.len() - line.trim_start().len() == 6;
        for line in text.lines().filter(|line| !is_command(line)) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn the_measurement_is_a_table_and_a_histogram() {
        let mut diagnosis = diagnosis();
        diagnosis.measurement = Some(wake_ups());
        diagnosis.round_trips = vec![round_trips(4)];
        let text = text(&diagnosis);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        for row in [
            "Lateness wake-ups p50 p99 p99.9 max",
            "CPU 0 1 000 9.01 µs 9.01 µs 9.01 µs 360 µs",
            &format!("8 µs to 16 µs 999 {}", "█".repeat(40)),
            "16 µs to 32 µs 0",
            "256 µs to 512 µs 1 ██████████",
            "2 ms to 4 ms 1 ██████████",
            "CPUs 0 and 1 1 000 1.00 µs 1.00 µs 1.00 µs 4.00 µs 4.00 µs 4.00 µs",
        ] {
            assert!(lines.iter().any(|line| line == row), "{row:?}:\n{text}");
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
