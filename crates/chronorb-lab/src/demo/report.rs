//! The report of the demonstration.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, counted, units};

use crate::comparison::{LoadSetup, PriorityComparison};
use crate::report::{by_percentile, curve, end, in_time, latency};
use crate::stats::Record;

pub(super) fn document(comparison: &PriorityComparison) -> Document {
    let document = Document::new(comparison.headline())
        .lead(comparison.meaning())
        .caveats(comparison.caveats())
        .tables([table(comparison)])
        .chart(curves(comparison))
        .chart(over_time(comparison));
    let notes = notes(&comparison.setup, comparison.real_time);
    let commands = "cargo run --release\ncargo run --release -- demo --json";
    end(document, notes, &comparison.environment, commands)
}

/// Returns the figures of each class in each phase.
pub(super) fn table(comparison: &PriorityComparison) -> Table {
    let setup = &comparison.setup;
    let high = format!("high, {:.0} Hz", 1.0 / setup.period.as_secs_f64());
    let threads = setup.low_clients * setup.threads_per_low_client;
    let low = format!("low, {threads} threads");
    let phases = [
        ("without priorities", &comparison.without_priorities),
        ("with priorities", &comparison.with_priorities),
    ];
    let lines = phases.into_iter().flat_map(|(name, phase)| {
        let line = |name: &str, record: &Record| {
            let of = record.summary();
            let times = [of.p50_us, of.p99_us, of.p999_us, of.max_us, of.jitter_us];
            (name.to_owned(), counted(of.calls, times))
        };
        let heading = (name.to_owned(), Vec::new());
        [heading, line(&high, &phase.high), line(&low, &phase.low)]
    });
    let columns = ["calls", "p50", "p99", "p99.9", "max", "jitter"];
    Table::new("Class", columns, lines.collect::<Vec<_>>())
}

/// Returns the latency of both classes by percentile, without and with priorities.
fn curves(comparison: &PriorityComparison) -> Chart {
    let (without, with) = (&comparison.without_priorities, &comparison.with_priorities);
    let curves = [
        curve(Mark::Line, "high, without priorities", &without.high).colour(WITHOUT),
        curve(Mark::Line, "high, with priorities", &with.high).colour(WITH),
        curve(Mark::Dashes, "low, without priorities", &without.low).colour(WITHOUT),
        curve(Mark::Dashes, "low, with priorities", &with.low).colour(WITH),
    ];
    by_percentile("calls", curves)
}

/// Returns the latency of each high-priority call over time, without and with priorities.
fn over_time(comparison: &PriorityComparison) -> Chart {
    let caption = "Each call of the high-priority client, from the moment when it was due.";
    let (without, with) = (&comparison.without_priorities, &comparison.with_priorities);
    let time = Axis::linear("time since the start of the phase", Unit::Of("s"));
    Chart::new(caption, time, latency()).series([
        Series::new(Mark::Dots, "without priorities", in_time(&without.high)).colour(WITHOUT),
        Series::new(Mark::Dots, "with priorities", in_time(&with.high)).colour(WITH),
    ])
}

/// Returns the conditions of the measurement, in sentences.
fn notes(setup: &LoadSetup, real_time: bool) -> Vec<String> {
    let scheduling = if real_time {
        "Threads of the high class run under SCHED_FIFO. Those of the low class stay under \
         SCHED_OTHER: work that saturates the processors does not belong into SCHED_FIFO, where \
         the kernel's throttling stops it together with all other real-time threads."
    } else {
        "All threads run under SCHED_OTHER, since real-time priorities are not permitted: only \
         the lanes and connections are apart."
    };
    let (clients, per_client) = (setup.low_clients, setup.threads_per_low_client);
    let [low, high, period, phase] =
        [setup.low_work, setup.high_work, setup.period, setup.phase].map(units::setting);
    let (low_lane, high_lane) = (setup.low_lane_threads, setup.high_lane_threads);
    let threads = low_lane + high_lane;
    vec![
        format!(
            "One server, one high-priority client and {clients} low-priority clients are \
             processes on this machine, over TCP. Each low-priority client has {per_client} \
             threads that call again when they have the reply, so the server is saturated. A \
             low-priority call makes the server compute for {low}, a high-priority call for \
             {high}."
        ),
        format!(
            "The high-priority client sends a call every {period}, at times fixed beforehand. Its \
             latency counts from the moment when the call was due: a call that had to wait for \
             the one before it is charged for the wait (no coordinated omission)."
        ),
        format!(
            "Without priorities: one pool of {threads} threads serves all clients; all threads \
             run under SCHED_OTHER. With priorities: the same {threads} threads in two lanes, \
             {low_lane} low and {high_lane} high, each with its own connections; the client's \
             priority goes with each request. {scheduling}"
        ),
        format!(
            "Each phase lasted {phase}. Jitter is the standard deviation. With fewer than 1000 \
             calls, p99.9 is the longest."
        ),
    ]
}

const WITHOUT: usize = 1;
const WITH: usize = 0;

#[cfg(test)]
mod tests {
    use chronorb_report::Target;

    use super::*;
    use crate::comparison::PhaseCalls;
    use crate::comparison::tests::comparison;

    #[test]
    fn the_report_has_all_parts() {
        let page = document(&comparison(10_000, 100)).html();
        assert!(page.contains("100 times lower</title>"));
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(!page.contains("not real-time"));
        let text = table(&comparison(10_000, 100)).text();
        assert!(
            text.contains("high, 20 Hz") && text.contains("low, 32 threads"),
            "{text}"
        );
    }

    #[test]
    fn a_phase_without_calls_can_be_reported() {
        let mut comparison = comparison(10_000, 100);
        comparison.without_priorities = PhaseCalls::default();
        comparison.with_priorities = PhaseCalls::default();
        comparison.real_time = false;
        let text = document(&comparison).text(Target::Plain);
        assert!(text.contains("not real-time"), "{text}");
    }
}
