//! The plots of a comparison.

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::comparison::Comparison;
use crate::stats::Record;
use chronorb_report::canvas::{
    BLUE, DASHES, LATENCY, ORANGE, PlotError, THICK, THIN, chart, decades, draw, exponent, largest,
    legend, percentile_label, with_room_above,
};

/// Latency by percentile: both classes, without and with priorities.
pub(super) fn latency_by_percentile(comparison: &Comparison) -> Result<String, PlotError> {
    let (without, with) = (&comparison.without_priorities, &comparison.with_priorities);
    let curves = [
        (
            "high, without priorities",
            &without.high,
            WITHOUT,
            Class::High,
        ),
        ("high, with priorities", &with.high, WITH, Class::High),
        ("low, without priorities", &without.low, WITHOUT, Class::Low),
        ("low, with priorities", &with.low, WITH, Class::Low),
    ]
    .map(|(name, record, colour, class)| (name, percentiles(record), colour, class));
    let points = || curves.iter().flat_map(|(_, points, _, _)| points);
    let nines = largest(points().map(|point| point.0)).ceil();

    draw("latency-by-percentile", |area| {
        let mut chart = chart(
            area,
            (0.0, nines.max(1.0)),
            with_room_above(decades(points().map(|point| point.1))),
            ("percentile of the calls", &|nines| percentile_label(*nines)),
            LATENCY,
        )?;
        for (name, points, colour, class) in &curves {
            let points = points.iter().copied();
            let sample = |(x, y): (i32, i32)| [(x, y), (x + 22, y)];
            match class {
                Class::High => {
                    let style = colour.stroke_width(THICK);
                    chart
                        .draw_series(LineSeries::new(points, style))?
                        .label(*name)
                        .legend(move |at| PathElement::new(sample(at), style));
                }
                Class::Low => {
                    let style = colour.stroke_width(THIN);
                    let (dash, gap) = DASHES;
                    chart
                        .draw_series(DashedLineSeries::new(points, dash, gap, style))?
                        .label(*name)
                        .legend(move |at| DashedPathElement::new(sample(at), dash, gap, style));
                }
            }
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// The latency of each high-priority call over time, without and with priorities.
pub(super) fn latency_over_time(comparison: &Comparison) -> Result<String, PlotError> {
    let courses = [
        (
            "without priorities",
            &comparison.without_priorities.high,
            WITHOUT,
        ),
        ("with priorities", &comparison.with_priorities.high, WITH),
    ]
    .map(|(name, record, colour)| (name, course(record), colour));
    let seconds = comparison.setup.phase.as_secs_f64();

    draw("latency-over-time", |area| {
        let points = courses.iter().flat_map(|(_, points, _)| points);
        let mut chart = chart(
            area,
            (0.0, seconds),
            with_room_above(decades(points.map(|point| point.1))),
            ("time since the start of the phase", &|seconds| {
                format!("{seconds} s")
            }),
            LATENCY,
        )?;
        for (name, points, colour) in &courses {
            chart.draw_series(LineSeries::new(
                points.iter().copied(),
                colour.mix(0.35).stroke_width(THIN),
            ))?;
            chart
                .draw_series(
                    points
                        .iter()
                        .map(|point| Circle::new(*point, 2, colour.filled())),
                )?
                .label(*name)
                .legend(|(x, y)| Circle::new((x + 11, y), 4, colour.filled()));
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// How a curve is drawn: calls of high priority stand out.
enum Class {
    High,
    Low,
}

/// The quantiles that the number of calls supports, as (number of nines, logarithm of the latency).
pub(crate) fn percentiles(record: &Record) -> Vec<(f64, f64)> {
    if record.calls() == 0 {
        return Vec::new();
    }
    let end = (record.calls() as f64).log10();
    let steps = 200;
    (0..=steps)
        .map(|step| {
            let nines = end * f64::from(step) / f64::from(steps);
            let latency = if step == steps {
                record.max_us()
            } else {
                record.quantile_us(1.0 - 10_f64.powf(-nines))
            };
            (nines, exponent(latency))
        })
        .collect()
}

/// The latencies in the order of time: seconds, and the logarithm of the latency in µs.
pub(crate) fn course(record: &Record) -> Vec<(f64, f64)> {
    record
        .points()
        .iter()
        .map(|point| {
            (
                point.at_ns as f64 / 1e9,
                exponent(point.latency_ns as f64 / 1e3),
            )
        })
        .collect()
}

const WITHOUT: RGBColor = ORANGE;
const WITH: RGBColor = BLUE;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Phase;
    use crate::comparison::tests::comparison;
    use chronorb_report::canvas::TEXT_IN_SVG;

    #[test]
    fn plots_name_their_axes_units_and_series() {
        let comparison = comparison(10_000, 100);
        let percentiles = latency_by_percentile(&comparison).unwrap();
        for text in [
            "percentile of the calls",
            "99.9",
            "latency (logarithmic)",
            "10 ms",
            "100 µs",
            "low, with priorities",
        ] {
            assert!(percentiles.contains(text), "{text}");
        }
        let course = latency_over_time(&comparison).unwrap();
        for text in ["time since the start", "10 s", "without priorities"] {
            assert!(course.contains(text), "{text}");
        }
    }

    #[test]
    fn text_and_axes_follow_the_page() {
        let svg = latency_by_percentile(&comparison(10_000, 100)).unwrap();
        assert!(svg.contains("currentColor"));
        assert!(!svg.contains(TEXT_IN_SVG));
        assert!(!svg.contains("#000000"));
    }

    #[test]
    fn a_phase_without_calls_can_be_drawn() {
        let mut comparison = comparison(10_000, 100);
        comparison.without_priorities = Phase::default();
        comparison.with_priorities = Phase::default();
        assert!(latency_by_percentile(&comparison).is_ok());
        assert!(latency_over_time(&comparison).is_ok());
    }
}
