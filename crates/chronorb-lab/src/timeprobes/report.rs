//! The report of the experiment.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::Value;

use super::outcome::{ProbeCase, TimeProbesOutcome};
use super::path::{CallSide, Layer};
use super::{TimeProbes, claims};
use crate::Claim;
use crate::bench::Placement;
use crate::experiment::{Experiment, Findings, figures};
use crate::named::name_of;
use crate::report::{begin, by_columns, end};

impl Findings for TimeProbesOutcome {
    fn headline(&self) -> String {
        let cases = self.cases().into_iter();
        let findings = cases.filter_map(|case| {
            let whole = self.whole(case)?;
            let orb = self.layer(case, Layer::Orb)?;
            let (transport, place) = case;
            Some(format!(
                "Of a call by {transport}, {}, the ORB takes {:.0} % of {}",
                place.name(),
                orb.percent,
                units::time(whole.usual_us),
            ))
        });
        // The best known transport before quicker ones.
        let mut findings: Vec<_> = findings.collect();
        let iiop = findings.iter().position(|finding| finding.contains("iiop"));
        if findings.is_empty() {
            return TimeProbes::TITLE.to_owned();
        }
        findings.swap_remove(iiop.unwrap_or(0))
    }

    fn caveats(&self) -> Vec<String> {
        let missing = self.missing.iter();
        let missing = missing.map(|of| format!("{} takes no part: {}", of.transport, of.why));
        missing.chain(self.environment.stolen_caveat()).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(TimeProbes::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let whole = "The usual time of a call, for each transport with client and server on one \
                     CPU and on two.";
        let own = "The same without the operating system: the time that the two programs take.";
        let (programs, _) = SEGMENTS.split_at(SEGMENTS.len() - 1);
        let charts = [
            layers(self, whole, "time of a call", &SEGMENTS),
            layers(self, own, "time in the programs", programs),
        ];
        let tables = self.cases().into_iter().map(|case| of_case(self, case));
        let document = begin(self, LEAD)
            .part("In whose code a call is", charts, [])
            .part("The figures", [], tables);
        let command = "cargo run --release -- lab timeprobes";
        end(document, notes(self), &self.environment, command)
    }
}

/// Draws the usual times of the layers on either side, stacked for each transport and place.
fn layers(
    outcome: &TimeProbesOutcome,
    caption: &str,
    of_what: &str,
    segments: &[Segment],
) -> Chart {
    let cases = outcome.cases();
    let names = cases.iter().map(|(transport, place)| {
        let cpus = match place {
            Placement::SameCpu => "1 CPU",
            _ => "2 CPUs",
        };
        format!("{transport} {cpus}")
    });
    let series = segments.iter().map(|(name, layer, side)| {
        let heights = cases.iter().map(|case| {
            let rows = outcome.of(*case).filter(|row| {
                let is_here = side.is_none() || row.side == *side;
                row.part.is_some() && row.layer == Some(*layer) && is_here
            });
            Some(rows.map(|row| row.usual_us).sum())
        });
        Series::of_groups(Mark::Bars, *name, heights)
    });
    let transports = Axis::groups("transport", names);
    Chart::new(caption, transports, Axis::linear(of_what, Unit::Time))
        .stacked()
        .series(series)
}

/// A segment of the bars: its name, the layer, and the side unless it is both.
type Segment = (&'static str, Layer, Option<CallSide>);

const SEGMENTS: [Segment; 6] = [
    ("ORB, client", Layer::Orb, Some(CallSide::Client)),
    ("ORB, server", Layer::Orb, Some(CallSide::Server)),
    (
        "transport, client",
        Layer::Transport,
        Some(CallSide::Client),
    ),
    (
        "transport, server",
        Layer::Transport,
        Some(CallSide::Server),
    ),
    ("servant", Layer::Servant, None),
    ("operating system", Layer::OperatingSystem, None),
];

/// Tabulates the layers and the parts of a call.
fn of_case(outcome: &TimeProbesOutcome, case: ProbeCase) -> Table {
    let (transport, placement) = case;
    by_columns(
        format!("A call by {transport}, {}", placement.name()),
        outcome.of(case),
        |row| match row.side {
            None if row.layer.is_none() => row.what.to_owned(),
            None => format!("all {}", row.what),
            Some(side) => format!("{}: {}", name_of(&side), row.what),
        },
        [
            ("layer", |row| {
                let layer = row.layer.filter(|_| row.part.is_some());
                layer.map_or("", Layer::name).to_owned()
            }),
            ("share", |row| format!("{:.1} %", row.percent)),
            ("usual", |row| units::time(row.usual_us)),
            ("p50", |row| units::time(row.time.p50_us)),
            ("p99", |row| units::time(row.time.p99_us)),
            ("max", |row| units::time(row.time.max_us)),
        ],
    )
}

/// Explains the figures.
fn notes(outcome: &TimeProbesOutcome) -> Vec<String> {
    let (plan, cost, stamps) = (&outcome.plan, &outcome.cost, outcome.stamps_of_a_call);
    vec![
        format!(
            "Of each transport {} calls one after the other (the cube of an octet), after {} that \
             warm up; client and server are processes with one thread at work each, and block \
             while they wait.",
            units::count(plan.calls.into()),
            units::count(plan.warm_up.into()),
        ),
        format!(
            "A stamp is taken from {} and costs {:.2} ns; every part has about one in it, which is \
             not taken off.",
            cost.clock, cost.stamp_ns
        ),
        format!(
            "Where no stamps are kept, a stage of the ORB costs {:.2} ns and a turn to the kernel \
             and back {:.2} ns, with the loop that measures it. A call has at most {stamps} \
             points: {} together when they are off, as in the rows that say so and in all other \
             experiments.",
            cost.stage_off_ns,
            cost.turn_off_ns,
            units::time(f64::from(stamps) * cost.dearest_off_ns() / 1e3),
        ),
        "The usual time is the mean of all calls but the slowest hundredth, in which other threads \
         had the processor; shares and plots are of that."
            .to_owned(),
        "Parts follow each other and add up to the call as the client sees it. The operating \
         system's are from when one side goes into the kernel to send, until the other comes out \
         of it with what it has received: stack, scheduler and wake-up are not distinguished. The \
         sender's system call has a row of its own, since it goes on while the receiver is woken. \
         Work beside the path of the call, as to go back to wait, is in no part."
            .to_owned(),
        "MIOP is not among them: a group sends no replies. `lab protocols` measures its messages \
         one way."
            .to_owned(),
    ]
}

const LEAD: &str = "Where the time of a two-way call goes: stamps of all stages of a request and \
                    of all system calls, in both processes, by one clock.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("timeprobes", &outcome());
    }
}
