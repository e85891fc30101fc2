//! The plots.

use plotters::prelude::*;

use super::outcome::Outcome;
use super::protocol::Protocol;
use super::system::System;
use super::trial::{Cell, Trial};
use crate::report::canvas::{BLUE, ORANGE, TEXT, chart, decades, draw, largest, legend};
use crate::report::plot::{LATENCY, exponent, percentile_label, percentiles};
use crate::report::{COLOURS, Line, PlotError, lines_with_legend};

/// The p50 of all in a cell: a group of bars for each protocol.
pub(super) fn p50(outcome: &Outcome, cell: Cell) -> Result<String, PlotError> {
    let keys = outcome.keys(cell);
    let mut protocols: Vec<Protocol> = keys.iter().map(|key| key.0).collect();
    protocols.dedup();
    let height = |protocol, system| {
        let rounds = outcome.rounds((protocol, system, cell))?;
        Some(exponent(rounds.latency.p50_us))
    };
    let all = protocols
        .iter()
        .flat_map(|protocol| System::ALL.map(|system| height(*protocol, system)))
        .flatten();
    let (bottom, top) = decades(all);
    let right = protocols.len() as f64 * BESIDE;
    let systems: Vec<System> = System::ALL
        .into_iter()
        .filter(|system| keys.iter().any(|key| key.1 == *system))
        .collect();
    let name = |place: &f64| group_name(&protocols, *place);

    draw("protocols", |area| {
        let mut chart = chart(
            area,
            (-0.6, right),
            (bottom, top),
            ("", &name),
            ("p50 (logarithmic)", LATENCY.1),
        )?;
        let wide = 0.8 / systems.len().max(1) as f64;
        for (index, system) in systems.iter().enumerate() {
            let style = colour(*system).filled();
            let bars = protocols
                .iter()
                .enumerate()
                .filter_map(|(group, protocol)| {
                    let left = group as f64 - 0.4 + wide * index as f64;
                    let height = height(*protocol, *system)?;
                    let corners = [(left, bottom), (left + wide * 0.92, height)];
                    Some(Rectangle::new(corners, style))
                });
            chart
                .draw_series(bars)?
                .label(legend_name(*system))
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 22, y + 5)], style));
        }
        legend(&mut chart, SeriesLabelPosition::UpperRight)
    })
}

/// Latency by percentile: each protocol with GIOP, and dashed what it stands on.
pub(super) fn by_percentile(outcome: &Outcome, cell: Cell) -> Result<String, PlotError> {
    let curves: Vec<Line> = outcome
        .keys(cell)
        .into_iter()
        .filter(|(_, system, _)| matches!(system, System::Raw | System::Giop))
        .filter_map(|key| {
            let (protocol, system, _) = key;
            let (_, record) = outcome.pooled.iter().find(|(of, _)| *of == key)?;
            let at = Protocol::ALL.iter().position(|of| *of == protocol)?;
            Some(Line {
                name: system.name(protocol),
                colour: COLOURS[at % COLOURS.len()],
                is_dashed: system == System::Raw,
                points: quantiles(&percentiles(record)),
            })
        })
        .collect();
    let points = || curves.iter().flat_map(|line| &line.points);
    let nines = largest(points().map(|point| point.0)).ceil().max(1.0);
    let label = |at: &f64| match *at <= nines {
        true => percentile_label(*at),
        false => String::new(),
    };
    lines_with_legend(
        "latency-by-percentile",
        &curves,
        SeriesLabelPosition::UpperRight,
        (
            (0.0, nines * BESIDE),
            decades(points().map(|point| point.1)),
        ),
        (&format!("percentile of the {}s", cell.trial.noun()), &label),
        LATENCY,
    )
}

/// Few enough that their marks can be told apart.
fn quantiles(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate();
    kept.filter(|(at, _)| at.is_multiple_of(10) || *at == last)
        .map(|(_, point)| *point)
        .collect()
}

/// What stands below a group, at its place.
fn group_name(protocols: &[Protocol], place: f64) -> String {
    let group = place.round();
    let is_whole = (place - group).abs() < 1e-6 && group >= 0.0;
    let protocol = protocols.get(group as usize).filter(|_| is_whole);
    protocol.map_or_else(String::new, |protocol| protocol.scheme().to_owned())
}

fn legend_name(system: System) -> &'static str {
    match system {
        System::Raw => "raw",
        System::Giop => "GIOP",
        System::GiopLite => "GIOPlite",
        System::OmniOrbTcp => "omniORB over TCP",
        System::OmniOrbUnix => "omniORB over Unix-domain",
    }
}

fn colour(system: System) -> RGBAColor {
    match system {
        System::Raw => TEXT.mix(0.45),
        System::Giop => BLUE.mix(1.0),
        System::GiopLite => BLUE.mix(0.55),
        System::OmniOrbTcp => ORANGE.mix(1.0),
        System::OmniOrbUnix => ORANGE.mix(0.55),
    }
}

/// By how much the horizontal axis is longer than what is drawn: the legend has a place of its own.
const BESIDE: f64 = 1.36;

/// The cells that are drawn.
pub(super) fn drawn(outcome: &Outcome) -> Vec<Cell> {
    let cells = Cell::all(&outcome.plan).into_iter();
    cells
        .filter(|cell| matches!(cell.trial, Trial::Call(0) | Trial::Oneway(0)))
        .filter(|cell| !outcome.keys(*cell).is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;
    use crate::bench::{Placement, Waits};

    #[test]
    fn plots_name_their_axes_and_those_that_take_part() {
        let outcome = outcome();
        let cell = Cell::of_calls(Placement::SameCpu, Waits::Block);
        let bars = p50(&outcome, cell).unwrap();
        for part in ["shmiop", "GIOPlite", "omniORB over TCP", "p50", "10 µs"] {
            assert!(bars.contains(part), "{part}");
        }
        let curves = by_percentile(&outcome, cell).unwrap();
        for part in ["raw TCP", "uiop, GIOP", "percentile of the calls"] {
            assert!(curves.contains(part), "{part}");
        }
    }

    #[test]
    fn nothing_measured_can_be_drawn() {
        let mut outcome = outcome();
        outcome.rows.clear();
        outcome.pooled.clear();
        let cell = Cell::of_calls(Placement::SameCpu, Waits::Block);
        assert!(p50(&outcome, cell).is_ok() && by_percentile(&outcome, cell).is_ok());
        assert!(drawn(&outcome).is_empty());
    }
}
