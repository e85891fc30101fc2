//! The plots: what one look-up takes by the number of entries.

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::outcome::{Outcome, Stage, series};
use crate::report::PlotError;
use crate::report::canvas::{
    Axis, BLUE, DASHES, ORANGE, TEXT, THICK, THIN, chart, decades, draw, legend,
};
use crate::units;

/// One stage, by every strategy, with what the papers measured.
pub(super) fn by_entries(outcome: &Outcome, stage: Stage) -> Result<String, PlotError> {
    let curve = |rows: &[_], strategy| -> Vec<(f64, f64)> {
        let rows = series(rows, stage, strategy);
        rows.iter()
            .map(|row| (f64::from(row.entries).log10(), row.p50_ns.max(0.1).log10()))
            .collect()
    };
    let drawn: Vec<_> = outcome
        .strategies(stage)
        .into_iter()
        .map(|strategy| (strategy, colour(strategy), curve(&outcome.rows, strategy)))
        .collect();
    let hot = curve(&outcome.hot, "active");
    let published = stage.published_ns().log10();
    let right = drawn
        .iter()
        .flat_map(|(_, _, points)| points)
        .fold(1.0_f64, |right, (x, _)| right.max(*x));
    let heights = drawn.iter().flat_map(|(_, _, points)| points).map(|p| p.1);
    let (bottom, top) = decades(heights.chain([published]));

    draw(stage.name(), |area| {
        // A decade more, for the legend.
        let mut chart = chart(
            area,
            (0.0, right),
            (bottom, top + 1.0),
            (stage.entries(), &|exponent| {
                units::count(10_f64.powf(*exponent).round() as u64)
            }),
            TIME,
        )?;
        let sample = |(x, y): (i32, i32)| [(x, y), (x + 22, y)];
        let (dash, gap) = DASHES;
        for (strategy, colour, points) in &drawn {
            let style = colour.stroke_width(THICK);
            chart
                .draw_series(LineSeries::new(points.iter().copied(), style).point_size(3))?
                .label(*strategy)
                .legend(move |at| PathElement::new(sample(at), style));
        }
        if !hot.is_empty() {
            let style = BLUE.stroke_width(THIN);
            chart
                .draw_series(DashedLineSeries::new(hot.iter().copied(), dash, gap, style))?
                .label("active, hot")
                .legend(move |at| DashedPathElement::new(sample(at), dash, gap, style));
        }
        let style = TEXT.mix(0.6).stroke_width(THIN);
        let line = [(0.0, published), (right, published)];
        chart
            .draw_series(DashedLineSeries::new(line, dash, gap, style))?
            .label("slides, 1999")
            .legend(move |at| DashedPathElement::new(sample(at), dash, gap, style));
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

const TIME: Axis<'static> = ("time for one (logarithmic)", &|exponent| {
    decade_label(*exponent)
});

/// A decade of ns.
fn decade_label(exponent: f64) -> String {
    let ns = 10_f64.powf(exponent);
    let (value, unit) = match exponent {
        ..2.5 => (ns, "ns"),
        ..5.5 => (ns / 1e3, "µs"),
        _ => (ns / 1e6, "ms"),
    };
    format!("{} {unit}", (value * 10.0).round() / 10.0)
}

/// The same for a strategy in all plots. The best have that of the good case in other plots, and
/// linear search that of the bad one.
fn colour(strategy: &str) -> RGBColor {
    match strategy {
        "user-id" => RGBColor(0x3a, 0xa6, 0x6b),
        "persistent" => RGBColor(0x8e, 0x6b, 0xc9),
        "no-hint" => RGBColor(0xc9, 0x4f, 0x8b),
        "hash" => RGBColor(0xb8, 0x92, 0x2a),
        "binary" => RGBColor(0x3a, 0xa6, 0x6b),
        "linear" => ORANGE,
        _ => BLUE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn plots_name_their_axes_units_and_strategies() {
        let svg = by_entries(&outcome(), Stage::Servant).unwrap();
        for text in [
            "objects in the POA",
            "1\u{a0}000",
            "time for one",
            "100 ns",
            "10 µs",
            "active, hot",
            "linear",
            "slides, 1999",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn a_stage_that_was_not_measured_can_be_drawn() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert!(by_entries(&outcome, Stage::Total).is_ok());
    }

    #[test]
    fn axis_labels_are_round() {
        let labels = [-1.0, 0.0, 2.0, 3.0, 5.0, 6.0].map(decade_label);
        assert_eq!(
            labels,
            ["0.1 ns", "1 ns", "100 ns", "1 µs", "100 µs", "1 ms"]
        );
    }
}
