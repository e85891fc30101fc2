//! `chronorb sched`: schedules analysed, assigned, simulated, and measured; the scheduling service.

mod assign;
mod check;
mod examples;
mod explain;
mod learn;
mod links;
mod page;
mod plan;
mod progress;
mod reason;
mod serve;
mod simulate;
mod source;
mod text;
mod words;

use std::error::Error;

use chronorb_orb::OrbConfig;
use clap::Subcommand;

use assign::AssignArguments;
use check::CheckArguments;
use explain::ExplainArguments;
use learn::LearnArguments;
use plan::NodePlanArguments;
use serve::ServiceArguments;
use simulate::SimulateArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum SchedCommand {
    /// Find out whether all operations of a schedule meet their deadlines.
    ///
    /// Shows for each operation its priority, the longest time until it ends, and the time that is
    /// left until its deadline; for what is late, the values that would fit. Checks links with an
    /// interface as an ORB does at its start, with the headers of all packets. Does not depend on
    /// this machine: the schedule can be for another one.
    #[command(after_help = check::EXAMPLES)]
    Check(CheckArguments),

    /// Assign priorities, bands and lanes, and write them as a lock file.
    ///
    /// The lock file is the same for the same schedule, and is written only if all deadlines are
    /// met and all links have room. Programs start from it.
    #[command(after_help = assign::EXAMPLES)]
    Assign(AssignArguments),

    /// Print the plan of real-time I/O for the interface of a node.
    ///
    /// An ORB that starts with the schedule makes the same plan. The printed one is for `chronorb
    /// rio plan`, which checks it, and `chronorb rio setup --kernel`.
    #[command(after_help = plan::EXAMPLES)]
    Plan(NodePlanArguments),

    /// Run a schedule in virtual time.
    ///
    /// Executes operations, calls, threads of lanes, packets and locks as the ORB does, without the
    /// analysis. Shows the jobs that met and missed their deadlines, and the longest responses
    /// beside the analysed ones.
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(SimulateArguments),

    /// Show the parts of an operation's longest response.
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArguments),

    /// Write the execution times that a running ORB has measured into a schedule.
    ///
    /// Takes the longest execution of each operation from the monitor of an ORB that was started
    /// with -ORBMonitor and -ORBMeasure, adds the margin, and writes it as wcet. All other text of
    /// the file stays as it is.
    #[command(after_help = learn::EXAMPLES)]
    Learn(LearnArguments),

    /// Serve the scheduling service of TAO: RtecScheduler::Scheduler.
    ///
    /// Prints the references of the service, one in a line, when clients can use it, and serves
    /// until SIGTERM or Ctrl-C. Clients register operations and the calls between them, and get
    /// priorities; nothing is kept when the server ends. Only programs on this machine reach it,
    /// unless --listen names another address. Takes -ORB options too, as -ORBServerTransportRule
    /// for the clients that may connect.
    #[command(after_help = serve::EXAMPLES)]
    Serve(ServiceArguments),
}

impl SchedCommand {
    /// Runs the command; one that serves has these settings.
    pub(crate) fn run(self, config: OrbConfig) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Check(arguments) => check::run(&arguments)?,
            Self::Assign(arguments) => assign::run(&arguments)?,
            Self::Plan(arguments) => plan::run(&arguments)?,
            Self::Simulate(arguments) => simulate::run(&arguments)?,
            Self::Explain(arguments) => explain::run(&arguments)?,
            Self::Learn(arguments) => learn::run(&arguments)?,
            Self::Serve(arguments) => serve::run(arguments, config)?,
        }
        Ok(())
    }
}
