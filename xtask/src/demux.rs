//! The cost of finding the target of a request, from the octets of its message to its skeleton and
//! back: instructions and simulated cache misses, by cachegrind, and time.

use std::fs;
use std::path::Path;

use crate::calls::{self, RunFolder};
use crate::run::{self, Failure, ask};

/// Measures the program `calls-demux` for tables of several sizes.
pub(crate) fn demux() -> Result<(), Failure> {
    if ask("valgrind", &["--version"]).is_none() {
        let why = "demux: valgrind is not installed (install with: apt-get install valgrind)";
        return Err(Failure(why.to_owned()));
    }
    calls::build(&run::root(), &run::target_dir(), &["--bin=calls-demux"])?;
    let program = run::target_dir().join("dist/calls-demux");
    let folder = RunFolder::new()?;
    println!(
        "\nA request, from the octets of its message to its skeleton and back; objects and \
         operations are drawn at random.\nCaches of the simulation: {CACHES}\n"
    );
    println!(
        "{:>8}{:>14}{:>12}{:>12}{:>12}",
        "entries", "instructions", "L1 misses", "L2 misses", "time"
    );
    for entries in SIZES {
        // The preparation of ORB and messages is the same in both.
        let [served, copied] = ["serve", "copy"].map(|mode| {
            let counter = [
                "valgrind",
                "--quiet",
                "--tool=cachegrind",
                "--cache-sim=yes",
                "--I1=32768,8,64",
                "--D1=49152,12,64",
                "--LL=2097152,16,64",
            ];
            let file = format!("--cachegrind-out-file={}", folder.profile().display());
            let counter = [&counter.map(str::to_owned)[..], &[file]].concat();
            run_program(&folder, &counter, &program, mode, entries, COUNTED)?;
            counts(&folder.profile())
        });
        let (served, copied) = (served?, copied?);
        let each =
            |of: fn(&Counts) -> u64| (of(&served) as f64 - of(&copied) as f64) / f64::from(COUNTED);
        let time = run_program(&folder, &[], &program, "serve", entries, TIMED)?;
        println!(
            "{entries:>8}{:>14.1}{:>12.2}{:>12.2}{:>12}",
            each(|counts| counts.instructions),
            each(|counts| counts.first_level),
            each(|counts| counts.last_level),
            time.trim()
        );
    }
    Ok(())
}

fn run_program(
    folder: &RunFolder,
    counter: &[String],
    program: &Path,
    mode: &str,
    entries: u32,
    requests: u32,
) -> Result<String, Failure> {
    let mut command = folder.command(counter, program)?;
    folder.run(command.args([mode, &entries.to_string(), &requests.to_string()]))
}

/// The totals of a process.
#[derive(Debug, Eq, PartialEq)]
struct Counts {
    instructions: u64,
    /// The loads and stores that miss the first-level data cache.
    first_level: u64,
    /// Those of them that miss the last level too.
    last_level: u64,
}

fn counts(file: &Path) -> Result<Counts, Failure> {
    let profile = fs::read_to_string(file);
    let profile = profile.map_err(|e| Failure(format!("{}: {e}", file.display())))?;
    parse(&profile).ok_or_else(|| Failure(format!("{}: not a profile", file.display())))
}

/// Reads cachegrind's format: the line `events:` names the columns of the line `summary:`.
fn parse(profile: &str) -> Option<Counts> {
    let line = |start: &str| profile.lines().find_map(|line| line.strip_prefix(start));
    let names: Vec<&str> = line("events:")?.split_whitespace().collect();
    let totals: Vec<u64> = line("summary:")?
        .split_whitespace()
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let total = |name| {
        totals
            .get(names.iter().position(|other| *other == name)?)
            .copied()
    };
    Some(Counts {
        instructions: total("Ir")?,
        first_level: total("D1mr")? + total("D1mw")?,
        last_level: total("DLmr")? + total("DLmw")?,
    })
}

/// The numbers of POAs, objects and operations.
const SIZES: [u32; 4] = [1, 100, 1_000, 10_000];
/// The requests that are counted: each object of the largest table many times.
const COUNTED: u32 = 64 * 4_000;
/// The requests that are timed.
const TIMED: u32 = 64 * 40_000;
const CACHES: &str = "first level 48 KiB, last level 2 MiB";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found_by_the_names_of_their_columns() {
        let profile = "desc: D1 cache\ncmd: x\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\n\
                       fn=main\n1 2 0 0 0 0 0 0 0 0\nsummary: 100 1 1 40 7 5 20 3 2\n";
        let counts = Counts {
            instructions: 100,
            first_level: 10,
            last_level: 7,
        };
        assert_eq!(parse(profile), Some(counts));
        assert_eq!(parse("summary: 1\n"), None);
    }
}
