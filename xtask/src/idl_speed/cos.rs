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
/// The directory of the files of the Debian package omniorb-idl.
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
    println!("{:>40} {:>9} {:>9}", "", "ms", "MiB");
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut memory = [0; 3];
    for _ in 0..RUNS {
        for (i, compiler) in COMPILERS.iter().enumerate() {
            let each = files.chunks(if compiler.at_once { files.len() } else { 1 });
            let mut sum = Duration::ZERO;
            for files in each {
                let cost = run(compiler, files, &out)?;
                sum += cost.time;
                memory[i] = cost.memory.max(memory[i]);
            }
            times[i].push(sum);
        }
    }
    let of = |i: usize| median(&times[i]).unwrap_or_default();
    for (i, compiler) in COMPILERS.iter().enumerate() {
        let (name, memory) = (compiler.name, memory[i] / 1024);
        println!("{name:>40} {:>9} {memory:>9}", ms(of(i)));
    }
    let last = COMPILERS.len() - 1;
    for (i, compiler) in COMPILERS[..last].iter().enumerate() {
        let ratio = of(i).as_secs_f64() / of(last).as_secs_f64();
        println!("{:>40} {ratio:>9.2} of omniidl", compiler.name);
    }
    Ok(())
}

struct Compiler {
    name: &'static str,
    /// Whether one process compiles all files; omniidl's back end takes one.
    at_once: bool,
    command: fn(&Path) -> Command,
}

const COMPILERS: [Compiler; 3] = [
    Compiler {
        name: "chronorb idl rust, each file once",
        at_once: true,
        command: |out| {
            let mut command = Command::new(chronorb());
            command
                .args([
                    "idl",
                    "rust",
                    "-D__OMNIIDL__",
                    "--shared",
                    "crate::cos",
                    "--out",
                ])
                .arg(out);
            command
        },
    },
    Compiler {
        name: "chronorb idl rust, with what is included",
        at_once: false,
        command: |out| {
            let mut command = Command::new(chronorb());
            command
                .args(["idl", "rust", "-D__OMNIIDL__", "--out"])
                .arg(out);
            command
        },
    },
    Compiler {
        name: "omniidl -bcxx",
        at_once: false,
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
