//! Every job of this workspace that cargo does not do by itself: `cargo xtask HELP`.

mod arm;
mod arrows;
mod asan;
mod calls;
mod checks;
mod demux;
mod deny;
mod dist;
mod documents;
mod fuzz;
mod history;
mod idl_speed;
mod instructions;
mod language;
mod layers;
mod ledger;
mod lints;
mod nightly;
mod packages;
mod pairs;
mod peers;
mod request_path;
mod requirements;
mod run;
mod size;
mod start;
mod targets;
mod tsan;

use std::process::ExitCode;

use ledger::Ledger;
use lints::TestBuild;
use run::Failure;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  ci      what must hold on main: `check` and `test`, in one build. Fails where they need more
          processor time than xtask/ledger.toml allows
  ledger  the processor time of each step of the last `ci`, compared with the record. Option:
          --track records it
  test    run all tests: units, properties, documentation, programs, the models of the lock-free
          parts, the fuzz targets with their corpora and with inputs of fixed seeds, and calls to
          and from other ORBs. Installs what these need beyond Rust (apt-get, as root) and says what
          it leaves out where it cannot. With CHRONORB_PEERS=required a missing peer is a failure.
  tsan    the tests of the runtime and the ORB core under ThreadSanitizer, on both strategies of
          thread pools. Ends with a table of all modules: tests, races, time
  asan    what has `unsafe` code under AddressSanitizer: the arena, the lock-free tables, the rings
          of shared memory, and the corpora of the fuzz targets that reach them
  fuzz    coverage-guided fuzzing (fuzz/README.md). Options: --hours N, 1 by default, shared among
          the targets; --target NAME, any number of times, all by default; --jobs N; --keep puts the
          smallest inputs that reach the same code into fuzz/corpus; --minimise does that alone,
          without a run; --json
  replay  the corpora without the fuzzer, with five times as many generated inputs as `test` has
  check   formatting, tidiness, clippy, documentation, packages, each feature alone, other targets,
          the size of the minimal server, and the instructions of a call, as the project's CI does
  targets `cargo check` for aarch64, for musl, and for 32-bit ARM (rustup installs their libraries)
  arm     the tests of the runtime, the transports, the ORB and the quoter for aarch64 under
          qemu-user, with the features that the quoter needs, fewer cases of properties and steps of
          models, and calls to and from omniORB on this machine. Installs the emulator and the C
          compiler (apt-get, as root). Ends with the names of the tests that it leaves out, the
          reasons, and its time
  size    how large the minimal server is, and whose its parts are; fails above the limit of
          xtask/size.toml. Options: --json; --track writes the figures found to that file;
          --features NAME… says by how much each feature of chronorb alone makes it larger
  instructions
          count the user-space instructions of a call on client and server, beside omniORB's; fails
          where a count is above xtask/instructions.toml. Options: --json; --track records the
          counts; --functions shows the functions; names of cases
  pairs COMMIT
          compare the times of calls with those of a commit, in interleaved rounds on one CPU: the
          median ratio and its interval of 95 %. Options: --rounds N; names of cases
  demux   the cost of finding the target of a request among many POAs, objects and operations:
          instructions, simulated cache misses, and time
  start   the time of a server from its start to its first answer, its page faults and its resident
          memory, beside omniORB's
  rio-streams
          a GiB each way through each kind of class of the real-time I/O subsystem, with lost,
          overtaken, duplicated and changed frames: over a wire in memory, and as root over each
          driver. `cargo test` does the same with 4 MiB
  schedules
          100,000 random schedule files: no response that is simulated as the ORB executes them may
          be above the analysed one. `cargo test` does the same with fewer
  idl-speed
          how long the IDL compiler takes: for generated IDL of growing size, and for the IDL of the
          COS services beside omniidl. Options: the number of lines; --generated, --cos
  tidy    tidiness alone: no trailing space, no file above 900 lines; manifests, licences
          and lists of features of the published crates; links and excerpts of the documents, and
          the list of files with unsafe code; the layers of crates and their dependencies;
          ignored tests; commits after a base: no merges, no subject that begins with `wip`;
          `arrows` and `language`
  arrows  cycles between the modules of a crate and between its rooms, through re-exports, compared
          with their recorded sizes, and rooms that name others which they must not
          (xtask/arrows.toml). Options: --show CRATE prints which module names which
  language
          offences against the rules of language (CONTRIBUTING.md) in Rust, Markdown and subjects of
          commits, by area; fails where there are more than in xtask/language.toml. Options: --track
          writes the counts; --show AREA prints the offences of a crate, folder or file; --sample N
          --seed S draws doc comments at random
  dist    what is handed out, in target/dist-out or --out DIR: the stripped command, manual pages,
          completions, a Debian package, the licences of dependencies, the book as HTML (where
          mdBook is installed), checksums. The same commit makes the same files
  package the packages of all published crates: each is built from what is in it, and then the
          command and the tutorial's project from the packages alone. With --quick all crates are
          documented and that project is checked with nothing but the packages, by the oldest Rust
          that Cargo.toml allows (rustup installs it), as `check` does
  deny    licences, duplicates and origins of the dependencies of each workspace (installs
          cargo-deny). With --advisories FOLDER, a clone of an advisory database, advisories too
  integrations
          the programs of `integrations/`, which need an asynchronous runtime or a large server:
          formatting, clippy and tests; and the tests of examples/serial-line
  nightly what is too dear for each change: tsan, asan, replay, arm, rio-streams, schedules,
          package, integrations and deny, with a table of their times and outcomes at the end; fails
          if one fails.
          Options: names of jobs, all by default
  peers   install the other ORBs and tools that tests use
";

fn main() -> ExitCode {
    if let Some(code) = fuzz::as_compiler().or_else(ledger::as_runner) {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => ci(),
        ["ledger", ref options @ ..] => ledger::ledger(options),
        ["test"] => test(),
        ["tsan"] => tsan::tsan(),
        ["arrows", ref options @ ..] => arrows::arrows(options),
        ["asan"] => asan::asan(),
        ["fuzz", ref options @ ..] => fuzz::fuzz(options),
        ["replay"] => fuzz::replay(),
        ["check"] => check(),
        ["rio-streams"] => rio_streams(),
        ["schedules"] => schedules(),
        ["idl-speed", ref options @ ..] => idl_speed::idl_speed(options),
        ["tidy"] => checks::tidy(),
        ["targets"] => targets::targets(),
        ["arm"] => arm::arm(),
        ["deny", ref options @ ..] => deny::deny(options),
        ["integrations"] => integrations(),
        ["nightly", ref names @ ..] => nightly::nightly(names),
        ["dist", ref options @ ..] => dist::dist(options),
        ["package"] => packages::package(),
        ["package", "--quick"] => packages::quick(),
        ["size", ref options @ ..] => size::size(options),
        ["pairs", ref options @ ..] => pairs::pairs(options),
        ["instructions", ref options @ ..] => instructions::instructions(options),
        ["language", ref options @ ..] => language::language(options),
        ["demux"] => demux::demux(),
        ["start"] => start::start(),
        ["peers"] => peers::provide().map(drop),
        ["help" | "--help" | "-h"] | [] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("xtask: there is no command {:?}\n\n{USAGE}", args.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Long streams through each kind of class.
fn rio_streams() -> Result<(), Failure> {
    let test = ["test", "--release", "--package=chronorb-rio", "--lib"];
    let shown = [
        "--",
        "tests::long_streams::",
        "--nocapture",
        "--test-threads=1",
    ];
    let mebibytes = ("CHRONORB_RIO_MIB", "1024".to_owned());
    run::cargo(&[&test[..], &shown].concat(), &[mebibytes])
}

/// Random schedule files, analysed and simulated.
fn schedules() -> Result<(), Failure> {
    let test = [
        "test",
        "--release",
        "--package=chronorb-schedule",
        "--test=it",
    ];
    let files = ("CHRONORB_SCHEDULE_FILES", "100000".to_owned());
    run::cargo(&[&test[..], &["--", "comparison::"]].concat(), &[files])
}

/// Everything that must hold on main.
fn ci() -> Result<(), Failure> {
    let mut ledger = Ledger::calibrated()?;
    ledger.set_up("downloads", || {
        for manifest in ["Cargo.toml", run::OUTSIDE] {
            run::cargo(&["fetch", "--locked", "--manifest-path", manifest], &[])?;
        }
        Ok(())
    })?;
    let left_out = ledger.set_up("packages of other ORBs and tools", peers::provide)?;
    checks::texts(&mut ledger)?;
    let build = TestBuild::linted()?;
    build_tests(&mut ledger, &build)?;
    checks::products(&mut ledger)?;
    run_tests(&mut ledger, &build)?;
    peers::print(&left_out);
    ledger.finish()
}

fn check() -> Result<(), Failure> {
    let mut ledger = Ledger::uncalibrated();
    checks::texts(&mut ledger)?;
    ledger.step("clippy", lints::clippy)?;
    checks::products(&mut ledger)?;
    ledger.finish()
}

/// All tests, the peers' included as far as they can be had.
fn test() -> Result<(), Failure> {
    let mut ledger = Ledger::uncalibrated();
    let left_out = ledger.set_up("packages of other ORBs and tools", peers::provide)?;
    let build = TestBuild::default();
    build_tests(&mut ledger, &build)?;
    run_tests(&mut ledger, &build)?;
    peers::print(&left_out);
    ledger.finish()
}

fn build_tests(ledger: &mut Ledger, build: &TestBuild) -> Result<(), Failure> {
    // Not the libraries that have no tests: they would be built with a harness for none, as they
    // would by `--benches`.
    let targets = ["--tests", "--bins", "--examples", "--no-run"];
    let all = [WORKSPACE, &targets].concat();
    ledger.step("build of tests", || run::run(&mut build.command(&all)))
}

fn run_tests(ledger: &mut Ledger, build: &TestBuild) -> Result<(), Failure> {
    ledger.step("models of lock-free parts", models)?;
    ledger.step("generated services", lints::services)?;
    ledger.step("builds with few features", bare)?;
    let all = [WORKSPACE, &["--no-fail-fast"]].concat();
    let mut tests = build.command(&all);
    tests.envs(fuzz::replay_environment()?);
    tests.env("CHRONORB_MINIMAL_SERVER", size::minimal_server());
    ledger.tests(tests)?;
    ledger.step("example outside the workspace", check_outside)
}

const WORKSPACE: &[&str] = &["test", "--workspace", "--exclude=chronorb-services-tests"];

/// Tests that features which are left out are refused, and builds the server without features for
/// the tests of the workspace. In the workspace both would have all features.
fn bare() -> Result<(), Failure> {
    let refusals = [
        "test",
        "--package=chronorb-orb",
        "--no-default-features",
        "--lib",
        "config::",
        // No test that runs here computes.
        "--config=profile.dev.package.chronorb-sched.opt-level=0",
        "--config=profile.dev.package.chronorb-schedule.opt-level=0",
    ];
    run::cargo(&refusals, &[])?;
    // Schedules can ask for a feature themselves.
    let schedule = [&refusals[..], &["--features", "schedule"]].concat();
    run::cargo(&schedule, &[])?;
    size::build_minimal_server()
}

/// Checks the example that is no member of the workspace, as applications are not. Its tests, for
/// which the ORB would be compiled once more, are run with the integrations.
fn check_outside() -> Result<(), Failure> {
    let check = ["check", "--all-targets", "--locked", "--manifest-path"];
    run::cargo(
        &[&check[..], &[run::OUTSIDE]].concat(),
        &where_the_workspace_is(),
    )
}

/// The programs of `integrations/`, which is a workspace of its own, and the example outside.
fn integrations() -> Result<(), Failure> {
    checks::format_of(run::INTEGRATIONS)?;
    let environment = where_the_workspace_is();
    let of_all = ["--locked", "--manifest-path", run::INTEGRATIONS];
    let clippy = [&["clippy", "--all-targets"], &of_all[..]].concat();
    let clippy = [&clippy[..], &["--", "--deny", "warnings"]].concat();
    run::cargo(&clippy, &environment)?;
    let test = [&["test", "--no-fail-fast"], &of_all[..]].concat();
    run::cargo(&test, &environment)?;
    let outside = ["test", "--locked", "--manifest-path", run::OUTSIDE];
    run::cargo(&outside, &environment)
}

/// Other workspaces are built where this one is, which has most of their dependencies already.
fn where_the_workspace_is() -> [(&'static str, String); 1] {
    [("CARGO_TARGET_DIR", run::target_dir().display().to_string())]
}

/// The lock-free parts under every schedule that loom finds. They are built with another `cfg`,
/// in a folder of their own so that the ordinary build stays warm.
fn models() -> Result<(), Failure> {
    let target = run::target_dir().join("loom");
    let environment = [
        ("RUSTFLAGS", "--cfg loom".to_owned()),
        ("CARGO_TARGET_DIR", target.display().to_string()),
        // Building takes longer than running: only what runs is optimized.
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1".to_owned()),
        ("CARGO_PROFILE_RELEASE_DEBUG", "0".to_owned()),
    ];
    let args = [
        "test",
        "--package=chronorb-rt",
        "--package=chronorb-transport",
        "--package=chronorb-rio",
        "--package=chronorb-channel",
        "--no-default-features",
        "--features=chronorb-transport/shm",
        "--release",
        "--test=loom",
        "--config=profile.release.package.'*'.opt-level=0",
        "--config=profile.release.package.loom.opt-level=1",
        "--config=profile.release.package.generator.opt-level=1",
    ];
    run::cargo(&args, &environment)
}
