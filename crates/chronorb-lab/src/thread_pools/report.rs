//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::Strategy;
use super::case::Cell;
use super::claims::{at, of_figures, of_promises};
use super::outcome::{Outcome, Row, percent};
use crate::experiment::Findings;
use crate::report::end;

pub(super) fn document(outcome: &Outcome) -> Document {
    let short = if outcome.plan.is_short() {
        " --short"
    } else {
        ""
    };
    let improvements = table(
        outcome,
        "By how much Half-Sync/Half-Async took longer",
        |cell| outcome.improvement(cell).map(percent),
    );
    let document = Document::new(outcome.headline())
        .lead(LEAD)
        .caveats(outcome.caveats())
        .claims(of_figures(outcome))
        .part(greatest(outcome), [], [improvements])
        .part(falling(outcome), [improvement_by_work(outcome)], [])
        .part(
            "The time for all requests",
            [elapsed_by_threads(outcome)],
            [],
        )
        .section("Promises of thread pools, tried")
        .claims(of_promises(outcome))
        .part("The figures", [], tables(outcome));
    let command = format!("cargo run --release -- lab thread-pools{short}");
    end(document, notes(outcome), &outcome.environment, &command)
}

/// What the map shows.
fn greatest(outcome: &Outcome) -> String {
    outcome.extremes().map_or_else(
        || "Nothing was compared".to_owned(),
        |[_, (cell, improvement)]| {
            format!(
                "The improvement is greatest {}: {}",
                at(cell),
                percent(improvement)
            )
        },
    )
}

/// What the lines show.
fn falling(outcome: &Outcome) -> String {
    let works = || outcome.plan.work_us.iter().copied();
    let mean = |work_us: Option<u32>| {
        let all = outcome.improvements().into_iter();
        let of = all.filter(|(cell, _)| Some(cell.work_us) == work_us);
        let of: Vec<f64> = of.map(|(_, improvement)| improvement).collect();
        of.iter().sum::<f64>() / of.len().max(1) as f64
    };
    let (least, most) = (works().min(), works().max());
    format!(
        "On average over the threads, {} with {} µs of work and {} with {} µs",
        percent(mean(least)),
        least.unwrap_or_default(),
        percent(mean(most)),
        most.unwrap_or_default(),
    )
}

/// The improvement by the work of a request, a line for each number of threads.
fn improvement_by_work(outcome: &Outcome) -> Chart {
    let plan = &outcome.plan;
    let caption = "By how much Half-Sync/Half-Async took longer than Leader/Followers for the same \
                   requests, by the work of a request: a line for each number of threads.";
    let series = plan.threads.iter().map(|&threads| {
        let works = plan.work_us.iter();
        let points = works.map(|&work_us| outcome.improvement(Cell { threads, work_us }));
        Series::of_groups(Mark::Line, named(threads), points)
    });
    let works = plan.work_us.iter().map(|work| format!("{work} µs"));
    let work = Axis::groups("work of a request", works);
    Chart::new(caption, work, Axis::linear("improvement", Unit::Percent)).series(series)
}

/// The time for all requests by the number of threads, for the least, a middle and the greatest
/// amount of work.
fn elapsed_by_threads(outcome: &Outcome) -> Chart {
    let plan = &outcome.plan;
    let caption = "From the first request to the last reply, for the least, a middle and the greatest \
                   amount of work. Full lines: Leader/Followers; dashed: Half-Sync/Half-Async.";
    let works = &plan.work_us;
    let mut shown: Vec<u32> = [works.first(), works.get(works.len() / 2), works.last()]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    shown.dedup();
    let series = shown.into_iter().enumerate().flat_map(|(index, work_us)| {
        Strategy::ALL.map(|strategy| {
            let (short, mark) = match strategy {
                Strategy::LeaderFollowers => ("L/F", Mark::Line),
                Strategy::HalfSyncHalfAsync => ("HS/HA", Mark::Dashes),
            };
            let threads = plan.threads.iter();
            let points = threads.map(|&threads| {
                let row = outcome.row(Cell { threads, work_us }, strategy)?;
                Some(row.elapsed_ms * 1e3)
            });
            let name = format!("{short}, {work_us} µs of work");
            Series::of_groups(mark, name, points).colour(index)
        })
    });
    let threads = Axis::groups(
        "threads that serve",
        plan.threads.iter().map(u32::to_string),
    );
    Chart::new(
        caption,
        threads,
        Axis::linear("time for all requests", Unit::Time),
    )
    .series(series)
}

/// The heading of a table and its cells.
type Figure = (&'static str, fn(&Row) -> String);

/// A table for each figure of both strategies.
fn tables(outcome: &Outcome) -> [Table; 4] {
    let figures: [Figure; 4] = [
        ("Time for all requests, L/F | HS/HA", |row| {
            units::time(row.elapsed_ms * 1e3)
        }),
        ("Server's CPU time for a request, L/F | HS/HA", |row| {
            units::time(row.server_cpu_us_per_request)
        }),
        (
            "Server's context switches for a request, L/F | HS/HA",
            |row| format!("{:.2}", row.context_switches_per_request),
        ),
        ("Server busy, of one CPU, L/F | HS/HA", |row| {
            format!("{:.0} %", row.server_busy_percent)
        }),
    ];
    figures.map(|(heading, of)| {
        table(outcome, heading, |cell| {
            let [first, second] = Strategy::ALL.map(|strategy| outcome.row(cell, strategy));
            Some(format!("{} | {}", of(&first?), of(&second?)))
        })
    })
}

/// A line for each number of threads, a column for each amount of work.
fn table(outcome: &Outcome, heading: &str, figure: impl Fn(Cell) -> Option<String>) -> Table {
    let works = &outcome.plan.work_us;
    let columns: Vec<_> = works
        .iter()
        .map(|work| format!("{work} µs of work"))
        .collect();
    let lines = outcome.plan.threads.iter().map(|&threads| {
        let cells = works.iter().map(|&work_us| {
            let figure = figure(Cell { threads, work_us });
            figure.unwrap_or_else(|| "none".to_owned())
        });
        (named(threads), cells.collect())
    });
    Table::new(heading, columns.iter().map(String::as_str), lines)
}

fn named(threads: u32) -> String {
    match threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    }
}

/// How the figures are to be understood, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    vec![
        format!(
            "A client of {} threads calls the server, each on a connection of its own, again as soon as it is \
             answered, until {} requests were served; {} more go before them. The time is from the first request to \
             the last reply. Every answer is checked.",
            plan.callers,
            units::count(plan.requests.into()),
            units::count(plan.warm_up.into()),
        ),
        format!(
            "Both strategies are measured in each cell one right after the other, by turns in either order, in each \
             of {} rounds. Figures are medians of the rounds; the improvement is (T(HS/HA) - T(L/F)) / T(L/F).",
            plan.rounds,
        ),
        "The server has one lane of so many threads, without buffering and borrowing. Half-Sync/Half-Async has one \
         thread more, which reads and never serves, as in the paper."
            .to_owned(),
        format!(
            "All threads that call and serve have {}. {}{}",
            match outcome.real_time {
                true => {
                    "the same real-time priority (SCHED_FIFO), so that other programs do not get between, but for what \
                     the kernel's throttling keeps for them"
                }
                false => "ordinary scheduling",
            },
            plan.place.sentence(),
            match outcome.memory_locked {
                true => " The memory of client and server was locked.",
                false => " Memory could not be locked, since this process may not.",
            },
        ),
        "Where the server is not busy all the time, the client was what took it: its CPU makes no more calls. Then \
         the improvement is less than the server's CPU time for a request tells."
            .to_owned(),
        "The paper's amounts of work are 0, 25, 50, 75 and 100 of a unit that it does not tell; here they are µs of \
         computing. Its machine had four CPUs of 400 MHz, Linux 2.2.5 and TAO 1.0."
            .to_owned(),
    ]
}

const LEAD: &str = "The same requests, served by a thread pool of Leader/Followers, where the thread that reads a request \
     serves it, and by one of Half-Sync/Half-Async, where one thread reads and hands over: with one to six threads, and with \
     five amounts of work. And what is promised of thread pools of Real-time CORBA, tried.";

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use crate::report::tests::{assert_reads_old_file, assert_snapshot};

    #[test]
    fn files_of_older_versions_are_read() {
        assert_reads_old_file::<super::super::outcome::Outcome>("thread-pools");
    }

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot(
            "thread-pools",
            &outcome(|cell| 5.0 / f64::from(cell.threads)),
        );
    }
}
