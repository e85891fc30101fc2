//! The report: a page with plots, tables and verdicts.

use std::fmt::Write;

use super::RealTimeIo;
use super::outcome::{EchoRow, Outcome};
use super::part::Part;
use super::plot::{self, Figure};
use super::table::telling;
use super::way::Way;
use crate::experiment::Experiment;
use crate::report::{PlotError, escape, figure};
use crate::units;

/// The report as one HTML page, for light and dark screens, without anything from the network.
pub(super) fn html(outcome: &Outcome) -> Result<String, PlotError> {
    let mut sections = String::new();
    for part in Part::ALL
        .into_iter()
        .filter(|part| is_measured(outcome, *part))
    {
        let _ = writeln!(sections, "<h2>{}</h2>", escape(heading(part)));
        match part {
            Part::Processing | Part::Company => {
                let caption = "How many echoes took how long, but for the slowest hundredth, as the paper's figures 15 and 17.";
                sections.push_str(&figure(&plot::distribution(outcome, part)?, caption));
                let caption = "Latency by percentile, all rounds together. To the right each step is ten times rarer; a line \
                               ends at the longest.";
                sections.push_str(&figure(&plot::by_percentile(outcome, part)?, caption));
            }
            Part::Guarantees => {
                let caption = "What each flow received, as the paper's figure 19.";
                sections.push_str(&figure(&plot::courses(outcome, part)?, caption));
            }
            Part::Orb => {
                for mode in outcome.modes() {
                    let _ = writeln!(sections, "<h3>{mode}</h3>");
                    for of in Figure::ALL {
                        let svg = plot::by_clients(outcome, mode, of)?;
                        sections.push_str(&figure(&svg, of.caption()));
                    }
                }
            }
        }
        if part == Part::Company {
            let caption = "Bulk traffic in the first round, before, beside and after the echoes, as the paper's figure 18.";
            sections.push_str(&figure(&plot::courses(outcome, part)?, caption));
        }
    }
    Ok(telling(outcome).html(&headline(outcome), &sections))
}

/// The outcome in one line.
pub(super) fn headline(outcome: &Outcome) -> String {
    let of = |way, figure: fn(&EchoRow) -> f64| {
        outcome.of_rounds(Part::Company, way, |row| Some(figure(row)))
    };
    let told = |figure: fn(&EchoRow) -> f64| {
        let [kernel, classes] = [Way::Kernel, Way::Classes].map(|way| of(way, figure));
        Some((units::time(kernel?), units::time(classes?)))
    };
    let mean = told(|row| row.latency.mean_us);
    let max = told(|row| row.latency.max_us);
    match mean.zip(max) {
        Some((mean, max)) => format!(
            "Beside bulk traffic an echo takes {} by the kernel and {} by RIO, at the longest {} and {}",
            mean.0, mean.1, max.0, max.1
        ),
        None => RealTimeIo::TITLE.to_owned(),
    }
}

fn is_measured(outcome: &Outcome, part: Part) -> bool {
    match part {
        Part::Processing | Part::Company => outcome.echoes.iter().any(|row| row.part == part),
        Part::Guarantees => !outcome.flows.is_empty(),
        Part::Orb => !outcome.calls.is_empty(),
    }
}

const fn heading(part: Part) -> &'static str {
    match part {
        Part::Processing => "E10: what scheduled processing costs",
        Part::Company => "E11: low latency beside bulk traffic",
        Part::Guarantees => "E12: guarantees of bandwidth",
        Part::Orb => "E13: the ORB with RIO below it",
    }
}
