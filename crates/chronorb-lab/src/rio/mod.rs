//! `chronorb lab rio`: what real-time I/O brings.
//!
//! [`RealTimeIo`] makes the experiments of section 4 of "The Design and Performance of an I/O Subsystem for Real-time ORB
//! Endsystem Middleware" by Schmidt, Kuhns, Bector and Levine (1998) in a network of two hosts on this machine: what it costs
//! to have protocols processed by scheduled threads, echoes beside bulk traffic that keeps the receiver busy, guarantees
//! and limits of bandwidth, and calls of the ORB with and without RIO below it. Each [`Part`] can be run alone.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). Beside their orders they
//! exchange lines of JSON with it:
//!
//! | child | says | hears |
//! |---|---|---|
//! | server | where it listens, then what came by each flow | |
//! | sender of echoes | that it is connected, then what each took | when to begin; at last, the end of its input |
//! | sender of bulk data | that it is connected, then that data flows | when to begin; the end of its input: end |

mod calls;
mod claims;
mod class;
mod client;
mod course;
mod echoes;
mod guarantees;
mod order;
mod outcome;
mod part;
mod plan;
mod published;
mod report;
mod server;
mod site;
mod way;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::awake::Awake;
use crate::environment::{Environment, ProcessorTime};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::stats::Record;
use crate::watch::Watch;
use crate::work::Speed;

pub use calls::Io;
pub use outcome::{CallRow, EchoRow, FlowRow, Outcome};
pub use part::Part;
pub use plan::Plan;
pub use way::Way;

use echoes::{Trial, Turn};
use outcome::Course;
use site::{Machine, Site};

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "rio";

/// The experiment.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct RealTimeIo;

impl Experiment for RealTimeIo {
    const NAME: &'static str = "rio";
    const TITLE: &'static str = "Real-time I/O";

    type Plan = Plan;
    type Findings = Outcome;

    fn full() -> Plan {
        Plan::full()
    }

    fn short() -> Plan {
        Plan::short()
    }

    fn measure(plan: &Plan) -> Result<Outcome, LabError> {
        let environment = Environment::probe();
        let before = ProcessorTime::now();
        let machine = Machine::probe(&plan.driver)?;
        let awake = Awake::on(machine.cpus.iter());
        let awake = awake.map_err(LabError::work("keeping processors awake"))?;
        let outcome = Outcome {
            plan: plan.clone(),
            environment,
            real_time: machine.real_time,
            one_cpu: !machine.cpus.are_several(),
            congestion: machine.unyielding.clone(),
            echoes: Vec::new(),
            flows: Vec::new(),
            calls: Vec::new(),
            missing: Vec::new(),
            pooled: Vec::new(),
            courses: Vec::new(),
        };
        let mut run = Run {
            watch: Watch::start(Self::TITLE, length(plan)),
            machine,
            awake,
            outcome,
        };
        for part in Part::ALL.into_iter().filter(|part| plan.has(*part)) {
            match part {
                Part::Processing | Part::Company => run.echoes(part)?,
                Part::Guarantees => run.guarantees()?,
                Part::Orb => run.calls()?,
            }
        }
        let mut outcome = run.outcome;
        drop(run.awake);
        outcome.environment.stolen_percent = vec![before.stolen_percent(ProcessorTime::now())];
        Ok(outcome)
    }
}

/// Does the part of a server or a client, until its parent has heard all.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the network or the system fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        order::Order::Serve(order) => server::serve(&order),
        order::Order::Echo(order) => client::echo(&order),
        order::Order::Send(order) => client::send(&order),
    }
}

/// The course of the experiment.
struct Run {
    watch: Watch,
    machine: Machine,
    awake: Awake,
    outcome: Outcome,
}

impl Run {
    /// Echoes by all ways of a part, by turns.
    fn echoes(&mut self, part: Part) -> Result<(), LabError> {
        let plan = self.outcome.plan.clone();
        let rate = match part {
            Part::Company => plan.bulk_rate,
            _ => LINK_RATE,
        };
        let site = Site::build(&self.machine, rate, LINK_MTU)?;
        let [_, server] = self.machine.ends();
        // Who is in the wrong class is to have competition.
        let competitor = (part == Part::Processing)
            .then(|| Awake::competing_on([server].into_iter()))
            .transpose()
            .map_err(LabError::work("starting a thread that computes"))?;
        let steps = Speed::measure().steps(plan.bulk_work);
        for round in 0..plan.rounds {
            for way in Way::of(part) {
                self.watch.begin(&format!("{part}, {}", way.title()));
                let turn = Trial::of(part, *way, &plan, steps).run(&site, &self.awake)?;
                self.add(part, *way, round, &turn);
            }
        }
        drop(competitor);
        Ok(())
    }

    fn add(&mut self, part: Part, way: Way, round: u32, turn: &Turn) {
        let outcome = &mut self.outcome;
        let bulk = turn.bulk.as_ref();
        outcome.echoes.push(EchoRow {
            part,
            way,
            round,
            latency: turn.echoes.summary(),
            min_us: turn.echoes.min_us(),
            bulk_alone_octets_per_s: bulk.and_then(|bulk| bulk.alone),
            bulk_beside_octets_per_s: bulk.and_then(|bulk| bulk.beside),
            busy_percent: bulk.and_then(|bulk| bulk.busy).map(|busy| busy * 100.0),
        });
        if let (Some(bulk), 0) = (bulk, round) {
            outcome.courses.push(Course {
                part,
                name: way.title().to_owned(),
                points: bulk.points.clone(),
            });
        }
        let mut pooled = outcome.pooled.iter_mut();
        match pooled.find(|(of, by, _)| *of == part && *by == way) {
            Some((_, _, record)) => record.merge(&turn.echoes),
            None => {
                let mut record = Record::new();
                record.merge(&turn.echoes);
                outcome.pooled.push((part, way, record));
            }
        }
    }

    /// Flows with reservations, and with a limit.
    fn guarantees(&mut self) -> Result<(), LabError> {
        let watch = &self.watch;
        let found =
            guarantees::measure(&self.outcome.plan, &self.machine, |what| watch.begin(what))?;
        self.outcome.flows.extend(found.rows);
        let courses = found.courses.into_iter().map(|(flow, points)| Course {
            part: Part::Guarantees,
            name: match flow.as_str() {
                "best-effort" => "best effort".to_owned(),
                reserved => format!("{reserved} MB/s"),
            },
            points,
        });
        self.outcome.courses.extend(courses);
        Ok(())
    }

    /// Calls of the ORB.
    fn calls(&mut self) -> Result<(), LabError> {
        let found = calls::measure(&self.outcome.plan.calls, &self.machine, &self.watch)?;
        self.outcome.calls = found.rows;
        self.outcome.missing = found.missing;
        Ok(())
    }
}

/// What a plan takes, about.
fn length(plan: &Plan) -> Duration {
    let of = |part| match part {
        Part::Processing => {
            (AN_ECHO * plan.echoes + AROUND) * Way::ALONE.len() as u32 * plan.rounds
        }
        Part::Company => {
            let echoes = (AN_ECHO * 2 + plan.pause) * plan.echoes_in_company;
            (echoes + plan.aside * 2 + AROUND) * Way::IN_COMPANY.len() as u32 * plan.rounds
        }
        Part::Guarantees => guarantees::length(plan),
        Part::Orb => plan.calls.length_of(Io::ALL.len()),
    };
    plan.parts.iter().copied().map(of).sum()
}

/// Bits in a second that the switch lets through, but where there is bulk traffic, and where bandwidth is what is measured.
const LINK_RATE: u64 = 1_000_000_000;
const LINK_MTU: u32 = 1_500;
/// What an echo takes, about.
const AN_ECHO: Duration = Duration::from_micros(200);
/// What starting and ending the processes of a turn takes, about.
const AROUND: Duration = Duration::from_millis(300);
