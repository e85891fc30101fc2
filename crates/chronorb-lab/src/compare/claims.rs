//! Claims that have another verdict in the second run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A claim of a file of figures.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub(super) struct RecordedClaim {
    #[serde(default)]
    paper: String,
    claim: String,
    verdict: String,
}

/// A claim on which the runs have different verdicts.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct ChangedVerdict {
    pub(super) paper: String,
    pub(super) claim: String,
    /// The verdict of the first run.
    pub(super) a: String,
    /// The verdict of the second run.
    pub(super) b: String,
}

impl RecordedClaim {
    /// Reads a claim; returns nothing for another value.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }
}

/// Returns the claims of both runs with different verdicts.
pub(super) fn changed_verdicts(
    first: &[RecordedClaim],
    second: &[RecordedClaim],
) -> Vec<ChangedVerdict> {
    let changed = first.iter().filter_map(|claim| {
        let is_same =
            |other: &&RecordedClaim| other.paper == claim.paper && other.claim == claim.claim;
        let other = second.iter().find(is_same)?;
        (other.verdict != claim.verdict).then(|| ChangedVerdict {
            paper: claim.paper.clone(),
            claim: claim.claim.clone(),
            a: claim.verdict.clone(),
            b: other.verdict.clone(),
        })
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(claim: &str, verdict: &str) -> RecordedClaim {
        let value = json!({"paper": "chronorb", "claim": claim, "verdict": verdict});
        RecordedClaim::parse(&value).unwrap()
    }

    #[test]
    fn claims_with_another_verdict_are_found() {
        let first = [
            claim("quick", "PASS"),
            claim("small", "PASS"),
            claim("old", "PASS"),
        ];
        let second = [
            claim("small", "MISSED"),
            claim("quick", "PASS"),
            claim("new", "MISSED"),
        ];
        let changed = changed_verdicts(&first, &second);
        assert_eq!(changed.len(), 1);
        assert_eq!(
            (changed[0].claim.as_str(), changed[0].b.as_str()),
            ("small", "MISSED")
        );
    }

    #[test]
    fn other_values_are_no_claims() {
        assert_eq!(
            RecordedClaim::parse(&json!({"claim": 3, "verdict": "PASS"})),
            None
        );
        assert_eq!(RecordedClaim::parse(&json!("quick")), None);
    }
}
