//! `chronorb sched check`, `assign`, `simulate` and `explain`, with the schedule of an example.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{stderr, stdout};

/// The schedule of `examples/avionics`, and a folder with a copy that is late.
struct Schedules {
    folder: TempDir,
    fits: PathBuf,
}

impl Schedules {
    fn new() -> Self {
        let fits =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/avionics/avionics.toml");
        let text = fs::read_to_string(&fits).expect("the example has a schedule");
        let folder = TempDir::new().expect("there is room");
        let late = text.replace("wcet = \"80 ms\"", "wcet = \"800 ms\"");
        assert_ne!(late, text);
        fs::write(folder.path().join("late.toml"), late).expect("there is room");
        Self { folder, fits }
    }

    fn late(&self) -> PathBuf {
        self.folder.path().join("late.toml")
    }
}

fn sched(command: &str, file: &Path, arguments: &[&str]) -> Output {
    let mut sched = Command::new(env!("CARGO_BIN_EXE_chronorb"));
    sched.args(["sched", command]).arg(file).args(arguments);
    sched.output().expect("the command starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(stdout(output)).expect("it prints JSON")
}

#[test]
fn check_tells_the_slack_of_each_operation() {
    let schedules = Schedules::new();
    let checked = sched("check", &schedules.fits, &[]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    let text = stdout(&checked);
    let line = text
        .lines()
        .find(|line| line.starts_with("Avionics::Flight::control"));
    let words: Vec<_> = line.expect("it is there").split_whitespace().collect();
    assert!(
        words.ends_with(&["6.55", "ms", "50", "ms", "43.45", "ms"]),
        "{text}"
    );
    assert!(text.contains("fits: all deadlines are met"), "{text}");

    let report = json(&sched("check", &schedules.fits, &["--json"]));
    assert_eq!(report["fits"], true);
    assert_eq!(report["operations"].as_array().map(Vec::len), Some(8));
}

/// A set of Burns and Wellings, of which two operations share a lane.
const BURNS: &str = r#"
    [[operation]]
    name = "A::a"
    wcet = "3 ms"
    period = "7 ms"
    [[operation]]
    name = "A::b"
    wcet = "3 ms"
    period = "12 ms"
    [[operation]]
    name = "A::c"
    wcet = "5 ms"
    period = "20 ms"
"#;

#[test]
fn check_shows_simulated_responses_and_those_in_own_lanes() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("burns.toml");
    fs::write(&file, BURNS).expect("there is room");
    let page = folder.path().join("page.html");
    let page_name = page.to_str().expect("it is text");
    let text = stdout(&sched("check", &file, &["--report", page_name])).to_owned();
    let shared = "3 levels in 2 lanes, the fewest with which all deadlines are met";
    assert!(text.contains(shared), "{text}");
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let words = line.expect("it is there").split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    let titles = "SIMULATED RESPONSE BOUND IN OWN LANE DEADLINE SLACK";
    assert!(line("OPERATION").ends_with(titles), "{text}");
    assert!(
        line("A::a").ends_with("6 ms 6 ms exact 3 ms 7 ms 1 ms"),
        "{text}"
    );
    assert!(
        line("A::c").ends_with("20 ms 20 ms exact 20 ms 20 ms 0 ns"),
        "{text}"
    );
    let page = fs::read_to_string(page).expect("it was written");
    for part in [shared, "in a lane of its own", "simulated", "sufficient"] {
        assert!(page.contains(part), "{part}");
    }

    let figures = |arguments: &[&str], key: &str| {
        let report = json(&sched("check", &file, &[&["--json"], arguments].concat()));
        let operations = report["operations"].as_array().expect("an array");
        let each = operations.iter().map(|it| it[key].clone());
        Value::from(each.collect::<Vec<_>>())
    };
    let own = serde_json::json!([3_000_000, 6_000_000, 20_000_000]);
    assert_eq!(figures(&[], "own_lane_response_ns"), own);
    assert_eq!(figures(&[], "simulated_ns")[2], 20_000_000);
    assert_eq!(figures(&[], "bound")[2], "exact");
    // Random runs exceed no bound, and without runs nothing is exact.
    let shared = serde_json::json!([6_000_000, 6_000_000, 20_000_000]);
    assert_eq!(figures(&["--runs", "200"], "simulated_ns"), shared);
    assert_eq!(figures(&["--runs", "0"], "simulated_ns")[2], Value::Null);
    assert_eq!(figures(&["--runs", "0"], "bound")[2], "sufficient");
    let text = stdout(&sched("check", &file, &["--runs", "0"])).to_owned();
    assert!(!text.contains("SIMULATED"), "{text}");

    let own_lanes = format!("[scheduling]\nlanes = \"own\"\n{BURNS}");
    fs::write(&file, own_lanes).expect("there is room");
    assert_eq!(figures(&[], "response_ns"), own);
    assert_eq!(figures(&[], "simulated_ns"), own);
    assert_eq!(figures(&[], "own_lane_response_ns")[0], Value::Null);
    let text = stdout(&sched("check", &file, &[])).to_owned();
    assert!(
        !text.contains("IN OWN LANE") && !text.contains("levels in"),
        "{text}"
    );
}

#[test]
fn check_and_simulate_have_the_same_bounds() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("burns.toml");
    fs::write(&file, BURNS).expect("there is room");
    let checked = json(&sched("check", &file, &["--json"]));
    let simulated = json(&sched("simulate", &file, &["--json"]));
    for number in 0..3 {
        let operation = &checked["operations"][number];
        let step = &simulated["transactions"][number]["steps"][0];
        assert_eq!(operation["response_ns"], step["analysed_ns"]);
        assert_eq!(operation["simulated_ns"], step["simulated_ns"]);
        assert_eq!(operation["bound"], step["bound"]);
    }
    let text = stdout(&sched("simulate", &file, &[])).to_owned();
    assert!(
        text.contains("SIMULATED  ANALYSED  BOUND  DEADLINE"),
        "{text}"
    );
    assert!(text.contains("it is sufficient"), "{text}");
}

#[test]
fn check_shows_transactions_of_messages_only() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("can.toml");
    let text = r#"
        [scheduling]
        priorities = "declared"
        [[link]]
        name = "can"
        [[transaction]]
        name = "fast"
        priority = 2
        period = "10 ms"
        steps = { link = "can", message = "540 us" }
        [[transaction]]
        name = "slow"
        priority = 1
        period = "14 ms"
        steps = { link = "can", message = "340 us" }
    "#;
    fs::write(&file, text).expect("there is room");
    let checked = sched("check", &file, &[]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    let text = stdout(&checked);
    for name in ["fast", "slow"] {
        let line = text.lines().find(|line| line.starts_with(name));
        let words: Vec<_> = line.expect("it is there").split_whitespace().collect();
        assert_eq!(words[1..3], ["can", "-"], "{text}");
        assert!(words.windows(2).any(|it| it == ["880", "us"]), "{text}");
    }
    let report = json(&sched("check", &file, &["--json"]));
    assert_eq!(report["messages"][0]["name"], "fast");
    assert_eq!(report["messages"][0]["priority"], 2);
    assert_eq!(report["messages"][0]["response_ns"], 880_000);
    assert_eq!(report["messages"][1]["priority"], 1);
    assert_eq!(report["messages"][1]["bound"], "exact");
}

#[test]
fn check_tells_what_would_fit() {
    let schedules = Schedules::new();
    let late = schedules.late();
    let checked = sched("check", &late, &[]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(stderr(&checked).contains("2 operations are late"));
    let text = stdout(&checked);
    assert!(
        text.contains("late: Avionics::Maintenance::inspect"),
        "{text}"
    );

    let report = json(&sched("check", &late, &["--json"]));
    assert_eq!(report["fits"], false);
    let fits = &report["late"][0]["fits"][0];
    let most = fits["wcet_ns"].as_u64().expect("a value that fits");
    // What would fit does fit.
    let text = fs::read_to_string(&late).expect("it is there");
    let mended = text.replace("wcet = \"800 ms\"", &format!("wcet = \"{most} ns\""));
    fs::write(&late, mended).expect("there is room");
    let checked = sched("check", &late, &[]);
    assert!(checked.status.success(), "{}", stdout(&checked));
}

#[test]
fn check_tells_why_an_operation_is_late() {
    let schedules = Schedules::new();
    let text = stdout(&sched("check", &schedules.late(), &[])).to_owned();
    let reason = "late: Avionics::Maintenance::inspect: its response has no bound: it and more \
                  urgent work use 113.1 % of mission, 13.1 % more than it has\n";
    assert!(text.contains(reason), "{text}");
    let caller = "late: Cockpit::monitor: its response has no bound: Cockpit::monitor / \
                  Avionics::Maintenance::inspect, of the same transaction, has none\n";
    assert!(text.contains(caller), "{text}");

    let file = schedules.folder.path().join("rates.toml");
    let rates = r#"
        [scheduling]
        priorities = "rate-monotonic"
        [[operation]]
        name = "A::first"
        wcet = "3 ms"
        period = "20 ms"
        deadline = "5 ms"
        [[operation]]
        name = "A::second"
        wcet = "3 ms"
        period = "15 ms"
        deadline = "7 ms"
        [[operation]]
        name = "A::third"
        wcet = "4 ms"
        period = "10 ms"
        [[operation]]
        name = "A::fourth"
        wcet = "3 ms"
        period = "20 ms"
    "#;
    fs::write(&file, rates).expect("there is room");
    let text = stdout(&sched("check", &file, &[])).to_owned();
    let late = "late: A::first: it can take 10 ms, 5 ms more than its deadline of 5 ms\n";
    assert!(text.contains(late), "{text}");
    let report = json(&sched("check", &file, &["--json"]));
    assert_eq!(report["late"][0]["reason"], "deadline");
    assert_eq!(report["late"][0]["excess_ns"], 5_000_000);
    let remedies = &report["remedies"];
    assert_eq!(remedies["deadlines"][0]["deadline_ns"], 10_000_000);
    assert_eq!(remedies["deadlines"].as_array().map(Vec::len), Some(1));
    let rules = ["deadline-monotonic", "optimal", "holistic"];
    assert_eq!(remedies["priorities"], serde_json::json!(rules));
    // Each remedy does make it fit.
    let by_deadline = rates.replace("deadline = \"5 ms\"", "deadline = \"10 ms\"");
    let by_rule = rules.map(|rule| rates.replace("rate-monotonic", rule));
    for mended in by_rule.into_iter().chain([by_deadline]) {
        fs::write(&file, &mended).expect("there is room");
        let checked = sched("check", &file, &[]);
        assert!(checked.status.success(), "{}", stdout(&checked));
    }
}

#[test]
fn assign_writes_the_lock_file_that_the_example_has() {
    let schedules = Schedules::new();
    let verified = sched("assign", &schedules.fits, &["--verify"]);
    assert!(verified.status.success(), "{}", stderr(&verified));

    let lock = schedules.folder.path().join("new.lock");
    let output = lock.to_str().expect("it is text");
    let assigned = sched("assign", &schedules.fits, &["--output", output]);
    assert!(assigned.status.success(), "{}", stderr(&assigned));
    let present = schedules.fits.with_file_name("avionics.rt.lock");
    let read = |file: &Path| fs::read_to_string(file).expect("it is there");
    assert_eq!(read(&lock), read(&present));
}

#[test]
fn assign_writes_nothing_for_a_schedule_that_is_late() {
    let schedules = Schedules::new();
    let refused = sched("assign", &schedules.late(), &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(!schedules.late().with_file_name("late.rt.lock").exists());
    let refused = sched("assign", &schedules.late(), &["--verify"]);
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn simulate_stays_within_the_analysis() {
    let schedules = Schedules::new();
    let page = schedules.folder.path().join("page.html");
    let page_name = page.to_str().expect("it is text");
    let simulated = sched("simulate", &schedules.fits, &["--report", page_name]);
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    assert!(stdout(&simulated).contains("fits: no job misses its deadline"));
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.contains("Slices of execution"));

    let late = sched("simulate", &schedules.late(), &[]);
    assert_eq!(late.status.code(), Some(1), "{}", stdout(&late));
}

#[test]
fn simulate_has_no_verdict_without_a_job_that_counts() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("long.toml");
    let text = r#"
        [[operation]]
        name = "A::a"
        wcet = "6 ms"
        period = "10 ms"
        deadline = "1 min"
    "#;
    fs::write(&file, text).expect("there is room");
    let short = sched("simulate", &file, &["--for", "10 ms"]);
    assert_eq!(short.status.code(), Some(1), "{}", stdout(&short));
    assert!(!stdout(&short).contains("fits"), "{}", stdout(&short));
    assert!(stderr(&short).contains("no verdict"), "{}", stderr(&short));
    assert!(stderr(&short).contains("60 s"), "{}", stderr(&short));
    // Without --for the longest deadline is simulated.
    let report = json(&sched("simulate", &file, &["--json"]));
    assert_eq!(report["window_ns"], 60_000_000_000_u64);
    assert_eq!(report["counted"], 1);
    let report = json(&sched("simulate", &file, &["--json", "--runs", "3"]));
    assert_eq!(report["window_ns"], 60_010_000_000_u64);
}

#[test]
fn simulate_shows_what_no_analysis_of_tasks_can() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("oneway.toml");
    let text = r#"
        [[operation]]
        name = "A::run"
        wcet = "5 ms"
        period = "100 ms"
        deadline = "6 ms"
        priority = 10
        calls = [{ operation = "B::push", oneway = true, before = "1 ms" }]
        [[operation]]
        name = "B::push"
        wcet = "10 ms"
        deadline = "50 ms"
        priority = 20
    "#;
    fs::write(&file, text).expect("there is room");
    let late = sched("simulate", &file, &["--json"]);
    assert_eq!(late.status.code(), Some(1), "{}", stdout(&late));
    let report = json(&late);
    let steps = &report["transactions"][0]["steps"];
    assert_eq!(steps[0]["name"], "A::run / B::push");
    assert_eq!(steps[0]["simulated_ns"], 11_000_000);
    assert_eq!(steps[1]["name"], "A::run");
    assert_eq!(steps[1]["simulated_ns"], 15_000_000);
    assert_eq!(steps[1]["missed"], 1);
}

#[test]
fn simulate_runs_other_orders_and_seeds() {
    let schedules = Schedules::new();
    let with_calls = sched("simulate", &schedules.fits, &["--discipline", "deadline"]);
    assert_eq!(with_calls.status.code(), Some(1));
    let told = stderr(&with_calls);
    assert!(told.contains("operations that call no others"), "{told}");
    let file = schedules.folder.path().join("plain.toml");
    let text = r#"
        [[operation]]
        name = "A::a"
        wcet = "2 ms"
        period = "5 ms"
        [[operation]]
        name = "A::b"
        wcet = "4 ms"
        period = "7 ms"
    "#;
    fs::write(&file, text).expect("there is room");
    let counts = |arguments: &[&str]| {
        let report = json(&sched(
            "simulate",
            &file,
            &[&["--json"], arguments].concat(),
        ));
        (report["counted"].as_u64(), report["missed"].as_u64())
    };
    assert_eq!(counts(&["--discipline", "deadline"]), (Some(12), Some(0)));
    let (counted, missed) = counts(&[]);
    assert_eq!(counted, Some(12));
    assert!(missed > Some(0), "two priorities are not enough");
    let of_seed = |seed| counts(&["--runs", "5", "--seed", seed]);
    assert_eq!(of_seed("3"), of_seed("3"));
}

#[test]
fn explain_adds_the_parts_of_a_response() {
    let schedules = Schedules::new();
    let explained = sched("explain", &schedules.fits, &["Cockpit::fly"]);
    assert!(explained.status.success(), "{}", stderr(&explained));
    assert!(stdout(&explained).starts_with("Cockpit::fly: at most 6.8 ms"));

    let late = sched(
        "explain",
        &schedules.late(),
        &["Avionics::Maintenance::inspect"],
    );
    assert!(late.status.success(), "{}", stderr(&late));
    assert!(stdout(&late).contains("ends after                    unbounded"));
    assert!(stdout(&late).contains("more urgent work use 113.1 % of mission"));

    let unknown = sched("explain", &schedules.fits, &["Cockpit::flee"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("no operation \"Cockpit::flee\""));
}

#[test]
fn plan_prints_what_rio_plan_admits() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("flight.toml");
    let text = r#"
        [[node]]
        name = "server"
        [[node]]
        name = "client"
        [[link]]
        name = "lan"
        rate = "100 Mbit"
        interface = { server = "eth0" }
        packet_cost = "20 us"
        [[operation]]
        name = "Map::draw"
        node = "server"
        wcet = "1 ms"
        [[operation]]
        name = "Desk::update"
        node = "client"
        wcet = "1 ms"
        period = "20 Hz"
        calls = { operation = "Map::draw", request = 200, reply = 2000 }
    "#;
    fs::write(&file, text).expect("there is room");
    let printed = sched("plan", &file, &[]);
    assert!(printed.status.success(), "{}", stderr(&printed));
    let plan = folder.path().join("plan.toml");
    fs::write(&plan, stdout(&printed)).expect("there is room");
    let mut rio = Command::new(env!("CARGO_BIN_EXE_chronorb"));
    let admitted = rio.args(["rio", "plan", "--json"]).arg(&plan).output();
    let admitted = admitted.expect("the command starts");
    assert!(admitted.status.success(), "{}", stderr(&admitted));
    let plan = json(&admitted);
    assert_eq!(plan["interface"]["name"], "eth0");
    let classes = plan["classes"].as_array().expect("there are classes");
    assert_eq!(classes.len(), 1);

    let of_client = sched("plan", &file, &["--node", "client"]);
    assert_eq!(of_client.status.code(), Some(1));
    let told = stderr(&of_client);
    assert!(
        told.contains("no link has an interface of node client"),
        "{told}"
    );
    let without = sched("plan", &Schedules::new().fits, &[]);
    assert!(stderr(&without).contains("no link has an interface"));
}

/// A schedule that meets all deadlines, on a link without room for what an interface sends and
/// gets.
const NARROW: &str = r#"
    [[node]]
    name = "server"
    [[node]]
    name = "client"
    [[link]]
    name = "lan"
    rate = "1 Mbit"
    interface = { server = "eth0", client = "eth1" }
    packet_cost = "20 us"
    [[operation]]
    name = "Map::draw"
    node = "server"
    wcet = "100 us"
    [[operation]]
    name = "Desk::update"
    node = "client"
    wcet = "100 us"
    period = "500 Hz"
    deadline = "6 ms"
    threads = 2
    calls = { operation = "Map::draw", request = 40, reply = 40 }
"#;

#[test]
fn check_refuses_links_that_an_orb_would_refuse_at_its_start() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("narrow.toml");
    fs::write(&file, NARROW).expect("there is room");
    let checked = sched("check", &file, &[]);
    assert_eq!(checked.status.code(), Some(1));
    let told = stderr(&checked);
    assert!(told.contains("2 classes of messages are refused"), "{told}");
    let text = stdout(&checked);
    assert!(!text.contains("late:"), "{text}");
    for node in [
        "interface eth0 of node server",
        "interface eth1 of node client",
    ] {
        let refused = format!("refused: link lan, {node}: class lan-");
        assert!(text.contains(&refused), "{text}");
    }
    assert!(
        text.contains("(messages of Map::draw): it wants 1.23 Mbit/s"),
        "{text}"
    );

    let report = json(&sched("check", &file, &["--json"]));
    assert_eq!(report["fits"], false);
    assert_eq!(report["late"], serde_json::json!([]));
    assert_eq!(report["refused"][0]["reason"], "network");
    assert_eq!(report["refused"][0]["operations"][0], "Map::draw");
    // Neither is a lock file written, nor a plan printed.
    for command in ["assign", "plan"] {
        let refused = sched(command, &file, &[]);
        assert_eq!(refused.status.code(), Some(1), "{command}");
        assert!(stdout(&refused).contains("refused: link lan"), "{command}");
    }
    assert!(!file.with_extension("rt.lock").exists());

    // The rate that would fit is the least one that does.
    let rate = &report["remedies"]["rates"][0]["bits_per_s"];
    let rate = rate.as_u64().expect("a rate that fits");
    for (rate, code) in [(rate, 0), (rate - 1, 1)] {
        let text = NARROW.replace("1 Mbit", &format!("{rate} bit"));
        assert_check_ends_with(code, &file, &text);
    }
}

#[test]
fn check_tells_the_cost_of_a_packet_that_processors_have_time_for() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("busy.toml");
    let busy = NARROW.replace("1 Mbit", "10 Mbit").replace("20 us", "1 ms");
    fs::write(&file, &busy).expect("there is room");
    let report = json(&sched("check", &file, &["--json"]));
    assert_eq!(report["fits"], false);
    assert_eq!(report["remedies"]["rates"], serde_json::json!([]));
    let cost = &report["remedies"]["packet_costs"][0]["packet_cost_ns"];
    let cost = cost.as_u64().expect("a cost that fits");
    for (cost, code) in [(cost, 0), (cost + 1, 1)] {
        let text = busy.replace("\"1 ms\"", &format!("\"{cost} ns\""));
        assert_check_ends_with(code, &file, &text);
    }
}

/// Asserts the exit status of `check` for a schedule, which it writes to a file.
fn assert_check_ends_with(code: i32, file: &Path, schedule: &str) {
    fs::write(file, schedule).expect("there is room");
    let checked = sched("check", file, &[]);
    assert_eq!(checked.status.code(), Some(code), "{}", stdout(&checked));
}

#[test]
fn check_refuses_a_schedule_of_which_only_a_message_is_late() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("message.toml");
    let text = r#"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "lan"
        rate = "8 Mbit"
        [[operation]]
        name = "A::read"
        node = "a"
        wcet = "1 ms"
        [[operation]]
        name = "B::write"
        node = "b"
        wcet = "1 ms"
        [[transaction]]
        name = "copy"
        period = "10 ms"
        deadline = "3 ms"
        steps = ["A::read", "B::write", { link = "lan", message = 2000 }]
    "#;
    fs::write(&file, text).expect("there is room");
    let checked = sched("check", &file, &[]);
    assert_eq!(checked.status.code(), Some(1), "{}", stdout(&checked));
    assert!(stderr(&checked).contains("1 message is late"));
    let late = "late: copy / message: it can take 4.228 ms, \
                1.228 ms more than its deadline of 3 ms";
    assert!(stdout(&checked).contains(late), "{}", stdout(&checked));
    assert_eq!(sched("assign", &file, &[]).status.code(), Some(1));
}

/// Returns the block in a page of the book that begins with a line: `"toml\n[[link]]"` for TOML.
fn block(page: &str, start: &str) -> String {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let text = fs::read_to_string(book.join(page)).expect("there is such a page");
    let language = start.find('\n').expect("a language and a beginning") + 1;
    let at = text.find(&format!("```{start}"));
    let block = &text[at.expect("it has such a block") + 3 + language..];
    let (block, _) = block.split_once("```").expect("the block ends");
    block.to_owned()
}

#[test]
fn the_schedule_of_the_book_has_the_result_of_the_book() {
    let folder = TempDir::new().expect("there is room");
    let file = folder.path().join("flight.toml");
    let schedule = block("scheduling.md", "toml\n");
    fs::write(&file, &schedule).expect("there is room");
    let checked = sched("check", &file, &[]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    let told = stdout(&checked);
    for line in block("scheduling.md", "text\n").lines() {
        assert!(told.contains(line), "{line}\n{told}");
    }

    // The link with interfaces, in place of that without.
    let (before, link) = schedule.split_once("[[link]]").expect("it has a link");
    let (_, after) = link.split_once("\n\n").expect("operations follow");
    let link = block("schedules.md", "toml\n[[link]]");
    fs::write(&file, format!("{before}{link}\n{after}")).expect("there is room");
    for node in ["computer", "cockpit"] {
        let printed = sched("plan", &file, &["--node", node]);
        assert!(printed.status.success(), "{}", stderr(&printed));
        assert!(stdout(&printed).contains("[[class]]"));
    }
}
