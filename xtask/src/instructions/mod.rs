//! The user-space instructions of a call, on the client and on the server, counted by callgrind.
//!
//! One side runs under callgrind and the other natively, with N and with 2N calls. The difference
//! of the totals divided by N is the count of one call: start, warm-up and end cancel out. The
//! counts do not depend on the load of the machine.

mod budget;
mod callgrind;

use serde::Serialize;

use crate::calls::{self, CASES, Case, Programs, RunFolder, Side};
use crate::run::{self, Failure};
use budget::Budget;
use callgrind::Profile;

/// The options of the command line.
struct Options<'a> {
    json: bool,
    track: bool,
    functions: bool,
    files: bool,
    cases: Vec<&'a Case>,
}

impl<'a> Options<'a> {
    fn read(arguments: &[&str]) -> Result<Self, Failure> {
        let mut options = Options {
            json: false,
            track: false,
            functions: false,
            files: false,
            cases: Vec::new(),
        };
        for argument in arguments {
            match *argument {
                "--json" => options.json = true,
                "--track" => options.track = true,
                "--functions" => options.functions = true,
                "--files" => options.files = true,
                name => {
                    let case = CASES.iter().find(|case| case.name == name);
                    options.cases.push(case.ok_or_else(|| unknown(name))?);
                }
            }
        }
        if options.cases.is_empty() {
            options.cases.extend(&CASES);
        } else if options.track {
            let why = "instructions: --track records all cases, so it takes no names";
            return Err(Failure(why.to_owned()));
        }
        Ok(options)
    }
}

fn unknown(argument: &str) -> Failure {
    let cases: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    Failure(format!(
        "instructions: there is no option or case {argument:?}; there are --json, --track, \
         --functions, --files, and {}",
        cases.join(", ")
    ))
}

/// The instructions of one call on one side.
#[derive(Debug, Serialize)]
struct Count {
    case: &'static str,
    side: &'static str,
    /// Instructions of chronorb.
    now: f64,
    /// The tracked count.
    recorded: Option<f64>,
    /// Instructions of omniORB.
    #[serde(skip_serializing_if = "Option::is_none")]
    omniorb: Option<f64>,
}

impl Count {
    /// Whether there are more instructions than the budget allows.
    fn is_above(&self) -> bool {
        self.recorded
            .is_some_and(|recorded| self.now > recorded * (1.0 + TOLERANCE))
    }
}

/// The share by which a count may exceed the recorded one.
///
/// Two runs of one build differ by 0.1 %. Builds of one commit in two folders differ by up to
/// 0.6 %, because the order of functions decides what is inlined.
const TOLERANCE: f64 = 0.015;

/// Counts chronorb and, where it is installed, omniORB.
///
/// The options are `--json`, `--track`, `--functions`, `--files`, and names of cases.
pub(crate) fn instructions(arguments: &[&str]) -> Result<(), Failure> {
    let options = Options::read(arguments)?;
    let omniorb = calls::omniorb()?;
    if omniorb.is_none() {
        eprintln!("omniORB is not counted: {}", calls::OMNIORB_MISSING);
    }
    count(&options, omniorb.as_ref())
}

/// Counts chronorb alone and compares it with the budget.
pub(crate) fn check() -> Result<(), Failure> {
    count(&Options::read(&[])?, None)
}

fn count(options: &Options<'_>, omniorb: Option<&Programs>) -> Result<(), Failure> {
    callgrind::require()?;
    let budget = Budget::read()?;
    let environment = budget::Environment::of_this_machine();
    let chronorb = calls::chronorb(&run::root(), &run::target_dir())?;
    let folder = RunFolder::new()?;
    let mut counts = Vec::new();
    for case in &options.cases {
        for &side in case.sides() {
            eprintln!("counting {}, {side}", case.name);
            let profile = callgrind::per_call(&chronorb, case, side, &folder)?;
            let other = omniorb
                .filter(|_| case.is_common())
                .map(|programs| callgrind::per_call(programs, case, side, &folder))
                .transpose()?;
            if options.functions {
                print_functions(case, side, "chronorb", &profile);
                if let Some(other) = &other {
                    print_functions(case, side, "omniORB", other);
                }
            }
            if options.files {
                print_files(case, side, &profile);
            }
            counts.push(Count {
                case: case.name,
                side: side.name(),
                now: profile.total,
                recorded: budget.recorded(case.name, side.name()),
                omniorb: other.map(|other| other.total),
            });
        }
    }
    if options.json {
        let text = serde_json::to_string_pretty(&counts);
        println!("{}", text.map_err(|e| Failure(e.to_string()))?);
    } else {
        print(&counts, &environment);
    }
    if options.track {
        return Budget::track(environment, &counts);
    }
    verdict(&budget, &environment, &counts)
}

/// A count above the budget is a failure, unless the budget was recorded with other tools.
fn verdict(
    budget: &Budget,
    environment: &budget::Environment,
    counts: &[Count],
) -> Result<(), Failure> {
    let above: Vec<String> = counts
        .iter()
        .filter(|count| count.is_above())
        .map(|count| {
            let recorded = count.recorded.unwrap_or_default();
            let Count {
                case, side, now, ..
            } = count;
            format!("{case}, {side}: {now:.0} instructions, recorded {recorded:.0}")
        })
        .collect();
    if above.is_empty() {
        return Ok(());
    }
    let above = above.join("\n  ");
    if let Some(difference) = budget.environment.difference(environment) {
        eprintln!(
            "more than recorded, but counted with other tools ({difference}), which is no \
             failure:\n  {above}"
        );
        return Ok(());
    }
    Err(Failure(format!(
        "a call takes more than {}% above the recorded instructions:\n  {above}\n\
         `cargo xtask instructions --functions CASE` shows the functions; \
         `cargo xtask instructions --track` records a count that is meant",
        TOLERANCE * 100.0
    )))
}

fn print(counts: &[Count], environment: &budget::Environment) {
    println!("\nUser-space instructions of one call; {environment}\n");
    println!(
        "{:<15}{:<8}{:>10}{:>10}{:>9}{:>10}",
        "case", "side", "chronorb", "recorded", "change", "omniORB"
    );
    for count in counts {
        let change = count
            .recorded
            .map(|recorded| format!("{:+.2}%", (count.now / recorded - 1.0) * 100.0));
        println!(
            "{:<15}{:<8}{:>10.1}{:>10}{:>9}{:>10}",
            count.case,
            count.side,
            count.now,
            optional(count.recorded),
            change.unwrap_or_default(),
            optional(count.omniorb)
        );
    }
}

fn optional(count: Option<f64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| format!("{count:.1}"))
}

fn print_functions(case: &Case, side: Side, orb: &str, profile: &Profile) {
    println!(
        "\n{orb}, {}, {side}: {:.1} instructions of a call\n",
        case.name, profile.total
    );
    let shown = profile
        .functions
        .iter()
        .filter(|(_, count)| *count >= LEAST_SHOWN);
    for (name, count) in shown {
        println!("{count:>10.1}  {name}");
    }
}

/// Prints the files of the workspace in which a call does its work.
fn print_files(case: &Case, side: Side, profile: &Profile) {
    let root = format!("{}/", run::root().display());
    let files = profile.files.iter().filter_map(|(file, count)| {
        let file = file.strip_prefix(&root).unwrap_or(file);
        let is_own = file.starts_with("crates/") && *count >= LEAST_OF_FILE;
        is_own.then_some((file, count))
    });
    let files: Vec<_> = files.collect();
    println!(
        "\nchronorb, {}, {side}: {} files with at least {LEAST_OF_FILE} instructions of a call\n",
        case.name,
        files.len()
    );
    for (file, count) in files {
        println!("{count:>10.1}  {file}");
    }
}

/// Files with fewer instructions for each call are only passed through.
const LEAST_OF_FILE: f64 = 10.0;
/// Functions with fewer instructions for each call are not shown.
const LEAST_SHOWN: f64 = 1.0;
