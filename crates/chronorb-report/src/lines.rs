//! A plot of several lines: one figure by another, for each of several who are compared.

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::canvas::{Axis, DASHES, PlotError, THICK, chart, draw, legend};

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// As the legend says it; a line without a name has no place there.
    pub name: String,
    /// Its colour.
    pub colour: RGBColor,
    /// Whether it is dashed.
    pub is_dashed: bool,
    /// From left to right. For a logarithmic axis these are exponents.
    pub points: Vec<(f64, f64)>,
}

/// Draws lines with marks at their points, and a legend at the upper left.
///
/// # Errors
/// [`PlotError`] if the drawing library fails.
pub fn lines(
    name: &'static str,
    lines: &[Line],
    across: (f64, f64),
    upwards: (f64, f64),
    x: Axis<'_>,
    y: Axis<'_>,
) -> Result<String, PlotError> {
    let at_left = SeriesLabelPosition::UpperLeft;
    lines_with_legend(name, lines, at_left, (across, upwards), x, y)
}

/// The same, with the legend where it is wanted: many lines leave no room at the upper left. The
/// ranges are those across and upwards.
///
/// # Errors
/// [`PlotError`] if the drawing library fails.
pub fn lines_with_legend(
    name: &'static str,
    lines: &[Line],
    position: SeriesLabelPosition,
    (across, upwards): ((f64, f64), (f64, f64)),
    x: Axis<'_>,
    y: Axis<'_>,
) -> Result<String, PlotError> {
    draw(name, |area| {
        let mut chart = chart(area, across, upwards, x, y)?;
        for line in lines {
            let style = line.colour.stroke_width(THICK);
            let points = line.points.iter().copied();
            let sample = |(x, y): (i32, i32)| [(x, y), (x + 22, y)];
            let (dash, gap) = DASHES;
            let series = match line.is_dashed {
                true => {
                    chart.draw_series(DashedLineSeries::new(points.clone(), dash, gap, style))?
                }
                false => chart.draw_series(LineSeries::new(points.clone(), style))?,
            };
            match (line.name.as_str(), line.is_dashed) {
                ("", _) => series,
                (name, true) => series
                    .label(name)
                    .legend(move |at| DashedPathElement::new(sample(at), dash, gap, style)),
                (name, false) => series
                    .label(name)
                    .legend(move |at| PathElement::new(sample(at), style)),
            };
            let mark = line.colour.filled();
            chart.draw_series(points.map(|point| Circle::new(point, 3, mark)))?;
        }
        legend(&mut chart, position)
    })
}

/// Colours for those are compared, the best or most interesting first. They can be told
/// apart on white and on black, and with most kinds of colour blindness.
pub const COLOURS: [RGBColor; 8] = [
    RGBColor(0x2f, 0x8f, 0xd0),
    RGBColor(0xd9, 0x62, 0x2b),
    RGBColor(0x2b, 0xa8, 0x7a),
    RGBColor(0xc4, 0x5a, 0xa5),
    RGBColor(0xc9, 0x9a, 0x1d),
    RGBColor(0x8a, 0x6f, 0xd6),
    RGBColor(0x8c, 0x7a, 0x6b),
    RGBColor(0xd6, 0x45, 0x55),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::LATENCY;

    #[test]
    fn all_lines_are_drawn_and_named() {
        let line = |name: &str, colour, is_dashed| Line {
            name: name.to_owned(),
            colour,
            is_dashed,
            points: vec![(1.0, 1.2), (25.0, 2.4), (50.0, 3.1)],
        };
        let drawn = [
            line("one & only", COLOURS[0], false),
            line("other", COLOURS[1], true),
        ];
        let whole: (&str, &dyn Fn(&f64) -> String) = ("clients", &|n| format!("{n:.0}"));
        let svg = lines("lines", &drawn, (0.0, 50.0), (1.0, 5.0), whole, LATENCY).unwrap();
        for text in ["one &amp; only", "other", "clients", "latency", "100 µs"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<circle").count(), 6);
    }

    #[test]
    fn nothing_to_draw_is_no_failure() {
        let whole: (&str, &dyn Fn(&f64) -> String) = ("clients", &|n| format!("{n:.0}"));
        assert!(lines("lines", &[], (0.0, 1.0), (0.0, 1.0), whole, LATENCY).is_ok());
    }
}
