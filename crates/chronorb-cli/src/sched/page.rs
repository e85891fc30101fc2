//! Pages of schedules: responses against deadlines, breakdown utilisation, Gantt charts.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit};
use chronorb_sched::BILLION;
use chronorb_schedule::{
    Assignment, FACTOR_UNIT, ResourceKind, Schedule, SimulationOutcome, Time, Work, readable_time,
};

use super::check::Verdict;
use super::examples::activities;
use super::reason::late_text;
use super::simulate::{analysed, resource_name, synchronous};
use super::text::{BOUNDS, VerdictRow, factor, lanes, remedies, response};
use super::words::{bound_word, percent, work_name};

/// Returns the page of an analysis.
pub(super) fn of_verdict(
    file: &str,
    schedule: &Schedule,
    assignment: &Assignment,
    verdict: &Verdict,
) -> Document {
    let lead = if verdict.fits() {
        format!(
            "All {} operations meet their deadlines. All times can grow by the factor {}.",
            schedule.operations.len(),
            factor(verdict.factor)
        )
    } else if assignment.analysis.feasible {
        format!(
            "All {} operations meet their deadlines, but {} classes of messages have no room.",
            schedule.operations.len(),
            verdict.links.refused.len(),
        )
    } else {
        format!(
            "{} of {} operations are late. All times by the factor {} would fit.",
            verdict.late.len(),
            schedule.operations.len(),
            factor(verdict.factor)
        )
    };
    let late = verdict.late.iter();
    let late = late.map(|it| format!("Late: {}", late_text(schedule, assignment, it)));
    let messages = verdict.late_messages.iter();
    let messages = messages.map(|it| format!("Late: {}", it.text()));
    let refused = verdict.links.refused.iter();
    let refused = refused.map(|it| format!("Refused: {}", it.text()));
    let remedies = remedies(schedule, verdict).into_iter();
    let remedies = remedies.map(|text| format!("Remedy: {text}"));
    let bounds = (!assignment.analysis.feasible).then_some(
        "The responses are bounds if late jobs go on after their deadlines. A response without a \
         bar has no bound.",
    );
    let caveats = late
        .chain(messages)
        .chain(refused)
        .chain(remedies)
        .chain(bounds.map(str::to_owned))
        .chain([BOUNDS.replace('\n', " ")])
        .chain(lanes(schedule, assignment, verdict));
    let page = Document::new(format!("Schedule {file}"))
        .lead(lead)
        .caveats(caveats)
        .part(
            "Responses and deadlines",
            [responses(schedule, assignment)],
            [operations(schedule, assignment, verdict)],
        )
        .part(
            "Utilisation and breakdown",
            [
                utilisation(assignment, verdict),
                growth(schedule, assignment, verdict),
            ],
            [],
        );
    let window = gantt_window(schedule);
    let outcome = synchronous(schedule, assignment, window).unwrap_or_default();
    page.part(
        "From a synchronous start",
        gantt(schedule, &outcome, window),
        [],
    )
    .notes(schedule.notes.iter().cloned())
    .commands(format!("chronorb sched check {file} --report FILE"))
}

/// Returns the page of a simulation.
pub(super) fn of_run(
    file: &str,
    schedule: &Schedule,
    outcome: &SimulationOutcome,
    window: Time,
    compared: Option<&Assignment>,
) -> Document {
    let works = outcome.activities.iter().flat_map(|it| &it.works);
    let met: u64 = works.map(|it| it.met).sum();
    Document::new(format!("Schedule {file}, simulated"))
        .lead(format!(
            "{} of virtual time: {met} steps of {} jobs met their deadlines, and {} missed them.",
            readable_time(window),
            outcome.counted(),
            outcome.missed(),
        ))
        .part("Slices of execution", gantt(schedule, outcome, window), [])
        .part(
            "Longest responses",
            [],
            [simulated(schedule, outcome, compared)],
        )
        .caveats(compared.map(|_| BOUNDS.replace('\n', " ")))
        .notes(schedule.notes.iter().cloned())
        .commands(format!("chronorb sched simulate {file} --report FILE"))
}

fn operations(schedule: &Schedule, assignment: &Assignment, verdict: &Verdict) -> Table {
    let mut columns = vec!["lane", "priority", "wcet", "simulated", "response", "bound"];
    if verdict.own_lanes.is_some() {
        columns.push("in a lane of its own");
    }
    columns.extend(["deadline", "of the deadline"]);
    let lines = VerdictRow::all(schedule, assignment, verdict).into_iter();
    let lines = lines.map(|line| {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let part = line.response.time().map(|time| {
            let deadline = u128::from(line.deadline.max(1));
            percent((u128::from(time) * BILLION).div_ceil(deadline))
        });
        let bound = line.bound().map(str::to_owned);
        let mut cells = vec![
            or_none(line.lane),
            line.priority.to_string(),
            readable_time(line.cost),
            or_none(line.simulated.map(readable_time)),
            response(line.response),
            or_none(bound),
        ];
        cells.extend(line.in_own_lane.map(response));
        cells.extend([readable_time(line.deadline), or_none(part)]);
        (line.name, cells)
    });
    Table::new("operation", columns, lines)
}

fn simulated(
    schedule: &Schedule,
    outcome: &SimulationOutcome,
    compared: Option<&Assignment>,
) -> Table {
    let lines = outcome.activities.iter().enumerate();
    let lines = lines.flat_map(|(number, activity)| {
        activity.works.iter().map(move |it| {
            let bound = compared.and_then(|assignment| analysed(assignment, number, it.work));
            let word = bound.and_then(|bound| bound_word(bound, Some(it.longest)));
            let cells = vec![
                resource_name(schedule, it.resource).to_owned(),
                it.met.to_string(),
                it.missed.to_string(),
                readable_time(it.longest),
                bound.map_or_else(|| "-".to_owned(), response),
                word.unwrap_or("-").to_owned(),
                readable_time(it.deadline),
            ];
            (work_name(schedule, activity, it.work), cells)
        })
    });
    Table::new(
        "step",
        [
            "resource",
            "met",
            "missed",
            "simulated",
            "analysed",
            "bound",
            "deadline",
        ],
        lines,
    )
}

/// Bars of responses with strokes at their deadlines.
fn responses(schedule: &Schedule, assignment: &Assignment) -> Chart {
    let order: Vec<_> = assignment
        .lanes
        .iter()
        .flat_map(|lane| &lane.operations)
        .collect();
    let shown = &order[..order.len().min(MOST_ROWS)];
    let names = shown
        .iter()
        .map(|it| shortened(&schedule.operations[**it].name));
    let micros = |time: Time| time as f64 / 1e3;
    let result = |it: &&usize| &assignment.analysis.operations[**it];
    let times = shown
        .iter()
        .map(|it| result(it).response.time().map(micros));
    let deadlines = shown.iter().map(|it| Some(micros(result(it).deadline)));
    Chart::new(
        "Longest responses, each with its deadline, the most urgent operations first",
        Axis::groups("", names),
        Axis::log("time from the arrival", Unit::Time),
    )
    .series([
        Series::of_groups(Mark::Bars, "response", times).colour(0),
        Series::of_groups(Mark::Strokes, "deadline", deadlines).colour(3),
    ])
}

/// Bars of the utilisation, as it is and at the breakdown.
fn utilisation(assignment: &Assignment, verdict: &Verdict) -> Chart {
    let sets = &assignment.task_sets;
    let names = sets.resources.iter().map(|it| shortened(&it.name));
    let used = || {
        let results = assignment.analysis.resources.iter();
        results.map(|it| it.utilisation as f64 / BILLION as f64 * 100.0)
    };
    let grown = verdict.factor as f64 / FACTOR_UNIT as f64;
    Chart::new(
        "Utilisation of processors and links, and with all times multiplied by the greatest factor \
         that fits",
        Axis::groups("", names),
        Axis::linear("utilisation", Unit::Percent),
    )
    .series([
        Series::of_groups(Mark::Bars, "used", used().map(Some)).colour(0),
        Series::of_groups(
            Mark::Bars,
            "at the breakdown",
            used().map(|it| Some(it * grown)),
        )
        .colour(1),
    ])
}

/// Lines of responses, in percent of their deadlines, against the factor of all times.
fn growth(schedule: &Schedule, assignment: &Assignment, verdict: &Verdict) -> Chart {
    let ranks = assignment.band_ranks();
    let transactions = &assignment.task_sets.transactions;
    let mut lines = vec![Vec::new(); transactions.len()];
    for point in 1..=POINTS {
        let factor = verdict.factor * point / POINTS;
        let Ok(Some(times)) = schedule.responses_at(&ranks, factor) else {
            continue;
        };
        for (line, (time, deadline)) in lines.iter_mut().zip(times) {
            let x = factor as f64 / FACTOR_UNIT as f64;
            line.push((x, time as f64 / deadline.max(1) as f64 * 100.0));
        }
    }
    let mut series: Vec<_> = transactions.iter().zip(lines).collect();
    let end = |line: &Vec<(f64, f64)>| line.last().map_or(0.0, |point| point.1);
    series.sort_by(|(_, a), (_, b)| end(b).total_cmp(&end(a)));
    let series = series.into_iter().take(chronorb_report::chart::COLOURS);
    Chart::new(
        "Longest responses if all times grow, for the transactions that come closest to their \
         deadlines",
        Axis::linear("factor of all times", Unit::Number),
        Axis::linear("of the deadline", Unit::Percent),
    )
    .series(series.map(|(it, line)| Series::new(Mark::Line, shortened(&it.name), line)))
}

/// A chart for each processor and link, with a row for each operation or message.
fn gantt(schedule: &Schedule, outcome: &SimulationOutcome, window: Time) -> Vec<Chart> {
    let processors = (0..schedule.processors.len()).map(ResourceKind::Processor);
    let links = (0..schedule.links.len()).map(ResourceKind::Link);
    let end = gantt_window(schedule).min(window);
    let mut charts = Vec::new();
    for resource in processors.chain(links) {
        // The rows, the most urgent one last, which is at the top.
        let mut rows: Vec<(u32, String)> = Vec::new();
        for activity in &outcome.activities {
            for it in activity.works.iter().filter(|it| it.resource == resource) {
                let row = (it.priority, row_name(schedule, it.work, &activity.name));
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
        rows.sort();
        let rows: Vec<_> = rows
            .into_iter()
            .rev()
            .take(MOST_ROWS)
            .rev()
            .map(|row| row.1)
            .collect();
        let (mut free, mut locked) = (Vec::new(), Vec::new());
        let slices = outcome.slices.iter().filter(|it| it.resource == resource);
        for slice in slices.filter(|slice| slice.start < end) {
            let name = row_name(
                schedule,
                slice.work,
                &outcome.activities[slice.activity].name,
            );
            let Some(row) = rows.iter().position(|row| *row == name) else {
                continue;
            };
            let points = if slice.locked { &mut locked } else { &mut free };
            let micros = |time: Time| time.min(end) as f64 / 1e3;
            points.extend([
                (micros(slice.start), row as f64),
                (micros(slice.end), row as f64),
            ]);
            if free.len() + locked.len() > MOST_POINTS {
                break;
            }
        }
        let names = rows.iter().map(|row| shortened(row));
        let chart = Chart::new(
            format!(
                "{}: the most urgent work is at the top",
                resource_name(schedule, resource)
            ),
            Axis::linear("virtual time", Unit::Time),
            Axis::groups("", names),
        );
        charts.push(chart.series([
            Series::new(Mark::Spans, "runs", free).colour(0),
            Series::new(Mark::Spans, "holds a lock", locked).colour(3),
        ]));
    }
    charts
}

fn row_name(schedule: &Schedule, work: Work, activity: &str) -> String {
    match work {
        Work::Execution { operation } => schedule.operations[operation].name.clone(),
        Work::Request { operation } | Work::Reply { operation } => {
            format!("messages of {}", schedule.operations[operation].name)
        }
        Work::Message { .. } => format!("message of {activity}"),
    }
}

/// Returns the time that a Gantt chart shows: the longest period, but not too many of the shortest.
fn gantt_window(schedule: &Schedule) -> Time {
    let periods = || activities(schedule).map(|(period, _)| period);
    let longest = periods().max().unwrap_or(1);
    let shortest = periods().min().unwrap_or(1);
    longest.min(shortest.saturating_mul(60))
}

/// Returns a name that leaves room for the chart.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 24;
    let count = name.chars().count();
    if count <= LONGEST {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count - LONGEST + 1).collect();
    format!("…{end}")
}

/// The rows of a chart.
const MOST_ROWS: usize = 16;
/// The ends of slices in a chart.
const MOST_POINTS: usize = 8_000;
/// The factors of a line.
const POINTS: u64 = 24;
