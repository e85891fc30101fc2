//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit};

use super::change::Change;
use super::comparison::{Comparison, Difference};
use super::rows::Kind;

/// The report, with at most so many changes.
pub(super) fn document(comparison: &Comparison, most: usize) -> Document {
    let lead = format!(
        "A is {}, and B is {}. Changes are B by A: a time above 1 is longer in B.",
        comparison.first.name, comparison.second.name,
    );
    let rest = comparison.notable().len().saturating_sub(most);
    let rest =
        (rest > 0).then(|| format!("{rest} more changes are in the page and the JSON object."));
    let turned = comparison.claims.iter().map(|turned| {
        let verdicts = vec![word(&turned.a).to_owned(), word(&turned.b).to_owned()];
        (format!("{}: {}", turned.paper, turned.claim), verdicts)
    });
    let turned = Table::new("Claim", ["A", "B"], turned);
    Document::new(comparison.headline())
        .lead(lead)
        .caveats(comparison.caveats())
        .chart(ratios(comparison))
        .tables([changes(comparison, most)])
        .notes(rest)
        .part("Claims that are judged otherwise", [], [turned])
        .part(
            "Differences of the runs",
            [],
            [
                differing("Plan", &comparison.plan),
                differing("Machine", &comparison.environment),
            ],
        )
}

/// The word for a verdict of a data file.
fn word(verdict: &str) -> &str {
    match verdict {
        "PASS" => "met",
        "MISSED" | "not reproduced" => "missed",
        "NOT MEASURED" => "not measured",
        other => other,
    }
}

/// The ratios of all rows, a column for each figure: those that changed most.
fn ratios(comparison: &Comparison) -> Chart {
    let caption = "Each figure of each row in B by that in A: a dot for each row. On the line nothing \
                   changed.";
    let mut columns: Vec<&str> = Vec::new();
    // They come with the greatest change first.
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
        Some((point, Kind::of(&change.figure)))
    });
    let points: Vec<_> = points.collect();
    let series = [
        ("less is better", 0, &[Kind::Time, Kind::Memory][..]),
        ("more is better", 1, &[Kind::Rate]),
        ("neither", NEUTRAL, &[Kind::Share, Kind::Other]),
    ]
    .map(|(name, colour, kinds)| {
        let of = points.iter().filter(|(_, kind)| kinds.contains(kind));
        Series::new(Mark::Dots, name, of.map(|(point, _)| *point)).colour(colour)
    });
    let figures = Axis::groups("figure", columns.iter().copied());
    let chart = Chart::new(caption, figures, Axis::log("B by A", Unit::Number));
    match points.is_empty() {
        true => chart,
        false => {
            let ends = [(-0.5, 1.0), (columns.len() as f64 - 0.5, 1.0)];
            let line = Series::new(Mark::Dashes, "unchanged", ends).colour(NEUTRAL);
            chart.series(series).series([line])
        }
    }
}

/// Where the dots of a column are, the first in the middle, so that few hide behind others.
fn beside(column: usize, count: u32) -> f64 {
    let step = f64::from(count / 2 % STEPS) / f64::from(STEPS) * WIDEST;
    let side = if count.is_multiple_of(2) { 1.0 } else { -1.0 };
    column as f64 + side * step
}

/// The greatest changes.
fn changes(comparison: &Comparison, most: usize) -> Table {
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

/// The differences of both runs.
fn differing(what: &str, differences: &[Difference]) -> Table {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let line = |of: &Difference| (of.name.clone(), vec![shown(&of.a), shown(&of.b)]);
    Table::new(what, ["A", "B"], differences.iter().map(line))
}

/// The dots of a column go so far to either side, in so many steps.
const WIDEST: f64 = 0.3;
const STEPS: u32 = 12;
/// As many as have room for their names.
const MOST_COLUMNS: usize = 8;
/// A factor of a thousand: greater ones stand at the edge.
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
        let comparison = Comparison::new(first, second, &[], 0.0).unwrap();
        let document = document(&comparison, 40);
        let (page, text) = (document.html(), document.text(Target::Plain));
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;script&gt;") && !text.contains('\u{1b}'));
    }

    #[test]
    fn runs_without_a_common_row_can_be_reported() {
        let mut other = run("b.json", 1.0, "new", "PASS");
        other.rows.clear();
        let comparison = Comparison::new(run("a", 1.0, "m", "PASS"), other, &[], 10.0).unwrap();
        let page = document(&comparison, 40).html();
        assert!(page.contains("No row of one file has a match") && !page.contains("<svg"));
    }

    #[test]
    fn dots_stay_in_their_column() {
        assert_eq!(beside(2, 1), 2.0);
        assert!((1..1_000).all(|count| (beside(2, count) - 2.0).abs() < 0.5));
    }
}
