//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};

use super::attack::{Attack, Conduct};
use super::outcome::{Outcome, Row};
use super::plan::Phase;
use crate::report::{begin, end, latency};

pub(super) fn document(outcome: &Outcome) -> Document {
    let document = begin(outcome, LEAD)
        .part(
            "Calls of the legitimate client",
            [by_attack(outcome)],
            [of_client(outcome)],
        )
        .part("The server", [], [of_server(outcome)]);
    end(
        document,
        notes(outcome),
        &outcome.environment,
        "cargo run --release -- lab hostile",
    )
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let attacks = outcome.plan.attacks.iter();
    let tried: Vec<bool> = attacks.filter_map(|a| outcome.is_withstood(*a)).collect();
    let withstood = tried.iter().filter(|withstood| **withstood).count();
    let ended = match outcome.deaths.len() {
        0 => "none ends the server".to_owned(),
        1 => "one ends the server".to_owned(),
        several => format!("{several} end the server"),
    };
    format!(
        "{withstood} of {} attacks are noticed by no other client; {ended}",
        tried.len()
    )
}

/// Latencies by the number of the attack.
fn by_attack(outcome: &Outcome) -> Chart {
    let caption = "p99 and the longest call before and during each attack, by its number in the \
                   tables. A point is missing where no call was answered.";
    let series = |mark, name, phase, of: fn(&Row) -> f64| {
        let attacks = outcome.plan.attacks.iter().enumerate();
        let points = attacks.filter_map(|(at, attack)| {
            let row = outcome.row(*attack, phase)?;
            (row.latency.calls > 0).then(|| ((at + 1) as f64, of(row)))
        });
        Series::new(mark, name, points)
    };
    let p99 = |row: &Row| row.latency.p99_us;
    let max = |row: &Row| row.latency.max_us;
    let (before, during) = (Phase::Before, Phase::During);
    Chart::new(caption, Axis::linear("attack", Unit::Count), latency()).series([
        series(Mark::Line, "p99 alone", before, p99).colour(0),
        series(Mark::Dashes, "longest alone", before, max).colour(0),
        series(Mark::Line, "p99 beside the attack", during, p99).colour(1),
        series(Mark::Dashes, "longest beside the attack", during, max).colour(1),
    ])
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
            bytes(during.sent_octets),
            units::count(during.connections),
            bytes(before.resident_octets),
            bytes(during.resident_most_octets),
            bytes(after.resident_octets),
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
    columns: &[&'static str],
) -> Table {
    let attacks = outcome.plan.attacks.iter().enumerate();
    let lines = attacks.filter_map(|(at, attack)| {
        Some((format!("{} {}", at + 1, attack.title()), line(*attack)?))
    });
    Table::new(heading, columns.iter().copied(), lines)
}

fn rows(outcome: &Outcome, attack: Attack) -> Option<[&Row; 3]> {
    let [before, during, after] = Phase::ALL.map(|phase| outcome.row(attack, phase));
    Some([before?, during?, after?])
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

fn bytes(octets: u64) -> String {
    units::bytes(octets as f64)
}

/// Notes on reading the figures, in sentences.
fn notes(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let message = |attack: Attack| match attack.conduct(&[0; 28], plan) {
        Conduct::Call(message) => Some(format!(
            "{} {}",
            attack.title(),
            bytes(message.len() as u64)
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
            bytes(plan.newcomer_octets.into()),
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

const LEAD: &str = "What other clients of a server notice while it is attacked, and what \
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

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("hostile", &outcome());
    }
}
