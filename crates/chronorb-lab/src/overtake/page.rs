//! The report: a page with tables, plots and verdicts.

use std::fmt::Write;

use super::case::{Case, Load, Series, Strategy};
use super::claims::{BORROWING, EXHAUSTED, FULL, SATURATED};
use super::outcome::{Outcome, trial};
use super::plot::{by_case, by_percentile, over_time};
use super::table::{COLUMNS, LEAD, heading, lines, notes};
use crate::claim;
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&claim::table(&outcome.claims()));
    for strategy in Strategy::ALL {
        let _ = writeln!(body, "<h2>{}</h2>", escape(&overtaking(outcome, strategy)));
        body.push_str(&figure(
            &by_percentile(outcome, strategy)?,
            "Latency by percentile of the calls at fixed times, all rounds together. To the right each \
             step is ten times rarer; a line ends at the longest call.",
        ));
    }
    for series in Series::ALL {
        let _ = writeln!(body, "<h2>{}</h2>", escape(&steady(outcome, series)));
        body.push_str(&figure(
            &by_case(outcome, series)?,
            "A dot is the p99 of one round, a line the median of the rounds. Where a load has no dot, \
             no call was answered in its time.",
        ));
    }
    for strategy in Strategy::ALL {
        let _ = writeln!(body, "<h2>{}</h2>", escape(&waiting(outcome, strategy)));
        body.push_str(&figure(
            &over_time(outcome, strategy)?,
            "Each call at its time within its round, while the high lane's thread is busy with slow \
             calls.",
        ));
    }
    body.push_str("<h2>The figures</h2>\n");
    for strategy in Strategy::ALL {
        for series in Series::ALL {
            body.push_str(&figure_table(outcome, strategy, series));
        }
    }
    body.push_str("<h2>How it was measured</h2>\n");
    for note in notes(outcome) {
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab overtake</pre>\n",
        environment_table(&outcome.environment)
    );
    Ok(document(&headline(outcome), &body))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let ratios = |to| {
        let saturated = |strategy| trial(strategy, SATURATED, Series::Periodic);
        let [first, second] = Strategy::ALL.map(|of| outcome.ratio(saturated(of), to));
        Some(format!("{:.2} and {:.2}", first?, second?))
    };
    match ratios(Load::Idle).zip(ratios(Load::Awake)) {
        Some((idle, awake)) => format!(
            "With all lower lanes saturated, calls of the high lane have {idle} of the p99 of an idle \
             machine (Leader/Followers and Half-Sync/Half-Async), and {awake} of one kept awake"
        ),
        None => "Calls of high priority while endless work saturates all lower lanes".to_owned(),
    }
}

/// What the percentiles of a strategy show.
fn overtaking(outcome: &Outcome, strategy: Strategy) -> String {
    let p99 = |case| {
        let figure = outcome.figure(trial(strategy, case, Series::Periodic));
        figure.map_or_else(|| "not measured".to_owned(), |f| units::time(f.p99_us))
    };
    format!(
        "{}: p99 {} idle, {} awake, {} with the lower lanes saturated, {} with their buffers full",
        strategy.title(),
        p99(SATURATED.under(Load::Idle)),
        p99(SATURATED.under(Load::Awake)),
        p99(SATURATED),
        p99(FULL),
    )
}

/// What the rounds show.
fn steady(outcome: &Outcome, series: Series) -> String {
    let ratios = Strategy::ALL
        .into_iter()
        .flat_map(|strategy| [SATURATED, FULL].map(|case| trial(strategy, case, series)))
        .filter_map(|trial| outcome.ratio(trial, Load::Idle));
    let calls = match series {
        Series::Periodic => "Calls at fixed times",
        Series::BackToBack => "Calls back to back",
    };
    match ratios.reduce(f64::max) {
        Some(most) => format!(
            "{calls}: with lower lanes saturated p99 is at most {most:.2} of idle, by either strategy, \
             also with full buffers"
        ),
        None => format!("{calls} were not measured"),
    }
}

/// What the courses show.
fn waiting(outcome: &Outcome, strategy: Strategy) -> String {
    let p99 = |case: Case| {
        let figure = outcome.figure(trial(strategy, case, Series::Periodic));
        figure.map_or_else(|| "not measured".to_owned(), |f| units::time(f.p99_us))
    };
    format!(
        "{}, high lane exhausted: p99 {} with borrowing, {} without, where {} of its own lane's work \
         are to be waited for",
        strategy.title(),
        p99(BORROWING),
        p99(EXHAUSTED),
        units::setting(outcome.plan.work_before()),
    )
}

fn figure(svg: &str, caption: &str) -> String {
    format!("<figure>{svg}\n<figcaption>{caption}</figcaption>\n</figure>\n")
}

fn figure_table(outcome: &Outcome, strategy: Strategy, series: Series) -> String {
    let mut text =
        String::from("<div class=\"wide\"><table class=\"figures\">\n<thead><tr><th></th>");
    for column in COLUMNS {
        let _ = write!(text, "<th>{column}</th>");
    }
    let _ = writeln!(
        text,
        "</tr></thead>\n<tbody><tr><th colspan=\"{}\">{}</th></tr>",
        COLUMNS.len() + 1,
        escape(&heading(outcome, strategy, series))
    );
    for (name, cells) in lines(outcome, strategy, series) {
        let _ = write!(text, "<tr><td>{}</td>", escape(&name));
        for cell in cells {
            let _ = write!(text, "<td>{}</td>", escape(&cell));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::super::table::text;
    use super::*;

    #[test]
    fn the_page_states_its_finding() {
        let page = html(&outcome()).unwrap();
        assert!(page.contains(
            "<title>With all lower lanes saturated, calls of the high lane have 1.00 and 1.00 of the \
             p99 of an idle machine"
        ));
        assert!(page.contains("Leader/Followers: p99 102 µs idle, 102 µs awake, 102 µs with"));
        assert!(!page.contains("class=\"missed\"") && !page.contains("class=\"caveat\""));
    }

    #[test]
    fn what_was_missed_or_disturbed_stands_out() {
        let mut outcome = outcome();
        outcome.real_time = false;
        outcome.environment.stolen_percent = vec![3.25];
        let rows = outcome.rows.iter_mut();
        rows.filter(|row| row.trial.case == FULL)
            .for_each(|row| row.latency.p99_us *= 3.0);
        let page = html(&outcome).unwrap();
        assert!(page.contains("<td class=\"missed\">MISSED</td>"));
        for part in ["not real-time", "3.2 % of the time"] {
            assert!(
                page.contains(part) && text(&outcome).contains(part),
                "{part}"
            );
        }
    }

    #[test]
    fn an_experiment_without_any_answer_can_be_told() {
        let mut outcome = outcome();
        outcome.rows.clear();
        outcome.pooled.clear();
        assert!(html(&outcome).unwrap().contains("NOT MEASURED"));
        assert!(text(&outcome).contains("NOT MEASURED"));
    }

    #[test]
    fn columns_of_the_tables_line_up() {
        let text = text(&outcome());
        let tables = text
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with("PASS"));
        let widths: Vec<usize> = tables
            .map(|line| line.chars().count())
            .filter(|width| *width > 0)
            .collect();
        assert_eq!(widths.len(), 4 * (1 + Case::ALL.len()));
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }
}
