//! The report of the experiment `demux`.

use std::fs;

use chronorb_lab::demux::{Options, Plan, run};

#[test]
fn a_report_is_written_where_it_was_asked_for() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = Options {
        json: true,
        report: folder.path().join("demux.html"),
        plan: Plan::tiny(),
    };
    run(&options).expect("it runs");
    let report = fs::read_to_string(&options.report).expect("it was written");
    assert!(report.ends_with("</html>\n"));

    options.report = folder.path().join("missing/demux.html");
    let error = run(&options).expect_err("there is no such directory");
    assert!(error.to_string().contains("missing/demux.html"), "{error}");
}
