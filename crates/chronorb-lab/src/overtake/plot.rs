//! The plots.

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::case::{Case, Load, Series, Strategy};
use super::claims::{BORROWING, EXHAUSTED, FULL, NO_LANES, SATURATED};
use super::outcome::{Outcome, trial};
use crate::report::PlotError;
use crate::report::canvas::{
    BLUE, DASHES, ORANGE, TEXT, THICK, THIN, chart, decades, draw, largest, legend, with_room_above,
};
use crate::report::plot::percentiles;
use chronorb_report::canvas::{LATENCY, exponent, percentile_label};

/// Latency by percentile of the calls at fixed times: one strategy, idle and under the loads.
pub(super) fn by_percentile(outcome: &Outcome, strategy: Strategy) -> Result<String, PlotError> {
    let curves: Vec<_> = CURVES
        .into_iter()
        .filter_map(|(name, case, colour)| {
            let record = outcome.calls(trial(strategy, case, Series::Periodic))?;
            Some((name, percentiles(record), colour, !case.load.saturates()))
        })
        .collect();
    let points = || curves.iter().flat_map(|(_, points, ..)| points);
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
        for (name, points, colour, is_base) in &curves {
            let points = points.iter().copied();
            if *is_base {
                let style = colour.stroke_width(THICK);
                chart
                    .draw_series(DashedLineSeries::new(points, dash, gap, style))?
                    .label(*name)
                    .legend(move |at| DashedPathElement::new(sample(at), dash, gap, style));
            } else {
                let style = colour.stroke_width(THICK);
                chart
                    .draw_series(LineSeries::new(points, style))?
                    .label(*name)
                    .legend(move |at| PathElement::new(sample(at), style));
            }
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// The p99 of each round, by case: both strategies side by side.
pub(super) fn by_case(outcome: &Outcome, series: Series) -> Result<String, PlotError> {
    let of = |strategy: Strategy| {
        let (place, colour) = match strategy {
            Strategy::LeaderFollowers => (-0.14, BLUE),
            Strategy::HalfSyncHalfAsync => (0.14, ORANGE),
        };
        let columns: Vec<_> = COLUMNS
            .into_iter()
            .enumerate()
            .map(|(column, (_, case))| {
                let trial = trial(strategy, case, series);
                let rounds = outcome.rounds(trial);
                let rounds: Vec<f64> = rounds.map(|r| exponent(r.latency.p99_us)).collect();
                let median = outcome.figure(trial).map(|f| exponent(f.p99_us));
                (column as f64 + place, rounds, median)
            })
            .collect();
        (strategy.title(), colour, columns)
    };
    let drawn = Strategy::ALL.map(of);
    let heights = drawn
        .iter()
        .flat_map(|(.., columns)| columns.iter().flat_map(|(_, rounds, _)| rounds))
        .copied();

    draw("p99-by-case", |area| {
        let mut chart = chart(
            area,
            (-1.0, COLUMNS.len() as f64),
            with_room_above(decades(heights.clone())),
            ("the load, and the pool", &|place| column_label(*place)),
            LATENCY,
        )?;
        for (name, colour, columns) in &drawn {
            let marks = columns.iter().flat_map(|(place, rounds, _)| {
                rounds
                    .iter()
                    .map(|height| Circle::new((*place, *height), 3, colour.mix(0.45).filled()))
            });
            chart
                .draw_series(marks)?
                .label(*name)
                .legend(|(x, y)| Circle::new((x + 11, y), 4, colour.filled()));
            let medians = columns.iter().filter_map(|(place, _, median)| {
                let height = (*median)?;
                let ends = [(place - 0.12, height), (place + 0.12, height)];
                Some(PathElement::new(ends, colour.stroke_width(THICK)))
            });
            chart.draw_series(medians)?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// The latency of each call over time in an exhausted high lane, with borrowing and without.
pub(super) fn over_time(outcome: &Outcome, strategy: Strategy) -> Result<String, PlotError> {
    let courses = [
        ("no borrowing, the others saturated", EXHAUSTED, ORANGE),
        ("borrowing", BORROWING, BLUE),
    ]
    .map(|(name, case, colour)| {
        let calls = outcome.calls(trial(strategy, case, Series::Periodic));
        let points = calls.map_or(&[][..], |record| record.points());
        let points: Vec<(f64, f64)> = points
            .iter()
            .map(|point| {
                let (at, us) = (point.at_ns as f64 / 1e9, point.latency_ns as f64 / 1e3);
                (at, exponent(us))
            })
            .collect();
        (name, points, colour)
    });
    let seconds = outcome.plan.periodic.as_secs_f64();
    let work = exponent(outcome.plan.work_before().as_secs_f64() * 1e6);

    draw("latency-over-time", |area| {
        let heights = courses
            .iter()
            .flat_map(|(_, points, _)| points)
            .map(|p| p.1);
        let mut chart = chart(
            area,
            (0.0, seconds),
            with_room_above(decades(heights.chain([work]))),
            ("time since the first call of a round", &|seconds| {
                format!("{seconds:.1} s")
            }),
            LATENCY,
        )?;
        for (name, points, colour) in &courses {
            let marks = points
                .iter()
                .map(|point| Circle::new(*point, 2, colour.mix(0.6).filled()));
            chart
                .draw_series(marks)?
                .label(*name)
                .legend(|(x, y)| Circle::new((x + 11, y), 4, colour.filled()));
        }
        let style = TEXT.mix(0.6).stroke_width(THIN);
        let (dash, gap) = DASHES;
        let line = [(0.0, work), (seconds, work)];
        chart
            .draw_series(DashedLineSeries::new(line, dash, gap, style))?
            .label("the slow calls' work")
            .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 22, y)], dash, gap, style));
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// The name of a column of [`by_case`], at its place.
fn column_label(place: f64) -> String {
    let column = place.round();
    let is_whole = (place - column).abs() < 1e-6 && column >= 0.0;
    let column = COLUMNS.get(column as usize).filter(|_| is_whole);
    column.map_or_else(String::new, |(name, _)| (*name).to_owned())
}

const GREEN: RGBColor = RGBColor(0x3a, 0xa6, 0x6b);
const PURPLE: RGBColor = RGBColor(0x8e, 0x6b, 0xc9);

const YELLOW: RGBColor = RGBColor(0xb8, 0x92, 0x2a);

const CURVES: [(&str, Case, RGBColor); 5] = [
    ("idle", SATURATED.under(Load::Idle), GREEN),
    (
        "idle, processors awake",
        SATURATED.under(Load::Awake),
        YELLOW,
    ),
    ("lower lanes saturated", SATURATED, BLUE),
    ("and their buffers full", FULL, PURPLE),
    ("no lanes, saturated", NO_LANES, ORANGE),
];

const COLUMNS: [(&str, Case); 7] = [
    ("idle", SATURATED.under(Load::Idle)),
    ("idle, awake", SATURATED.under(Load::Awake)),
    ("saturated", SATURATED),
    ("buffers full", FULL),
    ("borrowing", BORROWING),
    ("exhausted", EXHAUSTED),
    ("no lanes", NO_LANES),
];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn plots_name_their_axes_units_and_series() {
        let outcome = outcome();
        let by_percentile = by_percentile(&outcome, Strategy::LeaderFollowers).unwrap();
        for text in [
            "percentile of the calls",
            "100 µs",
            "no lanes, saturated",
            "idle",
        ] {
            assert!(by_percentile.contains(text), "{text}");
        }
        let by_case = by_case(&outcome, Series::Periodic).unwrap();
        for (name, _) in COLUMNS {
            assert!(by_case.contains(name), "{name}");
        }
        for strategy in Strategy::ALL {
            assert!(by_case.contains(strategy.title()));
        }
        let over_time = over_time(&outcome, Strategy::HalfSyncHalfAsync).unwrap();
        for text in [
            "time since the first call",
            "1.0 s",
            "borrowing",
            "slow calls",
        ] {
            assert!(over_time.contains(text), "{text}");
        }
    }

    #[test]
    fn names_stand_at_whole_places_only() {
        assert_eq!(column_label(2.0), "saturated");
        for place in [-1.0, 0.5, 7.0] {
            assert_eq!(column_label(place), "");
        }
    }
}
