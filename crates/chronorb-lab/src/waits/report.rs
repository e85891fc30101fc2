//! The report.

use chronorb_report::chart::NEUTRAL;
use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::case::{Setting, Way};
use super::order::IoUring;
use super::outcome::{Outcome, P50, P99, Quantile, places};
use crate::report::{begin, end};

pub(super) fn document(outcome: &Outcome) -> Document {
    let mut document = begin(outcome, LEAD);
    for (title, quantile) in [("The median", P50), ("The tail: p99", P99)] {
        document = document.part(title, [by_way(outcome, title, quantile)], []);
    }
    let tables = outcome
        .settings()
        .into_iter()
        .map(|setting| table(outcome, setting));
    let document = document.part("The figures", [], tables);
    end(
        document,
        notes(outcome),
        &outcome.environment,
        "cargo run --release -- lab waits\ncargo run --release -- lab waits --json",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let ratios = |way| {
        let medians = places().filter_map(|place| outcome.by_blocking(place, way));
        let medians: Vec<f64> = medians.map(|ratio| ratio.median).collect();
        let ends = |pick: fn(f64, f64) -> f64| medians.iter().copied().reduce(pick);
        ends(f64::min).zip(ends(f64::max))
    };
    let told = |name: &str, way| {
        ratios(way).map(|(least, most)| format!("{name} {least:.2} to {most:.2}"))
    };
    let edge = told("edge-triggered epoll takes", Way::EdgeTriggered);
    let Some(edge) = edge else {
        return "Ways to wait for a request".to_owned();
    };
    let ring = told(", io_uring", Way::Ring).unwrap_or_default();
    format!("Ways to wait for a request: {edge}{ring} of what blocking recv takes")
}

/// A quantile of every way by that of blocking `recv`, without idle connections.
fn by_way(outcome: &Outcome, title: &str, of: Quantile) -> Chart {
    let caption = format!(
        "{title} of each way by that of blocking recv in the same round: dots are medians over the \
         rounds, bars reach from the least to the greatest. No idle connections. s: spinning, u: io_uring."
    );
    let settings = outcome
        .settings()
        .into_iter()
        .filter(|setting| setting.idle == 0);
    let series = settings.flat_map(|setting| {
        let ratios = Way::ALL.into_iter().enumerate().filter_map(|(at, way)| {
            let ratio = outcome.ratio((setting, way), (setting, Way::Blocking), of)?;
            Some((at as f64, ratio))
        });
        let ratios: Vec<_> = ratios.collect();
        let ranges = ratios
            .iter()
            .flat_map(|(at, of)| [(*at, of.least), (*at, of.greatest)]);
        let medians = ratios.iter().map(|(at, of)| (*at, of.median));
        [
            Series::new(Mark::Dots, setting.place(), medians),
            Series::new(Mark::Ranges, "", ranges),
        ]
    });
    let series: Vec<_> = series.collect();
    let ways = Axis::groups("how the server's thread waits", Way::ALL.map(Way::short));
    let chart = Chart::new(caption, ways, Axis::log("by blocking recv", Unit::Number));
    match series.is_empty() {
        true => chart,
        false => {
            let ends = [(-0.5, 1.0), (Way::ALL.len() as f64 - 0.5, 1.0)];
            let line = Series::new(Mark::Dashes, "blocking recv", ends).colour(NEUTRAL);
            chart.series([line]).series(series)
        }
    }
}

/// The ways of a setting.
fn table(outcome: &Outcome, setting: Setting) -> Table {
    let lines = setting.ways().filter_map(|way| {
        let figure = outcome.figure(setting, way)?;
        let times = [figure.p50_us, figure.p99_us, figure.p999_us, figure.max_us];
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

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        format!(
            "{} rounds; in each all ways take turns in each setting, {} calls each after {} that do \
             not count. Times are medians over the rounds, max is over all of them. The last columns: \
             p50 by that of blocking recv of the same round, the median, and from the least to the \
             greatest.",
            plan.rounds,
            units::count(plan.calls.into()),
            units::count(plan.warm_up.into()),
        ),
        "Client and server are processes with a thread each, pinned, on raw TCP sockets of the \
         loopback: 60 octets there, 28 back. The client blocks in recv. In every set are the listener \
         and the idle connections; a thread that blocks or spins in recv alone leaves them out."
            .to_owned(),
        "Spinning needs a processor for itself, and is not measured on one.".to_owned(),
    ];
    if let IoUring::Permitted(work) = &outcome.io_uring {
        notes.push(format!(
            "io_uring: the kernel's work for completions is {work}; one thread submits; neither \
             descriptors nor buffers are registered."
        ));
    }
    notes
}

const LEAD: &str = "A thread of a server waits for the next request, receives it, and replies. Each way \
                    to wait was measured on raw sockets beside the plainest: a thread that blocks in \
                    recv on one connection.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("waits", &outcome());
    }
}
