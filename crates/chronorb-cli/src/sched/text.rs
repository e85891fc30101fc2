//! Schedules as text and as JSON.

use std::fmt::Write as _;

use chronorb_sched::{BILLION, Response};
use chronorb_schedule::{
    Assignment, FACTOR_UNIT, PriorityRule, Schedule, ThreadOwner, Time, readable_time,
};
use serde_json::{Value, json};

use super::check::Verdict;
use super::reason::{LateMessage, late_text, rule_word, shortage_text};
use super::words::percent;

/// Renders a verdict for people.
pub(super) fn verdict(schedule: &Schedule, assignment: &Assignment, verdict: &Verdict) -> String {
    let mut text = format!(
        "{} operations, {} transactions, {} resources; priorities {}\n\n",
        schedule.operations.len(),
        assignment.task_sets.transactions.len(),
        assignment.task_sets.resources.len(),
        rule(schedule.rules.priorities),
    );
    text += &operations(schedule, assignment);
    text.push('\n');
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

fn operations(schedule: &Schedule, assignment: &Assignment) -> String {
    let mut rows = vec![TITLES.map(str::to_owned)];
    for lane in &assignment.lanes {
        for number in &lane.operations {
            let operation = &schedule.operations[*number];
            let result = &assignment.analysis.operations[*number];
            let period = operation
                .period
                .map_or_else(|| "-".to_owned(), readable_time);
            rows.push([
                operation.name.clone(),
                schedule.processors[lane.processor].name.clone(),
                lane.name.clone(),
                assignment.priority(*number).to_string(),
                readable_time(operation.cost),
                period,
                response(result.response),
                readable_time(result.deadline),
                slack(result.slack()),
            ]);
        }
    }
    table(3, &rows)
}

/// Renders rows, of which the first one has the titles. The first columns have names, on the left,
/// and the others figures, on the right.
pub(super) fn table<const N: usize>(names: usize, rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (number, (cell, width)) in row.iter().zip(widths).enumerate() {
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

const TITLES: [&str; 9] = [
    "OPERATION",
    "PROCESSOR",
    "LANE",
    "PRIORITY",
    "WCET",
    "PERIOD",
    "RESPONSE",
    "DEADLINE",
    "SLACK",
];

/// Renders a verdict for programs.
pub(super) fn verdict_object(
    schedule: &Schedule,
    assignment: &Assignment,
    verdict: &Verdict,
) -> Value {
    let operations = (0..schedule.operations.len()).map(|number| {
        let operation = &schedule.operations[number];
        let result = &assignment.analysis.operations[number];
        let mut lanes = assignment.lanes.iter();
        let lane = lanes.find(|lane| lane.operations.contains(&number));
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
        "operations": operations.collect::<Vec<_>>(),
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
