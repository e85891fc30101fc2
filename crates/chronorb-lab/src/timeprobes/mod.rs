//! `chronorb lab timeprobes`: the layers that take the time of a call.
//!
//! The tutorial put time probes into an ORB to find the shares of the ORB, the transport and the
//! operating system in a call. [`TimeProbes`] does so for each transport. The threads of client
//! and server record a stamp at each stage of a request
//! ([`StageProbe::stamps`](chronorb_orb::StageProbe::stamps)) and around each system call for
//! input or output ([`chronorb_probe::keep_stamps`]). Both processes use one clock, so each call
//! can be followed from the client into the server and back. The stamps divide it into parts that
//! add up to the whole.
//!
//! Client and server are processes of this program, started with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). They exchange lines of JSON with the parent:
//!
//! | child | reports | waits for |
//! |---|---|---|
//! | server | its reference, then its stamps | the order to report; the end of its input: exit |
//! | client | that it is connected, then times and stamps | the order to begin |
//! | cost | the cost of a point, with a stamp and without | |

mod claims;
mod cost;
mod order;
mod outcome;
mod path;
mod plan;
mod processes;
mod report;
mod trial;

use crate::bench::Certificates;
use crate::environment::Environment;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::progress::Progress;

use order::ProbePart;
use trial::ProbeTrial;

pub use cost::StampCost;
pub use outcome::{PartRow, TimeProbesOutcome};
pub use path::{CallSide, Layer, PathPart};
pub use plan::{MissingTransport, TRANSPORTS, TimeProbesPlan, transport_named};

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "timeprobes";

/// The experiment on time within a call.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct TimeProbes;

impl Experiment for TimeProbes {
    const NAME: &'static str = "timeprobes";
    const TITLE: &'static str = "Where the time of a call goes";

    type Plan = TimeProbesPlan;
    type Findings = TimeProbesOutcome;

    fn full() -> TimeProbesPlan {
        TimeProbesPlan::of(10_000, 1_000)
    }

    fn short() -> TimeProbesPlan {
        TimeProbesPlan::of(1_000, 300)
    }

    fn measure(plan: &TimeProbesPlan) -> Result<TimeProbesOutcome, LabError> {
        let certificates = if plan.includes(plan::TLS) {
            Certificates::make()
        } else {
            Err(String::new())
        };
        let directory = certificates.as_ref().map(Certificates::directory);
        let (transports, missing) = plan.transports(directory.map_err(String::as_str))?;
        let mut environment = Environment::probe();
        let cost = cost::measure()?;
        let cases = plan.cases(&transports)?;
        let progress = Progress::start("calls that are stamped", cases.len() as u64);
        let (mut rows, mut stamps_of_a_call) = (Vec::new(), 0);
        for (transport, placement) in cases {
            let trial = ProbeTrial {
                plan,
                transport,
                placement,
                certificates: directory.ok(),
            };
            let unstamped = trial.time()?;
            let (paths, stamps) = trial.follow()?;
            rows.extend(outcome::rows((transport, placement), &paths, &unstamped));
            stamps_of_a_call = stamps.max(stamps_of_a_call);
            progress.advance(1);
        }
        environment.finish();
        Ok(TimeProbesOutcome {
            plan: plan.clone(),
            environment,
            missing,
            cost,
            stamps_of_a_call,
            rows,
        })
    }
}

/// Runs the part of a server or of a client, until the parent has heard its result.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        ProbePart::Server(endpoint) => processes::serve(&endpoint),
        ProbePart::Client(endpoint, calls) => processes::call(&endpoint, &calls),
        ProbePart::Cost => cost::tell(),
    }
}
