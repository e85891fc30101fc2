//! The comparison as text.

use std::fmt::Write;

use super::comparison::{Comparison, Difference};
use crate::report::Table;

/// The comparison for a terminal.
pub(super) fn text(comparison: &Comparison) -> String {
    let mut text = format!("{}\n", comparison.headline());
    for caveat in comparison.caveats() {
        let _ = writeln!(text, "{caveat}");
    }
    let told = &comparison.notable()[..comparison.notable().len().min(MOST)];
    if !told.is_empty() {
        let _ = write!(text, "\n{}", changes(comparison, told.len()).text());
        let rest = comparison.notable().len() - told.len();
        if rest > 0 {
            let _ = writeln!(text, "  and {rest} more, which --report and --json tell");
        }
    }
    if !comparison.claims.is_empty() {
        text.push_str("\nClaims that are judged otherwise\n");
        for turned in &comparison.claims {
            let _ = writeln!(text, "  {} → {}  {}", turned.a, turned.b, turned.claim);
        }
    }
    for (what, differences) in [
        ("Plan", &comparison.plan),
        ("Machine", &comparison.environment),
    ] {
        if !differences.is_empty() {
            let _ = write!(text, "\n{}", differing(what, differences).text());
        }
    }
    without_controls(&text)
}

/// What changed most, as a table of so many lines.
pub(super) fn changes(comparison: &Comparison, lines: usize) -> Table {
    let line = |change: &super::change::Change| {
        let mut cells = change.cells().to_vec();
        let worse = change
            .worse_by_percent()
            .map(|percent| match percent > 0.0 {
                true => "worse",
                false => "better",
            });
        cells.push(worse.unwrap_or_default().to_owned());
        (format!("{}: {}", change.row_name(), change.figure), cells)
    };
    Table {
        heading: "What changed, the most first".to_owned(),
        columns: ["A", "B", "B by A", ""].map(str::to_owned).to_vec(),
        lines: comparison.notable().iter().take(lines).map(line).collect(),
    }
}

/// In what both runs differ.
pub(super) fn differing(what: &str, differences: &[Difference]) -> Table {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not told".to_owned());
    let line = |of: &Difference| (of.name.clone(), vec![shown(&of.a), shown(&of.b)]);
    Table {
        heading: what.to_owned(),
        columns: ["A", "B"].map(str::to_owned).to_vec(),
        lines: differences.iter().map(line).collect(),
    }
}

/// What a file says must not move the cursor of a terminal.
fn without_controls(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' => '\n',
        control if control.is_control() => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}

/// As many changes as somebody reads.
const MOST: usize = 40;

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn figures_claims_and_machines_stand_side_by_side() {
        let text = text(&comparison());
        for part in [
            "overtake: of 6 figures 2 changed by more than 10 %",
            "2 rows are in both files, 1 in the first alone, and 1 in the second alone.",
            "  PASS → MISSED  <quick>\n",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        let words = |start: &str| {
            let line = text
                .lines()
                .find(|line| line.trim().starts_with(start))
                .unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            words("high: p99_us"),
            "high: p99_us 100 µs 150 µs 1.50 worse"
        );
        assert_eq!(
            words("low: calls_per_s"),
            "low: calls_per_s 2 000 1 500 0.75 worse"
        );
        assert_eq!(words("cpu"), "cpu <b>old</b> new");
    }

    #[test]
    fn a_file_cannot_speak_to_the_terminal() {
        let mut comparison = comparison();
        comparison.claims[0].claim = "\u{1b}[2Jgone\r".to_owned();
        let text = text(&comparison);
        assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text}");
    }
}
