//! The report of a comparison.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit};

use super::change::Change;
use super::comparison::{Difference, RunComparison};
use super::rows::FigureKind;

/// Returns the report, with at most so many changes.
pub(super) fn document(comparison: &RunComparison, most: usize) -> Document {
    let lead = format!(
        "A is {}, and B is {}. Changes are B by A: a time above 1 is longer in B.",
        comparison.first.name, comparison.second.name,
    );
    let rest = comparison.notable().len().saturating_sub(most);
    let rest =
        (rest > 0).then(|| format!("{rest} more changes are in the page and the JSON object."));
    let claims = comparison.claims.iter().map(|changed| {
        let verdicts = [&changed.a, &changed.b].map(|verdict| word(verdict).to_owned());
        (
            format!("{}: {}", changed.paper, changed.claim),
            verdicts.to_vec(),
        )
    });
    let claims = Table::new("Claim", ["A", "B"], claims);
    Document::new(comparison.headline())
        .lead(lead)
        .caveats(comparison.caveats())
        .chart(ratios(comparison))
        .tables([changes(comparison, most)])
        .notes(rest)
        .part("Claims that are judged otherwise", [], [claims])
        .part(
            "Differences of the runs",
            [],
            [
                differing("Plan", &comparison.plan),
                differing("Machine", &comparison.environment),
            ],
        )
}

/// Returns the word of reports for a verdict of a file.
fn word(verdict: &str) -> &str {
    match verdict {
        "PASS" => "met",
        "MISSED" | "not reproduced" => "missed",
        "NOT MEASURED" => "not measured",
        other => other,
    }
}

/// Returns the ratios of all rows, a column for each of the figures that changed most.
fn ratios(comparison: &RunComparison) -> Chart {
    let caption = "Each figure of each row in B by that in A: a dot for each row. On the line \
                   nothing changed.";
    let mut columns: Vec<&str> = Vec::new();
    // The greatest changes come first.
    for change in &comparison.changes {
        if change.ratio().is_some() && !columns.contains(&change.figure.as_str()) {
            columns.push(&change.figure);
        }
    }
    columns.truncate(MOST_COLUMNS);
    let mut drawn = vec![0_u32; columns.len()];
    let points = comparison.changes.iter().filter_map(|change| {
        let column = columns.iter().position(|name| *name == change.figure)?;
        drawn[column] += 1;
        let ratio = change.ratio()?.clamp(1.0 / FURTHEST, FURTHEST);
        let point = (beside(column, drawn[column]), ratio);
        Some((point, FigureKind::of(&change.figure)))
    });
    let points: Vec<_> = points.collect();
    let series = [
        (
            "less is better",
            0,
            &[FigureKind::Time, FigureKind::Memory][..],
        ),
        ("more is better", 1, &[FigureKind::Rate]),
        ("neither", NEUTRAL, &[FigureKind::Share, FigureKind::Other]),
    ]
    .map(|(name, colour, kinds)| {
        let of = points.iter().filter(|(_, kind)| kinds.contains(kind));
        Series::new(Mark::Dots, name, of.map(|(point, _)| *point)).colour(colour)
    });
    let figures = Axis::groups("figure", columns.iter().copied());
    let chart = Chart::new(caption, figures, Axis::log("B by A", Unit::Number));
    if points.is_empty() {
        return chart;
    }
    let ends = [(-0.5, 1.0), (columns.len() as f64 - 0.5, 1.0)];
    let line = Series::new(Mark::Dashes, "unchanged", ends).colour(NEUTRAL);
    chart.series(series).series([line])
}

/// Returns the horizontal place of a dot: the first in the middle of its column, others beside it.
fn beside(column: usize, count: u32) -> f64 {
    let step = f64::from(count / 2 % STEPS) / f64::from(STEPS) * WIDEST;
    let side = if count.is_multiple_of(2) { 1.0 } else { -1.0 };
    column as f64 + side * step
}

/// Returns the table of the greatest changes.
fn changes(comparison: &RunComparison, most: usize) -> Table {
    let line = |change: &Change| {
        let worse = change.worse_by_percent();
        let worse = worse.map_or("", |by| if by > 0.0 { "worse" } else { "better" });
        let cells = change.cells().into_iter().chain([worse.to_owned()]);
        let name = format!("{}: {}", change.row_name(), change.figure);
        (name, cells.collect())
    };
    let lines = comparison.notable().iter().take(most).map(line);
    Table::new("The greatest changes", ["A", "B", "B by A", ""], lines)
}

/// Returns the table of the differences of the runs.
fn differing(what: &str, differences: &[Difference]) -> Table {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let line = |of: &Difference| (of.name.clone(), vec![shown(&of.a), shown(&of.b)]);
    Table::new(what, ["A", "B"], differences.iter().map(line))
}

/// The greatest distance of a dot from the middle of its column.
const WIDEST: f64 = 0.3;
/// The number of places of dots on each side.
const STEPS: u32 = 12;
/// The number of columns that have room for their names.
const MOST_COLUMNS: usize = 8;
/// The greatest ratio of the axis; greater ones stand at its end.
const FURTHEST: f64 = 1e3;

#[cfg(test)]
mod tests {
    use chronorb_report::Target;

    use super::super::comparison::tests::{comparison, run};
    use super::*;

    #[test]
    fn figures_claims_and_machines_stand_side_by_side() {
        let text = document(&comparison(), 40).text(Target::Plain);
        let words = |start: &str| {
            let mut lines = text.lines();
            let line = lines.find(|line| line.trim().starts_with(start)).unwrap();
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
        assert!(words("chronorb: <quick>").ends_with("met missed"), "{text}");
    }

    #[test]
    fn nothing_in_a_file_becomes_markup_or_moves_the_cursor() {
        const MARKUP: &str = "<script>alert(\"1\")</script>\u{1b}[2J";
        let mut first = run("a.json", 100.0, MARKUP, "PASS");
        let mut second = run("b.json", 1e300, "new", MARKUP);
        for run in [&mut first, &mut second] {
            run.name = MARKUP.to_owned();
            run.experiment = MARKUP.to_owned();
            for row in &mut run.rows {
                let figure = row["p50_us"].clone();
                row.insert(format!("{MARKUP}_us"), figure);
            }
        }
        let comparison = RunComparison::new(first, second, &[], 0.0).unwrap();
        let document = document(&comparison, 40);
        let (page, text) = (document.html(), document.text(Target::Plain));
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;script&gt;") && !text.contains('\u{1b}'));
    }

    #[test]
    fn runs_without_a_common_row_can_be_reported() {
        let mut other = run("b.json", 1.0, "new", "PASS");
        other.rows.clear();
        let comparison = RunComparison::new(run("a", 1.0, "m", "PASS"), other, &[], 10.0).unwrap();
        let page = document(&comparison, 40).html();
        assert!(page.contains("No row of one file has a match") && !page.contains("<svg"));
    }

    #[test]
    fn dots_stay_in_their_column() {
        assert_eq!(beside(2, 1), 2.0);
        assert!((1..1_000).all(|count| (beside(2, count) - 2.0).abs() < 0.5));
    }
}
