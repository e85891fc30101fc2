//! `chronorb rio status`: the activity of the classes of running processes, read from their memory,
//! and of those that the kernel keeps.

mod shares;
mod table;
mod view;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use chronorb_net::Netlink;
use chronorb_rio::kernel::counted;
use chronorb_rio::plan::{Plan, PlanError};
use chronorb_rio::status::{HiddenProcess, find};
use chronorb_rt::{Deadline, Monotonic, sleep_until};
use clap::{Args, value_parser};
use thiserror::Error;

use super::plan::Mapping;
use crate::top::screen::{self, Event, Screen};
use crate::top::table::{Line, Look};
use crate::top::{is_screen, wants_color};
use shares::SharesWatch;
use view::{Seen, View, Watch};

#[derive(Args, Debug)]
pub(crate) struct StatusArguments {
    /// Show this process only.
    #[arg(long, value_name = "P")]
    pid: Option<u32>,

    /// The interval between two readings in milliseconds, 100 to 60000.
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = value_parser!(u64).range(100..=60_000))]
    interval: u64,

    /// Print one table and end.
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// Print so many tables and end.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// The plan that the kernel keeps, a file of TOML: its classes are shown with their names.
    #[arg(long, value_name = "PLAN", conflicts_with = "pid")]
    plan: Option<PathBuf>,

    /// Print JSON objects, one in a line, instead of tables.
    #[arg(long)]
    json: bool,
}

/// There is nothing to show, or the output has ended.
#[derive(Debug, Error)]
pub(crate) enum StatusError {
    /// No process runs RIO, or none is visible.
    #[error("no process runs RIO here, and the kernel keeps no plan{}", unseen(.0))]
    NoProcess(Vec<HiddenProcess>),
    /// The file of `--plan`.
    #[error("{}: {error}", file.display())]
    Plan { file: PathBuf, error: PlanError },
    /// The process does not run RIO.
    #[error("process {0} does not run RIO")]
    NotThis(u32),
    /// The open files of the process are not visible to this one.
    #[error(
        "what process {} ({}) has open cannot be seen: {}",
        .0.pid, .0.command, advice(is_root())
    )]
    Unseen(HiddenProcess),
    /// The process does not exist, or has ended.
    #[error("there is no process {0}")]
    Gone(u32),
    #[error("process {0}: {1}")]
    Process(u32, io::Error),
    #[error("/proc cannot be read: {0}")]
    Proc(io::Error),
    #[error("the terminal: {0}")]
    Terminal(io::Error),
    #[error("nothing can be written: {0}")]
    Output(io::Error),
}

/// Shows the activity of classes until the count is reached or the user ends it.
pub(crate) fn run(arguments: &StatusArguments) -> Result<(), StatusError> {
    let mut watch = Watch::new(SharesWatch::new(plan(arguments)?));
    watch.look(look(arguments.pid)?);
    let count = if arguments.once {
        Some(1)
    } else {
        arguments.count
    };
    let is_live = count.is_none() && !arguments.json && is_screen();
    let shown = if is_live {
        show_live(&mut watch, arguments)
    } else {
        show_in_turn(&mut watch, arguments, count)
    };
    match shown {
        // The reader of the output has closed it.
        Err(StatusError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        shown => shown,
    }
}

/// Reads the plan that names the kernel's classes.
fn plan(arguments: &StatusArguments) -> Result<Option<(PathBuf, Plan)>, StatusError> {
    let Some(file) = &arguments.plan else {
        return Ok(None);
    };
    // Shares do not depend on priorities, so any mapping does.
    let plan = Plan::read(file, &|corba| Mapping::Linear.to_native(corba));
    match plan {
        Ok(plan) => Ok(Some((file.clone(), plan))),
        Err(error) => Err(StatusError::Plan {
            file: file.clone(),
            error,
        }),
    }
}

/// Finds the processes to show.
fn look(pid: Option<u32>) -> Result<Seen, StatusError> {
    let Some(pid) = pid else {
        let looked = find(None).map_err(StatusError::Proc)?;
        let kernel = Netlink::open().and_then(|mut netlink| counted(&mut netlink));
        let is_kept = kernel.as_ref().is_ok_and(|kept| !kept.is_empty());
        return if looked.found.is_empty() && !is_kept {
            Err(StatusError::NoProcess(looked.unseen))
        } else {
            Ok(Seen { looked, kernel })
        };
    };
    let mut looked = find(Some(pid)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StatusError::Gone(pid),
        _ => StatusError::Process(pid, error),
    })?;
    match (looked.found.is_empty(), looked.unseen.pop()) {
        (false, _) => Ok(Seen {
            looked,
            kernel: Ok(Vec::new()),
        }),
        (true, Some(unseen)) => Err(StatusError::Unseen(unseen)),
        (true, None) => Err(StatusError::NotThis(pid)),
    }
}

/// Writes one table or object after another.
fn show_in_turn(
    watch: &mut Watch,
    arguments: &StatusArguments,
    count: Option<u64>,
) -> Result<(), StatusError> {
    let interval = Duration::from_millis(arguments.interval);
    let mut next = Monotonic::now();
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        next = next + interval;
        sleep_until(next);
        let view = watch.look(look(arguments.pid)?);
        let mut text = if arguments.json {
            view.to_json().to_string()
        } else {
            paper(&view)
        };
        text.push('\n');
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(StatusError::Output)?;
        shown += 1;
    }
    Ok(())
}

fn paper(view: &View) -> String {
    let width = screen::size().map_or(PAPER, |(width, _)| width);
    let has_color = io::stdout().is_terminal() && wants_color();
    table::lines(view)
        .iter()
        .map(|line| line.paint(width, has_color) + "\n")
        .collect()
}

/// Draws tables in place until the user ends it, or no process is left.
fn show_live(watch: &mut Watch, arguments: &StatusArguments) -> Result<(), StatusError> {
    let screen = Screen::open().map_err(StatusError::Terminal)?;
    // Only keys and signals are waited for.
    let (silence, _kept) = io::pipe().map_err(StatusError::Terminal)?;
    let interval = Duration::from_millis(arguments.interval);
    let mut view = watch.look(look(arguments.pid)?);
    let mut next = Monotonic::now() + interval.min(FIRST_INTERVAL);
    loop {
        let (width, height) = screen::size().unwrap_or(USUAL_SIZE);
        let frame: Vec<_> = frame(&view, height)
            .iter()
            .map(|line| line.paint(width, wants_color()))
            .collect();
        screen.draw(&frame).map_err(StatusError::Terminal)?;
        // The size is looked at again before the next table is due.
        let soon = Monotonic::now() + SIZE_PAUSE;
        let event = screen.wait(&silence, Deadline::at(next.min(soon)));
        if let Event::Quit = event.map_err(StatusError::Terminal)? {
            return Ok(());
        }
        if Monotonic::now() >= next {
            view = watch.look(look(arguments.pid)?);
            next = Monotonic::now() + interval;
        }
    }
}

/// Returns the lines that fill a screen.
fn frame(view: &View, height: usize) -> Vec<Line> {
    let mut lines = table::lines(view);
    let rows = height.saturating_sub(1);
    let mut last = "q quits".to_owned();
    if lines.len() > rows {
        last = format!("{} more lines; {last}", lines.len() - rows);
        lines.truncate(rows);
    }
    lines.push(Line::of(Look::Faint, last));
    lines
}

/// Describes the processes that are not visible.
fn unseen(unseen: &[HiddenProcess]) -> String {
    match unseen.len() {
        0 => ".\nA process runs RIO while it has an endpoint riop://, or -ORBRioInterface and a \
              connection by it"
            .to_owned(),
        n => format!(
            " that can be seen, and what {n} other processes have open cannot be: {}",
            advice(is_root())
        ),
    }
}

/// Returns the way to see the open files of other processes.
const fn advice(is_root: bool) -> &'static str {
    if is_root {
        "root needs CAP_SYS_PTRACE for that in the user namespace of the process, which a \
             container may not have"
    } else {
        "run as root, or with CAP_SYS_PTRACE (the same user is enough, unless a program was \
             given rights of its own)"
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The characters of a line if there is no terminal.
const PAPER: usize = 120;
/// The longest time until the first rates.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between two readings of the size.
const SIZE_PAUSE: Duration = Duration::from_millis(250);
/// The size of a terminal that does not report it: columns and rows.
const USUAL_SIZE: (usize, usize) = (80, 24);

pub(crate) const EXAMPLES: &str = "\
Examples:
  chronorb rio status
  chronorb rio status --pid 4711 --interval 250
  chronorb rio status --plan plan.toml
  chronorb rio status --json --count 60 | jq -c '.processes[].interfaces[].classes[] | [.name, .drops]'

Processes of other users, and programs with rights of their own, are seen by root or with
CAP_SYS_PTRACE only.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_be_root() {
        assert!(advice(false).contains("run as root"));
        assert!(!advice(true).contains("run as root"));
        assert!(advice(true).contains("CAP_SYS_PTRACE"));
    }
}
