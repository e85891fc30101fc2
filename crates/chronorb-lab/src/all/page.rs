//! The index as a page.

use std::fmt::Write;

use super::index::{Index, Score, Visit};
use super::text::is_missed_aim;
use crate::Verdict;
use crate::claim::{self, Claim};
use crate::experiment::Findings;
use crate::report::{document, environment_table, escape};
use crate::units;

/// The index as one HTML page, whose only links are those to the reports beside it.
pub(super) fn html(index: &Index) -> String {
    let mut body = format!("<p class=\"lead\">{LEAD}</p>\n");
    for caveat in index.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    let _ = write!(body, "<h2>The experiments</h2>\n{}", experiments(index));
    body.push_str("<h2>What the papers say</h2>\n");
    for (paper, claims) in by_paper(index) {
        let _ = write!(body, "<h3>{}</h3>\n{}", escape(paper), of_paper(&claims));
    }
    let _ = writeln!(body, "<p>{ABSENT}</p>");
    let missed: Vec<Claim> = index.claims().into_iter().filter(is_missed_aim).collect();
    if !missed.is_empty() {
        let _ = write!(
            body,
            "<h2>What chronorb aims at, and misses here</h2>\n{}",
            claim::table(&missed)
        );
    }
    let mut commands = index.command();
    for visit in &index.visits {
        let _ = write!(commands, "\nchronorb lab {}{}", visit.name, index.flag());
    }
    let _ = write!(
        body,
        "<h2>Where</h2>\n{}\n<h2>To repeat it</h2>\n<pre>{}</pre>\n",
        environment_table(&index.environment),
        escape(&commands)
    );
    document(&index.headline(), &body)
}

fn experiments(index: &Index) -> String {
    let mut rows = String::new();
    for visit in &index.visits {
        let score = Score::of(visit.claims());
        let (class, finding) = match &visit.outcome {
            Ok(told) => ("", escape(&told.headline).into_owned()),
            Err(failure) => (" class=\"missed\"", format!("failed: {}", escape(failure))),
        };
        // What failed has left no report.
        let name = match visit.outcome.is_ok() {
            true => format!("<a href=\"{0}.html\">{0}</a>", visit.name),
            false => visit.name.to_owned(),
        };
        let _ = writeln!(
            rows,
            "<tr><td>{name}<br><small>{}</small></td><td{class}>{finding}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(visit.title),
            score.of_papers(),
            score.of_aims(),
            units::span(visit.took),
        );
    }
    format!(
        "<div class=\"wide\"><table>\n<thead><tr><th>Experiment</th><th>Finding</th><th>Claims of papers</th><th>Aims</th>\
         <th>Took</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// A claim of a paper, and the experiment that holds it against its figures.
type PaperClaim<'a> = (&'a Visit, &'a Claim);

/// The papers, in the order in which they are first heard of, each with its claims.
fn by_paper(index: &Index) -> Vec<(&'static str, Vec<PaperClaim<'_>>)> {
    let mut papers: Vec<(&str, Vec<PaperClaim<'_>>)> = Vec::new();
    for (visit, claim) in index.all_claims() {
        let Some((paper, _)) = claim.paper.map(paper_and_place) else {
            continue;
        };
        match papers.iter_mut().find(|(of, _)| *of == paper) {
            Some((_, claims)) => claims.push((visit, claim)),
            None => papers.push((paper, vec![(visit, claim)])),
        }
    }
    papers
}

fn of_paper(claims: &[PaperClaim<'_>]) -> String {
    let mut rows = String::new();
    for (visit, claim) in claims {
        let class = match claim.verdict() {
            Verdict::Missed => " class=\"missed\"",
            Verdict::Pass | Verdict::NotMeasured => "",
        };
        let note = match claim.why.as_str() {
            "" => String::new(),
            why => format!("<br><small>{}</small>", escape(why)),
        };
        let (_, place) = claim.paper.map(paper_and_place).unwrap_or_default();
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td><a href=\"{1}.html\">{1}</a></td><td>{2}</td><td>{3}</td><td>{4}{note}</td>\
             <td{class}>{5}</td></tr>",
            escape(place),
            visit.name,
            escape(&claim.claim),
            escape(&claim.published),
            escape(&claim.measured),
            claim.word(),
        );
    }
    format!(
        "<div class=\"wide\"><table>\n<thead><tr><th>Where</th><th>Experiment</th><th>Claimed</th><th>Published</th>\
         <th>Measured here</th><th></th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// `RTAS 1998, figure 7` is a paper and a place in it.
fn paper_and_place(paper: &'static str) -> (&'static str, &'static str) {
    paper.split_once(", ").unwrap_or((paper, ""))
}

const LEAD: &str = "The experiments of the papers on real-time CORBA, and some more, run on this machine: what the \
                    papers claim beside what is so here, and a report with plots of each.";
const ABSENT: &str = "Two experiments of the tutorial slides of 1999 have no counterpart here: GIOPlite, and the overhead \
                      of protocols. They compare protocols that an ORB can exchange, and chronorb speaks GIOP alone.";

#[cfg(test)]
mod tests {
    use super::super::index::tests::index;
    use super::*;

    #[test]
    fn the_page_links_to_the_report_of_whatever_did_not_fail() {
        let page = html(&index());
        assert!(page.contains("<a href=\"inversion.html\">inversion</a>"));
        assert!(page.contains("<a href=\"latency.html\">latency</a>"));
        assert!(!page.contains("waits.html"), "it failed");
        assert!(page.contains("<td class=\"missed\">failed: no &lt;socket&gt; can be had</td>"));
        for outside in ["src=", "url(", "@import", "<script", "http"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn claims_stand_with_their_paper_and_where_they_are_not_so_why() {
        let page = html(&index());
        let papers: Vec<_> = page.split("<h3>").skip(1).collect();
        assert_eq!(papers.len(), 2);
        assert!(papers[0].starts_with("RTAS 1998</h3>"));
        assert!(papers[0].contains("figure 7") && papers[0].contains("figure 8"));
        assert!(papers[0].contains("<td>7 times</td><td>8 times</td><td>reproduced</td>"));
        assert!(papers[1].contains(
            "as quick<br><small>there is one &lt;object&gt; only</small></td><td class=\"missed\">not reproduced</td>"
        ));
    }

    #[test]
    fn it_says_how_to_repeat_all_or_one() {
        let page = html(&index());
        assert!(page.contains("<pre>chronorb lab all --short\nchronorb lab inversion --short\n"));
    }
}
