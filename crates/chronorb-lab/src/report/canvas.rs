//! What all plots are drawn on: SVG that takes its text colour from the page around it.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use thiserror::Error;

/// A plot could not be drawn.
#[derive(Debug, Error)]
#[error("the plot {name} could not be drawn: {reason}")]
pub struct PlotError {
    name: &'static str,
    reason: String,
}

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
pub(crate) type Chart<'a, 'b> =
    ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
pub(crate) type DrawError = DrawingAreaErrorKind<std::io::Error>;

/// The name of an axis, and what stands at a mark of it.
pub(crate) type Axis<'t> = (&'t str, &'t dyn Fn(&f64) -> String);

/// Runs `content` on an empty picture and makes its text follow the page.
pub(crate) fn draw(
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
pub(crate) fn chart<'a: 'b, 'b>(
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

pub(crate) fn legend<'a: 'b, 'b>(
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
pub(crate) fn decades(exponents: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let top = largest(exponents.clone()).ceil();
    let bottom = -largest(exponents.map(|exponent| -exponent)).ceil();
    if bottom < top {
        (bottom, top)
    } else {
        (top - 1.0, top)
    }
}

/// A decade more, for the legend.
pub(crate) fn with_room_above((bottom, top): (f64, f64)) -> (f64, f64) {
    (bottom, top + 1.0)
}

pub(crate) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(f64::max).unwrap_or(0.0)
}

/// As many as do not touch each other on the horizontal axis.
const MOST_LABELS: usize = 21;

pub(crate) const SIZE: (u32, u32) = (960, 440);
pub(crate) const FONT: &str = "sans-serif";
pub(crate) const TEXT_SIZE: i32 = 15;
pub(crate) const THICK: u32 = 3;
pub(crate) const THIN: u32 = 1;
pub(crate) const DASHES: (u32, u32) = (6, 4);

/// Stands for the text colour of the page; drawn nowhere else.
pub(crate) const TEXT: RGBColor = RGBColor(1, 2, 3);
pub(crate) const TEXT_IN_SVG: &str = "#010203";

// Colours that can be told apart on white and on black.
pub(crate) const ORANGE: RGBColor = RGBColor(0xd9, 0x62, 0x2b);
pub(crate) const BLUE: RGBColor = RGBColor(0x2f, 0x8f, 0xd0);
