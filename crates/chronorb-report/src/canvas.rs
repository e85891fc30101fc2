//! What all plots are drawn on: SVG that takes its text colour from the page around it.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use thiserror::Error;

use crate::units;

/// A plot could not be drawn.
#[derive(Debug, Error)]
#[error("the plot {name} could not be drawn: {reason}")]
pub struct PlotError {
    name: &'static str,
    reason: String,
}

/// A drawing area of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
/// A chart with two axes.
pub type Chart<'a, 'b> =
    ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
/// A failure of the drawing library.
pub type DrawError = DrawingAreaErrorKind<std::io::Error>;

/// The name of an axis, and what stands at a mark of it.
pub type Axis<'t> = (&'t str, &'t dyn Fn(&f64) -> String);

/// Runs `content` on an empty picture and makes its text follow the page.
///
/// # Errors
/// [`PlotError`] if `content` fails.
pub fn draw(
    name: &'static str,
    content: impl FnOnce(&Area<'_>) -> Result<(), DrawError>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    content(&area)
        .and_then(|()| area.present())
        .map_err(|error| PlotError {
            name,
            reason: error.to_string(),
        })?;
    drop(area);
    Ok(svg.replace(TEXT_IN_SVG, "currentColor"))
}

/// A chart of two axes, each with what stands at its marks.
///
/// # Errors
/// [`DrawError`] of the drawing library.
pub fn chart<'a: 'b, 'b>(
    area: &'b Area<'a>,
    (left, right): (f64, f64),
    (bottom, top): (f64, f64),
    (x_name, x_label): Axis<'_>,
    (y_name, y_label): Axis<'_>,
) -> Result<Chart<'a, 'b>, DrawError> {
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(32)
        .x_label_area_size(52)
        .y_label_area_size(78)
        .build_cartesian_2d(left..right, bottom..top)?;
    let text = (FONT, TEXT_SIZE).into_font().color(&TEXT);
    chart
        .configure_mesh()
        .axis_style(TEXT.mix(0.6))
        .bold_line_style(TEXT.mix(0.18))
        .max_light_lines(0)
        .label_style(text.clone())
        .axis_desc_style(text)
        .x_desc(x_name)
        .x_labels(((right - left).round() as usize + 1).min(MOST_LABELS))
        .x_label_formatter(x_label)
        .y_desc(y_name)
        .y_labels((top - bottom).round() as usize + 1)
        .y_label_formatter(y_label)
        .draw()?;
    Ok(chart)
}

/// Draws the legend of the series that have labels.
///
/// # Errors
/// [`DrawError`] of the drawing library.
pub fn legend<'a: 'b, 'b>(
    chart: &mut Chart<'a, 'b>,
    position: SeriesLabelPosition,
) -> Result<(), DrawError> {
    chart
        .configure_series_labels()
        .position(position)
        .margin(10)
        .legend_area_size(30)
        .border_style(TEXT.mix(0.18))
        .label_font((FONT, TEXT_SIZE).into_font().color(&TEXT))
        .draw()
}

/// The whole decades that hold all `exponents`.
pub fn decades(exponents: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let top = largest(exponents.clone()).ceil();
    let bottom = -largest(exponents.map(|exponent| -exponent)).ceil();
    if bottom < top {
        (bottom, top)
    } else {
        (top - 1.0, top)
    }
}

/// A decade more, for the legend.
pub fn with_room_above((bottom, top): (f64, f64)) -> (f64, f64) {
    (bottom, top + 1.0)
}

/// The largest value, or 0.
pub fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(f64::max).unwrap_or(0.0)
}

/// The logarithm of a latency; 1 ns is the least that the clock tells.
pub fn exponent(us: f64) -> f64 {
    us.max(1e-3).log10()
}

/// 0 nines is the minimum, 1 is 90 %, 2 is 99 % …
pub fn percentile_label(nines: f64) -> String {
    match nines.round() as usize {
        0 => "0".to_owned(),
        1 => "90".to_owned(),
        2 => "99".to_owned(),
        nines => format!("99.{}", "9".repeat(nines - 2)),
    }
}

fn decade_label(exponent: f64) -> String {
    let us = 10_f64.powf(exponent);
    let text = units::time(us);
    // A decade needs no digits behind the point.
    match text.split_once(' ') {
        Some((value, unit)) if us >= 1.0 => {
            format!("{} {unit}", value.split('.').next().unwrap_or(value))
        }
        _ => text,
    }
}

/// The vertical axis.
pub const LATENCY: Axis<'static> = ("latency (logarithmic)", &|exponent| decade_label(*exponent));

/// As many as do not touch each other on the horizontal axis.
const MOST_LABELS: usize = 21;

/// The size of a picture.
pub const SIZE: (u32, u32) = (960, 440);
/// The font of all text.
pub const FONT: &str = "sans-serif";
/// The size of text.
pub const TEXT_SIZE: i32 = 15;
/// The width of a line that stands out.
pub const THICK: u32 = 3;
/// The width of other lines.
pub const THIN: u32 = 1;
/// Lengths of dashes and of the gaps between them.
pub const DASHES: (u32, u32) = (6, 4);

/// Stands for the text colour of the page; drawn nowhere else.
pub const TEXT: RGBColor = RGBColor(1, 2, 3);
/// [`TEXT`] in SVG.
pub const TEXT_IN_SVG: &str = "#010203";

/// Orange.
pub const ORANGE: RGBColor = RGBColor(0xd9, 0x62, 0x2b);
/// Blue.
pub const BLUE: RGBColor = RGBColor(0x2f, 0x8f, 0xd0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_labels_are_round() {
        assert_eq!(
            [0.0, 1.0, 2.0, 3.0, 4.0].map(percentile_label),
            ["0", "90", "99", "99.9", "99.99"]
        );
        assert_eq!(
            [0.0, 1.0, 2.0, 3.0, 6.0].map(decade_label),
            ["1 µs", "10 µs", "100 µs", "1 ms", "1 s"]
        );
    }
}
