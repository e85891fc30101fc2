//! The report.

use chronorb_report::{Axis, Chart, Document, Mark, Series, Table, Unit, units};
use serde_json::Value;

use super::attack::{Attack, Conduct};
use super::outcome::{HostileOutcome, HostileRow};
use super::plan::AttackPhase;
use super::{Hostile, claims, services};
use crate::experiment::{Experiment, Findings, figures};
use crate::report::{Column, begin, end, latency, table_of};
use crate::{Claim, Verdict};

impl Findings for HostileOutcome {
    fn headline(&self) -> String {
        let attacks = self.plan.attacks.iter();
        let tried: Vec<bool> = attacks.filter_map(|a| self.is_withstood(*a)).collect();
        let withstood = tried.iter().filter(|withstood| **withstood).count();
        let ended = match self.deaths.len() {
            0 => "none ends the server".to_owned(),
            1 => "one ends the server".to_owned(),
            several => format!("{several} end the server"),
        };
        let services = services::claims_of(self);
        let met = services
            .iter()
            .filter(|claim| claim.verdict() == Verdict::Pass);
        format!(
            "{withstood} of {} attacks are noticed by no other client; {ended}; {} of {} claims of \
             services hold",
            tried.len(),
            met.count(),
            services.len()
        )
    }

    fn caveats(&self) -> Vec<String> {
        self.environment.stolen_caveat().into_iter().collect()
    }

    fn claims(&self) -> Vec<Claim> {
        claims::of(self)
    }

    fn figures(&self) -> Value {
        figures(Hostile::NAME, self, Value::Null)
    }

    fn document(&self) -> Document {
        let clients = table(self, "Other clients", &client_columns());
        let heading = "Calls of the legitimate client";
        let document = begin(self, LEAD)
            .part(heading, [by_attack(self)], [clients])
            .part(
                "The server",
                [],
                [table(self, "The server", &server_columns())],
            );
        let document = document.part(
            "Services",
            [services::by_attack(self)],
            services::tables(self),
        );
        let command = "cargo run --release -- lab hostile";
        let notes = notes(self).into_iter();
        let notes = notes.chain(services::notes(&self.plan.services));
        end(document, notes, &self.environment, command)
    }
}

/// Returns the latencies by the number of the attack.
fn by_attack(outcome: &HostileOutcome) -> Chart {
    let caption = "p99 and the longest call before and during each attack, by its number in the \
                   tables. A point is missing where no call was answered.";
    let series = |mark, name, phase, of: fn(&HostileRow) -> f64| {
        let attacks = outcome.plan.attacks.iter().enumerate();
        let points = attacks.filter_map(|(at, attack)| {
            let row = outcome.row(*attack, phase)?;
            (row.latency.calls > 0).then(|| ((at + 1) as f64, of(row)))
        });
        Series::new(mark, name, points)
    };
    let p99 = |row: &HostileRow| row.latency.p99_us;
    let max = |row: &HostileRow| row.latency.max_us;
    let (before, during) = (AttackPhase::Before, AttackPhase::During);
    Chart::new(caption, Axis::linear("attack", Unit::Count), latency()).series([
        series(Mark::Line, "p99 alone", before, p99).colour(0),
        series(Mark::Dashes, "longest alone", before, max).colour(0),
        series(Mark::Line, "p99 beside the attack", during, p99).colour(1),
        series(Mark::Dashes, "longest beside the attack", during, max).colour(1),
    ])
}

/// The figures of an attack.
struct AttackFigures<'a> {
    before: &'a HostileRow,
    during: &'a HostileRow,
    after: &'a HostileRow,
    /// The status of the server, if it ended.
    death: Option<&'a str>,
}

/// Returns the columns of the effects on other clients.
fn client_columns<'a>() -> [Column<AttackFigures<'a>>; 9] {
    [
        ("p50 alone", |of| time(of.before, of.before.latency.p50_us)),
        ("p50 beside", |of| time(of.during, of.during.latency.p50_us)),
        ("p99 alone", |of| time(of.before, of.before.latency.p99_us)),
        ("p99 beside", |of| time(of.during, of.during.latency.p99_us)),
        ("longest", |of| time(of.during, of.during.latency.max_us)),
        ("calls failed", |of| percent(of.during.failed_calls_percent)),
        ("new clients failed", |of| {
            percent(of.during.failed_newcomers_percent)
        }),
        ("calls failed after", |of| {
            percent(of.after.failed_calls_percent)
        }),
        ("new clients failed after", |of| {
            percent(of.after.failed_newcomers_percent)
        }),
    ]
}

/// Returns the columns of the memory and the time of the server.
fn server_columns<'a>() -> [Column<AttackFigures<'a>>; 9] {
    [
        ("sent", |of| bytes(of.during.sent_octets)),
        ("connections", |of| units::count(of.during.connections)),
        ("memory before", |of| bytes(of.before.resident_octets)),
        ("most", |of| bytes(of.during.resident_most_octets)),
        ("after", |of| bytes(of.after.resident_octets)),
        ("CPU before", |of| percent(of.before.cpu_percent)),
        ("during", |of| percent(of.during.cpu_percent)),
        ("after", |of| percent(of.after.cpu_percent)),
        ("end", |of| of.death.unwrap_or("lives").to_owned()),
    ]
}

/// Returns a table with a line for each attack.
fn table<'a>(
    outcome: &'a HostileOutcome,
    heading: &str,
    columns: &[Column<AttackFigures<'a>>],
) -> Table {
    let attacks = outcome.plan.attacks.iter().enumerate();
    let lines = attacks.filter_map(|(at, attack)| {
        let [before, during, after] = AttackPhase::ALL.map(|phase| outcome.row(*attack, phase));
        let figures = AttackFigures {
            before: before?,
            during: during?,
            after: after?,
            death: outcome.death(*attack).map(|death| death.status.as_str()),
        };
        Some((format!("{} {}", at + 1, attack.title()), Some(figures)))
    });
    table_of(heading, columns, lines)
}

fn time(row: &HostileRow, us: f64) -> String {
    match row.latency.calls {
        0 => "none".to_owned(),
        _ => units::time(us),
    }
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

fn bytes(octets: u64) -> String {
    units::bytes(octets as f64)
}

/// Returns the notes on how to read the figures.
fn notes(outcome: &HostileOutcome) -> Vec<String> {
    let plan = &outcome.plan;
    let message = |attack: Attack| {
        let Conduct::Call(message) = attack.conduct(&[0; 28], plan) else {
            return None;
        };
        let size = bytes(message.len() as u64);
        Some(format!("{} {size}", attack.title()))
    };
    let messages: Vec<String> = plan.attacks.iter().copied().filter_map(message).collect();
    let [period, newcomers] = [plan.period, plan.newcomer_period].map(units::setting);
    let [before, during, after] = AttackPhase::ALL.map(|phase| units::setting(plan.length(phase)));
    if plan.attacks.is_empty() {
        return Vec::new();
    }
    let mut notes = vec![
        format!(
            "Each attack on an ORB has a new server with the default settings. A client calls \
             it every {period}, and a new client comes every {newcomers}, connects and sends a \
             request of {}: alone for {before}, beside the attack for {during}, and alone again \
             for {after}. A call that takes longer than {} has failed, and one that is due \
             while the one before it is under way is left out.",
            bytes(plan.newcomer_octets.into()),
            units::setting(plan.timeout),
        ),
        "Attackers are four threads of one process, the least urgent of the machine, or as many \
         connections as the attack has. They share the processors with server and clients. Memory \
         is what is resident; a server that needs more than 4 GiB ends."
            .to_owned(),
    ];
    if !messages.is_empty() {
        notes.push(format!("Octets of one message: {}.", messages.join(", ")));
    }
    notes
}

const LEAD: &str = "The effects of attacks on a server on its other clients, and on its memory and \
     processor time.";

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use crate::report::tests::assert_snapshot;

    #[test]
    fn the_report_has_all_parts() {
        assert_snapshot("hostile", &outcome());
    }
}
