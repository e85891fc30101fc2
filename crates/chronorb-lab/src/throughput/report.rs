//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::outcome::{Outcome, Row};
use super::trial::{System, Trial, lane_threads};
use crate::bench::{Operation, Placement};
use crate::report::{begin, end};

pub(super) fn document(outcome: &Outcome) -> Document {
    let places = || {
        let trials = Trial::ALL.into_iter();
        trials.flat_map(|trial| trial.placements().iter().map(move |place| (trial, *place)))
    };
    let (data, calls): (Vec<_>, Vec<_>) =
        places().partition(|(trial, _)| matches!(trial, Trial::Data(_)));
    let tables = places().map(|(trial, place)| table(outcome, trial, place));
    let document = begin(outcome, LEAD)
        .part(finding(outcome, CALLS), [bars(outcome, &calls)], [])
        .part(finding(outcome, DATA), [bars(outcome, &data)], [])
        .part("The figures", [], tables);
    end(
        document,
        notes(outcome),
        &outcome.environment,
        "cargo run --release -- lab throughput",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    finding(outcome, CALLS)
}

/// What a trial shows.
fn finding(outcome: &Outcome, trial: Trial) -> String {
    let placement = trial.placements()[0];
    let told = || {
        let median = outcome.rate(trial, placement, System::Chronorb)?;
        let ratio = outcome.ratio(trial, placement, System::Chronorb, raw(trial))?;
        Some(format!(
            "{}, {}: {} on chronorb, {ratio:.2} of {}",
            trial.name(),
            placement.name(),
            rate(trial, median),
            raw(trial).name(),
        ))
    };
    told().unwrap_or_else(|| format!("{}: not measured", trial.name()))
}

const CALLS: Trial = Trial::ALL[2];
const DATA: Trial = Trial::ALL[3];

/// A group of bars for each trial in each place, with a bar for each system.
fn bars(outcome: &Outcome, groups: &[(Trial, Placement)]) -> Chart {
    let is_data = groups
        .iter()
        .any(|(trial, _)| matches!(trial, Trial::Data(_)));
    let (caption, axis) = match is_data {
        true => (
            "Data that goes each way in a second: medians of the rounds.",
            Axis::linear("data each way", Unit::Of("MiB/s")),
        ),
        false => (
            "Small calls in a second, of all clients together: medians of the rounds.",
            Axis::linear("calls in a second", Unit::Count),
        ),
    };
    let series = System::ALL.map(|system| {
        let colour = match system {
            System::Chronorb => 0,
            System::OmniOrb => 1,
            System::EpollOne | System::RawTcp => NEUTRAL,
            System::EpollMany => 6,
        };
        let rates = groups.iter().map(|(trial, place)| {
            let rate = outcome.rate(*trial, *place, system)?;
            Some(if is_data {
                mebioctets(*trial, rate)
            } else {
                rate
            })
        });
        Series::of_groups(Mark::Bars, system.name(), rates).colour(colour)
    });
    let groups = Axis::groups(
        "",
        groups.iter().map(|(trial, place)| group(*trial, *place)),
    );
    Chart::new(caption, groups, axis).series(series)
}

fn group(trial: Trial, placement: Placement) -> String {
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
}

fn table(outcome: &Outcome, trial: Trial, placement: Placement) -> Table {
    let lines = System::ALL.into_iter().filter_map(|system| {
        let median = outcome.rate(trial, placement, system)?;
        let rates = || {
            outcome
                .rounds(trial, placement, system)
                .map(|row: &Row| row.calls_per_s)
        };
        let by = |to| {
            let ratio = outcome.ratio(trial, placement, system, to);
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
        };
        let cells = [
            rate(trial, median),
            rate(trial, rates().reduce(f64::min)?),
            rate(trial, rates().reduce(f64::max)?),
            units::time(f64::from(trial.clients()) / median * 1e6),
            by(raw(trial)),
            by(System::OmniOrb),
        ];
        Some((system.name(), cells.to_vec()))
    });
    let columns = [
        "median",
        "least",
        "most",
        "a call takes",
        "by raw",
        "by omniORB",
    ];
    let heading = format!("{}, {}", trial.name(), placement.name());
    Table::new(heading, columns, lines)
}

/// A number of calls in a second, or the data that goes each way with them.
pub(super) fn rate(trial: Trial, calls_per_s: f64) -> String {
    match trial {
        // The cast saturates.
        Trial::Clients(_) => format!("{}/s", units::count(calls_per_s.round() as u64)),
        Trial::Data(_) => {
            let mib = mebioctets(trial, calls_per_s);
            format!("{} MiB/s", units::count(mib.round() as u64))
        }
    }
}

/// The MiB that go each way with so many calls.
fn mebioctets(trial: Trial, calls: f64) -> f64 {
    calls * f64::from(trial.octets()) / f64::from(1 << 20)
}

/// The raw server that others are measured by.
pub(super) const fn raw(trial: Trial) -> System {
    match trial {
        Trial::Clients(_) => System::EpollOne,
        Trial::Data(_) => System::RawTcp,
    }
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "In each of {} rounds everyone had a turn: {} calls, or {} MiB of data each way, after a \
             {}th of that which does not count. Figures are medians of the rounds; by raw and by omniORB \
             are ratios within a round. By raw is by the epoll server with one thread, or by raw \
             TCP. Factors of claims are such ratios, too.",
            plan.rounds,
            units::count(plan.calls.into()),
            plan.mebioctets,
            plan.warm_up_part,
        ),
        format!(
            "A client is a thread with a connection of its own, which calls again when it has its answer. \
             All are in one process, and the server in another. The lane of chronorb has {} threads, and \
             the raw servers wait on epoll sets with one and with as many threads.",
            lane_threads(),
        ),
        "Data is sent and comes back in one call, and figures are what goes each way. A struct has a \
         long, a short, an octet, a double and a float: 24 octets with the padding. Raw TCP reads \
         all that comes and writes all of it, from plain buffers."
            .to_owned(),
    ];
    let sizes = outcome.messages.iter().map(|message| {
        let octets = message.octets;
        format!(
            "{} {} and {}",
            message.trial.name(),
            octets.request,
            octets.reply
        )
    });
    let sizes: Vec<_> = sizes.collect();
    notes.push(format!(
        "Octets of a call of chronorb and of its reply, of which raw sockets move as many: {}.",
        sizes.join(", ")
    ));
    if outcome.omniorb.version.is_some() {
        notes.push(outcome.omniorb.sentence());
    }
    notes
}

const LEAD: &str = "How many calls, and how much data, in a second, on several systems by turns.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("throughput", &outcome());
    }
}
