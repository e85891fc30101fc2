//! `chronorb sched learn`: execution times from a running ORB.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronorb_orb::OperationSnapshot;
use chronorb_schedule::readable_time;
use chronorb_schedule::{
    MAX_TEXT, Margin, MeasuredCost, Operation, Schedule, ScheduleErrors, Time,
};
use clap::Args;
use thiserror::Error;

use crate::top::{self, Target, TopError};

#[derive(Args, Debug)]
pub(crate) struct LearnArguments {
    /// The schedule, a file of TOML.
    file: PathBuf,

    /// The process or the socket of the ORB; the only one with a monitor without it.
    #[arg(value_parser = top::target)]
    target: Option<Target>,

    /// The margin that is added to each measured time, for example 20%.
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    margin: Margin,

    /// The executions without which the time of an operation is not taken.
    #[arg(long, value_name = "N", default_value_t = 100)]
    least: u64,

    /// Another file to write; the schedule itself without it.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    output: Option<PathBuf>,

    /// Write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Execution times could not be learnt.
#[derive(Debug, Error)]
pub(crate) enum LearnError {
    #[error("{}: the file cannot be read: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("this is no schedule:\n{0}")]
    Schedule(#[from] ScheduleErrors),
    #[error(transparent)]
    Monitor(#[from] TopError),
    #[error(
        "the ORB has measured no operation of {}: start its program with -ORBMeasure 1, and let \
         clients call it", file.display()
    )]
    Nothing { file: PathBuf },
    #[error("{}: the file cannot be written: {error}", file.display())]
    Write { file: PathBuf, error: io::Error },
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

/// Writes the measured execution times of an ORB into a schedule.
pub(crate) fn run(arguments: &LearnArguments) -> Result<(), LearnError> {
    let file = &arguments.file;
    let text = chronorb_rt::read_text_up_to(file, MAX_TEXT).map_err(|error| LearnError::Read {
        file: file.clone(),
        error,
    })?;
    let directory = file.parent().map_or_else(PathBuf::new, Path::to_owned);
    let name = file.display().to_string();
    let schedule = Schedule::parse(&name, &text, &mut |name| {
        chronorb_rt::read_text_up_to(&directory.join(name), MAX_TEXT)
            .map_err(|error| error.to_string())
    })?;
    let report = top::report(arguments.target.as_ref())?;
    let costs = costs(&schedule, &report.operations);
    if costs.is_empty() {
        return Err(LearnError::Nothing { file: file.clone() });
    }
    let (taken, few): (Vec<_>, Vec<_>) = costs
        .into_iter()
        .partition(|cost| cost.executions >= arguments.least);
    let new = schedule.learn(&name, &text, &taken, arguments.margin)?;
    let mut lines = table(&schedule, &taken, arguments.margin);
    lines.extend(few.iter().map(|cost| {
        let name = &schedule.operations[cost.operation].name;
        let (count, least) = (cost.executions, arguments.least);
        format!("left: {name} has {count} executions, of the {least} that are needed")
    }));
    let all = taken.iter().chain(&few);
    let known: Vec<_> = all.map(|cost| cost.operation).collect();
    let operations = schedule.operations.iter().enumerate();
    let missing = operations.filter(|(number, _)| !known.contains(number));
    lines.extend(missing.map(|(_, operation)| format!("left: {} is not measured", operation.name)));
    if !arguments.dry_run && !taken.is_empty() {
        let output = arguments.output.as_ref().unwrap_or(file);
        chronorb_rt::write_file(output, new.as_bytes()).map_err(|error| LearnError::Write {
            file: output.clone(),
            error,
        })?;
        let path = output.display();
        lines.push(format!(
            "written: {path}; its lock file has to be assigned again"
        ));
    }
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Returns the longest measured time of each operation of the schedule.
fn costs(schedule: &Schedule, measured: &[OperationSnapshot]) -> Vec<MeasuredCost> {
    let mut costs: Vec<MeasuredCost> = Vec::new();
    for it in measured {
        let executions = it.execution.iter().map(|(_, count)| count).sum();
        let found = schedule
            .operations
            .iter()
            .position(|operation| is(operation, it));
        let Some(operation) = found.filter(|_| executions > 0) else {
            continue;
        };
        let worst = Time::try_from(it.worst_execution.as_nanos()).unwrap_or(Time::MAX);
        // Several interfaces may inherit one operation.
        match costs.iter_mut().find(|cost| cost.operation == operation) {
            Some(cost) => {
                cost.worst = cost.worst.max(worst);
                cost.executions = cost.executions.saturating_add(executions);
            }
            None => costs.push(MeasuredCost {
                operation,
                worst,
                executions,
            }),
        }
    }
    costs
}

/// Whether an operation of the schedule was measured as this one.
fn is(operation: &Operation, measured: &OperationSnapshot) -> bool {
    if let Some(name) = &measured.scheduled_as {
        return *name == operation.name;
    }
    let path = operation.interface.trim_start_matches("IDL:");
    let path = path.rsplit_once(':').map_or(path, |(path, _)| path);
    // Names in IDL have no dots, prefixes are domains.
    let names = path.split('/').skip_while(|part| part.contains('.'));
    let is_interface = names.eq(measured.interface.split("::"));
    is_interface && operation.operation == measured.operation
}

fn table(schedule: &Schedule, taken: &[MeasuredCost], margin: Margin) -> Vec<String> {
    let name = |cost: &MeasuredCost| schedule.operations[cost.operation].name.chars().count();
    let width = taken
        .iter()
        .map(name)
        .max()
        .unwrap_or(0)
        .max("OPERATION".len());
    let mut lines = vec![format!(
        "{:<width$} {:>10} {:>10} {:>10} {:>10}",
        "OPERATION", "EXECUTIONS", "MEASURED", "BEFORE", "NOW"
    )];
    lines.extend(taken.iter().map(|cost| {
        let operation = &schedule.operations[cost.operation];
        let now = margin
            .add_to(cost.worst)
            .map_or_else(String::new, readable_time);
        format!(
            "{:<width$} {:>10} {:>10} {:>10} {:>10}",
            operation.name,
            cost.executions,
            readable_time(cost.worst),
            readable_time(operation.cost),
            now,
        )
    }));
    lines
}

/// Reads a margin: `20%` or `20`.
fn margin(text: &str) -> Result<Margin, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let percent = number.parse().ok().filter(|percent| *percent <= 1000);
    percent
        .map(Margin)
        .ok_or_else(|| format!("{text:?} is not a percentage from 0% to 1000%"))
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb sched learn mission.toml --margin 20%
  chronorb sched learn mission.toml 4711 --margin 50% --output measured.toml

Exit status: 0 when the times are written, or shown with --dry-run; 1 when the file is no schedule,
no ORB with a monitor is found or none of the operations was measured; 2 when the command line is
wrong.";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured(interface: &str, name: Option<&str>, worst: u64, count: u64) -> OperationSnapshot {
        let snapshot = json!({
            "interface": interface, "operation": "draw", "scheduled_as": name, "requests": count,
            "execution": [{ "below_ns": worst + 1, "count": count }], "worst_execution_ns": worst,
            "response": [], "worst_response_ns": 0, "lateness": [], "budget_ns": null,
            "deadline_ns": null, "overruns": 0, "demoted": 0, "skipped": 0,
        });
        serde_json::from_value(snapshot).expect("its form")
    }

    #[test]
    fn an_operation_is_known_by_its_interface_or_its_name() {
        let text = "[[operation]]\nname = \"Map::draw\"\ninterface = \"IDL:acme.com/Map:1.0\"\n\
                    wcet = \"1 ms\"\nperiod = \"1 Hz\"\n";
        let schedule = Schedule::parse("a", text, &mut |_| Err(String::new())).expect("sound");
        let all = [
            measured("Map", None, 500, 3),
            measured("Better", Some("Map::draw"), 700, 4),
            measured("Other::Map", None, 900, 5),
            measured("Map", None, 0, 0),
        ];
        let expected = MeasuredCost {
            operation: 0,
            worst: 700,
            executions: 7,
        };
        assert_eq!(costs(&schedule, &all), [expected]);
    }

    #[test]
    fn margins_are_percentages() {
        for (text, expected) in [
            ("20%", Some(20)),
            ("0", Some(0)),
            ("-1%", None),
            ("x", None),
        ] {
            assert_eq!(margin(text).ok(), expected.map(Margin), "{text}");
        }
    }
}
