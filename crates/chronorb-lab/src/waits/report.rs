//! The report of the experiment.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::Value;

use super::case::{Setting, WaitMethod};
use super::outcome::{P50, P99, Quantile, WaitsOutcome};
use super::server::IoUring;
use super::{WaitsExperiment, claims};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, end};

impl Findings for WaitsOutcome {
    fn headline(&self) -> String {
        let words = |name: &str, way| {
            let ratios = Setting::places().filter_map(|place| self.by_blocking(place, way));
            let medians: Vec<f64> = ratios.map(|ratio| ratio.median).collect();
            let end = |pick: fn(f64, f64) -> f64| medians.iter().copied().reduce(pick);
            let (least, most) = (end(f64::min)?, end(f64::max)?);
            Some(format!("{name} {least:.2} to {most:.2}"))
        };
        let Some(edge) = words("edge-triggered epoll takes", WaitMethod::EdgeTriggered) else {
            return WaitsExperiment::TITLE.to_owned();
        };
        let ring = words(", io_uring", WaitMethod::Ring).unwrap_or_default();
        format!(
            "{}: {edge}{ring} of what blocking recv takes",
            WaitsExperiment::TITLE
        )
    }

    fn caveats(&self) -> Vec<String> {
        let refusal = match &self.io_uring {
            IoUring::Permitted(_) => None,
            IoUring::Refused(reason) => Some(reason),
        };
        let has_fifo = self.environment.max_fifo_priority.is_some();
        let [load, ..] = self.environment.load_average;
        [
            refusal.map(|of| format!("io_uring was not measured: the system refuses it ({of}).")),
            (!has_fifo).then(|| NO_FIFO.to_owned()),
            (self.processors < 2).then(|| ONE_PROCESSOR.to_owned()),
            (load >= NOTABLE_LOAD).then(|| {
                format!("Other programs ran before or meanwhile (load {load:.1}) and add to tails.")
            }),
            self.environment.stolen_caveat(),
            (self.plan != WaitsExperiment::full()).then(|| SHORT.to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(WaitsExperiment::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let mut document = begin(self, LEAD);
        for (title, quantile) in [("The median", P50), ("The tail: p99", P99)] {
            document = document.part(title, [by_way(self, title, quantile)], []);
        }
        let settings = self.settings().into_iter();
        let tables = settings.map(|setting| table(self, setting));
        let document = document.part("The figures", [], tables);
        end(
            document,
            notes(self),
            &self.environment,
            "cargo run --release -- lab waits\ncargo run --release -- lab waits --json",
        )
    }
}

/// Draws a quantile of each way by that of blocking `recv`, without idle connections.
fn by_way(outcome: &WaitsOutcome, title: &str, of: Quantile) -> Chart {
    let caption = format!(
        "{title} of each way by that of blocking recv in the same round: dots are medians over the \
         rounds, bars reach from the least to the greatest. No idle connections. s: spinning, \
         u: io_uring."
    );
    let settings = outcome.settings().into_iter();
    let settings = settings.filter(|setting| setting.idle == 0);
    let series: Vec<_> = settings
        .flat_map(|setting| {
            let ratio = |way| outcome.ratio((setting, way), (setting, WaitMethod::Blocking), of);
            let ratios = (0..).zip(WaitMethod::ALL);
            let ratios = ratios.filter_map(|(at, way)| Some((f64::from(at), ratio(way)?)));
            let (medians, ranges): (Vec<_>, Vec<_>) = ratios
                .map(|(at, of)| ((at, of.median), [(at, of.least), (at, of.greatest)]))
                .unzip();
            [
                Series::new(Mark::Dots, setting.place(), medians),
                Series::new(Mark::Ranges, "", ranges.into_iter().flatten()),
            ]
        })
        .collect();
    let ways = Axis::groups(
        "how the server's thread waits",
        WaitMethod::ALL.map(WaitMethod::short),
    );
    let chart = Chart::new(caption, ways, Axis::log("by blocking recv", Unit::Number));
    if series.is_empty() {
        return chart;
    }
    let ends = [(-0.5, 1.0), (WaitMethod::ALL.len() as f64 - 0.5, 1.0)];
    let line = Series::new(Mark::Dashes, "blocking recv", ends).colour(NEUTRAL);
    chart.series([line]).series(series)
}

/// Tabulates the ways of a setting.
fn table(outcome: &WaitsOutcome, setting: Setting) -> Table {
    let lines = setting.ways().filter_map(|way| {
        let latency = outcome.summary(setting, way)?;
        let times = [
            latency.p50_us,
            latency.p99_us,
            latency.p999_us,
            latency.max_us,
        ];
        let ratio = outcome.by_blocking(setting, way);
        let ratios = ratio.map_or_else(Default::default, |ratio| {
            [
                format!("{:.2}", ratio.median),
                format!("{:.2} – {:.2}", ratio.least, ratio.greatest),
            ]
        });
        let cells = times.map(units::time).into_iter().chain(ratios);
        Some((way.name().to_owned(), cells.collect()))
    });
    let columns = ["p50", "p99", "p99.9", "max", "by recv", "rounds"];
    Table::new(setting.name(), columns, lines)
}

/// Explains the figures.
fn notes(outcome: &WaitsOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "All ways take turns in each setting of {} rounds, with {} calls each after {} that do \
             not count. Times are medians over the rounds, max is over all of them. By recv is p50 \
             by that of blocking recv of the same round: the median, and the range.",
            plan.rounds,
            units::count(plan.calls.into()),
            units::count(plan.warm_up.into()),
        ),
        "Client and server are processes with a pinned thread each, on raw TCP sockets of the \
         loopback: 60 octets there, 28 back. The client blocks in recv. Sets have the listener and \
         the idle connections, too. Spinning needs a processor for itself."
            .to_owned(),
    ];
    if let IoUring::Permitted(work) = &outcome.io_uring {
        notes.push(format!(
            "io_uring: the kernel's work for completions is {work}; one thread submits; neither \
             descriptors nor buffers are registered."
        ));
    }
    notes
}

const NO_FIFO: &str = "SCHED_FIFO was not measured: this process may not use real-time priorities.";
const ONE_PROCESSOR: &str = "Nothing was measured with two processors: this process may use one \
                             only, so that nothing is known of spinning either.";
const SHORT: &str = "This was a short run: fewer rounds, and fewer calls in each.";
/// A load that leaves no processor to the experiment alone.
const NOTABLE_LOAD: f64 = 0.5;
const LEAD: &str = "A thread of a server waits for the next request, receives it, and replies. \
                    Each way to wait was measured on raw sockets beside the plainest: a thread \
                    that blocks in recv on one connection.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("waits", &outcome());
    }
}
