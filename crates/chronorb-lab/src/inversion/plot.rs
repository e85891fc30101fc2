//! The plots: a figure of all architectures by the number of low-priority clients, as the paper's figures 7 and 8.

use plotters::prelude::SeriesLabelPosition;

use super::architecture::Architecture;
use super::outcome::{Class, Outcome, Row};
use super::plan::Mode;
use crate::report::{COLOURS, LATENCY, Line, PlotError, lines_with_legend};
use chronorb_report::canvas::exponent;

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Figure {
    Mean,
    Jitter,
    P99,
    Max,
}

impl Figure {
    pub(super) const ALL: [Self; 4] = [Self::Mean, Self::Jitter, Self::P99, Self::Max];

    /// As a heading.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Mean => "mean latency",
            Self::Jitter => "jitter, the standard deviation of the latency",
            Self::P99 => "99th percentile of the latency",
            Self::Max => "longest call",
        }
    }

    const fn plot_name(self) -> &'static str {
        match self {
            Self::Mean => "mean-by-clients",
            Self::Jitter => "jitter-by-clients",
            Self::P99 => "p99-by-clients",
            Self::Max => "longest-by-clients",
        }
    }

    /// The name of the vertical axis.
    const fn axis(self) -> &'static str {
        match self {
            Self::Mean => "mean latency (logarithmic)",
            Self::Jitter => "jitter (logarithmic)",
            Self::P99 => "p99 of the latency (logarithmic)",
            Self::Max => "longest latency (logarithmic)",
        }
    }

    pub(super) const fn of(self, row: &Row) -> f64 {
        match self {
            Self::Mean => row.latency.mean_us,
            Self::Jitter => row.latency.jitter_us,
            Self::P99 => row.latency.p99_us,
            Self::Max => row.latency.max_us,
        }
    }
}

/// A figure in a mode: a line for each architecture and class.
pub(super) fn by_clients(
    outcome: &Outcome,
    mode: Mode,
    figure: Figure,
) -> Result<String, PlotError> {
    let drawn: Vec<Line> = Class::ALL
        .into_iter()
        .flat_map(|class| {
            let architectures = outcome.architectures().into_iter();
            architectures.map(move |of| line(outcome, (of, mode, class), figure))
        })
        .collect();
    let points = || drawn.iter().flat_map(|line| &line.points);
    let most = points().map(|point| point.0).fold(1.0, f64::max);
    let least = points().map(|point| point.1).fold(f64::MAX, f64::min);
    let greatest = points().map(|point| point.1).fold(f64::MIN, f64::max);
    let (bottom, top) = match least <= greatest {
        true => (least.floor(), greatest.ceil().max(least.floor() + 1.0)),
        false => (0.0, 1.0),
    };
    // Beside the lines there is room for the legend.
    let across = (0.0, most * 1.6);
    let clients: (&str, &dyn Fn(&f64) -> String) =
        ("low-priority clients", &|clients| match *clients <= most {
            true => format!("{clients:.0}"),
            false => String::new(),
        });
    lines_with_legend(
        figure.plot_name(),
        &drawn,
        SeriesLabelPosition::MiddleRight,
        (across, (bottom, top)),
        clients,
        (figure.axis(), LATENCY.1),
    )
}

/// The line of a class of an architecture. Only lines of high priority have a name, so that the legend has each
/// architecture once.
fn line(
    outcome: &Outcome,
    (architecture, mode, class): (Architecture, Mode, Class),
    figure: Figure,
) -> Line {
    let rows = outcome.series(architecture, mode, class);
    Line {
        name: match class {
            Class::High => architecture.title().to_owned(),
            Class::Low => String::new(),
        },
        colour: COLOURS[architecture as usize % COLOURS.len()],
        is_dashed: class == Class::Low,
        points: rows
            .iter()
            .map(|row| (f64::from(row.low_clients), exponent(figure.of(row))))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn every_architecture_has_two_lines_and_one_name() {
        let outcome = outcome();
        for figure in Figure::ALL {
            let svg = by_clients(&outcome, Mode::Loaded, figure).unwrap();
            for architecture in outcome.architectures() {
                let name = format!("\n{}\n", architecture.title());
                assert_eq!(svg.matches(&name).count(), 1, "{architecture}");
            }
            for text in ["low-priority clients", figure.axis(), "100 µs"] {
                assert!(svg.contains(text), "{text}");
            }
        }
    }
}
