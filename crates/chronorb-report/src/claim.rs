//! What papers say, or chronorb aims at, and whether it is so here.

use std::fmt::Write;

use serde::{Serialize, Serializer};

use crate::document::escape;
use crate::verdict::Verdict;

/// Something that should be true, held against the figures of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The paper that says so, and where: `RTAS 1998, figure 7`; what chronorb itself aims at has none.
    #[serde(serialize_with = "paper_or_own")]
    pub paper: Option<&'static str>,
    /// What should be true.
    pub claim: String,
    /// What the paper found, in its own units; empty where it gives no figure.
    pub published: String,
    /// The figures that say whether it is so here; empty where they were not measured.
    pub measured: String,
    /// The figure of interest by what it is compared with, where that is one number.
    pub ratio: Option<f64>,
    /// Whether it is true, in a word: see [`Claim::word`].
    #[serde(serialize_with = "in_capitals_or_not", rename = "verdict")]
    judgement: Judgement,
    /// Why it is not so here, as far as that is known; empty where it is.
    pub why: String,
}

/// A verdict, and whose words it is given in.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Judgement {
    verdict: Verdict,
    of_paper: bool,
}

impl Claim {
    /// What a paper says, and where: its name with a figure, table or section.
    pub fn of_paper(paper: &'static str, claim: impl Into<String>) -> Self {
        Self {
            paper: Some(paper),
            ..Self::aim(claim)
        }
        .with(Verdict::NotMeasured)
    }

    /// What chronorb aims at.
    pub fn aim(claim: impl Into<String>) -> Self {
        Self {
            paper: None,
            claim: claim.into(),
            published: String::new(),
            measured: String::new(),
            ratio: None,
            judgement: Judgement {
                verdict: Verdict::NotMeasured,
                of_paper: false,
            },
            why: String::new(),
        }
    }

    /// What the paper found.
    pub fn published(mut self, published: impl Into<String>) -> Self {
        self.published = published.into();
        self
    }

    /// Whether it is so, by one number that `holds`, and the figures in words.
    pub fn by_ratio(
        mut self,
        measured: Option<(f64, String)>,
        holds: impl FnOnce(f64) -> bool,
    ) -> Self {
        let Some((ratio, measured)) = measured else {
            return self;
        };
        self.ratio = Some((ratio * 1e3).round() / 1e3);
        self.holds(Some((holds(ratio), measured)))
    }

    /// Whether it is so, and the figures in words.
    pub fn holds(mut self, measured: Option<(bool, String)>) -> Self {
        let Some((holds, measured)) = measured else {
            return self;
        };
        self.measured = measured;
        self.with(Verdict::of(holds))
    }

    /// Why it is not so, where it is not.
    pub fn because(mut self, why: impl Into<String>) -> Self {
        if self.verdict() == Verdict::Missed {
            self.why = why.into();
        }
        self
    }

    /// Whether it is true.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.judgement.verdict
    }

    /// The verdict in a word or two: what a paper says is `reproduced`, `not reproduced` or `not measured`; what
    /// chronorb aims at is a `PASS`, `MISSED` or `NOT MEASURED`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        self.judgement.word()
    }

    fn with(mut self, verdict: Verdict) -> Self {
        self.judgement = Judgement {
            verdict,
            of_paper: self.paper.is_some(),
        };
        self
    }
}

impl Judgement {
    const fn word(self) -> &'static str {
        match (self.verdict, self.of_paper) {
            (verdict, false) => verdict.name(),
            (Verdict::Pass, true) => "reproduced",
            (Verdict::Missed, true) => "not reproduced",
            (Verdict::NotMeasured, true) => "not measured",
        }
    }
}

fn paper_or_own<S: Serializer>(
    paper: &Option<&'static str>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(paper.unwrap_or("chronorb"))
}

fn in_capitals_or_not<S: Serializer>(
    judgement: &Judgement,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(judgement.word())
}

/// The claims as text, one after the other.
pub fn text(claims: &[Claim]) -> String {
    let mut text = String::new();
    for claim in claims {
        let _ = writeln!(text, "{:14}  {}", claim.word(), claim.claim);
        let paper = claim.paper.map(|paper| match claim.published.as_str() {
            "" => paper.to_owned(),
            published => format!("{paper}: {published}"),
        });
        let ratio = claim.ratio.map(|ratio| format!("a factor of {ratio:.2}"));
        let here = match (ratio, claim.measured.as_str()) {
            (Some(ratio), "") => Some(ratio),
            (Some(ratio), measured) => Some(format!("{ratio}: {measured}")),
            (None, "") => None,
            (None, measured) => Some(measured.to_owned()),
        };
        let why = (!claim.why.is_empty()).then(|| claim.why.clone());
        for line in [paper, here, why].into_iter().flatten() {
            let _ = writeln!(text, "{:16}{line}", "");
        }
    }
    text
}

/// The claims as a table of a page; what papers say has columns where one of them is of a paper.
pub fn table(claims: &[Claim]) -> String {
    let has_papers = claims.iter().any(|claim| claim.paper.is_some());
    let of_papers = |cells: String| if has_papers { cells } else { String::new() };
    let mut rows = String::new();
    for claim in claims {
        let class = match claim.verdict() {
            Verdict::Missed => " class=\"missed\"",
            Verdict::Pass | Verdict::NotMeasured => "",
        };
        let note = match claim.why.as_str() {
            "" => String::new(),
            why => format!("<br><small>{}</small>", escape(why)),
        };
        let paper = of_papers(format!("<td>{}</td>", escape(claim.paper.unwrap_or(""))));
        let (says, published) = (escape(&claim.claim), escape(&claim.published));
        let says = match (has_papers, published.is_empty()) {
            (true, true) => format!("<td colspan=\"2\">{says}</td>"),
            (true, false) => format!("<td>{says}</td><td>{published}</td>"),
            (false, _) => format!("<td>{says}</td>"),
        };
        let _ = writeln!(
            rows,
            "<tr>{paper}{says}<td>{}{note}</td><td>{}</td><td{class}>{}</td></tr>",
            escape(&claim.measured),
            claim.ratio.map_or_else(String::new, |r| format!("{r:.2}")),
            claim.word(),
        );
    }
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{}<th>Claimed</th>{}<th>Measured here</th>\
         <th>Factor</th><th></th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
        of_papers("<th>Paper</th>".to_owned()),
        of_papers("<th>Published</th>".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick(ratio: f64) -> Claim {
        let measured = Some((ratio, "so much".to_owned()));
        Claim::aim("quick").by_ratio(measured, |ratio| ratio <= 1.1)
    }

    #[test]
    fn a_claim_without_figures_is_neither_true_nor_false() {
        let claim = Claim::aim("quick").by_ratio(None, |_| true);
        assert_eq!(claim.verdict(), Verdict::NotMeasured);
        assert_eq!(text(&[claim]), "NOT MEASURED    quick\n");
        let claim = Claim::of_paper("RTAS 1998", "quick").holds(None);
        assert_eq!(claim.word(), "not measured");
    }

    #[test]
    fn a_claim_is_judged_by_its_ratio_before_it_is_rounded() {
        assert_eq!(quick(1.1).verdict(), Verdict::Pass);
        assert_eq!(quick(1.1001).verdict(), Verdict::Missed);
        assert_eq!(quick(1.1001).ratio, Some(1.1));
        assert!(table(&[quick(2.0)]).contains("<td class=\"missed\">MISSED</td>"));
    }

    #[test]
    fn nothing_in_a_table_becomes_markup() {
        let hostile = "<b title='1' id=\"2\">&";
        let claim = Claim::of_paper(hostile, hostile)
            .published(hostile)
            .holds(Some((false, hostile.to_owned())))
            .because(hostile);
        let table = table(&[claim]);
        assert!(!table.contains("<b "), "{table}");
        let escaped = "&lt;b title=&#x27;1&#x27; id=&quot;2&quot;&gt;&amp;";
        assert_eq!(table.matches(escaped).count(), 5, "{table}");
    }

    #[test]
    fn a_table_tells_of_papers_where_there_is_one() {
        let paper = Claim::of_paper("RTAS 1998", "quick").published("7 times");
        assert!(!table(&[quick(1.0)]).contains("<th>Paper</th>"));
        let both = table(&[quick(1.0), paper]);
        assert!(both.contains("<th>Paper</th><th>Claimed</th><th>Published</th>"));
        // One of which nothing is published has the room of that.
        assert!(both.contains("<td></td><td colspan=\"2\">quick</td>"));
        assert_eq!(both.matches("<td").count(), 5 + 6);
    }

    #[test]
    fn what_a_paper_says_is_reproduced_or_not_and_why() {
        let claim = |ratio| {
            Claim::of_paper("RTAS 1998, figure 7", "slower")
                .published("7 times")
                .by_ratio(Some((ratio, "2 and 1 ms".to_owned())), |ratio| ratio >= 3.0)
                .because("the machine is idle")
        };
        assert_eq!(
            text(&[claim(2.0)]),
            "not reproduced  slower\n\
             \x20               RTAS 1998, figure 7: 7 times\n\
             \x20               a factor of 2.00: 2 and 1 ms\n\
             \x20               the machine is idle\n"
        );
        assert_eq!(
            (claim(4.0).word(), claim(4.0).why.as_str()),
            ("reproduced", "")
        );
    }

    #[test]
    fn programs_read_who_says_it_and_whether_it_is_so() {
        let own = serde_json::to_value(quick(1.0)).unwrap();
        assert_eq!(
            (&own["paper"], &own["verdict"]),
            (&"chronorb".into(), &"PASS".into())
        );
        let paper = Claim::of_paper("RTAS 1998", "quick").holds(Some((true, "yes".to_owned())));
        let paper = serde_json::to_value(paper).unwrap();
        assert_eq!(paper["paper"], "RTAS 1998");
        assert_eq!(paper["verdict"], "reproduced");
        assert_eq!(paper["measured"], "yes");
        assert_eq!(paper["published"], "");
    }
}
