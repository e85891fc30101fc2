//! Charts of latency by percentile.

use chronorb_report::{Axis, Chart, Series};

use super::latency;

/// Draws curves of latency by percentile; `calls` is the word for the calls.
pub(crate) fn by_percentile(calls: &str, curves: impl IntoIterator<Item = Series>) -> Chart {
    let caption = format!(
        "Latency by percentile. To the right each step is ten times rarer; a line ends at the \
         longest latency. The flatter it is, the more predictable are the {calls}."
    );
    let percentiles = Axis::percentiles(format!("percentile of the {calls}"));
    Chart::new(caption, percentiles, latency()).series(curves)
}
