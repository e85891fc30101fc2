//! A plot of bars: a figure of client and server, for each of several who are compared.

use plotters::prelude::*;

use super::table::number;
use crate::report::PlotError;
use crate::report::canvas::{BLUE, FONT, ORANGE, TEXT, TEXT_SIZE, chart, draw, largest, legend};

/// What is drawn.
pub(super) struct Bars<'a> {
    pub(super) name: &'static str,
    /// Who is compared, with the figures of client and server, where they are known.
    pub(super) groups: &'a [(String, [Option<f64>; 2])],
    /// Under the horizontal axis.
    pub(super) across: &'a str,
    pub(super) upwards: Scale,
}

/// The name of the vertical axis, and where it is logarithmic the exponents between which it lies; nothing is as high
/// as the first.
pub(super) type Scale = (&'static str, Option<(f64, f64)>);

/// Lock operations, from a tenth of one to ten thousand.
pub(super) const LOGARITHMIC: Scale = ("lock operations (logarithmic)", Some((-1.0, 4.0)));

/// Draws bars with their figures above them, and a legend at the upper left.
pub(super) fn bars(of: &Bars<'_>) -> Result<String, PlotError> {
    let names = |place: &f64| {
        let place = place.round();
        let at = (place >= 0.0).then_some(place as usize);
        at.and_then(|at| of.groups.get(at))
            .map_or_else(String::new, |(name, _)| name.clone())
    };
    let (title, exponents) = of.upwards;
    let figures = of
        .groups
        .iter()
        .flat_map(|(_, figures)| figures.iter().flatten());
    let (bottom, top) = exponents.unwrap_or_else(|| {
        // With room for the legend.
        (0.0, (largest(figures.copied()) * 1.4).ceil().max(1.0))
    });
    let height = |figure: f64| height(figure, exponents);
    let marks = |at: &f64| match exponents {
        Some(_) => 10_f64.powf(at.round()).to_string(),
        None => number(at.round()),
    };
    let above = (top - bottom) * 0.04;

    draw(of.name, |area| {
        let mut chart = chart(
            area,
            (-1.0, of.groups.len() as f64),
            (bottom, top),
            (of.across, &names),
            (title, &marks),
        )?;
        for (side, (name, colour)) in [("client", BLUE), ("server", ORANGE)]
            .into_iter()
            .enumerate()
        {
            let known = of
                .groups
                .iter()
                .enumerate()
                .filter_map(|(at, (_, figures))| {
                    let left = at as f64 + (side as f64 - 1.0) * WIDTH;
                    Some((left, figures[side]?))
                });
            let bar = |(left, figure): (f64, f64)| {
                let corners = [(left, bottom), (left + WIDTH, height(figure))];
                Rectangle::new(corners, colour.filled())
            };
            chart
                .draw_series(known.clone().map(bar))?
                .label(name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 22, y + 5)], colour.filled())
                });
            let text = (FONT, TEXT_SIZE).into_font().color(&TEXT);
            chart.draw_series(known.map(|(left, figure)| {
                let at = (left + WIDTH / 8.0, height(figure) + above);
                Text::new(number(figure), at, text.clone())
            }))?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// How high a bar is; on a logarithmic axis none is as high as the axis.
fn height(figure: f64, exponents: Option<(f64, f64)>) -> f64 {
    match exponents {
        Some((bottom, _)) if figure > 0.0 => figure.log10().max(bottom),
        Some((bottom, _)) => bottom,
        None => figure,
    }
}

/// Of a bar, where groups are 1 apart.
const WIDTH: f64 = 0.36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_has_no_height_and_more_is_higher() {
        let (_, exponents) = LOGARITHMIC;
        assert_eq!(height(0.0, exponents), -1.0);
        assert!(height(41.0, exponents) < height(100.0, exponents));
        assert_eq!([0.0, 2.5].map(|figure| height(figure, None)), [0.0, 2.5]);
    }

    #[test]
    fn the_plot_names_its_axes_and_sides_and_tells_the_figures() {
        let svg = bars(&Bars {
            name: "bars",
            groups: &[
                ("one".to_owned(), [Some(2.0), None]),
                ("other".to_owned(), [None, Some(0.5)]),
            ],
            across: "who",
            upwards: ("how many", None),
        })
        .unwrap();
        for text in [
            "one", "other", "who", "how many", "0.50", "client", "server",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }
}
