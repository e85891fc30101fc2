//! The report: a page with plots, tables and verdicts.

use std::fmt::Write;

use super::outcome::Outcome;
use super::{headings, plot, table};
use crate::claim;
use crate::experiment::Findings;
use crate::report::{PlotError, Table, document, environment_table, escape, figure};

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{}</p>\n", table::LEAD);
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&claim::table(&outcome.claims()));

    let plot = figure(
        &plot::by_class(outcome)?,
        "Calls of the high class, client and server free to run on all CPUs: a bar ends at p99, which stands at its foot, \
         a ring is the longest call. Latencies count from when a call was due.",
    );
    let heading = "The ORB under scheduling classes";
    part(&mut body, heading, &plot, &table::classes(outcome));
    if !outcome.throttling.is_empty() {
        let heading = headings::throttling(outcome);
        part(&mut body, &heading, "", &[table::throttling(outcome)]);
    }
    if !outcome.switches.is_empty() {
        let plot = figure(
            &plot::switches(outcome)?,
            "Means, those of the papers on a Pentium II at 450 MHz. Where a bar is missing, the papers have no figure.",
        );
        let tables = [table::beside_the_papers(outcome), table::switches(outcome)];
        part(&mut body, &headings::switches(outcome), &plot, &tables);
    }
    if !outcome.requests.is_empty() {
        let plot = figure(
            &plot::requests(outcome)?,
            "One client of high priority and the others of low, which call back to back, all SCHED_FIFO.",
        );
        let tables = [table::requests(outcome)];
        part(&mut body, &headings::requests(outcome), &plot, &tables);
    }
    if !outcome.scavengers.is_empty() {
        let plot = figure(
            &plot::scavengers(outcome)?,
            "How far an ordinary thread counts on the CPU of client or server, by how far it counts when nothing is \
             called.",
        );
        let tables = [table::scavengers(outcome)];
        part(&mut body, &headings::scavengers(outcome), &plot, &tables);
    }
    let plot = figure(
        &plot::rates(outcome)?,
        "A bar ends at the mean of a client's calls, which stands at its foot, a ring is a standard deviation above it. \
         Loaded is at ten times the rates, with work for each call and the CPU busy.",
    );
    let tables = [table::rates(outcome)];
    part(&mut body, &headings::rates(outcome), &plot, &tables);

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
    Ok(document(&headings::headline(outcome), &body))
}

/// A part of the page, with what it shows.
fn part(body: &mut String, heading: &str, figure: &str, tables: &[Table]) {
    let _ = writeln!(body, "<h2>{}</h2>\n{figure}", escape(heading));
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

#[cfg(test)]
mod tests {
    use super::super::Class;
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        assert!(page.contains(
            "<title>Computing and I/O of others take the p99 of the high class from 120 µs to 2.40 ms with SCHED_OTHER, \
             from 120 µs to 120 µs with SCHED_FIFO</title>"
        ));
        assert_eq!(page.matches("<svg").count(), 5);
        for part in [
            "A context switch takes 0.75 µs to 2.25 µs on one CPU, 9.00 µs across two",
            "A request has 2.00 to 2.00 context switches",
            "4000 calls a second leave 80 % of the client&#x27;s CPU",
            "loses 4.0 % of the time, and waits 50.0 ms",
            "not reproduced",
            "Isolated CPUs",
            "lab os --short",
        ] {
            assert!(page.contains(part), "{part}");
        }
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("class=\"caveat\""));
    }

    #[test]
    fn what_was_refused_is_said_and_left_out() {
        let mut outcome = outcome();
        outcome.refused = vec![(Class::Fifo, "not permitted <here>".to_owned())];
        outcome.classes.retain(|row| row.case.class == Class::Other);
        outcome.rates.retain(|row| row.class == Class::Other);
        outcome.throttling.clear();
        outcome.switches.clear();
        outcome.requests.clear();
        outcome.scavengers.clear();
        let page = html(&outcome).unwrap();
        assert!(page.contains("SCHED_FIFO was not measured"));
        assert!(page.contains("not permitted &lt;here&gt;."));
        assert_eq!(page.matches("<svg").count(), 2);
    }

    #[test]
    fn an_experiment_without_any_answer_can_be_told() {
        let mut outcome = outcome();
        outcome.classes.clear();
        outcome.rates.clear();
        let page = html(&outcome).unwrap();
        assert!(page.contains("<title>The ORB and the operating system</title>"));
        assert!(page.contains("NOT MEASURED") && outcome.text().contains("NOT MEASURED"));
    }
}
