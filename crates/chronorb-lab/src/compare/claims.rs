//! Claims whose verdict is another one in the second run.

use serde::Serialize;
use serde_json::Value;

/// What a file says of a claim.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Said {
    paper: String,
    claim: String,
    verdict: String,
}

/// A claim of which both runs say something else.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Turned {
    pub(super) paper: String,
    pub(super) claim: String,
    /// The verdict of the first run.
    pub(super) a: String,
    /// That of the second.
    pub(super) b: String,
}

impl Said {
    /// Reads a claim; nothing where it is none.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(Self {
            paper: text("paper").unwrap_or_default(),
            claim: text("claim")?,
            verdict: text("verdict")?,
        })
    }
}

/// The claims that both runs make, and judge otherwise.
pub(super) fn turned(first: &[Said], second: &[Said]) -> Vec<Turned> {
    let turned = first.iter().filter_map(|said| {
        let is_same = |other: &&Said| (&other.paper, &other.claim) == (&said.paper, &said.claim);
        let other = second.iter().find(is_same)?;
        (other.verdict != said.verdict).then(|| Turned {
            paper: said.paper.clone(),
            claim: said.claim.clone(),
            a: said.verdict.clone(),
            b: other.verdict.clone(),
        })
    });
    turned.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(claim: &str, verdict: &str) -> Said {
        let value = json!({"paper": "chronorb", "claim": claim, "verdict": verdict});
        Said::parse(&value).unwrap()
    }

    #[test]
    fn only_what_is_judged_otherwise_is_told() {
        let first = [
            said("quick", "PASS"),
            said("small", "PASS"),
            said("old", "PASS"),
        ];
        let second = [
            said("small", "MISSED"),
            said("quick", "PASS"),
            said("new", "MISSED"),
        ];
        let turned = turned(&first, &second);
        assert_eq!(turned.len(), 1);
        assert_eq!(
            (turned[0].claim.as_str(), turned[0].b.as_str()),
            ("small", "MISSED")
        );
    }

    #[test]
    fn what_is_no_claim_is_left_out() {
        assert_eq!(Said::parse(&json!({"claim": 3, "verdict": "PASS"})), None);
        assert_eq!(Said::parse(&json!("quick")), None);
    }
}
