//! Claims of papers and aims of chronorb, judged by figures.

use serde::{Serialize, Serializer};

use crate::units;
use crate::verdict::Verdict;

/// A statement that should be true, judged by the figures of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The source in a paper: `RTAS 1998, figure 7`; nothing for an aim of chronorb.
    #[serde(serialize_with = "paper_or_own")]
    pub paper: Option<&'static str>,
    /// The statement.
    pub claim: String,
    /// The result of the paper in its own units; empty if it gives no figure.
    pub published: String,
    /// The figures by which it is judged; empty if they were not measured.
    pub measured: String,
    /// The ratio by which it is judged, if that is one number.
    pub ratio: Option<f64>,
    /// The verdict, as in data files.
    #[serde(serialize_with = "recorded", rename = "verdict")]
    judgement: Judgement,
    /// The known reasons why it is not true here; empty if it is true.
    pub why: String,
}

/// A verdict, and the kind of the claim, which decides its word.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Judgement {
    verdict: Verdict,
    of_paper: bool,
}

impl Claim {
    /// A claim of a paper: the name of the paper with a figure, table or section.
    pub fn of_paper(paper: &'static str, claim: impl Into<String>) -> Self {
        Self {
            paper: Some(paper),
            ..Self::aim(claim)
        }
        .with(Verdict::NotMeasured)
    }

    /// An aim of chronorb.
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

    /// Adds the result of the paper.
    pub fn published(mut self, published: impl Into<String>) -> Self {
        self.published = published.into();
        self
    }

    /// Judges the claim by one number, with the figures in words.
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

    /// Judges the claim by the ratio of two times in µs, which replace the two `{}` of `words`.
    #[must_use]
    pub fn times(
        self,
        [first, second]: [Option<f64>; 2],
        words: &str,
        holds: impl FnOnce(f64) -> bool,
    ) -> Self {
        let measured = first.zip(second).map(|(first, second)| {
            let words = words.replacen("{}", &units::time(first), 1);
            let words = words.replacen("{}", &units::time(second), 1);
            (first / second.max(LEAST_US), words)
        });
        self.by_ratio(measured, holds)
    }

    /// Judges the claim, with the figures in words.
    pub fn holds(mut self, measured: Option<(bool, String)>) -> Self {
        let Some((holds, measured)) = measured else {
            return self;
        };
        self.measured = measured;
        self.with(Verdict::of(holds))
    }

    /// Adds the reason why it is not true, if it is not.
    pub fn because(mut self, why: impl Into<String>) -> Self {
        if self.verdict() == Verdict::Missed {
            self.why = why.into();
        }
        self
    }

    /// Returns the verdict.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.judgement.verdict
    }

    /// Returns the verdict in a word or two: claims of papers are `reproduced`, own aims `met`;
    /// both can be `missed` or `not measured`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match (self.verdict(), self.paper) {
            (Verdict::Pass, Some(_)) => REPRODUCED,
            (Verdict::Pass, None) => MET,
            (Verdict::Missed, _) => MISSED,
            (Verdict::NotMeasured, _) => NOT_MEASURED,
        }
    }

    /// Returns the result of the paper, that here, and the reason of a difference, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let paper = self.paper.map(|paper| match self.published.as_str() {
            "" => paper.to_owned(),
            published => format!("{paper}: {published}"),
        });
        let ratio = self.ratio.map(|ratio| format!("a factor of {ratio:.2}"));
        let here = match (ratio, self.measured.as_str()) {
            (ratio, "") => ratio,
            (Some(ratio), measured) => Some(format!("{ratio}: {measured}")),
            (None, measured) => Some(measured.to_owned()),
        };
        let why = (!self.why.is_empty()).then(|| self.why.clone());
        [paper, here, why].into_iter().flatten().collect()
    }

    fn with(mut self, verdict: Verdict) -> Self {
        self.judgement = Judgement {
            verdict,
            of_paper: self.paper.is_some(),
        };
        self
    }
}

/// The words of data files, which stay for the readers of older files.
impl Judgement {
    const fn recorded(self) -> &'static str {
        match (self.verdict, self.of_paper) {
            (verdict, false) => verdict.recorded(),
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

fn recorded<S: Serializer>(judgement: &Judgement, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(judgement.recorded())
}

/// The numbers of claims by their verdicts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Score {
    /// The claims of papers that are true here.
    pub reproduced: usize,
    /// The claims of papers that are not true here.
    pub not_reproduced: usize,
    /// The claims of papers that were not measured.
    pub not_measured: usize,
    /// The number of aims of chronorb that are met.
    pub aims_passed: usize,
    /// The own aims that are missed.
    pub aims_missed: usize,
    /// The own aims that were not measured.
    pub aims_not_measured: usize,
}

impl Score {
    /// Counts the verdicts of claims.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut score = Self::default();
        for claim in claims {
            let count = match (claim.paper.is_some(), claim.verdict()) {
                (true, Verdict::Pass) => &mut score.reproduced,
                (true, Verdict::Missed) => &mut score.not_reproduced,
                (true, Verdict::NotMeasured) => &mut score.not_measured,
                (false, Verdict::Pass) => &mut score.aims_passed,
                (false, Verdict::Missed) => &mut score.aims_missed,
                (false, Verdict::NotMeasured) => &mut score.aims_not_measured,
            };
            *count += 1;
        }
        score
    }

    /// Returns the verdicts on claims of papers, in words; empty without such claims.
    #[must_use]
    pub fn of_papers(&self) -> String {
        words(&[
            (self.reproduced, REPRODUCED),
            (self.not_reproduced, MISSED),
            (self.not_measured, NOT_MEASURED),
        ])
    }

    /// Returns the verdicts on own aims, in words; empty without aims.
    #[must_use]
    pub fn of_aims(&self) -> String {
        words(&[
            (self.aims_passed, MET),
            (self.aims_missed, MISSED),
            (self.aims_not_measured, NOT_MEASURED),
        ])
    }

    /// Returns the numbers that are not zero, each with its word.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let counts = [
            (self.reproduced, REPRODUCED),
            (self.aims_passed, MET),
            (self.not_reproduced + self.aims_missed, MISSED),
            (self.not_measured + self.aims_not_measured, NOT_MEASURED),
        ];
        counts.into_iter().filter(|(count, _)| *count > 0)
    }
}

fn words(counts: &[(usize, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let words = counts.map(|(count, word)| format!("{count} {word}"));
    words.collect::<Vec<_>>().join(", ")
}

/// A time below all that are measured.
const LEAST_US: f64 = 1e-3;
const REPRODUCED: &str = "reproduced";
const MET: &str = "met";
const MISSED: &str = "missed";
const NOT_MEASURED: &str = "not measured";

#[cfg(test)]
mod tests {
    use super::*;

    fn quick(ratio: f64) -> Claim {
        let measured = Some((ratio, "so much".to_owned()));
        Claim::aim("quick").by_ratio(measured, |ratio| ratio <= 1.1)
    }

    #[test]
    fn a_claim_without_figures_is_not_measured() {
        let claim = Claim::aim("quick").by_ratio(None, |_| true);
        assert_eq!(claim.verdict(), Verdict::NotMeasured);
        assert!(claim.lines().is_empty());
        let claim = Claim::of_paper("RTAS 1998", "quick").holds(None);
        assert_eq!(claim.word(), "not measured");
    }

    #[test]
    fn a_claim_is_judged_by_its_ratio_before_it_is_rounded() {
        assert_eq!(quick(1.1).verdict(), Verdict::Pass);
        assert_eq!(quick(1.1001).verdict(), Verdict::Missed);
        assert_eq!(quick(1.1001).ratio, Some(1.1));
    }

    #[test]
    fn claims_have_one_vocabulary() {
        let claim = |ratio| {
            Claim::of_paper("RTAS 1998, figure 7", "slower")
                .published("7 times")
                .by_ratio(Some((ratio, "2 and 1 ms".to_owned())), |ratio| ratio >= 3.0)
                .because("the machine is idle")
        };
        assert_eq!(claim(2.0).word(), "missed");
        let lines = [
            "RTAS 1998, figure 7: 7 times",
            "a factor of 2.00: 2 and 1 ms",
            "the machine is idle",
        ];
        assert_eq!(claim(2.0).lines(), lines);
        assert_eq!(claim(4.0).word(), "reproduced");
        assert_eq!(
            claim(4.0).lines(),
            lines[..1]
                .iter()
                .chain(&["a factor of 4.00: 2 and 1 ms"])
                .copied()
                .collect::<Vec<_>>()
        );
        assert_eq!(
            [quick(1.0), quick(2.0)].map(|claim| claim.word()),
            ["met", "missed"]
        );
        let score = Score::of(&[claim(2.0), claim(4.0), quick(1.0)]);
        assert_eq!(score.of_papers(), "1 reproduced, 1 missed");
        assert_eq!(score.of_aims(), "1 met");
    }

    #[test]
    fn data_files_keep_their_words() {
        let own = serde_json::to_value(quick(1.0)).unwrap();
        assert_eq!(
            (&own["paper"], &own["verdict"]),
            (&"chronorb".into(), &"PASS".into())
        );
        let paper = Claim::of_paper("RTAS 1998", "quick").holds(Some((false, "no".to_owned())));
        let paper = serde_json::to_value(paper).unwrap();
        assert_eq!(paper["paper"], "RTAS 1998");
        assert_eq!(paper["verdict"], "not reproduced");
        assert_eq!(paper["measured"], "no");
        assert_eq!(paper["published"], "");
    }
}
