//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use chronorb_lab::Setup;
use chronorb_lab::demo::{CLIENT_COMMAND, Options, SERVER_COMMAND};
use chronorb_lab::{demux, overtake};
use clap::{Args, Parser, Subcommand, value_parser};

/// Real-time CORBA: show that priorities hold, measure what calls cost, compile IDL to Rust.
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
    /// Starts a server and clients on this machine: one client of high priority that calls 20
    /// times a second, and many of low priority that saturate the server. First everyone is
    /// equal, then priorities hold from the client's thread to the servant. Ends with a table,
    /// a sentence that says what it means, and a report with plots.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArguments),

    /// Run an experiment of the laboratory.
    #[command(subcommand)]
    Lab(LabCommand),

    /// Check IDL files, or compile them to Rust.
    #[command(subcommand)]
    Idl(IdlCommand),

    #[command(name = SERVER_COMMAND, hide = true)]
    DemoServer { order: String },

    #[command(name = CLIENT_COMMAND, hide = true)]
    DemoClient { order: String },

    #[command(name = overtake::SERVER_COMMAND, hide = true)]
    OvertakeServer { order: String },

    #[command(name = overtake::CLIENT_COMMAND, hide = true)]
    OvertakeClient { order: String },
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Print the figures as one JSON object instead of the table.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = Options::default().report)]
    report: PathBuf,

    /// How long each of the two phases lasts, 1 to 3600 seconds.
    #[arg(long, value_name = "N", default_value_t = Setup::default().phase.as_secs(),
          value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

impl Default for DemoArguments {
    fn default() -> Self {
        let options = Options::default();
        Self {
            json: options.json,
            report: options.report,
            seconds: options.setup.phase.as_secs(),
        }
    }
}

impl From<DemoArguments> for Options {
    fn from(arguments: DemoArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            setup: Setup {
                phase: Duration::from_secs(arguments.seconds),
                ..Setup::default()
            },
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Measure what finding the target of a request costs, stage by stage.
    ///
    /// Reading the header, finding the POA, the servant and the operation, and the whole way, each
    /// for 1 to 10,000 entries (servants to 1,000,000) and by every strategy: active demultiplexing
    /// and perfect hashing, dynamic hashing, binary and linear search. It also activates a million
    /// objects and makes ten thousand POAs, to see what they take. Ends with tables, what is claimed
    /// of the figures and whether it holds, and a report with plots. Takes about a minute.
    #[command(after_help = DEMUX_EXAMPLES)]
    Demux(DemuxArguments),

    /// Measure calls of high priority while all lower lanes are saturated by endless work.
    ///
    /// Runs a server for each strategy of thread pools, Leader/Followers and Half-Sync/Half-Async, and
    /// clients: one of high priority, which is measured, and others that keep the lower lanes or the
    /// high lane busy, or do nothing. Compares lanes, request buffering with full buffers, borrowing,
    /// and a pool without lanes. Ends with tables, what is claimed of the figures and whether it
    /// holds, and a report with plots. Takes some six minutes, and all processors.
    #[command(after_help = OVERTAKE_EXAMPLES)]
    Overtake(OvertakeArguments),
}

#[derive(Args, Debug)]
pub(crate) struct OvertakeArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = overtake::Options::default().report)]
    report: PathBuf,

    /// Measure for some seconds only: one round, and few calls of each kind.
    #[arg(long)]
    quick: bool,
}

impl From<OvertakeArguments> for overtake::Options {
    fn from(arguments: OvertakeArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            plan: match arguments.quick {
                true => overtake::Plan::quick(),
                false => overtake::Plan::full(),
            },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DemuxArguments {
    /// Print the figures as one JSON object instead of the tables.
    #[arg(long)]
    json: bool,

    /// Where to write the report, an HTML page that needs no other file.
    #[arg(long, value_name = "FILE", default_value_os_t = demux::Options::default().report)]
    report: PathBuf,

    /// Measure for some seconds only, with fewer rounds and nothing of a million.
    #[arg(long)]
    quick: bool,
}

impl From<DemuxArguments> for demux::Options {
    fn from(arguments: DemuxArguments) -> Self {
        Self {
            json: arguments.json,
            report: arguments.report,
            plan: match arguments.quick {
                true => demux::Plan::quick(),
                false => demux::Plan::full(),
            },
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum IdlCommand {
    /// Check IDL files and everything that they include.
    ///
    /// Each error is shown with its file and line, a marked excerpt and a hint.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(IdlInput),

    /// Compile IDL files to Rust, each NAME.idl to NAME.rs.
    ///
    /// Files are written when all were compiled without an error; when one of them is wrong,
    /// nothing is written. A build script does the same with the crate chronorb-build.
    #[command(after_help = RUST_EXAMPLES)]
    Rust {
        #[command(flatten)]
        input: IdlInput,

        /// The directory for the Rust files; it is made if it is missing.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct IdlInput {
    /// The IDL files.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Search this directory for included files; may be given several times.
    #[arg(short = 'I', value_name = "DIR")]
    pub(crate) include: Vec<PathBuf>,

    /// Define a macro of the preprocessor; without a value it is 1.
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = definition)]
    pub(crate) define: Vec<(String, String)>,
}

/// `NAME` or `NAME=VALUE`.
fn definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_letter = |c: char| c == '_' || c.is_ascii_alphabetic();
    let is_identifier =
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if is_identifier {
        Ok((name.to_owned(), value.to_owned()))
    } else {
        Err(format!("{name:?} is not the name of a macro"))
    }
}

const STATUS: &str = "\
Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";

const DEMO_EXAMPLES: &str = "\
Examples:
  chronorb demo
  chronorb demo --seconds 60 --report lanes.html
  chronorb demo --json | jq .with_priorities.high.p99_us

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the demonstration runs all the same and says that its figures are not real-time.";

const DEMUX_EXAMPLES: &str = "\
Examples:
  chronorb lab demux
  chronorb lab demux --quick --report quick.html
  chronorb lab demux --json | jq '.rows[] | select(.stage == \"total\" and .entries == 1000)'

Other programs that run at the same time change the figures. A claim that was missed is said, and
is no failure of the command.";

const OVERTAKE_EXAMPLES: &str = "\
Examples:
  chronorb lab overtake
  chronorb lab overtake --quick --report quick.html
  chronorb lab overtake --json | jq '.claims[] | [.verdict, .ratio, .claim]'

The threads need the right to real-time priorities (CAP_SYS_NICE or RLIMIT_RTPRIO). Without it
the experiment runs all the same and says that its figures are not real-time. A claim that was
missed is said, and is no failure of the command.";

const CHECK_EXAMPLES: &str = "\
Examples:
  chronorb idl check quoter.idl
  chronorb idl check -I idl -D WITH_HISTORY -D LIMIT=64 market.idl broker.idl";

const RUST_EXAMPLES: &str = "\
Examples:
  chronorb idl rust quoter.idl --out src/generated
  chronorb idl rust -I idl -D LIMIT=64 market.idl broker.idl --out generated";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn macros_are_defined_with_and_without_a_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(definition("DEBUG"), pair("DEBUG", "1"));
        assert_eq!(definition("_N2=a=b"), pair("_N2", "a=b"));
        assert_eq!(definition("EMPTY="), pair("EMPTY", ""));
        for wrong in ["", "=1", "2N", "A-B=1"] {
            assert!(definition(wrong).is_err(), "{wrong}");
        }
    }
}
