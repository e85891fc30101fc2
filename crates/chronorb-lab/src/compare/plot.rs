//! The plot: how much each figure changed.

use plotters::prelude::*;

use super::change::Change;
use super::comparison::Comparison;
use super::rows::Kind;
use crate::report::PlotError;
use crate::report::canvas::{BLUE, ORANGE, TEXT, THICK, chart, draw, legend};

/// The ratios of all rows, a column for each figure: those that changed most.
pub(super) fn ratios(comparison: &Comparison) -> Result<String, PlotError> {
    let mut columns: Vec<&str> = Vec::new();
    // They come with the greatest change first.
    for change in &comparison.changes {
        if change.ratio().is_some() && !columns.contains(&change.figure.as_str()) {
            columns.push(&change.figure);
        }
    }
    columns.truncate(MOST_COLUMNS);
    let place = |change: &Change| columns.iter().position(|name| *name == change.figure);
    let mut drawn = vec![0_u32; columns.len()];
    let points = comparison.changes.iter().filter_map(|change| {
        let height = change.ratio()?.log2();
        let column = place(change)?;
        drawn[column] += 1;
        Some((
            beside(column, drawn[column]),
            height,
            Kind::of(&change.figure),
        ))
    });
    let points: Vec<(f64, f64, Kind)> = points.collect();
    let furthest = points.iter().map(|(_, height, _)| height.abs());
    let reach = furthest.fold(1.0, f64::max).ceil().min(FURTHEST);
    let name = |at: &f64| {
        let at = at.round();
        let name = (at >= 0.0).then(|| columns.get(at as usize)).flatten();
        name.map_or_else(String::new, |name| shortened(name))
    };

    draw("ratios", |area| {
        let mut chart = chart(
            area,
            (-1.0, columns.len().max(1) as f64),
            (-reach, reach + 1.0),
            ("figure", &name),
            ("B by A (logarithmic)", &|exponent| factor(*exponent)),
        )?;
        let ends = [(-1.0, 0.0), (columns.len().max(1) as f64, 0.0)];
        let line = TEXT.mix(0.6).stroke_width(THICK / 2);
        chart.draw_series([PathElement::new(ends, line)])?;
        for (label, colour, of) in [
            ("less is better", BLUE, &[Kind::Time, Kind::Memory][..]),
            ("more is better", ORANGE, &[Kind::Rate]),
            ("neither", NEITHER, &[Kind::Share, Kind::Other]),
        ] {
            let marks = points.iter().filter(|(.., kind)| of.contains(kind));
            let mut marks = marks.peekable();
            if marks.peek().is_none() {
                continue;
            }
            let dot = |(x, y, _): &(f64, f64, Kind)| {
                let height = y.clamp(-reach, reach);
                Circle::new((*x, height), 4, colour.mix(0.6).filled())
            };
            chart
                .draw_series(marks.map(dot))?
                .label(label)
                .legend(move |(x, y)| Circle::new((x + 11, y), 4, colour.filled()));
        }
        legend(&mut chart, SeriesLabelPosition::UpperRight)
    })
}

/// Where the dots of a column are, the first in the middle, so that few hide behind others.
fn beside(column: usize, count: u32) -> f64 {
    let step = f64::from(count / 2 % STEPS) / f64::from(STEPS) * WIDEST;
    let side = if count.is_multiple_of(2) { 1.0 } else { -1.0 };
    column as f64 + side * step
}

/// What stands at a power of two.
fn factor(exponent: f64) -> String {
    let exponent = exponent.round();
    match exponent < 0.0 {
        true => format!("1/{}", 2_f64.powf(-exponent)),
        false => format!("{}", 2_f64.powf(exponent)),
    }
}

/// As much of a name as has room under its column.
fn shortened(name: &str) -> String {
    match name.chars().count() > LONGEST {
        true => name.chars().take(LONGEST - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// The dots of a column go so far to either side, in so many steps.
const WIDEST: f64 = 0.3;
const STEPS: u32 = 12;
/// As many as have room for their names.
const MOST_COLUMNS: usize = 8;
const LONGEST: usize = 14;
/// A factor of a thousand: what is beyond it stands at the edge.
const FURTHEST: f64 = 10.0;
/// A colour that can be seen on white and on black, and says nothing.
const NEITHER: RGBColor = RGBColor(0x8c, 0x8c, 0x8c);

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn each_row_has_a_dot_in_the_column_of_its_figure() {
        let svg = ratios(&comparison()).unwrap();
        // Six figures, and two marks of the legend.
        assert_eq!(svg.matches("<circle").count(), 6 + 2);
        for text in [
            "p99_us",
            "calls_per_s",
            "less is better",
            "more is better",
            "B by A",
            "1/2",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("neither"));
    }

    #[test]
    fn what_changed_beyond_measure_stands_at_the_edge() {
        let mut comparison = comparison();
        comparison.changes[0].b = 1e300;
        comparison.changes[1].b = 0.0;
        let svg = ratios(&comparison).unwrap();
        assert_eq!(
            svg.matches("<circle").count(),
            5 + 2,
            "and nothing for no ratio"
        );
        assert!(svg.contains("1/1024"));
    }

    #[test]
    fn dots_stay_in_their_column() {
        assert_eq!(beside(2, 1), 2.0);
        assert!((1..1_000).all(|count| (beside(2, count) - 2.0).abs() < 0.5));
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shortened("p99_us"), "p99_us");
        assert_eq!(shortened("middle_longest_stop_us"), "middle_longes…");
    }
}
