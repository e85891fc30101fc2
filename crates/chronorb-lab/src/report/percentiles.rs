//! Charts of latency by percentile.

use chronorb_report::{Axis, Chart, Series};

use super::latency;

/// Draws curves of latency by percentile; `call` is the word for one of the calls.
pub(crate) fn by_percentile(call: &str, curves: impl IntoIterator<Item = Series>) -> Chart {
    let caption = format!(
        "Latency by percentile. To the right each step is ten times rarer; a line ends at the \
         longest {call}. The flatter it is, the more predictable are the {call}s."
    );
    let percentiles = Axis::percentiles(format!("percentile of the {call}s"));
    Chart::new(caption, percentiles, latency()).series(curves)
}
