//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::{Value, json};

use super::claims::{at, of_figures, of_promises};
use super::outcome::{PoolRow, ThreadPoolsOutcome, percent};
use super::plan::PoolCell;
use super::{Strategy, ThreadPools, ThreadPoolsPlan, claims};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{Column, end, rights};

impl Findings for ThreadPoolsOutcome {
    fn headline(&self) -> String {
        let all = self.improvements();
        let ahead = all.iter().filter(|(_, percent)| *percent > 0.0).count();
        match self.extremes() {
            Some([(_, least), (_, greatest)]) => format!(
                "Leader/Followers were ahead of Half-Sync/Half-Async in {ahead} of {} cells: by {} \
                 to {}",
                all.len(),
                percent(least),
                percent(greatest),
            ),
            None => "Leader/Followers and Half-Sync/Half-Async were not compared".to_owned(),
        }
    }

    fn caveats(&self) -> Vec<String> {
        let [requests, full] = [self.plan.requests, ThreadPoolsPlan::full().requests]
            .map(|requests| units::count(requests.into()));
        let caveats = [
            self.environment.stolen_caveat(),
            self.plan.is_short().then(|| {
                format!(
                    "This was a short run: {requests} requests for each strategy, cell and round, \
                     where the paper has {full}."
                )
            }),
            (!self.real_time).then(|| ORDINARY.to_owned()),
            (self.environment.cpus < 2).then(|| ONE_CPU.to_owned()),
        ];
        caveats.into_iter().flatten().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(ThreadPools::NAME, self, json!({"rows": self.rows()}))
    }

    fn document(&self) -> Document {
        let improvements = table(
            self,
            "By how much Half-Sync/Half-Async took longer",
            |cell| self.improvement(cell).map(percent),
        );
        let document = Document::new(self.headline())
            .lead(LEAD)
            .caveats(self.caveats())
            .claims(of_figures(self))
            .part(greatest(self), [], [improvements])
            .part(falling(self), [improvement_by_work(self)], [])
            .part("The time for all requests", [elapsed_by_threads(self)], [])
            .section("Tests of the guarantees of thread pools")
            .claims(of_promises(self))
            .part("The figures", [], tables(self));
        let short = if self.plan.is_short() { " --short" } else { "" };
        let command = format!("cargo run --release -- lab thread-pools{short}");
        end(document, notes(self), &self.environment, &command)
    }
}

/// Returns the finding of the table of improvements.
fn greatest(outcome: &ThreadPoolsOutcome) -> String {
    match outcome.extremes() {
        Some([_, (cell, improvement)]) => format!(
            "The improvement is greatest {}: {}",
            at(cell),
            percent(improvement)
        ),
        None => "Nothing was compared".to_owned(),
    }
}

/// Returns the finding of the chart of improvements.
fn falling(outcome: &ThreadPoolsOutcome) -> String {
    let works = &outcome.plan.work_us;
    let [first, last] = [works.first(), works.last()].map(|work| {
        let work_us = work.copied().unwrap_or_default();
        let all = outcome.improvements().into_iter();
        let all: Vec<_> = all.filter(|(cell, _)| cell.work_us == work_us).collect();
        let sum: f64 = all.iter().map(|(_, improvement)| improvement).sum();
        format!(
            "{} with {work_us} µs",
            percent(sum / all.len().max(1) as f64)
        )
    });
    format!("On average over the threads, {first} of work and {last}")
}

/// Returns the improvement by the work of a request, a line for each number of threads.
fn improvement_by_work(outcome: &ThreadPoolsOutcome) -> Chart {
    let plan = &outcome.plan;
    let caption = "By how much Half-Sync/Half-Async took longer than Leader/Followers for the same \
                   requests, by the work of a request: a line for each number of threads.";
    let series = plan.threads.iter().map(|&threads| {
        let cells = plan.cells().filter(|cell| cell.threads == threads);
        let points = cells.map(|cell| outcome.improvement(cell));
        Series::of_groups(Mark::Line, named(threads), points)
    });
    let works = plan.work_us.iter().map(|work| format!("{work} µs"));
    let work = Axis::groups("work of a request", works);
    Chart::new(caption, work, Axis::linear("improvement", Unit::Percent)).series(series)
}

/// Returns the time for all requests by the number of threads, for the least, a middle and the
/// greatest amount of work.
fn elapsed_by_threads(outcome: &ThreadPoolsOutcome) -> Chart {
    let plan = &outcome.plan;
    let caption = "From the first request to the last reply, for the least, a middle and the \
                   greatest amount of work. Full lines: Leader/Followers; dashed: \
                   Half-Sync/Half-Async.";
    let works = &plan.work_us;
    let shown = [works.first(), works.get(works.len() / 2), works.last()];
    let mut shown: Vec<u32> = shown.into_iter().flatten().copied().collect();
    shown.dedup();
    let series = shown.into_iter().enumerate().flat_map(|(index, work_us)| {
        Strategy::ALL.map(|strategy| {
            let (short, mark) = match strategy {
                Strategy::LeaderFollowers => ("L/F", Mark::Line),
                Strategy::HalfSyncHalfAsync => ("HS/HA", Mark::Dashes),
            };
            let cells = plan.cells().filter(|cell| cell.work_us == work_us);
            let points = cells.map(|cell| Some(outcome.row(cell, strategy)?.elapsed_ms * 1e3));
            let name = format!("{short}, {work_us} µs of work");
            Series::of_groups(mark, name, points).colour(index)
        })
    });
    let threads = plan.threads.iter().map(u32::to_string);
    let threads = Axis::groups("threads that serve", threads);
    let time = Axis::linear("time for all requests", Unit::Time);
    Chart::new(caption, threads, time).series(series)
}

/// Returns a table for each figure of both strategies.
fn tables(outcome: &ThreadPoolsOutcome) -> [Table; 4] {
    let figures: [Column<PoolRow>; 4] = [
        ("Time for all requests", |row| {
            units::time(row.elapsed_ms * 1e3)
        }),
        ("Server's CPU time for a request", |row| {
            units::time(row.server_cpu_us_per_request)
        }),
        ("Server's context switches for a request", |row| {
            format!("{:.2}", row.context_switches_per_request)
        }),
        ("Server busy, of one CPU", |row| {
            format!("{:.0} %", row.server_busy_percent)
        }),
    ];
    figures.map(|(figure, of)| {
        table(outcome, &format!("{figure}, L/F | HS/HA"), |cell| {
            let [first, second] = Strategy::ALL.map(|strategy| outcome.row(cell, strategy));
            Some(format!("{} | {}", of(&first?), of(&second?)))
        })
    })
}

/// Returns a table with a line for each number of threads and a column for each amount of work.
fn table(
    outcome: &ThreadPoolsOutcome,
    heading: &str,
    figure: impl Fn(PoolCell) -> Option<String>,
) -> Table {
    let plan = &outcome.plan;
    let columns = plan.work_us.iter().map(|work| format!("{work} µs of work"));
    let columns: Vec<_> = columns.collect();
    let lines = plan.threads.iter().map(|&threads| {
        let cells = plan.cells().filter(|cell| cell.threads == threads);
        let cells = cells.map(|cell| figure(cell).unwrap_or_else(|| "none".to_owned()));
        (named(threads), cells.collect())
    });
    Table::new(heading, columns.iter().map(String::as_str), lines)
}

fn named(threads: u32) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{threads} thread{plural}")
}

/// Returns explanations of the figures.
fn notes(outcome: &ThreadPoolsOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let (callers, rounds) = (plan.callers, plan.rounds);
    let [requests, warm_up] = [plan.requests, plan.warm_up].map(|n| units::count(n.into()));
    let scheduling = if outcome.real_time {
        "the same real-time priority (SCHED_FIFO)"
    } else {
        "ordinary scheduling"
    };
    vec![
        format!(
            "A client of {callers} threads, each with its own connection, calls again as soon as \
             it is answered, until {requests} requests were served; {warm_up} more precede them. \
             The time is from the first request to the last reply. Every reply is checked."
        ),
        format!(
            "The strategies take turns in each cell and each of {rounds} rounds. Figures are \
             medians of the rounds; the improvement is (T(HS/HA) - T(L/F)) / T(L/F)."
        ),
        "The server has one lane of so many threads, without buffering and borrowing. \
         Half-Sync/Half-Async has one thread more, which only reads, as in the paper."
            .to_owned(),
        format!(
            "All threads that call and serve have {scheduling}. {} {}",
            plan.place.sentence(),
            rights::memory("client and server", outcome.memory_locked),
        ),
        "If the server is not busy all the time, the client's CPU limits the rate, and the \
         improvement is less than the server's CPU time for a request suggests."
            .to_owned(),
        "The paper does not give the unit of its amounts of work; here they are µs. Its machine \
         had four CPUs of 400 MHz, Linux 2.2.5 and TAO 1.0."
            .to_owned(),
    ]
}

const ORDINARY: &str = "All threads had ordinary scheduling, so other programs had their share of \
                        the CPUs: a thread that sleeps often gets more than one that computes.";
const ONE_CPU: &str = "There is one CPU: client and server share it, and the time is that of both.";
const LEAD: &str = "The same requests, served by a thread pool of Leader/Followers, where the \
                    thread that reads a request serves it, and by one of Half-Sync/Half-Async, \
                    where one thread reads and hands requests off: with one to six threads, and \
                    with five amounts of work. Also tests of what Real-time CORBA guarantees.";

#[cfg(test)]
mod tests {
    use super::super::outcome::ThreadPoolsOutcome;
    use super::super::outcome::tests::outcome;
    use crate::report::tests::{assert_reads_old_file, assert_snapshot};

    #[test]
    fn files_of_older_versions_are_read() {
        assert_reads_old_file::<ThreadPoolsOutcome>("thread-pools");
    }

    #[test]
    fn the_report_has_all_parts() {
        let outcome = outcome(|cell| 5.0 / f64::from(cell.threads));
        assert_snapshot("thread-pools", &outcome);
    }
}
