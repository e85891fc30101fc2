//! The experiment `timeprobes`, run for real with next to nothing.
//!
//! The experiment calls its own program for servers and clients. So this is no usual test program:
//! it hands that command on, and otherwise runs its one test.

use std::env;
use std::fs;
use std::process::ExitCode;

use chronorb_lab::timeprobes::{
    Layer, Outcome, PART_COMMAND, Plan, TRANSPORTS, TimeProbes, TimeProbesError, part_main,
};
use chronorb_lab::{Experiment, Findings, Options, Verdict, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [command, order] if *command == PART_COMMAND => match part_main(order) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        // What programs that gather tests ask.
        arguments if arguments.contains(&"--list") => {
            if !arguments.contains(&"--ignored") {
                println!("{NAME}: test");
            }
            ExitCode::SUCCESS
        }
        arguments if is_wanted(arguments) => {
            calls_are_followed_by_every_transport();
            one_transport_can_be_asked_for_alone();
            what_makes_no_sense_is_refused();
            println!("test {NAME} ... ok");
            ExitCode::SUCCESS
        }
        _ => ExitCode::SUCCESS,
    }
}

fn calls_are_followed_by_every_transport() {
    let outcome = TimeProbes::measure(&Plan::tiny()).expect("it can be measured");
    if !outcome.missing.is_empty() {
        let required = env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
        assert!(!required, "a part cannot run: {:?}", outcome.missing);
        eprintln!("NOT RUN in part: {:?}", outcome.missing);
    }
    for transport in TRANSPORTS.map(|transport| transport.scheme) {
        let is_missing =
            |missing: &chronorb_lab::timeprobes::Missing| missing.transport == transport;
        if outcome.missing.iter().any(is_missing) {
            assert_eq!(transport, "ssliop", "the others need nothing");
            continue;
        }
        parts_add_up_to_the_call(&outcome, transport);
    }

    let cost = &outcome.cost;
    assert!(cost.stamp_ns > cost.stage_off_ns, "{cost:?}");
    // The stages of both sides, and each side's way into the kernel and out of it to send and to receive.
    assert!(
        outcome.stamps_of_a_call >= 13 + 8,
        "{}",
        outcome.stamps_of_a_call
    );

    let claims = outcome.claims();
    let measured = claims
        .iter()
        .all(|claim| claim.verdict() != Verdict::NotMeasured);
    assert!(measured, "{claims:?}");

    let text = outcome.text();
    for part in [
        "A call by iiop, same CPU",
        "whole call, points off",
        "all operating system",
        "Where nobody wants stamps",
        "MIOP is not among them",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let page = outcome.html().expect("it can be drawn");
    assert_eq!(page.matches("<svg").count(), 2);
    let figures = outcome.figures();
    assert_eq!(figures["experiment"], "timeprobes");
    for name in ["stamp_ns", "stage_off_ns", "turn_off_ns"] {
        assert!(
            figures["cost"][name].is_number(),
            "{name}: {}",
            figures["cost"]
        );
    }
}

fn parts_add_up_to_the_call(outcome: &Outcome, transport: &str) {
    let of_transport: Vec<_> = outcome
        .rows
        .iter()
        .filter(|row| row.transport == transport)
        .collect();
    let wholes = of_transport.iter().filter(|row| row.what == "whole call");
    assert!(wholes.clone().next().is_some(), "{transport} is missing");
    for whole in wholes {
        let rows = || {
            of_transport
                .iter()
                .filter(|row| row.placement == whole.placement)
        };
        assert!(whole.time.calls >= 90, "{whole:?}");
        assert!(
            0.0 < whole.time.p50_us && whole.time.p50_us <= whole.time.max_us,
            "{whole:?}"
        );
        let parts = rows().filter(|row| row.part.is_some());
        let sum: f64 = parts.clone().map(|row| row.usual_us).sum();
        assert!(
            (sum / whole.usual_us - 1.0).abs() < 0.01,
            "{sum}: {whole:?}"
        );
        for layer in Layer::ALL {
            let of_layer = |row: &&&_| is_sum_of(row, layer);
            let row = rows().find(of_layer).expect("it is told");
            assert!(row.time.mean_us > 0.0, "somebody has to do it: {row:?}");
        }
        let mut off = rows().filter(|row| row.what == "whole call, points off");
        let off = off.next().expect("it is measured");
        assert!(off.time.calls >= 100 && off.time.p50_us > 0.0, "{off:?}");
    }
}

fn is_sum_of(row: &chronorb_lab::timeprobes::Row, layer: Layer) -> bool {
    row.part.is_none() && row.layer == Some(layer)
}

fn one_transport_can_be_asked_for_alone() {
    let mut plan = Plan::tiny();
    plan.only = vec!["uiop"];
    let outcome = TimeProbes::measure(&plan).expect("it can be measured");
    assert!(outcome.rows.iter().all(|row| row.transport == "uiop"));
    assert!(outcome.missing.is_empty(), "nobody asked for others");
    let claims = outcome.claims();
    let of_iiop = claims.iter().filter(|claim| claim.claim.contains("iiop"));
    for claim in of_iiop {
        assert_eq!(claim.verdict(), Verdict::NotMeasured, "{claim:?}");
    }
}

fn what_makes_no_sense_is_refused() {
    let error = part_main("no order").expect_err("it is no order");
    assert!(matches!(error, TimeProbesError::Process(_)), "{error}");
    let folder = tempfile::tempdir().expect("a directory");
    let options = Options {
        json: false,
        report: folder.path().join("missing/timeprobes.html"),
        plan: Plan::tiny(),
    };
    let error = run::<TimeProbes>(&options).expect_err("there is no such directory");
    assert!(
        error.to_string().contains("missing/timeprobes.html"),
        "{error}"
    );
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0);
}

/// Whether a run with these arguments is to include the one test: a filter may leave it out.
fn is_wanted(arguments: &[&str]) -> bool {
    let mut filters = arguments.iter().filter(|text| !text.starts_with('-'));
    let any = filters.clone().next().is_some();
    !arguments.contains(&"--ignored") && (!any || filters.any(|filter| NAME.contains(filter)))
}

const NAME: &str = "calls_are_followed_by_every_transport";
