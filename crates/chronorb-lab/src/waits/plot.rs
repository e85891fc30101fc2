//! The plots: each way by blocking `recv`.

use plotters::prelude::*;

use super::case::{Class, Processors, Setting, Way};
use super::outcome::{Outcome, Quantile, Ratio};
use crate::report::PlotError;
use crate::report::canvas::{
    BLUE, DASHES, ORANGE, TEXT, THICK, THIN, chart, draw, largest, legend,
};

/// A quantile of every way by that of blocking `recv`, without idle connections: each setting in
/// its colour, from the least to the greatest of the rounds.
pub(super) fn by_way(outcome: &Outcome, of: Quantile) -> Result<String, PlotError> {
    let settings = outcome.settings().into_iter().filter(|s| s.idle == 0);
    let drawn: Vec<_> = settings
        .map(|setting| {
            let (place, colour) = style(setting);
            let ratios = Way::ALL.into_iter().enumerate();
            let ratios: Vec<(f64, Ratio)> = ratios
                .filter_map(|(column, way)| {
                    let ratio = outcome.ratio((setting, way), (setting, Way::Blocking), of)?;
                    Some((column as f64 + place, ratio))
                })
                .collect();
            (setting.place(), colour, ratios)
        })
        .collect();
    let medians = drawn.iter().flat_map(|(.., ratios)| ratios);
    let top = largest(medians.map(|(_, ratio)| ratio.median)).max(1.0) * 1.5;

    draw("ways-to-wait", |area| {
        let mut chart = chart(
            area,
            (-1.0, Way::ALL.len() as f64),
            (0.0, top),
            ("how the server's thread waits", &|column| {
                label(*column).to_owned()
            }),
            ("by blocking recv", &|ratio| format!("{ratio:.1}")),
        )?;
        let (dash, gap) = DASHES;
        let line = [(-1.0, 1.0), (Way::ALL.len() as f64, 1.0)];
        let thin = TEXT.mix(0.6).stroke_width(THIN);
        chart.draw_series(DashedLineSeries::new(line, dash, gap, thin))?;
        for (name, colour, ratios) in &drawn {
            let ranges = ratios.iter().map(|(place, ratio)| {
                let ends = [
                    (*place, ratio.least.min(top)),
                    (*place, ratio.greatest.min(top)),
                ];
                PathElement::new(ends, colour.mix(0.5).stroke_width(THICK))
            });
            chart.draw_series(ranges)?;
            let medians = ratios
                .iter()
                .map(|(place, ratio)| Circle::new((*place, ratio.median), 4, colour.filled()));
            chart
                .draw_series(medians)?
                .label(*name)
                .legend(|(x, y)| Circle::new((x + 11, y), 4, colour.filled()));
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// What stands under a column.
fn label(column: f64) -> &'static str {
    let is_whole = (column - column.round()).abs() < 0.01 && column > -0.5;
    let way = is_whole.then(|| Way::ALL.get(column.round() as usize));
    way.flatten().map_or("", |way| way.short())
}

/// Where a setting stands in its column, and its colour.
const fn style(setting: Setting) -> (f64, RGBColor) {
    match (setting.processors, setting.class) {
        (Processors::One, Class::Ordinary) => (-0.24, BLUE),
        (Processors::Two, Class::Ordinary) => (-0.08, ORANGE),
        (Processors::One, Class::RealTime) => (0.08, RGBColor(0x3a, 0xa6, 0x6b)),
        (Processors::Two, Class::RealTime) => (0.24, RGBColor(0x8e, 0x6b, 0xc9)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::super::outcome::P50;
    use super::*;

    #[test]
    fn every_way_and_setting_is_named() {
        let svg = by_way(&outcome(), P50).unwrap();
        let ways = Way::ALL.map(Way::short);
        for text in ways.iter().chain(&["two CPUs, FIFO", "by blocking recv"]) {
            assert!(svg.contains(text), "{text} is missing");
        }
    }

    #[test]
    fn labels_stand_under_their_columns_only() {
        assert_eq!(label(0.0), "recv");
        assert_eq!(label(12.0), "u: lead");
        for other in [-1.0, 0.5, 13.0] {
            assert_eq!(label(other), "");
        }
    }
}
