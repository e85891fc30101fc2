//! The report.

use std::time::Duration;

use chronorb_report::{Document, units};
use serde_json::{Value, json};

use super::class::SchedulingClass::{Fifo, Other};
use super::class::{HIGH, LOW, PATIENT, URGENT};
use super::load::CompetingLoad;
use super::outcome::{ClassRefusal, ClientPriority, CpuOwner, OsOutcome};
use super::plan::SCALE;
use super::published::SOURCE;
use super::{OperatingSystem, claims, parts};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures, plain_data};
use crate::report::begin;

impl Findings for OsOutcome {
    fn headline(&self) -> String {
        let times = |class| {
            let p99 = |load| {
                let row = self.free(class, load, ClientPriority::High)?;
                Some(units::time(row.p99_of_rounds_us))
            };
            let [idle, busy] = [CompetingLoad::Idle, CompetingLoad::Mixed].map(p99);
            Some(format!("from {} to {}", idle?, busy?))
        };
        match (times(Other), times(Fifo)) {
            (Some(other), Some(fifo)) => format!(
                "Computing and I/O of others take the p99 of the high class {other} with \
                 SCHED_OTHER, {fifo} with SCHED_FIFO"
            ),
            _ => "The ORB and the operating system".to_owned(),
        }
    }

    fn caveats(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|ClassRefusal { class, why }| {
            let class = class.name();
            format!("{class} and all parts that need it were not measured: {why}.")
        });
        let stolen = self.environment.stolen_caveat();
        let others = [busy_caveat(self), scavenger_caveat(self), stolen];
        refused.chain(others.into_iter().flatten()).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        let parts = [
            plain_data(&self.classes),
            plain_data(&self.throttling),
            plain_data(&self.switches),
            plain_data(&self.requests),
            plain_data(&self.scavengers),
            plain_data(&self.rates),
        ];
        let rows: Vec<_> = parts.iter().filter_map(Value::as_array).flatten().collect();
        figures(OperatingSystem::NAME, self, json!({"rows": rows}))
    }

    fn document(&self) -> Document {
        let parts = [
            parts::class_part,
            parts::throttling_part,
            parts::switch_part,
            parts::request_part,
            parts::scavenger_part,
            parts::rate_part,
        ];
        let document = parts.iter().fold(begin(self, LEAD), |document, part| {
            let (heading, chart, tables) = part(self);
            document.part(heading, chart, tables)
        });
        let rows = self.environment.rows().into_iter();
        document
            .section("How it was measured")
            .notes(notes(self))
            .environment(rows.chain(self.kernel.rows()))
            .commands(COMMANDS)
    }
}

/// Warns of programs that used the CPUs in idle cases.
fn busy_caveat(outcome: &OsOutcome) -> Option<String> {
    let idle = outcome.classes.iter();
    let idle = idle.filter(|row| row.case.load == CompetingLoad::Idle);
    let least = idle.map(|row| row.cpu_busy_percent).reduce(f64::min)?;
    (least >= BUSY_PERCENT).then(|| {
        format!(
            "Other programs ran meanwhile: the CPUs were busy for {least:.0} % of the time in \
             idle cases."
        )
    })
}

/// Warns of programs that took time from scavengers. The server does nothing while the client
/// only wakes up.
fn scavenger_caveat(outcome: &OsOutcome) -> Option<String> {
    let servers = outcome.scavengers.iter();
    let servers = servers.filter(|row| row.side == CpuOwner::Server);
    let off = servers.map(|row| (row.left_by_waking_percent - 100.0).abs());
    let most = off.reduce(f64::max)?;
    (most >= OFF_PERCENT).then(|| {
        format!(
            "Other programs changed the counts of scavengers by {most:.0} % when no client \
             called: the ORB's processor time is no more precise than that."
        )
    })
}

/// Returns explanations of the figures.
fn notes(outcome: &OsOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let hz = |period: Duration| (1.0 / period.as_secs_f64()).round();
    let (high_hz, low_hz, low_clients) =
        (hz(plan.high_period), hz(plan.low_period), plan.low_clients);
    let [work, case, counting] = [plan.work, plan.case, plan.counting].map(units::setting);
    let [scavenging, scaled_work] = [plan.scavenging, plan.scaled_work].map(units::setting);
    let [at_paper, at_scaled] = [plan.at_paper_rates, plan.at_scaled_rates].map(units::setting);
    let (hogs, mixed) = (CompetingLoad::Hogs.name(), CompetingLoad::Mixed.name());
    let locked = outcome.classes.iter().any(|row| row.case.memory_locked);
    let mut notes = vec![
        format!(
            "Scheduling classes: a client of high priority calls at {high_hz} Hz and {low_clients} \
             of low priority at {low_hz} Hz, each on a connection of its own to the lane of its \
             priority (one thread, and two). A call computes for {work}. All threads are of the \
             class, at the native priorities {HIGH} and {LOW}. Latencies count from when a call \
             was due. Measurements of each case: {}, of {case} each, in turn with the others; p99 \
             is their median, the other figures are of all calls together.",
            plan.rounds,
        ),
        format!(
            "SCHED_DEADLINE: each thread of the high class has {URGENT}, each of the low class \
             {PATIENT}. The threads of the ORB get reservations after they have connected. \
             They have to be free to run on all CPUs, so they were not pinned."
        ),
        format!(
            "Loads are ordinary threads, on every CPU: {hogs} is one that computes; {mixed} adds \
             one that writes a file and waits for its disk, and two that send each other data \
             over the loopback interface."
        ),
        "Throttling: lost is the share of the time in which the thread had no CPU. A host that \
         takes the CPU away makes gaps, but no loss."
            .to_owned(),
        format!(
            "Context switches: two threads take {} turns. A switch is half of the time from one \
             turn of a thread to its next, with the waking of the other thread. Suspend–resume is \
             unpark and park; synchronisation is a semaphore on a futex, or a lock with priority \
             inheritance that is handed over. Counted by expected is the number of switches that \
             the kernel counted, by two for each turn. The papers' figures: {SOURCE}.",
            plan.turns,
        ),
        format!(
            "Context switches of requests: clients call back to back for {counting}, all \
             SCHED_FIFO. The kernel counts the switches of the calling threads and of all threads \
             of the server."
        ),
        format!(
            "Scavengers: an ordinary thread counts on the CPU of the client, one on that of the \
             server, for {scavenging} at a time, {} times at each rate, beside a client that \
             rests, that only wakes up as often, and that calls. All threads of the ORB are \
             SCHED_FIFO, so scavengers get the rest. The papers show no numbers of this test.",
            plan.scavenging_rounds,
        ),
        format!(
            "Four rates: C1 to C4 call lanes of one thread each, all on one CPU, at 20, 10, 5 and \
             1 Hz for {at_paper}; then at {SCALE} times these rates for {at_scaled} with \
             {scaled_work} of work for each call while ordinary threads compute on all CPUs."
        ),
        if locked {
            "The memory of client and server was locked unless a heading says otherwise.".to_owned()
        } else {
            "The memory was not locked, because this process may not lock it.".to_owned()
        },
    ];
    if plan.rounds == 1 {
        notes.push("This was a short run: one round, and few calls of each kind.".to_owned());
    }
    notes
}

const LEAD: &str = "The papers held the ORB and varied the operating system. Here the ORB is held, \
                    and the scheduling of its threads by one Linux varies.";
/// More than the calls of an idle case take.
const BUSY_PERCENT: f64 = 60.0;
/// More than the difference between counts on a quiet machine.
const OFF_PERCENT: f64 = 3.0;
const COMMANDS: &str = "cargo run --release -- lab os\n\
                        cargo run --release -- lab os --short\n\
                        cargo run --release -- lab os --json";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::claims::tests::outcome;
    use super::*;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("os", &outcome());
    }

    #[test]
    fn parts_without_figures_are_left_out() {
        let mut outcome = outcome();
        outcome.refused = vec![ClassRefusal {
            class: Fifo,
            why: "not permitted <here>".to_owned(),
        }];
        outcome.classes.clear();
        outcome.rates.clear();
        outcome.throttling.clear();
        outcome.switches.clear();
        outcome.requests.clear();
        outcome.scavengers.clear();
        let page = outcome.html();
        assert!(page.contains("not permitted &lt;here&gt;") && !page.contains("<svg"));
        assert!(page.contains("not measured") && !page.contains("<table class=\"figures\""));
    }

    #[test]
    fn other_programs_are_a_caveat() {
        let mut outcome = outcome();
        assert_eq!(outcome.caveats(), [""; 0]);
        for row in &mut outcome.classes {
            row.cpu_busy_percent = 97.0;
        }
        outcome.scavengers[1].left_by_waking_percent = 110.0;
        outcome.environment.stolen_percent = vec![2.5];
        let caveats = outcome.caveats();
        assert_eq!(caveats.len(), 3, "{caveats:?}");
        let parts = ["97 % of the time", "by 10 %", "2.5 %"];
        for (caveat, part) in caveats.iter().zip(parts) {
            assert!(caveat.contains(part), "{caveat}");
        }
    }

    #[test]
    fn rows_name_their_part_and_their_case() {
        let figures = outcome().figures();
        let rows = figures["rows"].as_array().unwrap();
        let parts: BTreeSet<_> = rows.iter().map(|row| row["part"].as_str()).collect();
        assert_eq!(parts.len(), 6);
        let case = [
            ("class", "other"),
            ("load", "idle"),
            ("client", "high"),
            ("placement", "unpinned"),
        ];
        for (name, value) in case {
            assert_eq!(rows[0][name], value, "{}", rows[0]);
        }
        assert!(rows[0]["p99_us"].is_number() && rows[0]["memory_locked"].is_boolean());
    }
}
