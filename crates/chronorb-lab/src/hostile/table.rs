//! The figures as text.

use super::attack::{Attack, Conduct};
use super::outcome::{Outcome, Row};
use super::plan::Phase;
use crate::experiment::Findings;
use crate::report::{Table, Telling};
use crate::units;

/// The report of the figures.
pub(super) fn telling(outcome: &Outcome) -> Telling<'_> {
    Telling {
        lead: LEAD,
        caveats: outcome.caveats(),
        claims: outcome.claims(),
        tables: vec![of_client(outcome), of_server(outcome)],
        notes: notes(outcome),
        environment: &outcome.environment,
        commands: "cargo run --release -- lab hostile".to_owned(),
    }
}

/// The effects of each attack on other clients.
fn of_client(outcome: &Outcome) -> Table {
    let line = |attack| {
        let [before, during, after] = rows(outcome, attack)?;
        let time = |row: &Row, us: f64| match row.latency.calls {
            0 => "none".to_owned(),
            _ => units::time(us),
        };
        Some(vec![
            time(before, before.latency.p50_us),
            time(during, during.latency.p50_us),
            time(before, before.latency.p99_us),
            time(during, during.latency.p99_us),
            time(during, during.latency.max_us),
            percent(during.failed_calls_percent),
            percent(during.failed_newcomers_percent),
            percent(after.failed_calls_percent),
            percent(after.failed_newcomers_percent),
        ])
    };
    table(outcome, "Other clients", line, &CLIENT_COLUMNS)
}

/// The memory and time of the server during each attack.
fn of_server(outcome: &Outcome) -> Table {
    let line = |attack| {
        let [before, during, after] = rows(outcome, attack)?;
        let end = outcome.death(attack).map(|death| death.status.clone());
        Some(vec![
            octets(during.sent_octets),
            units::count(during.connections),
            octets(before.resident_octets),
            octets(during.resident_most_octets),
            octets(after.resident_octets),
            percent(before.cpu_percent),
            percent(during.cpu_percent),
            percent(after.cpu_percent),
            end.unwrap_or_else(|| "lives".to_owned()),
        ])
    };
    table(outcome, "The server", line, &SERVER_COLUMNS)
}

fn table(
    outcome: &Outcome,
    heading: &str,
    line: impl Fn(Attack) -> Option<Vec<String>>,
    columns: &[&str],
) -> Table {
    let attacks = outcome.plan.attacks.iter().enumerate();
    let lines = attacks.filter_map(|(at, attack)| Some((numbered(at, *attack), line(*attack)?)));
    Table {
        heading: heading.to_owned(),
        columns: columns.iter().copied().map(str::to_owned).collect(),
        lines: lines.collect(),
    }
}

/// The attack as tables name it, with the number that the plot has for it.
fn numbered(at: usize, attack: Attack) -> String {
    format!("{} {}", at + 1, attack.title())
}

fn rows(outcome: &Outcome, attack: Attack) -> Option<[&Row; 3]> {
    let [before, during, after] = Phase::ALL.map(|phase| outcome.row(attack, phase));
    Some([before?, during?, after?])
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

fn octets(octets: u64) -> String {
    match octets {
        0..10_000 => format!("{octets} B"),
        10_000..10_000_000 => format!("{:.0} KiB", octets as f64 / 1024.0),
        _ => format!("{:.0} MiB", octets as f64 / f64::from(1 << 20)),
    }
}

/// Notes on reading the figures, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let message = |attack: Attack| match attack.conduct(&[0; 28], plan) {
        Conduct::Call(message) => Some(format!(
            "{} {}",
            attack.title(),
            octets(message.len() as u64)
        )),
        Conduct::Hold { .. } | Conduct::Stream(..) | Conduct::Malformed => None,
    };
    let messages: Vec<String> = plan.attacks.iter().copied().filter_map(message).collect();
    let mut notes = vec![
        format!(
            "Each attack has a new server with the default settings. A client calls it every {}, and \
             a new client comes every {}, connects and sends a request of {}: alone for {}, beside \
             the attack for {}, and alone again for {}. A call that takes longer than {} has failed, \
             and one that is due while the one before it is under way is left out.",
            units::setting(plan.period),
            units::setting(plan.newcomer_period),
            octets(plan.newcomer_octets.into()),
            units::setting(plan.before),
            units::setting(plan.during),
            units::setting(plan.after),
            units::setting(plan.timeout),
        ),
        "Attackers are four threads of one process, the least urgent of the machine, or as many \
         connections as the attack has. They share the processors with server and clients."
            .to_owned(),
        "Memory is what is resident. A server that needs more than 4 GiB ends.".to_owned(),
    ];
    if !messages.is_empty() {
        notes.push(format!("Octets of one message: {}.", messages.join(", ")));
    }
    notes
}

pub(super) const LEAD: &str = "What other clients of a server notice while it is attacked, and what \
     the attack takes of the server.";
const CLIENT_COLUMNS: [&str; 9] = [
    "p50 alone",
    "p50 beside",
    "p99 alone",
    "p99 beside",
    "longest",
    "calls failed",
    "new clients failed",
    "calls failed after",
    "new clients failed after",
];
const SERVER_COLUMNS: [&str; 9] = [
    "sent",
    "connections",
    "memory before",
    "most",
    "after",
    "CPU before",
    "during",
    "after",
    "end",
];
