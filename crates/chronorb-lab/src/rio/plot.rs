//! The plots, by the paper's figures.

use plotters::prelude::SeriesLabelPosition;

use super::calls::Io;
use super::outcome::{CallRow, Outcome};
use super::part::Part;
use super::way::Way;
use crate::inversion::{Class, Mode};
use crate::report::canvas::{decades, largest, with_room_above};
use crate::report::plot::percentiles;
use crate::report::{COLOURS, LATENCY, Line, PlotError, Scale, lines, lines_with_legend};
use chronorb_report::canvas::percentile_label;

/// How many echoes took how long, as figures 15 and 17.
pub(super) fn distribution(outcome: &Outcome, part: Part) -> Result<String, PlotError> {
    let records = ways(part)
        .iter()
        .zip(COLOURS)
        .filter_map(|(way, colour)| Some((*way, outcome.record(part, *way)?, colour)));
    let records: Vec<_> = records.collect();
    let top = largest(
        records
            .iter()
            .map(|(_, record, _)| record.quantile_us(SHOWN)),
    );
    let step = top / STEPS;
    let drawn = records.into_iter().map(|(way, record, colour)| Line {
        name: way.title().to_owned(),
        colour,
        is_dashed: way == Way::Kernel,
        points: record.distribution(step, SHOWN),
    });
    let drawn: Vec<_> = drawn.collect();
    curves(
        "distribution",
        drawn,
        ("latency, µs", 1.0),
        ("share of echoes, %", 100.0),
    )
}

/// Latency by percentile.
pub(super) fn by_percentile(outcome: &Outcome, part: Part) -> Result<String, PlotError> {
    let drawn = ways(part).iter().zip(COLOURS).filter_map(|(way, colour)| {
        Some(Line {
            name: way.title().to_owned(),
            colour,
            is_dashed: *way == Way::Kernel,
            points: percentiles(outcome.record(part, *way)?),
        })
    });
    let drawn: Vec<_> = drawn.collect();
    let points = || drawn.iter().flat_map(|line| &line.points);
    let nines = largest(points().map(|point| point.0)).ceil().max(1.0);
    lines(
        "latency-by-percentile",
        &drawn,
        (0.0, nines),
        with_room_above(decades(points().map(|point| point.1))),
        ("percentile of the echoes", &|nines| {
            percentile_label(*nines)
        }),
        LATENCY,
    )
}

/// What came by flows over time, as figures 18 and 19.
pub(super) fn courses(outcome: &Outcome, part: Part) -> Result<String, PlotError> {
    let courses = outcome.courses.iter().filter(|course| course.part == part);
    let drawn = courses.zip(COLOURS).map(|(course, colour)| Line {
        name: course.name.clone(),
        colour,
        is_dashed: false,
        points: course.points.clone(),
    });
    let name = match part {
        Part::Company => "bulk-over-time",
        _ => "flows-over-time",
    };
    curves(name, drawn.collect(), ("time, s", 1.0), ("MB/s", 1e-6))
}

/// A figure of calls by the number of low-priority clients, as figures 22 to 24.
pub(super) fn by_clients(
    outcome: &Outcome,
    mode: Mode,
    figure: Figure,
) -> Result<String, PlotError> {
    let drawn = outcome.ios().into_iter().flat_map(|io| {
        figure.classes().iter().map(move |class| {
            let rows = outcome.series(io, mode, *class);
            let points = rows
                .iter()
                .map(|row| (f64::from(row.low_clients), figure.of(row)));
            Line {
                name: match figure.classes().len() {
                    1 => io.title().to_owned(),
                    _ => format!("{}, {}", class.name(), io.title()),
                },
                colour: colour(io),
                is_dashed: *class == Class::Low,
                points: points.collect(),
            }
        })
    });
    curves(
        figure.plot_name(),
        drawn.collect(),
        ("low-priority clients", 1.0),
        (figure.axis(), 1.0),
    )
}

/// What is drawn of calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Figure {
    /// The means of both classes, as figure 22.
    Means,
    /// The mean of the high-priority client, as figure 23.
    High,
    /// Its jitter, as the bars of figure 23.
    Jitter,
    /// The mean of the low-priority clients, as figure 24.
    Low,
}

impl Figure {
    pub(super) const ALL: [Self; 4] = [Self::Means, Self::High, Self::Jitter, Self::Low];

    /// What stands below it.
    pub(super) const fn caption(self) -> &'static str {
        match self {
            Self::Means => "The mean latency of both classes, as the paper's figure 22.",
            Self::High => "The mean latency of the high-priority client, as the paper's figure 23.",
            Self::Jitter => "Its jitter, the bars of the paper's figure 23.",
            Self::Low => "The mean latency of the low-priority clients, as the paper's figure 24.",
        }
    }

    const fn classes(self) -> &'static [Class] {
        match self {
            Self::Means => &Class::ALL,
            Self::High | Self::Jitter => &[Class::High],
            Self::Low => &[Class::Low],
        }
    }

    const fn of(self, row: &CallRow) -> f64 {
        match self {
            Self::Means | Self::High | Self::Low => row.latency.mean_us,
            Self::Jitter => row.latency.jitter_us,
        }
    }

    const fn plot_name(self) -> &'static str {
        match self {
            Self::Means => "means-by-clients",
            Self::High => "high-by-clients",
            Self::Jitter => "jitter-by-clients",
            Self::Low => "low-by-clients",
        }
    }

    const fn axis(self) -> &'static str {
        match self {
            Self::Means | Self::High | Self::Low => "mean latency, µs",
            Self::Jitter => "jitter, µs",
        }
    }
}

/// Lines on axes that begin at 0 and are not logarithmic; both have a name, and what values are to be multiplied by.
fn curves(
    name: &'static str,
    mut drawn: Vec<Line>,
    (x_name, x_factor): (&str, f64),
    (y_name, y_factor): (&str, f64),
) -> Result<String, PlotError> {
    let points = || drawn.iter().flat_map(|line| &line.points);
    let right = Scale::to(largest(points().map(|point| point.0 * x_factor)));
    let top = Scale::to(largest(points().map(|point| point.1 * y_factor)));
    for line in &mut drawn {
        for point in &mut line.points {
            *point = (
                point.0 * x_factor / right.unit,
                point.1 * y_factor / top.unit,
            );
        }
    }
    lines_with_legend(
        name,
        &drawn,
        SeriesLabelPosition::UpperRight,
        // There is room for the legend above.
        ((0.0, right.marks), (0.0, top.marks + 1.0)),
        (x_name, &|mark| right.label(*mark)),
        (y_name, &|mark| match *mark <= top.marks {
            true => top.label(*mark),
            false => String::new(),
        }),
    )
}

/// The ways that a part compares.
pub(super) const fn ways(part: Part) -> &'static [Way] {
    match part {
        Part::Company => &Way::IN_COMPANY,
        _ => &Way::ALONE,
    }
}

const fn colour(io: Io) -> plotters::style::RGBColor {
    match io {
        Io::Kernel => COLOURS[1],
        Io::KernelDriver => COLOURS[2],
        Io::Rio => COLOURS[0],
    }
}

/// The share of echoes that a distribution shows: the rest is too far to the right.
const SHOWN: f64 = 0.99;
/// Steps of a distribution.
const STEPS: f64 = 100.0;
