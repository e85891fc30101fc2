//! What the parts of the page show, in a line each.

use super::case::Case;
use super::claims::free;
use super::class::Class;
use super::load::Load;
use super::outcome::{Client, Mode, Outcome, Side};
use crate::report::canvas::largest;
use crate::units;

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let p99 = |case: Case| Some(outcome.class(case, Client::High)?.p99_of_rounds_us);
    let of = |class| {
        let busy = free(outcome, class, Load::Mixed);
        Some((p99(busy.under(Load::Idle))?, p99(busy)?))
    };
    match (of(Class::Other), of(Class::Fifo)) {
        (Some((other_idle, other)), Some((fifo_idle, fifo))) => format!(
            "Computing and I/O of others take the p99 of the high class from {} to {} with SCHED_OTHER, from {} to {} with \
             SCHED_FIFO",
            units::time(other_idle),
            units::time(other),
            units::time(fifo_idle),
            units::time(fifo),
        ),
        _ => "The ORB and the operating system".to_owned(),
    }
}

/// What throttling takes.
pub(super) fn throttling(outcome: &Outcome) -> String {
    let rows = || outcome.throttling.iter();
    let longest = largest(rows().map(|row| row.longest_gap_us));
    let lost = largest(rows().map(|row| row.lost_percent));
    format!(
        "A real-time thread that computes without end loses {lost:.1} % of the time, and waits {} at the longest",
        units::time(longest)
    )
}

/// What a context switch costs.
pub(super) fn switches(outcome: &Outcome) -> String {
    let means = |cpus| {
        let rows = outcome.switches.iter();
        rows.filter(move |row| row.cpus == cpus)
            .map(|row| row.mean_us)
    };
    let least = means(1).reduce(f64::min).unwrap_or_default();
    let across = means(2).next().map_or_else(String::new, |mean| {
        format!(", {} across two", units::time(mean))
    });
    format!(
        "A context switch takes {} to {} on one CPU{across}",
        units::time(least),
        units::time(largest(means(1))),
    )
}

/// How many of them a request has.
pub(super) fn requests(outcome: &Outcome) -> String {
    let both = outcome
        .requests
        .iter()
        .map(|row| row.client_switches_per_request + row.server_switches_per_request);
    let least = both.clone().reduce(f64::min).unwrap_or_default();
    format!(
        "A request has {least:.2} to {:.2} context switches, client and server together",
        largest(both)
    )
}

/// What is left of processors.
pub(super) fn scavengers(outcome: &Outcome) -> String {
    let last = |side| {
        let mut rows = outcome.scavengers.iter();
        rows.rfind(|row| row.side == side)
    };
    match (last(Side::Client), last(Side::Server)) {
        (Some(client), Some(server)) => format!(
            "{} calls a second leave {:.0} % of the client's CPU and {:.0} % of the server's",
            client.rate_hz, client.left_percent, server.left_percent,
        ),
        _ => "CPU left to a scavenger".to_owned(),
    }
}

/// Whether four clients are served in their order.
pub(super) fn rates(outcome: &Outcome) -> String {
    let mean = |class| {
        let [first, ..] = outcome.four(class, Mode::Scaled)?;
        Some(first.latency)
    };
    match (mean(Class::Fifo), mean(Class::Other)) {
        (Some(fifo), Some(other)) => format!(
            "Under load the most urgent of four clients has a mean of {} and jitter of {} with SCHED_FIFO, {} and {} with \
             SCHED_OTHER",
            units::time(fifo.mean_us),
            units::time(fifo.jitter_us),
            units::time(other.mean_us),
            units::time(other.jitter_us),
        ),
        _ => "Four clients at four rates".to_owned(),
    }
}
