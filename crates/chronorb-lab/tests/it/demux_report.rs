//! The report of the experiment `demux`.

use std::fs;

use chronorb_lab::demux::{Demux, DemuxPlan};
use chronorb_lab::{Options, run};

use crate::harness;

fn a_report_is_written_where_it_was_asked_for() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("demux.html");
    let mut options = Options {
        json: true,
        report: Some(path.clone()),
        plan: DemuxPlan::tiny(),
    };
    run::<Demux>(&options).expect("it runs");
    let report = fs::read_to_string(path).expect("it was written");
    assert!(report.ends_with("</html>\n"));
    let figures = fs::read(folder.path().join("demux.json")).expect("they stand beside it");
    let figures: serde_json::Value = serde_json::from_slice(&figures).expect("they are JSON");
    assert_eq!(figures["experiment"], "demux");

    options.report = Some(folder.path().join("missing/demux.html"));
    let error = run::<Demux>(&options).expect_err("there is no such directory");
    assert!(error.to_string().contains("missing/demux.html"), "{error}");
}

pub(crate) const TESTS: &[harness::Test] = &[(
    "a_report_is_written_where_it_was_asked_for",
    a_report_is_written_where_it_was_asked_for,
)];
