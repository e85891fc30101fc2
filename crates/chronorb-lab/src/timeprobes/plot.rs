//! The plot: what each layer takes of a call, by transport.

use plotters::prelude::*;

use super::outcome::{Outcome, Row};
use super::path::{Layer, Side};
use crate::bench::Placement;
use crate::report::canvas::{FONT, TEXT, TEXT_SIZE, chart, draw, largest, legend};
use crate::report::{COLOURS, PlotError};
use crate::units;

/// Bars of what is usual of each transport, made of what the layers take on either side.
pub(super) fn layers(outcome: &Outcome) -> Result<String, PlotError> {
    bars("layers-of-a-call", "time of a call", outcome, &SEGMENTS)
}

/// The same without the operating system, beside which the others can hardly be seen.
pub(super) fn own_layers(outcome: &Outcome) -> Result<String, PlotError> {
    let (_kernel, own) = SEGMENTS.split_last().unwrap_or((&SEGMENTS[0], &[]));
    bars("own-layers-of-a-call", "time in the programs", outcome, own)
}

fn bars(
    name: &'static str,
    of_what: &str,
    outcome: &Outcome,
    segments: &[Segment],
) -> Result<String, PlotError> {
    let cases = outcome.cases();
    let mut transports: Vec<&str> = Vec::new();
    for (transport, _) in &cases {
        if !transports.contains(transport) {
            transports.push(transport);
        }
    }
    let height = |case, segments: &[Segment]| -> f64 {
        let rows = outcome.of(case);
        let rows = rows.filter(|row| segments.iter().any(|of| of.has(row)));
        rows.map(|row| row.usual_us).sum()
    };
    let whole = |case| height(case, segments);
    let greatest = largest(cases.iter().map(|case| whole(*case))).max(1e-3);
    // With room for the legend. Heights are tenths of it.
    let unit = greatest / 10.0;
    let top = 18.0;
    let names = |place: &f64| {
        let place = place.round();
        let at = (place >= 0.0).then_some(place as usize);
        at.and_then(|at| transports.get(at))
            .map_or_else(String::new, |name| (*name).to_owned())
    };
    let heights = |tenths: &f64| match tenths.round() {
        more if more > 10.0 => String::new(),
        tenths => units::time(tenths * unit),
    };
    let left = |(transport, place): (&str, Placement)| {
        let at = transports.iter().position(|name| *name == transport);
        let to_the_left = if place == Placement::SameCpu {
            WIDTH
        } else {
            0.0
        };
        at.unwrap_or(0) as f64 - to_the_left
    };
    draw(name, |area| {
        let mut chart = chart(
            area,
            (-1.0, transports.len() as f64),
            (0.0, top),
            ("transport", &names),
            (of_what, &heights),
        )?;
        for (at, (segment, colour)) in segments.iter().zip(COLOURS).enumerate() {
            let bars = cases.iter().map(|case| {
                let left = left(*case);
                let below = height(*case, &segments[..at]) / unit;
                let corners = [
                    (left + GAP, below),
                    (
                        left + WIDTH - GAP,
                        below + height(*case, &[*segment]) / unit,
                    ),
                ];
                Rectangle::new(corners, colour.filled())
            });
            chart
                .draw_series(bars)?
                .label(segment.name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 22, y + 5)], colour.filled())
                });
        }
        let text = (FONT, TEXT_SIZE - 1).into_font().color(&TEXT);
        chart.draw_series(cases.iter().map(|case| {
            let place = (left(*case) + 2.0 * GAP, whole(*case) / unit + 0.8);
            Text::new(units::time(whole(*case)), place, text.clone())
        }))?;
        legend(&mut chart, SeriesLabelPosition::UpperRight)
    })
}

/// A colour of a bar.
#[derive(Clone, Copy, PartialEq)]
struct Segment {
    name: &'static str,
    layer: Layer,
    side: Option<Side>,
}

impl Segment {
    fn has(&self, row: &Row) -> bool {
        let is_here = self.side.is_none() || row.side == self.side;
        row.part.is_some() && row.layer == Some(self.layer) && is_here
    }
}

const SEGMENTS: [Segment; 6] = [
    Segment {
        name: "ORB, client",
        layer: Layer::Orb,
        side: Some(Side::Client),
    },
    Segment {
        name: "ORB, server",
        layer: Layer::Orb,
        side: Some(Side::Server),
    },
    Segment {
        name: "transport, client",
        layer: Layer::Transport,
        side: Some(Side::Client),
    },
    Segment {
        name: "transport, server",
        layer: Layer::Transport,
        side: Some(Side::Server),
    },
    Segment {
        name: "servant",
        layer: Layer::Servant,
        side: None,
    },
    Segment {
        name: "operating system",
        layer: Layer::OperatingSystem,
        side: None,
    },
];

/// Of a bar, where transports are 1 apart.
const WIDTH: f64 = 0.3;
const GAP: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_plot_names_transports_layers_and_times() {
        let svg = layers(&outcome()).unwrap();
        for text in [
            "uiop",
            "iiop",
            "ORB, client",
            "operating system",
            "time of a call",
            "µs",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("diop"), "it takes no part");
        let own = own_layers(&outcome()).unwrap();
        assert!(own.contains("ORB, client") && !own.contains("operating system"));
    }
}
