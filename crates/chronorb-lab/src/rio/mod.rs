//! `chronorb lab rio`: the gain of real-time I/O.
//!
//! [`RealTimeIo`] makes the experiments of section 4 of "The Design and Performance of an I/O
//! Subsystem for Real-time ORB Endsystem Middleware" by Schmidt, Kuhns, Bector and Levine (1998) in
//! a network of two hosts on this machine: the cost of protocol processing by scheduled threads,
//! echoes beside bulk traffic that keeps the receiver busy, guarantees and limits of bandwidth, and
//! calls of the ORB with and without RIO below it. Two further parts make calls beside bulk data,
//! and trace the stages of a call. Each [`RioPart`] can be run alone.
//!
//! The processes are this very program, called with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND). They exchange lines of JSON:
//!
//! | child | sends | receives |
//! |---|---|---|
//! | server | its addresses, then the octets of each flow over time | |
//! | sender of echoes | that it is connected, then the latencies | when to begin; at last, the end of its input |
//! | sender of bulk data | that it is connected, then that data flows | when to begin; the end of its input: end |

mod calls;
mod claims;
mod class;
mod client;
mod echoes;
mod guarantees;
mod history;
mod order;
mod outcome;
mod packets;
mod path;
mod plan;
mod report;
mod server;
mod site;
mod stages;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::awake::Awake;
use crate::environment::Environment;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::process;
use crate::watch::Watch;
use crate::work::Speed;

pub use calls::Io;
pub use outcome::{CallRow, EchoRow, FlowRow, RioOutcome};
pub use packets::{Load, PacketRow};
pub use path::PacketPath;
pub use plan::{RioPart, RioPlan};
pub use stages::StageRow;

use echoes::EchoTrial;
use outcome::RateCurve;
use site::{RioMachine, RioSite};

/// The part of a process that this experiment starts.
pub(crate) const PART: &str = "rio";

/// The experiment on real-time I/O.
///
/// The program that runs it hands [`CHILD_COMMAND`](crate::CHILD_COMMAND) on to
/// [`child_main`](crate::child_main).
#[derive(Clone, Copy, Debug)]
pub struct RealTimeIo;

impl Experiment for RealTimeIo {
    const NAME: &'static str = "rio";
    const TITLE: &'static str = "Real-time I/O";

    type Plan = RioPlan;
    type Findings = RioOutcome;

    fn full() -> RioPlan {
        RioPlan {
            parts: RioPart::ALL.to_vec(),
            driver: "auto".to_owned(),
            awake: true,
            rounds: 10,
            echoes: 1_000,
            echoes_in_company: 1_000,
            pause: Duration::from_millis(1),
            aside: Duration::from_millis(500),
            bulk_work: Duration::from_micros(12),
            bulk_rate: 10_000_000_000,
            step: Duration::from_secs(5),
            calls: RioPlan::calls_of(&plan::MODES, false),
            packet_clients: vec![0, 10, 25, 50],
            packet_length: Duration::from_secs(2),
            traced: Duration::from_secs(10),
        }
    }

    fn short() -> RioPlan {
        RioPlan {
            rounds: 3,
            echoes: 500,
            echoes_in_company: 300,
            aside: Duration::from_millis(300),
            step: Duration::from_secs(2),
            calls: RioPlan::calls_of(&plan::MODES, true),
            packet_clients: vec![0, 50],
            packet_length: Duration::from_secs(1),
            traced: Duration::from_secs(3),
            ..Self::full()
        }
    }

    fn measure(plan: &RioPlan) -> Result<RioOutcome, LabError> {
        let machine = RioMachine::probe(&plan.driver)?;
        let awake = Awake::on(machine.cpus.iter().filter(|_| plan.awake));
        let awake = awake.map_err(LabError::work("keeping processors awake"))?;
        let mut outcome = RioOutcome {
            plan: plan.clone(),
            environment: Environment::probe(),
            real_time: machine.real_time,
            one_cpu: !machine.cpus.are_several(),
            congestion: machine.unyielding.clone(),
            echoes: Vec::new(),
            flows: Vec::new(),
            calls: Vec::new(),
            packets: Vec::new(),
            receiving_threads: None,
            stages: Vec::new(),
            untraced: None,
            missing: Vec::new(),
            pooled: Default::default(),
            curves: Vec::new(),
        };
        let watch = Watch::start(Self::TITLE, length(plan));
        for part in RioPart::ALL.into_iter().filter(|part| plan.has(*part)) {
            match part {
                RioPart::Processing | RioPart::Company => {
                    measure_echoes(part, &mut outcome, &machine, &awake, &watch)?;
                }
                RioPart::Guarantees => {
                    let begin = |what: &str| watch.begin(what);
                    let (flows, curves) = guarantees::measure(plan, &machine, begin)?;
                    outcome.flows = flows;
                    outcome.curves.extend(curves);
                }
                RioPart::Orb => calls::measure(&mut outcome, &machine, &watch)?,
                RioPart::Packets => packets::measure(&mut outcome, &machine, &awake, &watch)?,
                RioPart::Stages => stages::measure(&mut outcome, &machine, &awake, &watch)?,
            }
        }
        drop(awake);
        outcome.environment.finish();
        Ok(outcome)
    }
}

/// Runs a server or a sender until its parent has received all its reports.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when the network or the
/// system fails.
pub(crate) fn part_main(order: &str) -> Result<(), LabError> {
    match process::order(order)? {
        order::RioOrder::Serve(order) => server::serve(&order),
        order::RioOrder::Send(order) => client::send(&order),
    }
}

/// Measures echoes by all paths of a part, which take turns.
fn measure_echoes(
    part: RioPart,
    outcome: &mut RioOutcome,
    machine: &RioMachine,
    awake: &Awake,
    watch: &Watch,
) -> Result<(), LabError> {
    let plan = &outcome.plan;
    let is_beside = part == RioPart::Company;
    let rate = if is_beside { plan.bulk_rate } else { LINK_RATE };
    let site = RioSite::build(machine, rate, LINK_MTU)?;
    let [_, server] = machine.ends();
    // The thread of the wrong class needs a competitor.
    let competed = if is_beside { None } else { Some(server) };
    let competitor = Awake::competing_on(competed.into_iter());
    let competitor = competitor.map_err(LabError::work("starting a thread that computes"))?;
    let steps = Speed::measure().steps(plan.bulk_work);
    for round in 0..plan.rounds {
        for path in PacketPath::of(part).iter().copied() {
            watch.begin(&format!("{part}, {}", path.title()));
            let trial = EchoTrial {
                part,
                path,
                round,
                plan,
                steps,
            };
            let turn = trial.run(&site, awake)?;
            outcome.echoes.push(turn.row);
            outcome.pooled.add((part, path), &turn.echoes);
            let points = turn.points.filter(|_| round == 0);
            outcome.curves.extend(points.map(|points| RateCurve {
                part,
                name: path.title().to_owned(),
                points,
            }));
        }
    }
    drop(competitor);
    Ok(())
}

/// Returns the approximate duration of a run.
fn length(plan: &RioPlan) -> Duration {
    let of = |part| {
        let turns = PacketPath::of(part).len() as u32 * plan.rounds;
        match part {
            RioPart::Processing => (AN_ECHO * plan.echoes + AROUND) * turns,
            RioPart::Company => {
                let echoes = (AN_ECHO * 2 + plan.pause) * plan.echoes_in_company;
                (echoes + plan.aside * 2 + AROUND) * turns
            }
            RioPart::Guarantees => guarantees::length(plan),
            RioPart::Orb => plan.calls.length_of(Io::ALL.len()),
            RioPart::Packets => {
                let turns = plan.rounds * (plan.packet_cases().len() * Io::ALL.len()) as u32;
                packets::length_of_turn(plan.packet_length) * turns
            }
            RioPart::Stages => stages::length(plan.traced),
        }
    };
    plan.parts.iter().copied().map(of).sum()
}

/// The rate of the switch in bit/s, except beside bulk traffic and where bandwidth is measured.
const LINK_RATE: u64 = 1_000_000_000;
const LINK_MTU: u32 = 1_500;
/// The approximate time of an echo.
const AN_ECHO: Duration = Duration::from_micros(200);
/// The approximate time to start and to end the processes of a turn.
const AROUND: Duration = Duration::from_millis(300);
