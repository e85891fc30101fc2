//! The report: a page with the table and a plot.

use std::fmt::Write;

use super::architectures;
use super::counts::Counts;
use super::outcome::{Outcome, Side};
use super::plot;
use super::table::{COLUMNS, LEAD, by_case, cells, lock_operations, notes, number, per_call};
use crate::claim;
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape};

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&architectures::section(&outcome.architectures)?);
    let _ = write!(
        body,
        "<h2>One client</h2>\n<figure>{}\n<figcaption>User-level lock operations (lock and unlock) for each two-way request, at \
         client and server. None is a bar of no height.</figcaption>\n</figure>\n",
        plot::lock_operations(outcome)?
    );
    body.push_str(&lock_table(outcome));
    let _ = write!(body, "<h2>One call</h2>\n{}", figure_table(outcome));
    let _ = write!(
        body,
        "<h2>Its system calls</h2>\n{}",
        system_call_table(outcome)
    );
    let _ = write!(
        body,
        "<h2>The budgets, and what the papers say</h2>\n{}",
        claim::table(&outcome.claims())
    );
    body.push_str("<h2>How it was counted</h2>\n");
    for note in notes(outcome).into_iter().chain(architectures::notes()) {
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab whitebox\n\
         cargo run --release -- lab whitebox --json</pre>\n",
        environment_table(&outcome.environment)
    );
    Ok(document(&headline(outcome), &body))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let sides = [Side::Client, Side::Server].map(|side| outcome.row("twoway", side));
    let [Some(client), Some(server)] = sides else {
        return "What a call costs inside".to_owned();
    };
    let both =
        |of: fn(&Counts) -> u64| number(client.each(of(&client.counts) + of(&server.counts)));
    format!(
        "A two-way call, client and server together: {} heap allocations, {} lock operations",
        both(|counts| counts.allocations),
        both(|counts| counts.lock_operations),
    )
}

fn lock_table(outcome: &Outcome) -> String {
    let mut text = String::from(
        "<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th><th>client</th>\
         <th>server</th></tr></thead>\n<tbody>\n",
    );
    for (orb, [client, server]) in lock_operations(outcome) {
        let orb = escape(&orb);
        let _ = writeln!(
            text,
            "<tr><td>{orb}</td><td>{client}</td><td>{server}</td></tr>"
        );
    }
    text.push_str("</tbody></table></div>\n");
    text
}

fn figure_table(outcome: &Outcome) -> String {
    let mut text =
        String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>");
    for column in COLUMNS {
        let _ = write!(text, "<th>{column}</th>");
    }
    text.push_str("</tr></thead>\n");
    for (title, rows) in by_case(outcome) {
        let _ = writeln!(
            text,
            "<tbody><tr><th colspan=\"{}\">{}</th></tr>",
            COLUMNS.len() + 1,
            escape(title)
        );
        for row in rows {
            let _ = write!(text, "<tr><td>{}</td>", row.side.name());
            for cell in cells(row) {
                let _ = write!(text, "<td>{}</td>", escape(&cell));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody>\n");
    }
    text.push_str("</table></div>\n");
    text
}

fn system_call_table(outcome: &Outcome) -> String {
    let mut text = String::from("<div class=\"wide\"><table>\n");
    for row in &outcome.rows {
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(row.case.title),
            row.side.name(),
            escape(&per_call(row)),
        );
    }
    text.push_str("</table></div>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        let title = "<title>A two-way call, client and server together: 0 heap allocations, 0 lock \
                     operations</title>";
        assert!(page.contains(title), "{page}");
        assert!(page.contains("<td>sendto 1, recvfrom 1</td>"), "{page}");
        assert_eq!(page.matches("<svg").count(), 4);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_broken_budget_is_marked() {
        let mut outcome = outcome();
        assert!(!html(&outcome).unwrap().contains("class=\"missed\""));
        outcome.rows[0].counts.lock_operations = 1;
        assert!(html(&outcome).unwrap().contains("class=\"missed\">MISSED"));
    }

    #[test]
    fn nothing_at_all_can_be_told() {
        let mut outcome = outcome();
        outcome.rows.clear();
        outcome.architectures.clear();
        assert!(
            html(&outcome)
                .unwrap()
                .contains("<h1>What a call costs inside</h1>")
        );
    }
}
