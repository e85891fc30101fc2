//! The IDL of the COS services, beside omniidl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::measure::{Cost, cost, median, ms};
use super::{chronorb, make};
use crate::run::{Failure, ask};

/// Runs of each compiler, which take turns.
const RUNS: usize = 5;
/// Where the Debian package omniorb-idl has its files.
const IDL: &str = "/usr/share/idl/omniORB";

/// Prints what both compilers take for the same files in the same run.
pub(super) fn table(folder: &Path) -> Result<(), Failure> {
    if ask("omniidl", &["-V"]).is_none() || !Path::new(IDL).is_dir() {
        println!("NOT RUN: beside omniidl; it needs omniidl and {IDL} (omniidl, omniorb-idl)");
        return Ok(());
    }
    let out = folder.join("cos");
    make(&out)?;
    let mut files = Vec::new();
    for file in idl_files()? {
        let refused: Vec<&str> = COMPILERS
            .iter()
            .filter(|compiler| {
                cost(&mut compiler.command(std::slice::from_ref(&file), &out)).is_err()
            })
            .map(|compiler| compiler.name)
            .collect();
        if refused.is_empty() {
            files.push(file);
        } else {
            println!(
                "left out for both: {}, refused by {}",
                file.display(),
                refused.join(", ")
            );
        }
    }
    let lines: usize = files
        .iter()
        .map(|file| fs::read_to_string(file).map_or(0, |text| text.lines().count()))
        .sum();
    println!(
        "{} files, {lines} lines, of {IDL}; medians of {RUNS} runs, in turn",
        files.len()
    );
    println!(
        "{:>40} {:>14} {:>18} {:>9}",
        "", "each alone ms", "one after all ms", "MiB"
    );
    let mut alone: [Vec<Duration>; 2] = Default::default();
    let mut together: [Vec<Duration>; 2] = Default::default();
    let mut memory = [0; 2];
    for _ in 0..RUNS {
        for (i, compiler) in COMPILERS.iter().enumerate() {
            let mut sum = Duration::ZERO;
            for file in &files {
                sum += run(compiler, std::slice::from_ref(file), &out)?.time;
            }
            alone[i].push(sum);
            let all = run(compiler, &files, &out)?;
            together[i].push(all.time);
            memory[i] = all.memory.max(memory[i]);
        }
    }
    let of = |times: &[Duration]| median(times).unwrap_or_default();
    for (i, compiler) in COMPILERS.iter().enumerate() {
        println!(
            "{:>40} {:>14} {:>18} {:>9}",
            compiler.name,
            ms(of(&alone[i])),
            ms(of(&together[i])),
            memory[i] / 1024
        );
    }
    let ratio =
        |times: &[Vec<Duration>; 2]| of(&times[1]).as_secs_f64() / of(&times[0]).as_secs_f64();
    println!(
        "{:>40} {:>14.2} {:>18.2}",
        "omniidl / chronorb",
        ratio(&alone),
        ratio(&together)
    );
    Ok(())
}

struct Compiler {
    name: &'static str,
    command: fn(&Path) -> Command,
}

const COMPILERS: [Compiler; 2] = [
    Compiler {
        name: "chronorb idl rust",
        command: |out| {
            let mut command = Command::new(chronorb());
            command.args(["idl", "rust", "--out"]).arg(out);
            command
        },
    },
    Compiler {
        name: "omniidl -bcxx",
        command: |out| {
            let mut command = Command::new("omniidl");
            command.arg("-bcxx").arg("-C").arg(out);
            command
        },
    },
];

impl Compiler {
    fn command(&self, files: &[PathBuf], out: &Path) -> Command {
        let mut command = (self.command)(out);
        command
            .arg(format!("-I{IDL}"))
            .arg(format!("-I{IDL}/COS"))
            .args(files);
        command
    }
}

/// Compiles into an empty folder.
fn run(compiler: &Compiler, files: &[PathBuf], out: &Path) -> Result<Cost, Failure> {
    let _ = fs::remove_dir_all(out);
    make(out)?;
    cost(&mut compiler.command(files, out))
}

fn idl_files() -> Result<Vec<PathBuf>, Failure> {
    let folder = Path::new(IDL).join("COS");
    let failed = |error: std::io::Error| Failure(format!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "idl") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
