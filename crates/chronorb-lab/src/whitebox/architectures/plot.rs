//! The plots: lock operations, futex calls and shares of the time, by architecture.

use plotters::prelude::*;

use super::super::bars::{Bars, LOGARITHMIC, bars};
use super::super::outcome::Side;
use super::super::published::PUBLISHED;
use super::outcome::{ArchitectureRow, Use};
use super::table::by_architecture;
use crate::report::canvas::{FONT, TEXT, TEXT_SIZE, chart, draw, legend};
use crate::report::{COLOURS, PlotError};

/// Lock operations of client and server for each request, ours beside those of the papers.
pub(super) fn lock_operations(rows: &[ArchitectureRow]) -> Result<String, PlotError> {
    let ours = groups(rows, |row| Some(row.locks_as_in_papers()));
    let published = PUBLISHED.iter().map(|of| {
        let counts = [of.client, of.server].map(|count| Some(f64::from(count)));
        (of.orb.to_owned(), counts)
    });
    bars(&Bars {
        name: "lock-operations-by-architecture",
        groups: &ours.into_iter().chain(published).collect::<Vec<_>>(),
        across: "architectures of chronorb; and the ORBs of 1998",
        upwards: LOGARITHMIC,
    })
}

/// Futex calls of client and server for each request.
pub(super) fn futex_calls(rows: &[ArchitectureRow]) -> Result<String, PlotError> {
    let groups = groups(rows, |row| {
        row.futex_calls().map(|calls| row.each_traced(calls))
    });
    bars(&Bars {
        name: "futex-calls",
        groups: &groups,
        across: "architecture",
        upwards: ("futex calls", None),
    })
}

/// What processor time is spent on, on both sides of each architecture.
pub(super) fn shares(rows: &[ArchitectureRow]) -> Result<String, PlotError> {
    let architectures: Vec<_> = by_architecture(rows).collect();
    let names = |place: &f64| {
        let place = place.round();
        let at = (place >= 0.0).then_some(place as usize);
        at.and_then(|at| architectures.get(at))
            .map_or_else(String::new, |sides| sides[0].configuration.short.to_owned())
    };
    let fifths = |fifths: &f64| match fifths.round() {
        all if all > 5.0 => String::new(),
        fifths => format!("{} %", fifths * 20.0),
    };
    draw("time-shares", |area| {
        let mut chart = chart(
            area,
            (-1.0, architectures.len() as f64),
            (0.0, TOP),
            (
                "architecture: client at the left, server at the right",
                &names,
            ),
            ("share of the processor time", &fifths),
        )?;
        for (on, colour) in Use::ALL.into_iter().zip(COLOURS.into_iter().skip(1)) {
            let parts = architectures.iter().enumerate().flat_map(|(at, sides)| {
                sides.iter().map(move |row| {
                    let left = at as f64
                        - if row.side == Side::Client {
                            WIDTH
                        } else {
                            -GAP
                        };
                    let below: f64 = (Use::ALL.iter().take_while(|other| **other != on))
                        .map(|other| row.shares.percent(*other))
                        .sum();
                    (left, below / 20.0, row.shares.percent(on) / 20.0)
                })
            });
            let part = |(left, below, height): (f64, f64, f64)| {
                let corners = [(left, below), (left + WIDTH - GAP, below + height)];
                Rectangle::new(corners, colour.filled())
            };
            chart
                .draw_series(parts.clone().map(part))?
                .label(on.name())
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 22, y + 5)], colour.filled())
                });
            let text = (FONT, TEXT_SIZE - 1).into_font().color(&WHITE);
            let roomy = parts.filter(|(_, _, height)| *height >= ROOM_FOR_TEXT);
            chart.draw_series(roomy.map(|(left, below, height)| {
                let at = (
                    left + WIDTH / 5.0,
                    below + height / 2.0 + ROOM_FOR_TEXT / 2.2,
                );
                Text::new(format!("{:.0} %", height * 20.0), at, text.clone())
            }))?;
        }
        let text = (FONT, TEXT_SIZE - 1).into_font().color(&TEXT);
        for at in 0..architectures.len() {
            for (left, side) in [(-WIDTH, Side::Client), (GAP, Side::Server)] {
                let place = (at as f64 + left, 5.4);
                chart.draw_series([Text::new(side.name(), place, text.clone())])?;
            }
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// A figure of each architecture, on client and server.
fn groups(
    rows: &[ArchitectureRow],
    figure: impl Fn(&ArchitectureRow) -> Option<f64>,
) -> Vec<(String, [Option<f64>; 2])> {
    by_architecture(rows)
        .map(|sides| {
            let of = |side| {
                let row = sides.iter().find(|row| row.side == side)?;
                figure(row)
            };
            let name = sides[0].configuration.short.to_owned();
            (name, [of(Side::Client), of(Side::Server)])
        })
        .collect()
}

/// Of a bar, where architectures are 1 apart.
const WIDTH: f64 = 0.4;
const GAP: f64 = 0.02;
/// With room for the legend.
const TOP: f64 = 7.4;
/// The height of a line of text, in fifths of the whole.
const ROOM_FOR_TEXT: f64 = 0.35;

#[cfg(test)]
mod tests {
    use super::super::claims::tests::rows;
    use super::*;

    #[test]
    fn locks_stand_beside_those_of_the_papers() {
        let svg = lock_operations(&rows()).unwrap();
        for text in [
            "filter chain",
            "muxed L/F",
            "MT-Orbix",
            "599",
            "client",
            "server",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn futex_calls_are_drawn_where_they_are_known() {
        let mut rows = rows();
        assert!(futex_calls(&rows).unwrap().contains("futex calls"));
        for row in &mut rows {
            row.system_calls = None;
        }
        assert!(futex_calls(&rows).is_ok());
    }

    #[test]
    fn shares_are_named_and_told_where_there_is_room() {
        let svg = shares(&rows()).unwrap();
        for text in [
            "synchronisation",
            "I/O",
            "protocol",
            "application",
            "62 %",
            "100 %",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(shares(&[]).is_ok());
    }
}
