//! The plots.

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::outcome::Outcome;
use super::system::System;
use crate::bench::Placement;
use crate::report::PlotError;
use crate::report::canvas::{
    BLUE, DASHES, ORANGE, TEXT, THICK, chart, decades, draw, largest, legend, with_room_above,
};
use crate::report::plot::{LATENCY, percentile_label, percentiles};

/// Latency by percentile of all systems in a place.
pub(super) fn by_percentile(outcome: &Outcome, placement: Placement) -> Result<String, PlotError> {
    let curves: Vec<_> = System::ALL
        .into_iter()
        .filter_map(|system| {
            let mut pooled = outcome.pooled.iter();
            let (_, record) = pooled.find(|(of, _)| *of == (system, placement))?;
            Some((system, percentiles(record)))
        })
        .collect();
    let points = || curves.iter().flat_map(|(_, points)| points);
    let nines = largest(points().map(|point| point.0)).ceil();

    draw("latency-by-percentile", |area| {
        let mut chart = chart(
            area,
            (0.0, nines.max(1.0)),
            with_room_above(decades(points().map(|point| point.1))),
            ("percentile of the calls", &|nines| percentile_label(*nines)),
            LATENCY,
        )?;
        let sample = |(x, y): (i32, i32)| [(x, y), (x + 22, y)];
        let (dash, gap) = DASHES;
        for (system, points) in &curves {
            let points = points.iter().copied();
            let style = colour(*system).stroke_width(THICK);
            match system {
                System::RawBlocking | System::RawSpinning => chart
                    .draw_series(DashedLineSeries::new(points, dash, gap, style))?
                    .label(system.name())
                    .legend(move |at| DashedPathElement::new(sample(at), dash, gap, style)),
                System::Chronorb | System::ChronorbSpinning | System::OmniOrb => chart
                    .draw_series(LineSeries::new(points, style))?
                    .label(system.name())
                    .legend(move |at| PathElement::new(sample(at), style)),
            };
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

fn colour(system: System) -> RGBAColor {
    match system {
        System::RawBlocking => TEXT.mix(0.6),
        System::Chronorb => BLUE.mix(1.0),
        System::OmniOrb => ORANGE.mix(1.0),
        System::RawSpinning => GREEN.mix(0.6),
        System::ChronorbSpinning => GREEN.mix(1.0),
    }
}

const GREEN: RGBColor = RGBColor(0x3a, 0xa6, 0x6b);

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn plots_name_their_axes_and_those_that_take_part() {
        let outcome = outcome();
        let across = by_percentile(&outcome, Placement::AcrossCpus).unwrap();
        for system in System::ALL {
            assert!(across.contains(system.name()), "{}", system.name());
        }
        let same = by_percentile(&outcome, Placement::SameCpu).unwrap();
        assert!(same.contains("percentile of the calls") && same.contains("10 µs"));
        assert!(!same.contains("spinning"));
    }
}
