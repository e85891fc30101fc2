//! The comparison as a page.

use std::fmt::Write;

use super::comparison::Comparison;
use super::plot::ratios;
use super::text::{changes, differing};
use crate::report::{PlotError, document, escape, figure};

/// The comparison as one HTML page. Whatever the files say is text in it.
pub(super) fn html(comparison: &Comparison) -> Result<String, PlotError> {
    let mut body = format!(
        "<p class=\"lead\">A is {}, and B is {}. What changed is B by A: a time above 1 is longer in B.</p>\n",
        escape(&comparison.first.name),
        escape(&comparison.second.name),
    );
    for caveat in comparison.caveats() {
        let _ = writeln!(body, "<p class=\"caveat\">{}</p>", escape(&caveat));
    }
    if !comparison.changes.is_empty() {
        body.push_str(&figure(
            &ratios(comparison)?,
            "Each figure of each row in B by that in A, on a logarithmic scale: a dot for each row. On the line \
             nothing changed.",
        ));
    }
    let notable = comparison.notable().len();
    if notable > 0 {
        body.push_str(&changes(comparison, notable).html());
    }
    if !comparison.claims.is_empty() {
        body.push_str("<h2>Claims that are judged otherwise</h2>\n<div class=\"wide\"><table>\n");
        body.push_str(
            "<thead><tr><th>Paper</th><th>Claimed</th><th>A</th><th>B</th></tr></thead>\n<tbody>\n",
        );
        for turned in &comparison.claims {
            let _ = writeln!(
                body,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&turned.paper),
                escape(&turned.claim),
                escape(&turned.a),
                escape(&turned.b),
            );
        }
        body.push_str("</tbody></table></div>\n");
    }
    for (what, differences) in [
        ("Plan", &comparison.plan),
        ("Machine", &comparison.environment),
    ] {
        if !differences.is_empty() {
            let _ = write!(
                body,
                "<h2>In what both differ</h2>\n{}",
                differing(what, differences).html()
            );
        }
    }
    Ok(document(&comparison.headline(), &body))
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::{comparison, run};
    use super::*;

    #[test]
    fn the_page_states_its_finding_and_stands_alone() {
        let page = html(&comparison()).unwrap();
        assert!(page.contains(
            "<title>overtake: of 6 figures 2 changed by more than 10 %; 0 are better and 2 worse"
        ));
        assert_eq!(page.matches("<svg").count(), 1);
        assert!(page.contains("<td>high: p99_us</td><td>100 µs</td><td>150 µs</td><td>1.50</td>"));
        for outside in ["src=", "href=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn nothing_that_a_file_says_becomes_markup() {
        const MARKUP: &str = "<script>alert(\"1\")</script>";
        let mut first = run("a.json", 100.0, MARKUP, "PASS");
        let mut second = run("b.json", 1e300, "new", MARKUP);
        for run in [&mut first, &mut second] {
            run.name = MARKUP.to_owned();
            run.experiment = MARKUP.to_owned();
            for row in &mut run.rows {
                let figure = row["p50_us"].clone();
                row.insert(format!("{MARKUP}_us"), figure);
            }
        }
        let comparison = Comparison::new(first, second, &[], 0.0).unwrap();
        let page = html(&comparison).unwrap();
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn runs_without_a_common_row_can_be_told() {
        let mut other = run("b.json", 1.0, "new", "PASS");
        other.rows.clear();
        let comparison = Comparison::new(run("a", 1.0, "m", "PASS"), other, &[], 10.0).unwrap();
        assert!(
            html(&comparison)
                .unwrap()
                .contains("No row of one file has a match")
        );
    }
}
