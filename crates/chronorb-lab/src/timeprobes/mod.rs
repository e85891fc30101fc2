//! `chronorb lab timeprobes`: where the time of a call goes.
//!
//! The tutorial put time probes into an ORB to find out what the ORB, the transport and the operating system take of
//! a call. [`TimeProbes`] does so for each transport: client and server are processes whose threads put a stamp down at each
//! stage of a request ([`StageProbe::stamps`](chronorb_orb::StageProbe::stamps)) and around each request to the kernel
//! ([`chronorb_probe::keep_stamps`]); both have the same clock, and so the way of each call can be followed from the
//! client into the server and back. Its parts are parted by stamps and add up to the whole.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). They exchange lines of
//! JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | its reference, then its stamps | that it is to tell, and the end of its input: exit |
//! | client | that it is connected, then its stamps, or how long calls took without | to begin |
//! | cost | what a point costs, with a stamp and without | |

mod claims;
mod client;
mod cost;
mod order;
mod outcome;
mod path;
mod plan;
mod report;
mod server;
mod trial;

use crate::bench::Certificates;
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::progress::Progress;

use trial::Trial;

pub use cost::StampCost;
pub use outcome::{Outcome, Row};
pub use path::{Layer, Part, Side};
pub use plan::{Missing, Plan, TRANSPORTS, Transport, transport_named};

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "timeprobes";

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Debug)]
pub struct TimeProbes;

impl Experiment for TimeProbes {
    const NAME: &'static str = "timeprobes";
    const TITLE: &'static str = "Where the time of a call goes";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        let needs_certificates = plan.only.is_empty() || plan.only.contains(&"ssliop");
        let certificates = match needs_certificates {
            true => Certificates::make(),
            false => Err(String::new()),
        };
        let directory = certificates.as_ref().map(Certificates::directory);
        let (transports, missing) = plan.transports(directory.map_err(String::as_str))?;
        let mut environment = Environment::probe();
        let before = ProcessorTime::now();
        let cost = cost::measure()?;
        let cases = plan.cases(&transports)?;
        let progress = Progress::start("calls that are stamped", cases.len() as u64);
        let (mut rows, mut stamps_of_a_call) = (Vec::new(), 0);
        for (transport, placement) in cases {
            let trial = Trial {
                plan,
                transport,
                placement,
                certificates: directory.ok(),
            };
            let unstamped = trial.time()?;
            let followed = trial.follow()?;
            rows.extend(outcome::rows(
                transport,
                placement,
                &followed.ways,
                &unstamped,
            ));
            stamps_of_a_call = followed.stamps.max(stamps_of_a_call);
            progress.advance(1);
        }
        environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(Outcome {
            plan: plan.clone(),
            environment,
            missing,
            cost,
            stamps_of_a_call,
            rows,
        })
    }
}

/// Does the part of a server or of a client, until its parent has heard all.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the ORB fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        order::Part::Server(order) => server::serve(&order),
        order::Part::Client(order) => client::call(&order),
        order::Part::Cost => cost::tell(),
    }
}
