//! The report: a page with plots, claims and tables.

use std::fmt::Write;

use super::Strategy;
use super::claims::{at, of_figures, of_promises};
use super::outcome::{Outcome, percent};
use super::plot::{elapsed_by_threads, improvement_by_work, improvement_map};
use super::table::{notes, tables};
use crate::claim;
use crate::experiment::Findings;
use crate::report::{PlotError, document, environment_table, escape, figure};

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in outcome.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    body.push_str(&claim::table(&of_figures(outcome)));
    let plots = [
        (
            greatest(outcome),
            improvement_map(outcome)?,
            "By how much Half-Sync/Half-Async took longer than Leader/Followers for the same requests. Blue: \
             Leader/Followers are ahead, the more the stronger; orange: they are not.",
        ),
        (
            falling(outcome),
            improvement_by_work(outcome)?,
            "The same, by the work of a request: a line for each number of threads.",
        ),
        (
            "What all requests took".to_owned(),
            elapsed_by_threads(outcome)?,
            "From the first request to the last reply, for the least, a middle and the greatest amount of work. Full \
             lines: Leader/Followers; dashed: Half-Sync/Half-Async.",
        ),
    ];
    for (title, svg, caption) in &plots {
        let _ = writeln!(body, "<h2>{}</h2>", escape(title));
        body.push_str(&figure(svg, caption));
    }
    let _ = write!(
        body,
        "<h2>What is promised of thread pools, tried</h2>\n{}",
        claim::table(&of_promises(outcome))
    );
    body.push_str("<h2>The figures</h2>\n");
    for table in tables(outcome) {
        body.push_str(&table.html());
    }
    body.push_str("<h2>How it was measured</h2>\n");
    for note in notes(outcome) {
        let _ = writeln!(body, "<p>{}</p>", escape(&note));
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>cargo run --release -- lab thread-pools{}</pre>\n",
        environment_table(&outcome.environment),
        if outcome.plan.is_short() {
            " --short"
        } else {
            ""
        },
    );
    Ok(document(&outcome.headline(), &body))
}

/// What the map shows.
fn greatest(outcome: &Outcome) -> String {
    outcome.extremes().map_or_else(
        || "Nothing was compared".to_owned(),
        |[_, (cell, improvement)]| {
            format!(
                "The improvement is greatest {}: {}",
                at(cell),
                percent(improvement)
            )
        },
    )
}

/// What the lines show.
fn falling(outcome: &Outcome) -> String {
    let works = || outcome.plan.work_us.iter().copied();
    let mean = |work_us: Option<u32>| {
        let all = outcome.improvements().into_iter();
        let of = all.filter(|(cell, _)| Some(cell.work_us) == work_us);
        let of: Vec<f64> = of.map(|(_, improvement)| improvement).collect();
        of.iter().sum::<f64>() / of.len().max(1) as f64
    };
    let (least, most) = (works().min(), works().max());
    format!(
        "On average over the threads, {} with {} µs of work and {} with {} µs",
        percent(mean(least)),
        least.unwrap_or_default(),
        percent(mean(most)),
        most.unwrap_or_default(),
    )
}

/// The name of a strategy's lines.
pub(super) const fn short(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::LeaderFollowers => "L/F",
        Strategy::HalfSyncHalfAsync => "HS/HA",
    }
}

const LEAD: &str = "The same requests, served by a thread pool of Leader/Followers, where who reads a request serves \
     it, and by one of Half-Sync/Half-Async, where one thread reads and hands over: with one to six threads, and with \
     five amounts of work. And what is promised of thread pools of Real-time CORBA, tried.";

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn the_page_has_all_and_needs_nothing_else() {
        let page = html(&outcome(|cell| 5.0 / f64::from(cell.threads))).unwrap();
        assert_eq!(page.matches("<svg").count(), 3);
        for outside in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for part in [
            "OM 2001, figure 13",
            "about 2,800 %",
            "The improvement is greatest with 1 thread and 0 µs of work: +50 %",
            "+20 % with 0 µs of work and +1.9 % with 100 µs",
            "lab thread-pools</pre>",
            "prefers-color-scheme: dark",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn nothing_measured_is_said() {
        let mut outcome = outcome(|_| 5.0);
        outcome.trials.clear();
        let page = html(&outcome).unwrap();
        assert!(page.contains("Nothing was compared"));
    }
}
