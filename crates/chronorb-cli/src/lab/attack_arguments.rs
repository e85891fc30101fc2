//! The arguments of the experiments that attack, kill and stop servers.

use std::iter;
use std::time::Duration;

use chronorb_lab::LabError;
use chronorb_lab::endurance::Endurance;
use chronorb_lab::hostile::{Attack, AttackedService, Hostile, ServiceAttack};
use clap::builder::PossibleValuesParser;
use clap::{Args, value_parser};

use super::experiment_arguments::ExperimentArguments;
#[derive(Args, Debug)]
pub(crate) struct EnduranceArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// The duration of the load in minutes [default: 15, with --short 1].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=10_000))]
    minutes: Option<u64>,

    /// The seed of what is killed and stopped.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl EnduranceArguments {
    pub(super) fn run(self) -> Result<(), LabError> {
        let mut plan = self.common.plan::<Endurance>();
        plan.seed = self.seed;
        if let Some(minutes) = self.minutes {
            plan.length = Duration::from_secs(minutes * 60);
        }
        chronorb_lab::run::<Endurance>(&self.common.options::<Endurance>(plan)).map(drop)
    }
}

#[derive(Args, Debug)]
pub(crate) struct HostileArguments {
    #[command(flatten)]
    common: ExperimentArguments,

    /// Only these attacks, in this order; separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(attacks()))]
    attack: Vec<String>,

    /// Only attacks on these servers; separated by commas. `orb` is a server with an object of the
    /// laboratory, the others are the services by their default settings.
    #[arg(long, value_name = "NAMES", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(victims()))]
    victim: Vec<String>,
}

/// Returns the names of all attacks.
fn attacks() -> impl Iterator<Item = &'static str> {
    let services = ServiceAttack::ALL.into_iter().map(ServiceAttack::name);
    Attack::ALL.into_iter().map(Attack::name).chain(services)
}

/// Returns the names of the servers that can be attacked.
fn victims() -> impl Iterator<Item = &'static str> {
    iter::once(ORB_VICTIM).chain(AttackedService::ALL.into_iter().map(AttackedService::name))
}

impl HostileArguments {
    pub(super) fn run(self) -> Result<(), LabError> {
        let mut plan = self.common.plan::<Hostile>();
        if !self.attack.is_empty() {
            let attacks = self.attack.iter();
            plan.attacks = attacks.filter_map(|name| Attack::named(name)).collect();
            let attacks = self.attack.iter();
            let attacks = attacks.filter_map(|name| ServiceAttack::named(name));
            plan.services.attacks = attacks.collect();
        }
        if !self.victim.is_empty() {
            let is_wanted = |victim: &str| self.victim.iter().any(|name| name == victim);
            plan.attacks.retain(|_| is_wanted(ORB_VICTIM));
            let attacks = &mut plan.services.attacks;
            attacks.retain(|attack| is_wanted(attack.service().name()));
        }
        chronorb_lab::run::<Hostile>(&self.common.options::<Hostile>(plan)).map(drop)
    }
}

/// The server with an object of the laboratory, as a victim on the command line.
const ORB_VICTIM: &str = "orb";

pub(super) const ENDURANCE_EXAMPLES: &str = "\
Examples:
  chronorb lab endurance --short
  chronorb lab endurance --minutes 15 --seed 7
  chronorb lab endurance --short --json | jq '.rows[] | [.load, .calls, .unexplained]'

A failure is a finding, and no failure of the command. Only processes that the command itself starts
are killed and stopped.";

pub(super) const HOSTILE_EXAMPLES: &str = "\
Examples:
  chronorb lab hostile
  chronorb lab hostile --short --report short.html
  chronorb lab hostile --attack idle-connections,profiles
  chronorb lab hostile --victim names,events,scheduling
  chronorb lab hostile --json | jq '.claims[] | [.verdict, .claim, .measured]'

Only a server that the command itself starts is attacked, on the loopback of this machine. A server
that an attack ends is a finding, and no failure of the command. Attackers share the processors with
the server and its clients: other programs that run at the same time change the figures.";
