//! The times of calls of this tree and of another commit, as ratios of interleaved rounds.
//!
//! The median of the ratios does not depend on how fast the machine is at the time. Its interval
//! is that of the sign test: it holds for whatever distribution.

use std::process::Command;

use crate::calls::{self, CASES, Case, Programs, RunFolder, Transport};
use crate::run::{self, Failure, ask};

/// Compares the times of calls with those of a commit. A median whose interval is above 1 is a
/// failure.
///
/// The arguments are the commit, `--rounds N`, and names of cases, of which `octet` is the default.
pub(crate) fn pairs(arguments: &[&str]) -> Result<(), Failure> {
    let options = Options::read(arguments)?;
    let commit = ask(
        "git",
        &[
            "rev-parse",
            "--verify",
            &format!("{}^{{commit}}", options.base),
        ],
    );
    let commit = commit.ok_or_else(|| Failure(format!("there is no commit {}", options.base)))?;
    let base = base_programs(&commit)?;
    let now = calls::chronorb(&run::root(), &run::target_dir())?;
    let folder = RunFolder::new()?;
    let mut slower = Vec::new();
    println!(
        "Median times of a call on one CPU, this tree by {}:\n",
        options.base
    );
    for case in options.cases {
        let ratios = ratios(&now, &base, case, options.rounds, &folder)?;
        let (low, median, high) = interval(ratios);
        println!("{:<12}{median:.3} ({low:.3} to {high:.3})", case.name);
        if low > 1.0 {
            slower.push(case.name);
        }
    }
    if slower.is_empty() {
        return Ok(());
    }
    Err(Failure(format!(
        "slower than {}: {}",
        options.base,
        slower.join(", ")
    )))
}

struct Options<'a> {
    base: &'a str,
    rounds: usize,
    cases: Vec<&'a Case>,
}

impl<'a> Options<'a> {
    fn read(arguments: &[&'a str]) -> Result<Self, Failure> {
        let mut options = Options {
            base: "",
            rounds: ROUNDS,
            cases: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            if argument == "--rounds" {
                let number = arguments.next().and_then(|number| number.parse().ok());
                let number = number.filter(|&rounds| rounds >= LEAST_ROUNDS);
                options.rounds = number.ok_or_else(|| {
                    Failure(format!(
                        "pairs: --rounds needs a number of at least {LEAST_ROUNDS}"
                    ))
                })?;
            } else if let Some(case) = CASES.iter().find(|case| case.name == argument) {
                options.cases.push(case);
            } else if options.base.is_empty() && !argument.starts_with('-') {
                options.base = argument;
            } else {
                return Err(Failure(format!(
                    "pairs: {argument:?} is not known\n{USAGE}"
                )));
            }
        }
        if options.base.is_empty() {
            return Err(Failure(USAGE.to_owned()));
        }
        if options.cases.is_empty() {
            options
                .cases
                .extend(CASES.iter().find(|case| case.name == "octet"));
        }
        Ok(options)
    }
}

const USAGE: &str = "usage: cargo xtask pairs COMMIT [--rounds N] [CASE…]";
const ROUNDS: usize = 31;
/// Fewer rounds have no interval of 95 %.
const LEAST_ROUNDS: usize = 6;
/// The calls of a client in a round.
const CALLS: u32 = 10_000;

/// Builds the programs of another commit, whose files are put below the target folder.
fn base_programs(commit: &str) -> Result<Programs, Failure> {
    let folder = run::target_dir().join("pairs");
    let tree = folder.join(commit);
    if !tree.is_dir() {
        let made = std::fs::create_dir_all(&tree);
        made.map_err(|error| Failure(format!("{}: {error}", tree.display())))?;
        let archive = folder.join("archive.tar");
        let mut git = Command::new("git");
        git.current_dir(run::root()).args(["archive", "--output"]);
        run::run(git.arg(&archive).arg(commit))?;
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(&tree).arg("-xf");
        run::run(tar.arg(&archive))?;
    }
    if !tree.join("benches/calls").is_dir() {
        return Err(Failure(format!(
            "{commit} has no benches/calls to compare with"
        )));
    }
    calls::chronorb(&tree, &folder.join("target"))
}

/// The ratios of the median times of a call, of all rounds.
fn ratios(
    now: &Programs,
    base: &Programs,
    case: &Case,
    rounds: usize,
    folder: &RunFolder,
) -> Result<Vec<f64>, Failure> {
    // One CPU: where two are free, the scheduler chooses between two cases that differ by a factor.
    let on_one_cpu = [
        "taskset".to_owned(),
        "--cpu-list".to_owned(),
        "0".to_owned(),
    ];
    let programs = [now, base];
    let mut servers = Vec::new();
    if case.transport != Transport::Collocated {
        for programs in programs {
            servers.push(programs.serve(case, &on_one_cpu, None, folder)?);
        }
    }
    let median_ns = |which: usize| {
        let mut client = programs[which].client("times", case, CALLS, &on_one_cpu, folder)?;
        client.args(servers.get(which).map(|server| &server.reference));
        let printed = folder.run(&mut client)?;
        let time: Result<f64, _> = printed.trim().parse();
        time.map_err(|error| folder.failure(error))
    };
    let mut ratios = Vec::new();
    for round in 0..rounds {
        eprintln!("{}, round {} of {rounds}", case.name, round + 1);
        // Each goes first in every other round.
        let mut times = [0.0; 2];
        for turn in [round % 2, (round + 1) % 2] {
            times[turn] = median_ns(turn)?;
        }
        ratios.push(times[0] / times[1]);
    }
    for server in servers {
        server.end(folder)?;
    }
    Ok(ratios)
}

/// The median and the bounds of its interval of at least 95 %, by the binomial distribution of the
/// number of values below the median.
fn interval(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    // P(X <= k) of a fair coin, as long as it stays below 2.5 %.
    let mut probability = 0.5_f64.powi(n as i32);
    let mut sum = probability;
    let mut below = 0;
    while sum < 0.025 {
        below += 1;
        probability *= (n + 1 - below) as f64 / below as f64;
        sum += probability;
    }
    let below = below.saturating_sub(1);
    let middle = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
    (values[below], middle, values[n - 1 - below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // Order statistics 1 and 6 of 6, 2 and 9 of 10, 10 and 22 of 31 (sign test, 95 %).
        for (n, low, high) in [(6, 1, 6), (10, 2, 9), (31, 10, 22)] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let middle = f64::from(n + 1) / 2.0;
            assert_eq!(interval(values), (f64::from(low), middle, f64::from(high)));
        }
    }
}
