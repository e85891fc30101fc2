//! The report: a page with plots, tables and verdicts.

use std::fmt::Write;

use super::claims::free;
use super::class::Class;
use super::load::Load;
use super::outcome::{Client, Outcome};
use super::{plot, table};
use crate::claim;
use crate::contest::table::{Table, figure};
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{}</p>\n", table::LEAD);
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&claim::table(&outcome.claims()));

    section(&mut body, "The ORB under scheduling classes", &[]);
    body.push_str(&figure(
        &plot::by_class(outcome)?,
        "Calls of the high class, client and server free to run on all CPUs: a bar ends at p99, a ring is the longest \
         call. Latencies count from when a call was due.",
    ));
    for table in table::classes(outcome) {
        body.push_str(&table.html());
    }

    if !outcome.throttling.is_empty() {
        section(
            &mut body,
            "Real-time throttling",
            &[table::throttling(outcome)],
        );
    }
    if !outcome.switches.is_empty() {
        let tables = [table::beside_the_papers(outcome), table::switches(outcome)];
        section(&mut body, "The cost of a context switch", &[]);
        body.push_str(&figure(
            &plot::switches(outcome)?,
            "Means, those of the papers on a Pentium II at 450 MHz. Where a bar is missing, the papers have no figure.",
        ));
        tables.iter().for_each(|table| body.push_str(&table.html()));
    }
    if !outcome.requests.is_empty() {
        section(&mut body, "Context switches of a request", &[]);
        body.push_str(&figure(
            &plot::requests(outcome)?,
            "One client of high priority and the others of low, which call back to back, all SCHED_FIFO.",
        ));
        body.push_str(&table::requests(outcome).html());
    }
    if !outcome.scavengers.is_empty() {
        section(&mut body, "CPU left to a scavenger", &[]);
        body.push_str(&figure(
            &plot::scavengers(outcome)?,
            "How far an ordinary thread counts on the CPU of client or server, by how far it counts when nothing is \
             called.",
        ));
        body.push_str(&table::scavengers(outcome).html());
    }
    section(&mut body, "Priority inversion at four rates", &[]);
    body.push_str(&figure(
        &plot::rates(outcome)?,
        "A bar ends at the mean of a client's calls, a ring is a standard deviation above it. Loaded is at ten times the \
         rates, with work for each call and the CPU busy.",
    ));
    body.push_str(&table::rates(outcome).html());

    body.push_str("<h2>How it was measured</h2>\n");
    for note in table::notes(outcome) {
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab os\n\
         cargo run --release -- lab os --short\n\
         cargo run --release -- lab os --json</pre>\n",
        environment_table(&outcome.environment),
        kernel_table(outcome),
    );
    Ok(document(&headline(outcome), &body))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let p99 = |class, load| {
        let row = outcome.class(free(outcome, class, load), Client::High)?;
        Some(row.p99_of_rounds_us)
    };
    let of = |class| Some((p99(class, Load::Idle)?, p99(class, Load::Mixed)?));
    match (of(Class::Other), of(Class::Fifo)) {
        (Some((other_idle, other)), Some((fifo_idle, fifo))) => format!(
            "Computing and I/O of others take the p99 of the high class from {} to {} with SCHED_OTHER, from {} to {} with SCHED_FIFO",
            units::time(other_idle),
            units::time(other),
            units::time(fifo_idle),
            units::time(fifo),
        ),
        _ => "The ORB and the operating system".to_owned(),
    }
}

fn section(body: &mut String, title: &str, tables: &[Table]) {
    let _ = writeln!(body, "<h2>{}</h2>", escape(title));
    tables.iter().for_each(|table| body.push_str(&table.html()));
}

fn kernel_table(outcome: &Outcome) -> String {
    let mut text = String::from("<table>\n");
    for (name, value) in outcome.kernel.rows() {
        let _ = writeln!(text, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    }
    text.push_str("</table>");
    text
}
