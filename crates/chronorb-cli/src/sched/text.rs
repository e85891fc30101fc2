//! Schedules as text and as JSON.

use std::fmt::Write as _;

use chronorb_sched::{BILLION, Response};
use chronorb_schedule::{
    Analysis, Assignment, FACTOR_UNIT, PriorityRule, Schedule, StepWork, ThreadOwner, Time, Work,
    readable_time,
};
use serde_json::{Value, json};

use super::check::Verdict;
use super::reason::{LateMessage, late_text, rule_word, shortage_text};
use super::words::{bound_word, percent, step_name};

/// Renders a verdict for people.
pub(super) fn verdict(schedule: &Schedule, assignment: &Assignment, verdict: &Verdict) -> String {
    let mut text = format!(
        "{} operations, {} transactions, {} resources; priorities {}\n\n",
        schedule.operations.len(),
        assignment.task_sets.transactions.len(),
        assignment.task_sets.resources.len(),
        rule(schedule.rules.priorities),
    );
    text += &operations(schedule, assignment, verdict);
    if verdict.examples.is_some() {
        let _ = writeln!(
            text,
            "\n{BOUNDS}\nsimulated {} of virtual time, {}\n",
            readable_time(verdict.examples.window),
            match verdict.examples.runs {
                1 => "from a synchronous start".to_owned(),
                n => format!("in each of {n} runs"),
            }
        );
    } else {
        text += "\nThe bounds are sufficient: no job takes longer, and perhaps none that long.\n\n";
    }
    if let Some(lanes) = lanes(schedule, assignment, verdict) {
        let _ = writeln!(text, "{lanes}\n");
    }
    for (resource, result) in assignment
        .task_sets
        .resources
        .iter()
        .zip(&assignment.analysis.resources)
    {
        let _ = writeln!(
            text,
            "{}: used {}",
            resource.name,
            percent(result.utilisation)
        );
    }
    if assignment.analysis.feasible {
        let _ = write!(
            text,
            "all times can grow by the factor {}",
            factor(verdict.factor)
        );
    } else {
        let _ = write!(
            text,
            "all times by the factor {} would fit",
            factor(verdict.factor)
        );
    }
    if let Some(operation) = verdict.bottleneck {
        let name = &schedule.operations[operation].name;
        let _ = write!(text, "; {name} is late first");
    }
    text.push('\n');
    for note in &schedule.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    for shortage in &assignment.analysis.shortages {
        let shortage = shortage_text(schedule, assignment, shortage);
        let _ = write!(text, "\nthreads: {shortage}");
    }
    for late in &verdict.late {
        let late = late_text(schedule, assignment, late);
        let _ = write!(text, "\nlate: {late}");
    }
    for message in &verdict.late_messages {
        let _ = write!(text, "\nlate: {}", message.text());
    }
    for refused in &verdict.links.refused {
        let _ = write!(text, "\nrefused: {}", refused.text());
    }
    for remedy in remedies(schedule, verdict) {
        let _ = write!(text, "\nremedy: {remedy}");
    }
    if verdict.fits() {
        text.push_str("\nfits: all deadlines are met");
    }
    if assignment.analysis.feasible {
        return text;
    }
    text.push_str(
        "\nThe responses hold for jobs that go on after their deadlines. `chronorb sched explain` \
         shows the parts of each.",
    );
    text
}

/// Returns a sentence for each change that would fit.
pub(super) fn remedies(schedule: &Schedule, verdict: &Verdict) -> Vec<String> {
    let mut texts = if verdict.late.is_empty() && verdict.late_messages.is_empty() {
        Vec::new()
    } else {
        verdict.remedies.texts(schedule)
    };
    texts.extend(verdict.links.remedies());
    texts
}

/// The words for bounds.
pub(super) const BOUNDS: &str = "A bound is exact if a simulated job takes that long. Otherwise it \
     is sufficient: no job takes\nlonger, and perhaps none that long.";

/// Returns the lanes that levels share; `None` if each level has its own.
pub(super) fn lanes(
    schedule: &Schedule,
    assignment: &Assignment,
    verdict: &Verdict,
) -> Option<String> {
    verdict.own_lanes.as_ref()?;
    Some(format!(
        "{} levels in {} lanes, the fewest with which all deadlines are met; lanes = \"own\" gives \
         each level its own",
        assignment.levels(schedule),
        assignment.lanes.len(),
    ))
}

/// A line of the table of a verdict: an operation, or a message of a transaction of messages only.
pub(super) struct VerdictRow {
    pub(super) name: String,
    pub(super) resource: String,
    pub(super) lane: Option<String>,
    pub(super) priority: i16,
    pub(super) cost: Time,
    pub(super) period: Option<Time>,
    pub(super) simulated: Option<Time>,
    pub(super) response: Response,
    /// The response with a lane for each level, if some share one.
    pub(super) in_own_lane: Option<Response>,
    pub(super) deadline: Time,
}

impl VerdictRow {
    /// Returns the lines of a verdict.
    pub(super) fn all(
        schedule: &Schedule,
        assignment: &Assignment,
        verdict: &Verdict,
    ) -> Vec<Self> {
        let mut lines = Vec::new();
        for lane in &assignment.lanes {
            for number in &lane.operations {
                let operation = &schedule.operations[*number];
                let result = &assignment.analysis.operations[*number];
                let own = verdict.own_lanes.as_ref();
                lines.push(Self {
                    name: operation.name.clone(),
                    resource: schedule.processors[lane.processor].name.clone(),
                    lane: Some(lane.name.clone()),
                    priority: assignment.priority(*number),
                    cost: operation.cost,
                    period: operation.period,
                    simulated: verdict.examples.operation(assignment, *number),
                    response: result.response,
                    in_own_lane: own.map(|it| it.operations[*number].response),
                    deadline: result.deadline,
                });
            }
        }
        lines.extend(Self::of_messages(schedule, assignment, verdict));
        lines
    }

    /// Returns the lines of transactions that execute nothing.
    pub(super) fn of_messages(
        schedule: &Schedule,
        assignment: &Assignment,
        verdict: &Verdict,
    ) -> Vec<Self> {
        let mut lines = Vec::new();
        for (number, named) in assignment.task_sets.transactions.iter().enumerate() {
            let it = &named.transaction;
            if named.works.iter().any(|work| *work != StepWork::Message) {
                continue;
            }
            for (position, step) in it.steps.iter().enumerate() {
                let band = (step.priority as usize).saturating_sub(1);
                let of = |analysis: &Analysis| analysis.transactions[number].steps[position];
                let work = Work::Message { step: position };
                lines.push(Self {
                    name: step_name(schedule, assignment, (number, position)),
                    resource: assignment.task_sets.resources[step.resource].name.clone(),
                    lane: None,
                    priority: assignment.priorities.get(band).copied().unwrap_or(0),
                    cost: step.cost,
                    period: Some(it.period),
                    simulated: verdict.examples.longest(number, work),
                    response: of(&assignment.analysis),
                    in_own_lane: verdict.own_lanes.as_ref().map(of),
                    deadline: step.deadline.unwrap_or(it.deadline),
                });
            }
        }
        lines
    }

    /// Returns the word for the bound.
    pub(super) fn bound(&self) -> Option<&'static str> {
        bound_word(self.response, self.simulated)
    }

    fn slack(&self) -> Option<i128> {
        let response = self.response.time()?;
        Some(i128::from(self.deadline) - i128::from(response))
    }
}

fn operations(schedule: &Schedule, assignment: &Assignment, verdict: &Verdict) -> String {
    let (simulates, compares) = (verdict.examples.is_some(), verdict.own_lanes.is_some());
    let row = |cells: [String; 12]| {
        let kept = cells
            .into_iter()
            .enumerate()
            .filter(|(column, _)| match column {
                6 | 8 => simulates,
                9 => compares,
                _ => true,
            });
        kept.map(|(_, cell)| cell).collect::<Vec<_>>()
    };
    let or_none = |time: Option<Time>| time.map_or_else(|| "-".to_owned(), readable_time);
    let mut rows = vec![row(TITLES.map(str::to_owned))];
    for line in VerdictRow::all(schedule, assignment, verdict) {
        rows.push(row([
            line.name.clone(),
            line.resource.clone(),
            line.lane.clone().unwrap_or_else(|| "-".to_owned()),
            line.priority.to_string(),
            readable_time(line.cost),
            or_none(line.period),
            or_none(line.simulated),
            response(line.response),
            line.bound().unwrap_or("-").to_owned(),
            line.in_own_lane.map_or_else(|| "-".to_owned(), response),
            readable_time(line.deadline),
            slack(line.slack()),
        ]));
    }
    table(3, &rows)
}

/// Renders rows, of which the first one has the titles. The first columns have names, on the left,
/// and the others figures, on the right.
pub(super) fn table(names: usize, rows: &[impl AsRef<[String]>]) -> String {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let mut widths = vec![0; columns];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (number, (cell, width)) in row.as_ref().iter().zip(&widths).enumerate() {
            let is_name = number < names;
            let _ = if is_name {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Renders a response.
pub(super) fn response(response: Response) -> String {
    response
        .time()
        .map_or_else(|| "unbounded".to_owned(), readable_time)
}

fn slack(slack: Option<i128>) -> String {
    let Some(slack) = slack else {
        return "-".to_owned();
    };
    let time = Time::try_from(slack.unsigned_abs()).unwrap_or(Time::MAX);
    let sign = if slack < 0 { "-" } else { "" };
    format!("{sign}{}", readable_time(time))
}

/// Renders a factor, rounded down.
pub(super) fn factor(factor: u64) -> String {
    format!("{}.{:04}", factor / FACTOR_UNIT, factor % FACTOR_UNIT)
}

const fn rule(rule: PriorityRule) -> &'static str {
    match rule {
        PriorityRule::DeadlineMonotonic => "by deadline",
        PriorityRule::RateMonotonic => "by rate",
        PriorityRule::Optimal => "by Audsley's algorithm",
        PriorityRule::Holistic => "by local deadlines",
        PriorityRule::Declared => "as declared",
    }
}

const TITLES: [&str; 12] = [
    "OPERATION",
    "PROCESSOR",
    "LANE",
    "PRIORITY",
    "WCET",
    "PERIOD",
    "SIMULATED",
    "RESPONSE",
    "BOUND",
    "IN OWN LANE",
    "DEADLINE",
    "SLACK",
];

/// Renders a verdict for programs.
pub(super) fn verdict_object(
    schedule: &Schedule,
    assignment: &Assignment,
    verdict: &Verdict,
) -> Value {
    let own_lanes = verdict.own_lanes.as_ref();
    let operations = (0..schedule.operations.len()).map(|number| {
        let operation = &schedule.operations[number];
        let result = &assignment.analysis.operations[number];
        let mut lanes = assignment.lanes.iter();
        let lane = lanes.find(|lane| lane.operations.contains(&number));
        let simulated = verdict.examples.operation(assignment, number);
        json!({
            "name": operation.name,
            "node": schedule.nodes[schedule.processors[operation.processor].node].name,
            "processor": schedule.processors[operation.processor].name,
            "lane": lane.map(|lane| &lane.name),
            "priority": assignment.priority(number),
            "wcet_ns": operation.cost,
            "period_ns": operation.period,
            "response_ns": result.response.time(),
            "bounded": result.response.time().is_some(),
            "simulated_ns": simulated,
            "bound": bound_word(result.response, simulated),
            "own_lane_response_ns": own_lanes.and_then(|it| it.operations[number].response.time()),
            "deadline_ns": result.deadline,
            "slack_ns": result.slack().and_then(|slack| i64::try_from(slack).ok()),
            "on_time": result.is_on_time(),
        })
    });
    let resources = assignment
        .task_sets
        .resources
        .iter()
        .zip(&assignment.analysis.resources);
    let resources = resources.map(|(resource, result)| {
        json!({
            "name": resource.name,
            "utilisation": result.utilisation as f64 / BILLION as f64,
        })
    });
    let wcets = verdict.remedies.costs.iter().map(|(operation, cost)| {
        json!({ "operation": schedule.operations[*operation].name, "wcet_ns": cost })
    });
    let wcets: Vec<_> = wcets.collect();
    let late = verdict.late.iter().map(|late| {
        let excess = late
            .response
            .time()
            .map(|time| time.saturating_sub(late.deadline));
        json!({
            "operation": schedule.operations[late.operation].name,
            "reason": late.reason.word(),
            "excess_ns": excess,
            "fits": wcets,
            "text": late_text(schedule, assignment, late),
        })
    });
    let rules = verdict.remedies.rules.iter().map(|rule| rule_word(*rule));
    let deadlines = verdict.remedies.deadlines.iter();
    let deadlines =
        deadlines.map(|(name, time)| json!({ "transaction": name, "deadline_ns": time }));
    let late_messages = verdict.late_messages.iter().map(LateMessage::text);
    let refused = verdict.links.refused.iter().map(|it| {
        json!({
            "link": it.link,
            "node": it.node,
            "interface": it.interface,
            "class": it.class,
            "operations": it.operations,
            "reason": it.reason,
            "text": it.text(),
        })
    });
    let threads = assignment.analysis.shortages.iter().map(|it| {
        json!({
            "operation": schedule.operations[it.operation].name,
            "owner": match it.owner {
                ThreadOwner::Activity => "activity",
                ThreadOwner::Lane => "lane",
            },
            "threads": it.threads,
            "needed": it.needed,
            "text": shortage_text(schedule, assignment, it),
        })
    });
    let messages = VerdictRow::of_messages(schedule, assignment, verdict).into_iter();
    let messages = messages.map(|line| {
        json!({
            "name": line.name,
            "link": line.resource,
            "priority": line.priority,
            "time_ns": line.cost,
            "period_ns": line.period,
            "response_ns": line.response.time(),
            "simulated_ns": line.simulated,
            "bound": line.bound(),
            "own_lane_response_ns": line.in_own_lane.and_then(Response::time),
            "deadline_ns": line.deadline,
            "on_time": line.response.meets(line.deadline),
        })
    });
    let examples = &verdict.examples;
    let simulation = examples
        .is_some()
        .then(|| json!({ "runs": examples.runs, "window_ns": examples.window }));
    let rates = verdict.links.rates.iter();
    let rates = rates.map(|(link, rate)| json!({ "link": link, "bits_per_s": rate }));
    let packet_costs = verdict.links.packet_costs.iter();
    let packet_costs =
        packet_costs.map(|(link, cost)| json!({ "link": link, "packet_cost_ns": cost }));
    json!({
        "version": 1,
        "fits": verdict.fits(),
        "factor": verdict.factor as f64 / FACTOR_UNIT as f64,
        "bottleneck": verdict.bottleneck.map(|operation| &schedule.operations[operation].name),
        "resources": resources.collect::<Vec<_>>(),
        "levels": assignment.levels(schedule),
        "lanes": assignment.lanes.len(),
        "simulation": simulation,
        "operations": operations.collect::<Vec<_>>(),
        "messages": messages.collect::<Vec<_>>(),
        "late": late.collect::<Vec<_>>(),
        "late_messages": late_messages.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
        "threads": threads.collect::<Vec<_>>(),
        "remedies": {
            "wcets": wcets,
            "priorities": rules.collect::<Vec<_>>(),
            "deadlines": deadlines.collect::<Vec<_>>(),
            "rates": rates.collect::<Vec<_>>(),
            "packet_costs": packet_costs.collect::<Vec<_>>(),
        },
        "notes": schedule.notes,
    })
}
