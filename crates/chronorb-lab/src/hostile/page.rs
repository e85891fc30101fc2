//! The report: a page with tables, a plot and verdicts.

use super::outcome::Outcome;
use super::plan::Phase;
use super::table::telling;
use crate::report::canvas::{decades, with_room_above};
use crate::report::{COLOURS, LATENCY, Line, PlotError, figure, lines};
use chronorb_report::canvas::exponent;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let section = format!(
        "<h2>Calls of the legitimate client</h2>\n{}",
        figure(
            &by_attack(outcome)?,
            "p99 and the longest call before and during each attack, by its number in the tables. A \
             point is missing where no call was answered.",
        )
    );
    Ok(telling(outcome).html(&headline(outcome), &section))
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
fn by_attack(outcome: &Outcome) -> Result<String, PlotError> {
    let line = |name: &str, colour, phase, is_dashed, of: fn(&super::Row) -> f64| {
        let attacks = outcome.plan.attacks.iter().enumerate();
        let points = attacks.filter_map(|(at, attack)| {
            let row = outcome.row(*attack, phase)?;
            (row.latency.calls > 0).then(|| ((at + 1) as f64, exponent(of(row))))
        });
        Line {
            name: name.to_owned(),
            colour: COLOURS[colour],
            is_dashed,
            points: points.collect(),
        }
    };
    let p99 = |row: &super::Row| row.latency.p99_us;
    let max = |row: &super::Row| row.latency.max_us;
    let drawn = [
        line("p99 alone", 0, Phase::Before, false, p99),
        line("longest alone", 0, Phase::Before, true, max),
        line("p99 beside the attack", 1, Phase::During, false, p99),
        line("longest beside the attack", 1, Phase::During, true, max),
    ];
    let points = drawn.iter().flat_map(|line| &line.points);
    let upwards = with_room_above(decades(points.map(|point| point.1)));
    let behind = outcome.plan.attacks.len() as f64 + 1.0;
    let across = (0.0, behind);
    let of_attack = |at: &f64| match *at {
        at if at > 0.5 && at < behind - 0.5 => format!("{at:.0}"),
        _ => String::new(),
    };
    let number: (&str, &dyn Fn(&f64) -> String) = ("attack", &of_attack);
    lines(
        "latency-by-attack",
        &drawn,
        across,
        upwards,
        number,
        LATENCY,
    )
}

#[cfg(test)]
mod tests {
    use super::super::claims::tests::outcome;
    use super::*;
    use crate::experiment::Findings;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&outcome()).unwrap();
        assert!(page.contains(
            "<title>14 of 15 attacks are noticed by no other client; one ends the server</title>"
        ));
        assert_eq!(page.matches("<svg").count(), 1);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("<td class=\"missed\">MISSED</td>"));
    }

    #[test]
    fn an_attack_that_ends_the_server_is_told_with_its_status() {
        let text = outcome().text();
        for part in [
            "8 alias of itself",
            "signal: 6 (SIGABRT)",
            "none",
            "lives",
            "108 B",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    }

    #[test]
    fn an_experiment_without_any_answer_can_be_told() {
        let mut outcome = outcome();
        outcome.rows.clear();
        assert!(html(&outcome).unwrap().contains("NOT MEASURED"));
        assert!(headline(&outcome).starts_with("0 of 0"));
    }
}
