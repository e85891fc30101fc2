//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::{Value, json};

use super::bounds::{BoundFigures, BoundRow, FirstRelease};
use super::look_up::{SchedulerLookUps, TableLookUps};
use super::one_lane;
use super::outcome::SchedulingOutcome;
use super::overload::{DispatchOrder, FRAME, FigureSource, LoadRow, OverloadFigures, OverloadRow};
use super::overrun::{OverrunRow, policies};
use super::{Scheduling, claims, files, hops, queue, tables};
use crate::Claim;
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{begin, capitalised, end, largest, rights};

impl Findings for SchedulingOutcome {
    fn headline(&self) -> String {
        let parts = [
            self.overload.as_ref().map(overload_finding),
            self.look_ups.as_ref().and_then(look_up_finding),
            self.queues.as_ref().map(queue::finding),
            tables::recompute_finding(&self.recomputed),
            self.segments.as_ref().and_then(tables::segment_finding),
            self.bounds.as_ref().map(bound_finding),
            tables::static_finding(&self.static_service),
            (!self.overruns.is_empty()).then(|| overrun_finding(&self.overruns)),
            (!self.hops.is_empty()).then(|| hops::finding(&self.hops)),
            (!self.one_lane.is_empty()).then(|| one_lane::finding(&self.one_lane)),
            (!self.files.is_empty()).then(|| files::finding(&self.files)),
        ];
        let first = parts.into_iter().flatten().next();
        first.map_or_else(
            || Scheduling::TITLE.to_owned(),
            |finding| capitalised(&finding),
        )
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = rights::caveats(self.real_time, self.one_cpu, &self.environment);
        let refused = self.look_ups.as_ref().filter(|of| !of.refused.is_empty());
        caveats.extend(refused.map(|of| format!("Look-ups were not counted: {}.", of.refused)));
        let refused = self.queues.as_ref().filter(|of| !of.refused.is_empty());
        caveats.extend(refused.map(|of| format!("Queues were not counted: {}.", of.refused)));
        caveats.extend(self.bounds.iter().flat_map(busy_machine));
        caveats
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Scheduling::NAME, self, json!({"rows": self.rows()}))
    }

    fn document(&self) -> Document {
        let mut document = begin(self, LEAD);
        if let Some(overload) = &self.overload {
            let charts = [
                by_load(overload, true),
                by_load(overload, false),
                on_lanes(overload),
            ];
            let tables = [counts(overload), by_operation(overload)];
            document = document.part(overload_finding(overload), charts, tables);
        }
        if let Some(look_ups) = &self.look_ups {
            let finding = look_up_finding(look_ups);
            let finding = finding.unwrap_or_else(|| "look-ups were not counted".to_owned());
            let chart = look_up_chart(look_ups);
            document = document.part(capitalised(&finding), [chart], []);
        }
        if let Some(queues) = &self.queues {
            let finding = capitalised(&queue::finding(queues));
            document = document.part(finding, [queue::chart(queues)], []);
        }
        if let Some(finding) = tables::recompute_finding(&self.recomputed) {
            let table = tables::recompute_table(&self.recomputed);
            document = document.part(capitalised(&finding), [], [table]);
        }
        if let Some(segments) = &self.segments {
            let finding = tables::segment_finding(segments);
            let finding = finding.unwrap_or_else(|| "segments were not measured".to_owned());
            let all = [
                tables::segment_table(segments),
                tables::cancellation_table(segments),
            ];
            document = document.part(capitalised(&finding), [], all);
        }
        if let Some(bounds) = &self.bounds {
            document = document.section(capitalised(&bound_finding(bounds)));
            for set in bounds.sets() {
                let (chart, table) = (bound_chart(bounds, set), bound_table(bounds, set));
                document = document.subsection(capitalised(&set_finding(bounds, set)));
                document = document.chart(chart).tables([table]);
            }
        }
        if let Some(finding) = tables::static_finding(&self.static_service) {
            let table = tables::static_table(&self.static_service);
            document = document.part(capitalised(&finding), [], [table]);
        }
        if !self.overruns.is_empty() {
            let (chart, table) = (overrun_chart(&self.overruns), overrun_table(&self.overruns));
            let finding = capitalised(&overrun_finding(&self.overruns));
            document = document.part(finding, [chart], [table]);
        }
        if !self.hops.is_empty() {
            let rows = &self.hops;
            let finding = capitalised(&hops::finding(rows));
            document = document.part(finding, [hops::chart(rows)], [hops::table(rows)]);
        }
        if !self.one_lane.is_empty() {
            let rows = &self.one_lane;
            let finding = capitalised(&one_lane::finding(rows));
            document = document.part(finding, [one_lane::chart(rows)], [one_lane::table(rows)]);
        }
        if !self.files.is_empty() {
            let rows = &self.files;
            let finding = capitalised(&files::finding(rows));
            document = document.part(finding, [files::chart(rows)], files::tables(rows));
        }
        end(
            document,
            notes(self),
            &self.environment,
            &self.plan.command(),
        )
    }
}

fn overload_finding(overload: &OverloadFigures) -> String {
    let missed = |order| overload.simulated(order, true).1;
    let all = overload.simulated(DispatchOrder::MaximumUrgency, true);
    format!(
        "At a load of 1.296 MUF misses {} of {} critical deadlines, RMS {}, EDF {} and MLF {}",
        missed(DispatchOrder::MaximumUrgency),
        all.0 + all.1,
        missed(DispatchOrder::RateMonotonic),
        missed(DispatchOrder::EarliestDeadline),
        missed(DispatchOrder::LeastLaxity),
    )
}

fn bound_finding(bounds: &BoundFigures) -> String {
    let sum = |of: fn(&BoundRow) -> u64| bounds.tasks.iter().map(of).sum();
    let [jobs, above] = [sum(|row| row.jobs), sum(|row| row.above)].map(units::count);
    let finding = format!("of {jobs} jobs on lanes {above} took longer than analysed");
    if sum(|row| row.above) == 0 {
        return finding;
    }
    let unexplained = units::count(sum(|row| row.unexplained));
    format!("{finding}, {unexplained} of them by more than the machine was disturbed")
}

/// Returns a caveat for each set whose calls alone take longer than a deadline.
fn busy_machine(bounds: &BoundFigures) -> Vec<String> {
    let each = bounds.costs.iter().filter_map(|costs| {
        let rows = bounds.tasks.iter().filter(|row| row.set == costs.set);
        let shortest = rows.map(|row| row.deadline_ns).min()?;
        (costs.latency_ns >= shortest).then(|| {
            format!(
                "The machine was busy: one in a hundred calls to the idle server of {} took {} or \
                 more, and its shortest deadline is {}. The analysis includes this time, so these \
                 runs say nothing about deadlines.",
                costs.set,
                units::time(costs.latency_ns as f64 / 1e3),
                units::time(shortest as f64 / 1e3),
            )
        })
    });
    each.collect()
}

/// Returns the missed deadlines by load, of critical operations or of the others.
fn by_load(overload: &OverloadFigures, critical: bool) -> Chart {
    let (of, missed): (_, fn(&LoadRow) -> f64) = if critical {
        ("critical operations", |row| row.critical_missed_percent)
    } else {
        ("other operations", |row| row.other_missed_percent)
    };
    let caption = format!(
        "Missed deadlines of {of} by load, in the simulator. The load grows with the execution \
         times; the critical operations ask for half of it."
    );
    let orders = DispatchOrder::ALL.into_iter().filter(|order| {
        // It has the curve of MUF wherever that misses nothing.
        *order != DispatchOrder::CriticalityFirst
    });
    let curves = orders.enumerate().map(|(index, order)| {
        let rows = overload.loads.iter().filter(move |row| row.order == order);
        let points = rows.map(move |row| (row.load as f64 / 100.0, missed(row)));
        let mark = if index % 2 == 0 {
            Mark::Line
        } else {
            Mark::Dashes
        };
        Series::new(mark, order.title(), points)
    });
    let load = Axis::linear("load, in processors", Unit::Number);
    let share = Axis::linear(format!("missed deadlines of {of}"), Unit::Percent);
    Chart::new(caption, load, share).series(curves)
}

/// Returns the missed deadlines of each operation, simulated and on lanes.
fn on_lanes(overload: &OverloadFigures) -> Chart {
    let caption = "Deadlines that each operation misses in one frame: a bar is the mean of the \
                   frames on lanes, a ring is the simulation.";
    let operations = || overload.of(DispatchOrder::RateMonotonic, FigureSource::Simulated);
    let series = DispatchOrder::FIXED.into_iter().flat_map(|order| {
        let mean = |source| {
            let tasks = operations().map(move |task| {
                let rows = overload
                    .of(order, source)
                    .filter(|row| row.task == task.task);
                let missed: Vec<_> = rows.map(|row| row.missed as f64).collect();
                let mean = missed.iter().sum::<f64>() / missed.len() as f64;
                (!missed.is_empty()).then_some(mean)
            });
            tasks.collect::<Vec<_>>()
        };
        [
            Series::of_groups(Mark::Bars, order.title(), mean(FigureSource::Measured)),
            Series::of_groups(Mark::Rings, "", mean(FigureSource::Simulated)),
        ]
    });
    let series: Vec<_> = series.collect();
    let operations = operations().map(|task| task.task.clone());
    let operations = Axis::groups("operation: criticality and rate", operations);
    let missed = Axis::linear("missed deadlines", Unit::Count);
    Chart::new(caption, operations, missed).series(series)
}

/// Returns the met and missed deadlines by order.
fn counts(overload: &OverloadFigures) -> Table {
    let lines = DispatchOrder::ALL.into_iter().map(|order| {
        let of = |critical| {
            let (met, missed) = overload.simulated(order, critical);
            format!("{met}/{missed}")
        };
        let frames = overload.frames.iter().filter(|frame| frame.order == order);
        let equal = frames.clone().filter(|frame| frame.equal).count();
        let all = frames.count();
        let on_lanes = if all == 0 {
            "–".to_owned()
        } else {
            format!("{equal} of {all} frames equal")
        };
        let cells = vec![of(true), of(false), on_lanes];
        (order.title().to_owned(), cells)
    });
    let columns = ["critical, met/missed", "other, met/missed", "on lanes"];
    Table::new("One frame of 72 jobs", columns, lines)
}

/// Returns the operations of the orders that ran on lanes.
fn by_operation(overload: &OverloadFigures) -> Table {
    let rows = DispatchOrder::FIXED.into_iter();
    let rows = rows.flat_map(|order| overload.of(order, FigureSource::Simulated));
    let lines = rows.map(|simulated| {
        let lanes = overload.of(simulated.order, FigureSource::Measured);
        let lanes: Vec<_> = lanes.filter(|row| row.task == simulated.task).collect();
        let range = |of: fn(&OverloadRow) -> u64| {
            let counts = || lanes.iter().map(|row| of(row));
            let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
            if least == most {
                least.to_string()
            } else {
                format!("{least}–{most}")
            }
        };
        let worst = largest(lanes.iter().map(|row| row.worst_by_deadline));
        let cells = vec![
            simulated.met.to_string(),
            range(|row| row.met),
            simulated.missed.to_string(),
            range(|row| row.missed),
            format!("{worst:.2}"),
        ];
        (
            format!("{}, {}", simulated.order.title(), simulated.task),
            cells,
        )
    });
    let columns = [
        "met: simulated",
        "on lanes",
        "missed: simulated",
        "on lanes",
        "longest by deadline",
    ];
    Table::new("One frame by operation", columns, lines)
}

fn set_finding(bounds: &BoundFigures, set: &str) -> String {
    let rows = || bounds.tasks.iter().filter(|row| row.set == set);
    let by_bound = rows().filter_map(|row| {
        let bound = row.analysed_ns? as f64;
        Some(row.measured_ns as f64 / bound)
    });
    let most = by_bound.reduce(f64::max).unwrap_or(0.0);
    let missed = rows()
        .filter(|row| row.measured_ns > row.deadline_ns)
        .count();
    let deadlines = if missed == 0 {
        "all deadlines met".to_owned()
    } else {
        format!(
            "deadlines missed in {missed} of {} runs of a task",
            rows().count()
        )
    };
    format!("{set}: the longest response is {most:.2} of the analysed one, {deadlines}")
}

/// Returns the response times of a set by task.
fn bound_chart(bounds: &BoundFigures, set: &str) -> Chart {
    let caption = "Response times by task, the longest of all runs: a bar is measured, a ring is \
                   simulated, a stroke is the analysis. Dots are deadlines.";
    let tasks = bounds.by_task(set);
    let of = |time: fn(&BoundRow) -> Option<u64>| {
        let longest = tasks.iter().map(move |rows| {
            let times = rows.iter().filter_map(|row| time(row));
            times.max().map(|time| time as f64 / 1e3)
        });
        longest.collect::<Vec<_>>()
    };
    let series = [
        Series::of_groups(Mark::Bars, "measured", of(|row| Some(row.measured_ns))),
        Series::of_groups(Mark::Rings, "", of(|row| Some(row.simulated_ns))),
        Series::of_groups(Mark::Strokes, "analysed", of(|row| row.analysed_ns)),
        Series::of_groups(Mark::Dots, "deadline", of(|row| Some(row.deadline_ns))),
    ];
    let names = tasks
        .iter()
        .map(|rows| rows[0].task.trim_start_matches("task "));
    let names = Axis::groups("task", names);
    Chart::new(caption, names, Axis::log("response", Unit::Time)).series(series)
}

fn bound_table(bounds: &BoundFigures, set: &str) -> Table {
    let longest = |rows: &[&BoundRow], release, time: fn(&BoundRow) -> u64| {
        let rows = rows.iter().filter(|row| row.release == release);
        rows.map(|row| time(row))
            .max()
            .map_or_else(String::new, nanos)
    };
    let lines = bounds.by_task(set).into_iter().map(|rows| {
        let analysed = rows[0]
            .analysed_ns
            .map_or_else(|| "no bound".to_owned(), nanos);
        let mut cells = vec![nanos(rows[0].deadline_ns), analysed];
        for release in FirstRelease::ALL {
            cells.push(longest(&rows, release, |row| row.simulated_ns));
            cells.push(longest(&rows, release, |row| row.measured_ns));
        }
        let sum = |of: fn(&BoundRow) -> u64| units::count(rows.iter().map(|row| of(row)).sum());
        cells.extend([
            sum(|row| row.jobs),
            sum(|row| row.above),
            sum(|row| row.called_late),
            sum(|row| row.unexplained),
        ]);
        (rows[0].task.clone(), cells)
    });
    Table::new(format!("Response times, {set}"), BOUND_COLUMNS, lines)
}

fn look_up_finding(look_ups: &SchedulerLookUps) -> Option<String> {
    let most = look_ups.tables.last()?;
    Some(format!(
        "a look-up among {} operations takes {} instructions by handle and {} by name",
        units::count(most.operations.into()),
        most.by_handle,
        most.by_name,
    ))
}

/// Returns the instructions of look-ups by the size of the table.
fn look_up_chart(look_ups: &SchedulerLookUps) -> Chart {
    let caption = "User-space instructions of one look-up in the run-time scheduler, the mean of \
                   16 operations.";
    let line = |mark, name, of: fn(&TableLookUps) -> f64| {
        Series::of_groups(mark, name, look_ups.tables.iter().map(|row| Some(of(row))))
    };
    let sizes = look_ups
        .tables
        .iter()
        .map(|row| units::count(row.operations.into()));
    let sizes = Axis::groups("operations in the table", sizes);
    let instructions = Axis::linear("instructions", Unit::Number);
    Chart::new(caption, sizes, instructions).series([
        line(Mark::Bars, "by handle", |row| row.by_handle),
        line(Mark::Bars, "by name", |row| row.by_name),
    ])
}

fn overrun_finding(rows: &[OverrunRow]) -> String {
    let missed = |policy| {
        let rows = rows
            .iter()
            .filter(|row| row.policy == policy && !row.overruns);
        rows.map(|row| row.missed).sum::<u64>()
    };
    format!(
        "an operation that takes three budgets makes others miss {} deadlines without a policy, {} \
         if it is demoted, {} if its next jobs are skipped",
        missed("off"),
        missed("demote"),
        missed("skip"),
    )
}

/// Returns the rows of a policy, by task.
fn of_policy<'a>(rows: &'a [OverrunRow], policy: &str) -> Vec<Vec<&'a OverrunRow>> {
    let mut tasks: Vec<Vec<&OverrunRow>> = Vec::new();
    for row in rows.iter().filter(|row| row.policy == policy) {
        match tasks.iter_mut().find(|of| of[0].task == row.task) {
            Some(rows) => rows.push(row),
            None => tasks.push(vec![row]),
        }
    }
    tasks
}

/// Returns the share of deadlines that each task misses, by policy.
fn overrun_chart(rows: &[OverrunRow]) -> Chart {
    let caption = "Missed deadlines by task, in frames whose first job takes three times its \
                   budget. Skipped jobs do not count.";
    let series = policies().map(|policy| {
        let shares = of_policy(rows, policy).into_iter().map(|rows| {
            let sum = |of: fn(&OverrunRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
            let done = sum(|row| row.jobs - row.skipped).max(1);
            Some(sum(|row| row.missed) as f64 / done as f64 * 100.0)
        });
        Series::of_groups(Mark::Bars, format!("policy {policy}"), shares)
    });
    let series: Vec<_> = series.collect();
    let tasks = of_policy(rows, "off");
    let tasks = Axis::groups("task", tasks.iter().map(|rows| rows[0].task.clone()));
    Chart::new(
        caption,
        tasks,
        Axis::linear("missed deadlines", Unit::Percent),
    )
    .series(series)
}

fn overrun_table(rows: &[OverrunRow]) -> Table {
    let lines = policies().flat_map(|policy| {
        of_policy(rows, policy).into_iter().map(move |rows| {
            let sum =
                |of: fn(&OverrunRow) -> u64| units::count(rows.iter().map(|row| of(row)).sum());
            let worst = rows.iter().map(|row| row.worst_ns).max().unwrap_or(0);
            let cells = vec![
                sum(|row| row.jobs),
                sum(|row| row.missed),
                sum(|row| row.unexplained),
                sum(|row| row.skipped),
                nanos(worst),
            ];
            (format!("policy {policy}, {}", rows[0].task), cells)
        })
    });
    let columns = [
        "jobs",
        "missed",
        "unexplained",
        "skipped",
        "longest response",
    ];
    Table::new("Frames with an overrun", columns, lines)
}

fn notes(outcome: &SchedulingOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut notes = vec![
        "The server has one processor, and a lane with one thread for each priority. The client \
         has another processor if there is one, and a thread above all lanes for each task. A job \
         is a call; its response is the time from its release to the end of its computing. The \
         processor time of a job is measured by the clock of its thread, so a preempted job \
         computes as long as any other."
            .to_owned(),
        "During each run the doctor's probe has a thread at the highest priority on each \
         processor. The disturbance of a run is the sum of the longest lateness on each processor \
         and of the time that the hypervisor took."
            .to_owned(),
    ];
    if let Some(overload) = &outcome.overload {
        notes.push(format!(
            "Overload: 18 ms at 20, 10, 5 and 1 Hz, each with low and with high criticality; the \
             low ones have high importance, which breaks ties. Late jobs go on. On lanes all times \
             are a tenth: a frame of {} is followed by a rest, so real-time throttling ({}) does \
             not stop it. Its simulation includes the {} of a call. MLF and MUF compare laxities \
             at releases, at ends, and each ms. Linux cannot dispatch by laxity, so MLF is only \
             simulated. MUF on lanes has a lane for each criticality, whose waiting requests are \
             in the order of laxity. A request that is being served is not interrupted for another \
             one of its lane; the simulation of these frames does the same.",
            units::setting(FRAME),
            outcome.environment.real_time_throttling,
            nanos(overload.call_cost_ns),
        ));
    }
    if let Some(bounds) = &outcome.bounds {
        let costs = bounds.costs.iter().map(|costs| {
            let (latency, processor) = (nanos(costs.latency_ns), nanos(costs.processor_ns));
            format!(" {}: {latency} and {processor}.", costs.set)
        });
        notes.push(format!(
            "Response times: {} runs of {} for each set, and each first release. The analysis adds \
             the p99 latency of calls to an idle server as jitter, and twice the processor time of \
             a call to each job, for a preemption and its end. The client notes when it calls: a \
             job that it calls late, because its threads share a processor and wake together, has \
             that time too.{}",
            plan.rounds,
            units::setting(plan.run),
            costs.collect::<String>(),
        ));
    }
    if outcome.look_ups.is_some() {
        notes.push(
            "Look-ups: another process looks operations up between two marks, and stops after each \
             instruction (ptrace). The instructions of an empty span are taken off."
                .to_owned(),
        );
    }
    notes.extend(other_notes(outcome));
    if !outcome.overruns.is_empty() {
        notes.push(
            "Overruns: 20 ms every 100 ms, which once takes 60 ms and has a budget of 22 ms; below \
             it 20 ms every 100 ms with a deadline of 70 ms, and 210 ms within 400 ms. The kernel \
             compares a budget at its ticks."
                .to_owned(),
        );
    }
    if !outcome.hops.is_empty() {
        notes.push(hops::NOTE.to_owned());
    }
    if !outcome.one_lane.is_empty() {
        notes.push(one_lane::NOTE.to_owned());
    }
    if !outcome.files.is_empty() {
        notes.extend(files::notes(&outcome.files));
    }
    notes.push(rights::memory("client and server", outcome.memory_locked));
    notes
}

fn other_notes(outcome: &SchedulingOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(outcome.queues.iter().map(|_| queue::NOTE.to_owned()));
    if !outcome.recomputed.is_empty() {
        notes.push(
            "Computations: chains of five operations that call each other, at 40, 20, 10, 5 and 1 \
             Hz, of three criticalities; each tenth chain has two rates. The service is in the \
             process of its client."
                .to_owned(),
        );
    }
    if outcome.segments.is_some() {
        notes.push(
            "Segments: the ORBs are in one process, and call each other over the loopback. Batches \
             of the operations take turns. A head passes scheduling points without a pause; \
             on the way to it the thread waits for replies."
                .to_owned(),
        );
    }
    if !outcome.static_service.is_empty() {
        notes.push(
            "Static service: two servers have one lane of the same priority, by a schedule and by \
             hand. Another activity has another priority, which is a system call if the process \
             may use real-time scheduling."
                .to_owned(),
        );
    }
    notes
}

fn nanos(time: u64) -> String {
    units::time(time as f64 / 1e3)
}

const LEAD: &str = "Whether calls keep their deadlines: by analysis, by simulation in virtual \
     time, and on the lanes of an ORB.";
const BOUND_COLUMNS: [&str; 10] = [
    "deadline",
    "analysed",
    "together: simulated",
    "measured",
    "random: simulated",
    "measured",
    "jobs",
    "above",
    "called late",
    "unexplained",
];

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::bound_finding;
    use crate::experiment::Findings;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("scheduling", &outcome());
    }
    #[test]
    fn a_busy_machine_and_its_disturbances_are_told() {
        let mut outcome = outcome();
        let is_busy = |caveat: &String| caveat.contains("say nothing about deadlines");
        assert!(!outcome.caveats().iter().any(is_busy));
        let bounds = outcome.bounds.as_mut().expect("it has this part");
        bounds.costs[0].latency_ns = 5_000_000;
        bounds.tasks[0].above = 3;
        let told = "3 took longer than analysed, 0 of them by more than the machine was disturbed";
        assert!(bound_finding(bounds).ends_with(told));
        assert_eq!(outcome.caveats().into_iter().filter(is_busy).count(), 1);
    }
}
