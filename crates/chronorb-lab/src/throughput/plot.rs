//! The plots.

use plotters::prelude::*;

use super::outcome::Outcome;
use super::trial::{System, Trial};
use crate::bench::{Operation, Placement};
use crate::report::PlotError;
use crate::report::canvas::{BLUE, ORANGE, TEXT, chart, draw, largest, legend};
use crate::units;

/// What the bars of a plot are of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// The calls of several clients.
    Calls,
    /// Data.
    Data,
}

/// A group of bars for each trial in each place, with a bar for each system.
pub(super) fn bars(outcome: &Outcome, kind: Kind) -> Result<String, PlotError> {
    let groups: Vec<(Trial, Placement)> = Trial::ALL
        .into_iter()
        .filter(|trial| matches!(trial, Trial::Data(_)) == (kind == Kind::Data))
        .flat_map(|trial| trial.placements().iter().map(move |place| (trial, *place)))
        .collect();
    let height = |(trial, placement): (Trial, Placement), system| {
        let rate = outcome.rate(trial, placement, system)?;
        Some(match kind {
            Kind::Calls => rate,
            Kind::Data => rate * f64::from(trial.octets()) / f64::from(1 << 20),
        })
    };
    let systems: Vec<System> = System::ALL
        .into_iter()
        .filter(|system| groups.iter().any(|group| height(*group, *system).is_some()))
        .collect();
    let all = systems
        .iter()
        .flat_map(|system| groups.iter().filter_map(|group| height(*group, *system)));
    let step = step(largest(all.clone()));
    // Two steps more are for the legend.
    let top = (largest(all) / step).ceil() + 2.0;
    let name = |place: &f64| group_name(&groups, *place);
    let axis = match kind {
        Kind::Calls => "calls in a second",
        Kind::Data => "MiB each way in a second",
    };
    let label = |steps: &f64| units::count((steps * step).round() as u64);

    draw("throughput", |area| {
        let mut chart = chart(
            area,
            (-1.0, groups.len() as f64),
            (0.0, top),
            ("", &name),
            (axis, &label),
        )?;
        let wide = 0.8 / systems.len().max(1) as f64;
        for (index, system) in systems.iter().enumerate() {
            let style = colour(*system).filled();
            let bars = groups.iter().enumerate().filter_map(|(group, of)| {
                let left = group as f64 - 0.4 + wide * index as f64;
                let height = height(*of, *system)? / step;
                Some(Rectangle::new(
                    [(left, 0.0), (left + wide * 0.92, height)],
                    style,
                ))
            });
            chart
                .draw_series(bars)?
                .label(system.name())
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 22, y + 5)], style));
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

/// What stands below a group, at its place.
fn group_name(groups: &[(Trial, Placement)], place: f64) -> String {
    let group = place.round();
    let is_whole = (place - group).abs() < 1e-6 && group >= 0.0;
    let group = groups.get(group as usize).filter(|_| is_whole);
    group.map_or_else(String::new, |(trial, placement)| {
        let what = match trial.operation() {
            Operation::Cube | Operation::Oneway(_) | Operation::Flood => trial.name(),
            Operation::Octets(_) => "octets".to_owned(),
            Operation::Doubles(_) => "doubles".to_owned(),
            Operation::Structs(_) => "structs".to_owned(),
        };
        let place = match placement {
            Placement::SameCpu => "1 CPU",
            Placement::AcrossCpus => "2 CPUs",
            Placement::Unpinned => "unpinned",
        };
        format!("{what}, {place}")
    })
}

/// A round number that goes into `most` some five to ten times.
fn step(most: f64) -> f64 {
    let decade = 10_f64.powf((most.max(1.0) / 5.0).log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|digit| digit * decade)
        .find(|step| most / step >= 4.0)
        .unwrap_or(decade)
}

fn colour(system: System) -> RGBAColor {
    match system {
        System::Chronorb => BLUE.mix(1.0),
        System::OmniOrb => ORANGE.mix(1.0),
        System::EpollOne | System::RawTcp => TEXT.mix(0.45),
        System::EpollMany => TEXT.mix(0.7),
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn plots_name_trials_systems_and_units() {
        let outcome = outcome();
        let calls = bars(&outcome, Kind::Calls).unwrap();
        for part in [
            "16 clients",
            "omniORB",
            "raw epoll, 1 thread",
            "calls in a second",
        ] {
            assert!(calls.contains(part), "{part}");
        }
        let data = bars(&outcome, Kind::Data).unwrap();
        for part in ["structs, 2 CPUs", "raw TCP", "MiB each way"] {
            assert!(data.contains(part), "{part}");
        }
        assert!(!data.contains("epoll"));
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [85_000.0, 1_234.0, 0.0, 20.0].map(step),
            [20_000.0, 200.0, 0.1, 5.0]
        );
    }

    #[test]
    fn nothing_measured_can_be_drawn() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert!(bars(&outcome, Kind::Calls).is_ok());
    }
}
