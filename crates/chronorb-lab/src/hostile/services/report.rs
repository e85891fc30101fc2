//! The part of the report on services.

use chronorb_report::{Axis, Chart, Mark, Series, Table, Unit, units};

use super::super::outcome::HostileOutcome;
use super::attack::AttackedService;
use super::row::{LEAST_CPU_MS, MEMORY_CONSTANT, ServicePlan, ServiceRow, work_factor};
use crate::report::{Column, latency, table_of};

/// The figures of an attack with some octets, and with twice as many.
struct AttackFigures<'a> {
    once: &'a ServiceRow,
    twice: &'a ServiceRow,
    /// The status of the server, if it ended.
    death: Option<&'a str>,
}

/// Returns a table for each service that was attacked.
pub(in super::super) fn tables(outcome: &HostileOutcome) -> Vec<Table> {
    let services = AttackedService::ALL.into_iter();
    let tables = services.filter_map(|service| {
        let attacks = outcome.plan.services.attacks.iter().enumerate();
        let attacks = attacks.filter(|(_, attack)| attack.service() == service);
        let lines = attacks.map(|(at, attack)| {
            let row = |amount| outcome.service_row(*attack, amount);
            let figures = row(1).zip(row(2)).map(|(once, twice)| AttackFigures {
                once,
                twice,
                death: outcome
                    .service_death(*attack)
                    .map(|death| death.status.as_str()),
            });
            (format!("{} {}", at + 1, attack.title()), figures)
        });
        let lines: Vec<_> = lines.collect();
        let is_attacked = !lines.is_empty();
        is_attacked.then(|| table_of(service.command(), &columns(), lines))
    });
    tables.collect()
}

fn columns<'a>() -> [Column<AttackFigures<'a>>; 10] {
    [
        ("sent", |of| bytes(of.twice.sent_octets)),
        ("memory grew", |of| bytes(of.twice.grown())),
        ("for each octet", |of| factor(of.twice.memory_factor())),
        ("CPU once", |of| units::time(of.once.cpu_ms * 1e3)),
        ("twice", |of| units::time(of.twice.cpu_ms * 1e3)),
        ("factor", |of| factor(work_factor(of.once, of.twice))),
        ("p99 alone", |of| units::time(of.twice.alone_p99_us)),
        ("p99 beside", |of| match of.twice.latency.calls {
            0 => "none".to_owned(),
            _ => units::time(of.twice.latency.p99_us),
        }),
        ("calls failed", |of| {
            let failed = of.once.failed_calls_percent;
            format!("{:.0} %", failed.max(of.twice.failed_calls_percent))
        }),
        ("end", |of| match of.death {
            Some(status) => status.to_owned(),
            None if of.twice.rested_percent < 100.0 => "does not rest".to_owned(),
            None => format!("rests in {}", units::time(of.twice.rest_ms * 1e3)),
        }),
    ]
}

/// Returns the latencies by the number of the attack.
pub(in super::super) fn by_attack(outcome: &HostileOutcome) -> Chart {
    let caption = "p99 of the other client of a service alone, and beside an attack by twice the \
                   octets, by its number in the tables.";
    let series = |mark, name, p99: fn(&ServiceRow) -> f64| {
        let attacks = outcome.plan.services.attacks.iter().enumerate();
        let points = attacks.filter_map(|(at, attack)| {
            let row = outcome.service_row(*attack, 2)?;
            (row.latency.calls > 0).then(|| ((at + 1) as f64, p99(row)))
        });
        Series::new(mark, name, points)
    };
    Chart::new(caption, Axis::linear("attack", Unit::Count), latency()).series([
        series(Mark::Line, "p99 alone", |row| row.alone_p99_us).colour(0),
        series(Mark::Line, "p99 beside the attack", |row| {
            row.latency.p99_us
        })
        .colour(1),
    ])
}

/// Returns the notes on how to read the figures.
pub(in super::super) fn notes(plan: &ServicePlan) -> Vec<String> {
    let [alone, period, timeout, rest] =
        [plan.alone, plan.period, plan.timeout, plan.rest].map(units::setting);
    vec![
        format!(
            "Each attack on a service is made twice, by some octets and by twice as many, each \
             time on a new server with the default settings of the command. Another client calls \
             it every {period}: alone for {alone}, and beside the attack. A call that takes longer \
             than {timeout} has failed. An attack ends after {} at the latest.",
            units::setting(plan.longest)
        ),
        format!(
            "Octets are those that the attacker writes to its sockets. Memory is the peak of what \
             is resident, less what was resident before the attack; {} of it are not counted, for \
             the granularity of the allocator. Processor time is that of proc(5), of user and \
             kernel, in ticks of 10 ms, since hardware counters of instructions are rarely to be \
             had in virtual machines; less than {LEAST_CPU_MS} ms count as {LEAST_CPU_MS} ms. The \
             time of the other client's calls is taken off. A server rests when it takes at most a \
             tick in 200 ms; it has {rest} for that.",
            units::bytes(MEMORY_CONSTANT as f64)
        ),
    ]
}

fn bytes(octets: u64) -> String {
    units::bytes(octets as f64)
}

fn factor(value: f64) -> String {
    format!("{value:.2}")
}
