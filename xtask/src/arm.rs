//! The tests of the runtime, the transports and the ORB on aarch64, by an emulator.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::run::{self, Failure};
use crate::{peers, targets};

/// Builds and runs the tests for aarch64 under qemu-user. Those of the quoter call omniORB's
/// programs on this machine, and are called by them.
///
/// The kernel is that of this machine, so it starts aarch64 programs by `binfmt_misc`: tests start
/// themselves and other programs.
pub(crate) fn arm() -> Result<(), Failure> {
    let (began, used) = (Instant::now(), run::own_processor_seconds());
    let outcome = build_and_run();
    println!(
        "arm: {:.0} seconds, {:.0} of processor time",
        began.elapsed().as_secs_f64(),
        run::own_processor_seconds() - used
    );
    outcome
}

fn build_and_run() -> Result<(), Failure> {
    peers::install_all(PACKAGES)?;
    if !targets::provide(TARGET)? {
        return Err(Failure(format!("rustup target add {TARGET} has failed")));
    }
    register()?;
    let environment = [
        (
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
            "aarch64-linux-gnu-gcc".to_owned(),
        ),
        ("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu".to_owned()),
        // A case takes some twenty times as long as without the emulator.
        ("PROPTEST_CASES", CASES.to_owned()),
        ("CHRONORB_MODEL_STEPS", MODEL_STEPS.to_owned()),
        // A test that finds what it needs refused fails, instead of passing without a word.
        ("CHRONORB_PEERS", "required".to_owned()),
    ];
    run::cargo(&[&TESTS[..], &["--no-run"]].concat(), &environment)?;
    let listed = run::cargo_output(&[&TESTS[..], &["--", "--list"]].concat(), &environment)?;
    let mut arguments = [&TESTS[..], &["--no-fail-fast", "--", "--exact"]].concat();
    for name in left_out(LEFT_OUT, &listed)? {
        arguments.extend(["--skip", name]);
    }
    let outcome = run::cargo_tests(run::cargo_command(&arguments, &environment));
    println!("left out: examples in documentation");
    println!("left out: all but {CASES} cases of each property that has no number of its own");
    println!("left out: all but {MODEL_STEPS} random steps of each combination of pools::model");
    for (name, reason) in LEFT_OUT {
        println!("left out: {name}: {reason}");
    }
    outcome
}

/// Makes the kernel start aarch64 programs by the emulator, as systemd does where it runs.
fn register() -> Result<(), Failure> {
    let formats = Path::new("/proc/sys/fs/binfmt_misc");
    if formats.join("qemu-aarch64").exists() {
        return Ok(());
    }
    if !formats.join("register").exists() {
        let mut mount = Command::new("mount");
        run::run(
            mount
                .args(["-t", "binfmt_misc", "binfmt_misc"])
                .arg(formats),
        )?;
    }
    fs::read(FORMAT)
        .and_then(|format| fs::write(formats.join("register"), format))
        .map_err(|error| Failure(format!("binfmt_misc, {FORMAT}: {error}")))
}

/// Returns the tests of a list of all tests that the entries name.
///
/// # Errors
/// An entry names no test; or a name occurs twice, by two entries or in two programs, which would
/// both leave their tests out.
fn left_out<'a>(entries: &[(&str, &str)], listed: &'a str) -> Result<Vec<&'a str>, Failure> {
    let tests = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    let tests: Vec<&str> = tests.collect();
    let mut names: Vec<&str> = Vec::new();
    for (entry, _) in entries {
        let is_meant =
            |test: &&str| *test == *entry || (entry.ends_with("::") && test.starts_with(entry));
        let before = names.len();
        for test in tests.iter().copied().filter(is_meant) {
            if names.contains(&test) {
                return Err(Failure(format!("arm: {test} is left out twice")));
            }
            names.push(test);
        }
        if names.len() == before {
            return Err(Failure(format!("arm: there is no test {entry}")));
        }
    }
    Ok(names)
}

const TARGET: &str = "aarch64-unknown-linux-gnu";

const TESTS: [&str; 8] = [
    "test",
    "--target",
    TARGET,
    "--tests",
    "--package=chronorb-rt",
    "--package=chronorb-transport",
    "--package=chronorb-orb",
    "--package=quoter-example",
];

/// The number of cases of each property that has no number of its own.
const CASES: &str = "16";

/// The random steps of each combination of `pools::model`.
const MODEL_STEPS: &str = "10";

const PACKAGES: &[&str] = &[
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user-static",
    // The peer.
    "g++",
    "omniidl",
    "libomniorb4-dev",
    // Tools of tests.
    "openssl",
    "tshark",
];

/// The format of aarch64 programs, for `binfmt_misc`.
const FORMAT: &str = "/usr/lib/binfmt.d/qemu-aarch64.conf";

/// The tests, or modules of them, that do not hold under the emulator, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "threads::a_prefaulted_stack_gives_no_page_fault",
        "qemu-user answers MADV_POPULATE_WRITE and does not populate",
    ),
    ("conformance::multicast::", GROUPS),
    (
        "multicast::a_listener_gives_its_thread_back_while_it_is_sent_garbage",
        GROUPS,
    ),
    (
        "multicast::a_message_larger_than_the_socket_buffers_comes_whole_at_a_pace",
        GROUPS,
    ),
    (
        "multicast::a_message_that_is_too_long_is_refused_before_any_of_it_is_sent",
        GROUPS,
    ),
    ("multicast::a_reactor_tells_of_each_message", GROUPS),
    (
        "multicast::every_listener_hears_what_is_sent_to_its_group",
        GROUPS,
    ),
    (
        "multicast::garbage_and_half_collections_do_not_keep_messages_from_coming",
        GROUPS,
    ),
    ("multicast::groups_at_one_port_are_kept_apart", GROUPS),
    ("multicast::listeners_send_nothing", GROUPS),
    ("multicast::a_shutdown_ends_the_wait", GROUPS),
    (
        "multicast::the_rest_of_a_message_that_is_longer_than_the_room_follows",
        GROUPS,
    ),
    (
        "multicast::two_pieces_are_one_message_and_several_messages_go_at_once",
        GROUPS,
    ),
    ("multicast::waits_end_at_their_deadline", GROUPS),
    (
        "multicast::when_the_connection_is_over_there_is_another_one",
        GROUPS,
    ),
    ("groups::a_call_of_a_group_allocates_nothing", GROUPS),
    ("protocols::groups::", GROUPS),
    (
        "protocols::groups_apart::a_group_is_called_from_one_machine_and_heard_on_others",
        GROUPS,
    ),
    (
        "protocols::shmiop::where_both_sides_look_a_call_asks_a_client_for_nothing",
        TRACER,
    ),
    (
        "protocols::shmiop::where_both_sides_look_a_call_asks_a_server_for_nothing",
        TRACER,
    ),
    ("server::system_calls::", TRACER),
    ("protocols::riop::", NETWORKS),
    ("rio::", NETWORKS),
    (
        "client::hostile::no_attack_of_a_server_harms_its_clients",
        MEMORY,
    ),
    ("server::hostile::classes::", MEMORY),
];

/// The reason of tests that listen to a group.
const GROUPS: &str = "qemu-user has no IP_MULTICAST_ALL";

/// The reason of tests that count system calls.
const TRACER: &str = "qemu-user has no ptrace";

/// The reason of tests between two network namespaces.
const NETWORKS: &str =
    "qemu-user has no SIOCETHTOOL, by which the offloads of a veth are turned off";

/// The reason of tests that limit the resident memory of a process.
const MEMORY: &str = "the kernel counts the emulator's memory as that of the process";

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "waits::ends: test\nwaits::ends_late: test\nkick: test\n3 tests\n";

    #[test]
    fn entries_are_tests_or_modules() {
        let names = |entry| left_out(&[(entry, "")], LISTED).ok();
        assert_eq!(names("waits::ends"), Some(vec!["waits::ends"]));
        assert_eq!(
            names("waits::"),
            Some(vec!["waits::ends", "waits::ends_late"])
        );
        assert_eq!(names("kick::"), None);
        assert_eq!(names("waits"), None);
    }

    #[test]
    fn names_of_two_tests_are_refused() {
        let twice = format!("{LISTED}kick: test\n");
        assert!(left_out(&[("kick", "")], &twice).is_err());
        assert!(left_out(&[("waits::", "")], &twice).is_ok());
    }
}
