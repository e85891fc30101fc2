//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use chronorb_lab::demo::DemoOptions;
use chronorb_lab::{CHILD_COMMAND, LoadSetup};
use clap::{Args, Parser, Subcommand, value_parser};
use clap_complete::Shell;

use crate::events::EventsCommand;
use crate::idl::IdlCommand;
use crate::ior::IorCommand;
use crate::lab::LabCommand;
use crate::ns::NsCommand;
use crate::rio::{self, RioCommand};
use crate::sched::SchedCommand;
use crate::top;

/// Real-time CORBA: show that priorities hold, examine the machine, measure the cost of calls,
/// compile IDL to Rust.
///
/// Without a command it runs the demonstration.
#[derive(Debug, Parser)]
#[command(name = "chronorb", version, after_help = STATUS)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the same load without priorities and with them.
    ///
    /// Starts a server and clients on this machine: one client of high priority that calls 20 times
    /// a second, and many of low priority that saturate the server. First all clients are equal,
    /// then priorities hold from the client's thread to the servant. Ends with a table, a sentence
    /// with its meaning, and a report with plots.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArguments),

    /// Find the settings of this machine that cost latency, and their remedies.
    ///
    /// Checks the kernel, the rights of this process, CPUs, timers, memory and network. Each
    /// finding has the present state, its cost and the remedy. Missing rights and parts of the
    /// kernel come first, and then the most costly findings. A file that cannot be read is named
    /// with the reason. Changes nothing on the machine. With --measure it also measures the delay
    /// of threads that sleep until a fixed time.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArguments),

    /// Run an experiment of the laboratory.
    #[command(subcommand)]
    Lab(LabCommand),

    /// Show the activity of a running ORB's lanes and threads.
    ///
    /// A live view: a line for each lane with its queue, rates and times, and below it its threads.
    /// The figures come from the ORB's monitor, which exists if its program was started with
    /// -ORBMonitor on. If the output is not a terminal, one table follows the other.
    #[command(after_help = TOP_EXAMPLES)]
    Top(TopArguments),

    /// Check IDL files, compile them to Rust, or show them to other programs.
    #[command(subcommand)]
    Idl(IdlCommand),

    /// Show, make and try references to objects.
    #[command(subcommand, after_help = ORB_OPTIONS)]
    Ior(IorCommand),

    /// Serve names, and list, resolve and change those of a name server.
    #[command(subcommand, after_help = ORB_OPTIONS)]
    Ns(NsCommand),

    /// Serve an event channel, push events to one, and show what it pushes.
    #[command(subcommand, after_help = ORB_OPTIONS)]
    Events(EventsCommand),

    /// Set up and examine real-time I/O.
    #[command(subcommand)]
    Rio(RioCommand),

    /// Analyse schedules, assign their priorities and lanes, and learn execution times.
    #[command(subcommand)]
    Sched(SchedCommand),

    /// Print the completions of this command for a shell.
    ///
    /// Packages install them. A user puts them into the directory that the shell searches.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        shell: Shell,
    },

    /// Write the manual pages of all commands to a directory, for packages.
    #[command(hide = true)]
    ManPages {
        /// The directory; it is created if it is missing.
        dir: PathBuf,
    },

    #[command(name = rio::GUARDIAN_COMMAND, hide = true)]
    RioGuardian,

    #[command(name = CHILD_COMMAND, hide = true)]
    LabChild { part: String, order: String },
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Print the figures as one JSON object instead of the table.
    #[arg(long)]
    json: bool,

    /// The path of the report, an HTML page that needs no other file [default: demo.html in
    /// $XDG_STATE_HOME/chronorb/reports (~/.local/state/chronorb/reports), which replaces the
    /// last].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// The length of each of the two phases, 1 to 3600 seconds.
    #[arg(long, value_name = "N", default_value_t = LoadSetup::default().phase.as_secs(),
          value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

impl Default for DemoArguments {
    fn default() -> Self {
        let options = DemoOptions::default();
        Self {
            json: options.json,
            report: options.report,
            seconds: options.setup.phase.as_secs(),
        }
    }
}

impl From<DemoArguments> for DemoOptions {
    fn from(arguments: DemoArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            setup: LoadSetup {
                phase: Duration::from_secs(arguments.seconds),
                ..LoadSetup::default()
            },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Print the findings as one JSON object instead of the list.
    #[arg(long)]
    json: bool,

    /// Measure wake-ups: one thread on each CPU, at the highest real-time priority that is
    /// permitted, wakes up each ms.
    #[arg(long)]
    measure: bool,

    /// The length of the measurement of wake-ups, 1 to 86400 seconds.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure",
          value_parser = value_parser!(u64).range(1..=86400))]
    seconds: u64,

    /// Also write a report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl From<DoctorArguments> for chronorb_doctor::Options {
    fn from(arguments: DoctorArguments) -> Self {
        Self {
            json: arguments.json,
            measure: (arguments.measure).then_some(Duration::from_secs(arguments.seconds)),
            report: arguments.report,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// The process of the ORB, or the path of its monitor's socket; needed if several ORBs of this
    /// user have a monitor.
    #[arg(value_name = "PID|SOCKET", value_parser = top::target)]
    target: Option<top::Target>,

    /// The interval between two queries of the ORB, 100 to 60000 milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = value_parser!(u64).range(100..=60_000))]
    interval: u64,

    /// Print one table and end; the same as --count 1.
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// Print so many tables, one after another, and end.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Print JSON objects, one in a line, instead of tables.
    #[arg(long)]
    json: bool,
}

impl From<TopArguments> for top::Options {
    fn from(arguments: TopArguments) -> Self {
        Self {
            target: arguments.target,
            interval: Duration::from_millis(arguments.interval),
            count: if arguments.once {
                Some(1)
            } else {
                arguments.count
            },
            json: arguments.json,
        }
    }
}

const STATUS: &str = "\
Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";

const ORB_OPTIONS: &str = "\
These commands also take the options of an ORB, as -ORBInitRef: -ORBHelp lists them.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  chronorb completions bash > ~/.local/share/bash-completion/completions/chronorb
  chronorb completions fish > ~/.config/fish/completions/chronorb.fish
  chronorb completions zsh > ~/.zfunc/_chronorb";

const DEMO_EXAMPLES: &str = "\
Examples:
  chronorb demo
  chronorb demo --seconds 60 --report lanes.html
  chronorb demo --json | jq .with_priorities.high.p99_us

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the demonstration runs all the same and marks its figures as not real-time.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  chronorb doctor
  chronorb doctor --measure --seconds 60 --report machine.html
  chronorb doctor --json | jq '.findings[] | select(.verdict == \"missing\")'

Exit status: 0 also when something was found, whatever it is; 1 only when it
could not run.

Root sees more: debugfs and some files are closed to other users. Rights are those of
this process: run it as the user, and in the container, of the program that needs them.";

const TOP_EXAMPLES: &str = "\
Examples:
  chronorb top
  chronorb top 4711 --interval 250
  chronorb top /run/trading/orb.sock --once
  chronorb top --json --count 60 | jq '.lanes[] | [.name, .requests_per_s, .p99_us]'

Columns: connections, busy threads of all, requests in the queue; then per second: requests served
by the lane's threads, requests refused, requests served by threads borrowed from lower lanes; then
the times of requests in the interval: the median, the 99th percentile and the maximum.
In the live view q ends it, and t hides the threads.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
