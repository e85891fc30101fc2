//! What should be true of a contest's figures, and whether it is.

use serde::Serialize;

use crate::verdict::Verdict;

/// Something that should be true, held against the figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// What should be true.
    pub claim: String,
    /// The figures that say whether it is; empty where they were not measured.
    pub measured: String,
    /// Chronorb's figure by what it is compared with.
    pub ratio: Option<f64>,
    /// Whether it is true.
    pub verdict: Verdict,
}

impl Claim {
    /// A claim that holds when `ratio` is one that `holds`.
    pub(crate) fn judge(
        claim: String,
        measured: Option<(f64, String)>,
        holds: impl Fn(f64) -> bool,
    ) -> Self {
        let ratio = measured.as_ref().map(|(ratio, _)| *ratio);
        Self {
            claim,
            measured: measured.map_or_else(String::new, |(_, text)| text),
            ratio: ratio.map(|ratio| (ratio * 1e3).round() / 1e3),
            verdict: ratio.map_or(Verdict::NotMeasured, |ratio| Verdict::of(holds(ratio))),
        }
    }
}

/// The claims as text, one after the other.
pub(crate) fn text(claims: &[Claim]) -> String {
    claims
        .iter()
        .map(|claim| {
            let measured = claim.ratio.map_or_else(String::new, |ratio| {
                format!("\n{:14}a factor of {ratio:.2}: {}", "", claim.measured)
            });
            format!("{:12}  {}{measured}\n", claim.verdict.name(), claim.claim)
        })
        .collect()
}

/// The claims as a table of a page.
pub(crate) fn table(claims: &[Claim]) -> String {
    use crate::report::escape;

    let rows: String = claims
        .iter()
        .map(|claim| {
            let class = match claim.verdict {
                Verdict::Missed => " class=\"missed\"",
                Verdict::Pass | Verdict::NotMeasured => "",
            };
            format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td{class}>{}</td></tr>\n",
                escape(&claim.claim),
                escape(&claim.measured),
                claim.ratio.map_or_else(String::new, |r| format!("{r:.2}")),
                claim.verdict.name(),
            )
        })
        .collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr><th>Claimed</th><th>Measured</th><th>Factor</th>\
         <th></th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some((values[middle - 1] + values[middle]) / 2.0),
        _ => Some(values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_figures_is_neither_true_nor_false() {
        let claim = Claim::judge("quick".to_owned(), None, |_| true);
        assert_eq!(claim.verdict, Verdict::NotMeasured);
        assert_eq!(text(&[claim]), "NOT MEASURED  quick\n");
    }

    #[test]
    fn a_claim_is_judged_by_its_ratio_before_it_is_rounded() {
        let claim = |ratio| {
            let measured = Some((ratio, "so much".to_owned()));
            Claim::judge("quick".to_owned(), measured, |ratio| ratio <= 1.1)
        };
        assert_eq!(claim(1.1).verdict, Verdict::Pass);
        assert_eq!(claim(1.1001).verdict, Verdict::Missed);
        assert!(table(&[claim(2.0)]).contains("<td class=\"missed\">MISSED</td>"));
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median([].into_iter()), None);
    }
}
