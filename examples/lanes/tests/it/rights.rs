//! The behaviour of an ORB without the right to real-time scheduling, tested with the example
//! `lanes` in a process without it.

use std::process::{Command, Output};

/// Runs the example with or without the capability to schedule in real time.
fn lanes(with_right: bool, args: &[&str]) -> Output {
    let mut command = if with_right {
        Command::new(env!("CARGO_BIN_EXE_lanes"))
    } else {
        // The child loses the capability, also if root runs this.
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"]);
        command.arg(env!("CARGO_BIN_EXE_lanes"));
        command
    };
    command
        .args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"])
        .args(args);
    command
        .output()
        .expect("the example runs, by setpriv of util-linux where rights are dropped")
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id runs");
    output.stdout == b"0\n"
}

#[test]
fn without_the_right_it_runs_and_says_once_what_is_missing() {
    if !is_root() && chronorb_rt::Rights::probe().max_fifo.is_some() {
        panic!(
            "only root can drop the right for a child: run this test as root, or without the right"
        );
    }
    let output = if is_root() {
        lanes(false, &[])
    } else {
        lanes(true, &[])
    };
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    assert_eq!(err.matches("NOT real-time").count(), 1, "{err}");
    assert!(err.contains("to get it"), "{err}");
    assert!(!out.contains("fifo"), "{out}");
    assert!(
        out.contains("1:0.0") && out.contains("1:1.0"),
        "all lanes serve: {out}"
    );
}

#[test]
fn where_it_is_required_it_refuses_and_says_how_to_grant_it() {
    let output = lanes(!is_root(), &["-ORBRealTime", "required"]);
    let (_, err) = texts(&output);
    if chronorb_rt::Rights::probe().max_fifo.is_some() && !is_root() {
        assert!(output.status.success(), "{err}");
    } else {
        assert!(!output.status.success());
        assert!(err.contains("to get it"), "{err}");
    }
}

#[test]
fn where_it_is_not_wanted_nothing_is_said() {
    let output = lanes(!is_root(), &["-ORBRealTime", "off"]);
    assert!(output.status.success());
    assert_eq!(texts(&output).1, "");
}

#[test]
fn with_the_right_lanes_have_their_native_priorities() {
    if chronorb_rt::Rights::probe().max_fifo.is_none() {
        // The first test covers this case.
        return;
    }
    let output = lanes(true, &[]);
    let (out, err) = texts(&output);
    assert_eq!(err, "");
    assert!(
        out.lines().any(|l| l.contains("1:0.0") && l.contains("24")),
        "{out}"
    );
    assert!(
        out.lines().any(|l| l.contains("1:1.0") && l.contains("72")),
        "{out}"
    );
}

#[test]
fn each_priority_has_a_lane_and_a_connection_of_its_own() {
    let is_apart = |out: &str| {
        let calls = |lane| format!("lane {lane}: 1 connection(s), 1 request(s)");
        ["1:0", "1:1"].map(calls).iter().all(|it| out.contains(it))
    };
    // A thread counts a served request after the reply, and the example may have read the counter
    // by then.
    let mut runs = (0..10).map(|_| texts(&lanes(true, &["-ORBRealTime", "off"])).0);
    assert!(runs.any(|out| is_apart(&out)));
}

#[test]
fn the_environment_configures_it_too_and_unknown_settings_are_refused() {
    let run = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanes"));
        command.args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"]);
        command.env(name, value).output().expect("the example runs")
    };
    let (out, _) = texts(&run("CHRONORB_ORB_REAL_TIME", "off"));
    assert!(out.contains("other") && !out.contains("fifo"), "{out}");

    let refused = run("CHRONORB_ORB_COLOUR", "red");
    assert!(!refused.status.success());
    assert!(
        texts(&refused).1.contains("CHRONORB_ORB_COLOUR"),
        "{refused:?}"
    );
}

fn texts(output: &Output) -> (String, String) {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
