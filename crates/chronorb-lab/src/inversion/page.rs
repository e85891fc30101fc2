//! The report: a page with plots, tables and verdicts.

use std::fmt::Write;

use super::claims;
use super::outcome::Outcome;
use super::plan::Mode;
use super::plot::{Figure, by_clients};
use super::table::{
    FROM_THE_CALL, LATENCIES, LEAD, PROCESSORS, Table, caveats, clients, heading, meaning, notes,
};
use crate::claim;
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape};

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in caveats(outcome) {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    for mode in outcome.modes() {
        let _ = writeln!(body, "<h2>{}</h2>", escape(&capital(heading(mode))));
        for figure in Figure::ALL {
            let _ = writeln!(
                body,
                "<figure>{}\n<figcaption>{}: {}. Solid lines are the high-priority client, dashed ones of the same \
                 colour the low-priority clients of the same ORB.</figcaption>\n</figure>",
                by_clients(outcome, mode, figure)?,
                mode.name(),
                figure.title(),
            );
        }
        body.push_str(&claim::table(&claims::in_mode(outcome, mode)));
        for table in [LATENCIES, FROM_THE_CALL, PROCESSORS] {
            body.push_str(&figure_table(outcome, mode, &table));
        }
    }
    body.push_str("<h2>What is compared</h2>\n<table>\n");
    for architecture in outcome.architectures() {
        let _ = writeln!(
            body,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(architecture.title()),
            escape(&meaning(architecture))
        );
    }
    body.push_str("</table>\n<h2>How it was measured</h2>\n");
    for note in notes(outcome) {
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>{}</pre>\n",
        environment_table(&outcome.environment),
        escape(&outcome.plan.command())
    );
    Ok(document(&outcome.headline(), &body))
}

fn figure_table(outcome: &Outcome, mode: Mode, table: &Table) -> String {
    let mut text = format!(
        "<h3>{}</h3>\n<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>",
        escape(table.title)
    );
    for column in table.columns {
        let _ = write!(text, "<th>{}</th>", escape(column));
    }
    text.push_str("</tr></thead>\n<tbody>");
    let mut before = None;
    for line in table.lines(outcome, mode) {
        if before.replace(line.architecture) != Some(line.architecture) {
            let _ = writeln!(
                text,
                "<tr><th colspan=\"{}\">{}</th></tr>",
                table.columns.len() + 1,
                escape(line.architecture.title())
            );
        }
        let clients = clients(line.low_clients);
        let whose = match line.class {
            "" => clients,
            class => format!("{class}, {clients}"),
        };
        let _ = write!(text, "<tr><td>{}</td>", escape(&whose));
        for cell in line.cells {
            let _ = write!(text, "<td>{}</td>", escape(&cell));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::super::Inversion;
    use super::super::claims::tests::outcome;
    use super::super::outcome::Class;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn the_page_states_its_finding_and_holds_the_plots_of_each_mode() {
        let page = html(&outcome()).unwrap();
        assert!(page.contains(
            "<title>Priorities hold: with 50 low-priority clients beside it the high-priority client waits 1.0 times as long \
             as with one; in conventional architectures 10 times as long as that</title>"
        ));
        assert_eq!(page.matches("<svg").count(), 2 * Figure::ALL.len());
        for text in [
            "reproduced",
            "In the paper this is miniCOOL",
            "--utilisation 65",
            "1.78 ms",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("class=\"missed\"") && !page.contains("class=\"caveat\""));
    }

    #[test]
    fn the_finding_says_where_priorities_do_not_hold_and_of_which_mode_it_is() {
        let mut outcome = outcome();
        outcome.rows.retain(|row| row.mode == Mode::Saturated);
        for row in &mut outcome.rows {
            row.latency.mean_us *= f64::from(row.low_clients);
        }
        let headline = outcome.headline();
        assert!(
            headline.starts_with("Priorities do not hold (saturated): with 50 low-priority"),
            "{headline}"
        );
        outcome.rows.retain(|row| row.low_clients == 1);
        assert_eq!(outcome.headline(), Inversion::TITLE);
    }

    #[test]
    fn what_disturbed_the_measurement_stands_out() {
        let mut outcome = outcome();
        outcome.real_time = false;
        outcome.environment.stolen_percent = vec![3.25];
        let (page, text) = (html(&outcome).unwrap(), outcome.text());
        for part in ["not real-time", "3.2 % of the time"] {
            assert!(page.contains(part) && text.contains(part), "{part}");
        }
    }

    #[test]
    fn an_experiment_without_any_trial_can_be_told() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert!(html(&outcome).unwrap().contains("Priority inversion"));
        assert!(outcome.text().contains("Priority inversion"));
    }

    #[test]
    fn programs_read_a_row_for_each_class_of_each_trial() {
        let outcome = outcome();
        let figures = outcome.figures();
        assert_eq!(figures["experiment"], "inversion");
        let rows = figures["rows"].as_array().unwrap();
        assert_eq!(rows.len(), outcome.rows.len());
        assert_eq!(rows[0]["architecture"], "real-time");
        assert_eq!(rows[0]["mode"], "loaded");
        assert_eq!(rows[0]["class"], Class::High.name());
        for name in [
            "low_clients",
            "calls",
            "mean_us",
            "jitter_us",
            "p50_us",
            "p99_us",
            "p999_us",
            "max_us",
            "call_mean_us",
            "server_cpu_percent",
            "client_cpu_percent",
            "stolen_percent",
        ] {
            assert!(rows[0][name].is_number(), "{name}: {}", rows[0]);
        }
        assert_eq!(figures["claims"][0]["paper"], "RTAS 1998, figure 7");
    }

    #[test]
    fn columns_of_the_tables_line_up() {
        let text = outcome().text();
        let mut tables: Vec<Vec<usize>> = vec![Vec::new()];
        for line in text
            .lines()
            .skip(3)
            .take_while(|line| !line.starts_with("reproduced"))
        {
            match line {
                "" => tables.push(Vec::new()),
                line => tables.last_mut().unwrap().push(line.chars().count()),
            }
        }
        let tables: Vec<_> = tables.into_iter().filter(|lines| lines.len() > 1).collect();
        assert_eq!(tables.len(), 2 * 3, "{text}");
        for widths in tables {
            assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        }
    }
}
