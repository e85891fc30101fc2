//! The start of a server until its first answer, and its memory, beside omniORB's.

use std::fs;
use std::time::{Duration, Instant};

use crate::calls::{self, CASES, Case, OMNIORB_MISSING, Programs, RunFolder, Server};
use crate::run::{self, Failure};

/// Measures the servers of `benches/calls` with default settings, in interleaved rounds.
pub(crate) fn start() -> Result<(), Failure> {
    let octet = CASES.iter().find(|case| case.name == "octet");
    let octet = octet.ok_or_else(|| Failure("there is no case octet".to_owned()))?;
    let mut orbs = vec![(
        "chronorb",
        calls::chronorb(&run::root(), &run::target_dir())?,
        Vec::new(),
    )];
    match calls::omniorb()? {
        Some(programs) => orbs.push(("omniORB", programs, Vec::new())),
        None => eprintln!("omniORB is left out: {OMNIORB_MISSING}"),
    }
    let folder = RunFolder::new()?;
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        for (_, programs, rows) in &mut orbs {
            rows.push(measure(programs, octet, &folder)?);
        }
    }
    println!("Medians of {ROUNDS} rounds. Resident memory is that after {CALLS} calls.\n");
    println!("{:<10}{}", "", HEADER);
    for (name, _, rows) in orbs {
        let median = |of: fn(&Row) -> u64| {
            let mut values: Vec<u64> = rows.iter().map(of).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        println!(
            "{name:<10}{:>13.2} ms{:>9.2} ms{:>13.2} ms{:>8}{:>9} KiB{:>8} KiB",
            millis(median(|row| row.reference_ns)),
            millis(median(|row| row.answer_ns)),
            millis(median(|row| row.processor_ns)),
            median(|row| row.faults),
            median(|row| row.resident_kib),
            median(|row| row.own_kib),
        );
    }
    Ok(())
}

/// The figures of one round.
struct Row {
    /// From the start of the server to its reference.
    reference_ns: u64,
    /// From the start of the server to the end of a client that has made one call.
    answer_ns: u64,
    /// The processor time of the server until then.
    processor_ns: u64,
    /// The page faults of the server until then.
    faults: u64,
    resident_kib: u64,
    /// The part of the resident memory that no file backs.
    own_kib: u64,
}

fn measure(programs: &Programs, case: &Case, folder: &RunFolder) -> Result<Row, Failure> {
    let begin = Instant::now();
    let server = programs.serve_by_default(folder)?;
    let reference_ns = nanos(begin.elapsed());
    call(programs, "first", 1, case, &server, folder)?;
    let answer_ns = nanos(begin.elapsed());
    let id = server.program(folder)?;
    let (processor_ns, faults) = (processor_ns(id, folder)?, faults(id, folder)?);
    call(programs, "first", CALLS, case, &server, folder)?;
    let status = read(&format!("/proc/{id}/status"), folder)?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| folder.failure(format!("/proc/{id}/status has no {name}")))
    };
    let row = Row {
        reference_ns,
        answer_ns,
        processor_ns,
        faults,
        resident_kib: kib("VmRSS:")?,
        own_kib: kib("RssAnon:")?,
    };
    server.end(folder)?;
    Ok(row)
}

/// Makes calls from a client of its own.
fn call(
    programs: &Programs,
    mode: &str,
    calls: u32,
    case: &Case,
    server: &Server,
    folder: &RunFolder,
) -> Result<(), Failure> {
    let mut client = programs.client(mode, case, calls, &[], folder)?;
    folder.run(client.arg(&server.reference)).map(drop)
}

/// The processor time of all threads of a process.
fn processor_ns(id: u32, folder: &RunFolder) -> Result<u64, Failure> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).map_err(|e| folder.failure(e))?;
    let mut sum = 0;
    for thread in threads {
        let path = thread.map_err(|e| folder.failure(e))?.path();
        let times = read(&path.join("schedstat").display().to_string(), folder)?;
        sum += field(&times, 0).ok_or_else(|| folder.failure("schedstat has no time"))?;
    }
    Ok(sum)
}

/// The minor and major page faults of a process.
fn faults(id: u32, folder: &RunFolder) -> Result<u64, Failure> {
    let stat = read(&format!("/proc/{id}/stat"), folder)?;
    // The name of the program is in parentheses, and may contain spaces.
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    let faults = field(rest, 7).zip(field(rest, 9));
    let faults = faults.map(|(minor, major)| minor + major);
    faults.ok_or_else(|| folder.failure("stat has no page faults"))
}

fn field(line: &str, index: usize) -> Option<u64> {
    line.split_whitespace().nth(index)?.parse().ok()
}

fn read(path: &str, folder: &RunFolder) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| folder.failure(format!("{path}: {error}")))
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

const HEADER: &str = "to reference    to answer  processor time  faults     resident   of its own";
const ROUNDS: usize = 11;
const CALLS: u32 = 500;
