//! `chronorb sched serve`: the scheduling service until a signal.

use std::io;
use std::path::PathBuf;

use chronorb_orb::{InitError, LastFailure, NotifyError, Orb, OrbConfig, SystemException};
use chronorb_sched::LevelStrategy;
use chronorb_sched_service::{Limits, SchedulingService, ServeError};
use clap::{Args, ValueEnum, value_parser};
use thiserror::Error;

use crate::listen::{Endpoints, INACTIVE, cause, endpoints, print_references, set_endpoints};
use crate::ns::{Binding, NsError, ServerArguments, calling_config};
use crate::quotas::{GivenLimits, QuotaArguments, QuotaOption, QuotaTable};

#[derive(Args, Debug)]
pub(crate) struct ServiceArguments {
    /// The endpoint to listen at, as iiop://10.0.0.1:2811; iiop://:2811 is all interfaces of this
    /// machine [default: a free port of iiop://127.0.0.1, if -ORBListenEndpoints names no other].
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoints)]
    listen: Vec<Endpoints>,

    /// The rules that divide operations into levels of dispatching.
    #[arg(long, value_enum, default_value_t = Strategy::Muf)]
    strategy: Strategy,

    /// Bind the service to this name in a name server, in place of another object, and unbind it at
    /// the end. TAO's clients resolve ScheduleService.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = NAME)]
    bind: Option<String>,

    #[command(flatten)]
    server: ServerArguments,

    /// Write the reference, as IOR:…, into this file, which is replaced.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,

    #[command(flatten)]
    limits: LimitArguments,
}

/// The limits of what clients register.
#[derive(Args, Debug)]
struct LimitArguments {
    #[command(flatten)]
    quotas: QuotaArguments<SchedulerQuotas, 4>,

    /// The greatest number of rates of an operation.
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = value_parser!(u32).range(1..=64))]
    max_rates: u32,

    /// The greatest number of different periods at which an operation runs, by itself or called.
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = value_parser!(u32).range(1..=1024))]
    max_periods: u32,

    /// The steps of a computation for each operation, rate and dependency, beyond 4 million.
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = value_parser!(u32).range(1..))]
    max_steps: u32,
}

#[derive(Debug)]
struct SchedulerQuotas;

impl QuotaTable<4> for SchedulerQuotas {
    const SHARER: &'static str = "client";
    const QUOTAS: [QuotaOption; 4] = [
        QuotaOption::new("operations", 10_000, "The greatest number of operations")
            .within(1..=1_000_000),
        QuotaOption::new(
            "dependencies",
            100_000,
            "The greatest number of dependencies",
        )
        .within(1..=10_000_000),
        QuotaOption::new(
            "names",
            4 << 20,
            "The most octets in the names of all operations",
        )
        .octets()
        .within(1..=1 << 30),
        QuotaOption::new(
            "computations",
            4,
            "The greatest number of computations at a time. Each has a thread of the server",
        )
        .within(1..=1_000),
    ];
}

impl LimitArguments {
    /// The limits, with answers that fit into a message.
    fn limits(&self, max_message_size: usize) -> Limits {
        let [operations, dependencies, texts, computations] =
            self.quotas.limits().map(GivenLimits::or_half);
        Limits {
            operations,
            dependencies,
            texts,
            computations,
            rates: self.max_rates as usize,
            periods: self.max_periods as usize,
            steps: self.max_steps.into(),
            answer: max_message_size,
            ..Limits::default()
        }
    }
}

/// The rules of a schedule.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Strategy {
    /// A static level for each period (RMS).
    Rms,
    /// One level, by deadline (EDF).
    Edf,
    /// One level, by laxity (MLF).
    Mlf,
    /// A level for each criticality, by laxity (MUF, as TAO has it).
    Muf,
    /// One level for all critical operations, by laxity; below it, one for each criticality.
    MufCritical,
    /// Static levels for critical operations; below them, one by laxity for each criticality.
    RmsMlf,
}

impl From<Strategy> for LevelStrategy {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Rms => Self::RateMonotonic,
            Strategy::Edf => Self::EarliestDeadline,
            Strategy::Mlf => Self::LeastLaxity,
            Strategy::Muf => Self::MaximumUrgency,
            Strategy::MufCritical => Self::MaximumUrgencyOfCriticalSet,
            Strategy::RmsMlf => Self::RateMonotonicLaxity,
        }
    }
}

/// The scheduling service cannot serve.
#[derive(Debug, Error)]
pub(crate) enum ServiceFailure {
    #[error(transparent)]
    Init(#[from] InitError),
    #[error("the scheduling service cannot serve: {}", cause(.0, .1.as_deref()))]
    Serve(ServeError, Option<Box<LastFailure>>),
    #[error("the scheduling service cannot serve: {0}")]
    System(#[from] SystemException),
    #[error("the scheduling service is not bound: {0}")]
    Bind(NsError),
    #[error("the binding of the scheduling service stays: {0}")]
    Unbind(NsError),
    #[error("{}: {source}", .file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("systemd cannot be told that the server is ready: {0}")]
    Ready(#[from] NotifyError),
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

/// Serves until a signal.
pub(crate) fn run(
    arguments: ServiceArguments,
    mut config: OrbConfig,
) -> Result<(), ServiceFailure> {
    let client = calling_config(&config);
    set_endpoints(&mut config, arguments.listen, LOOPBACK);
    let limits = arguments.limits.limits(config.max_message_size);
    let orb = Orb::with_config(config)?;
    orb.catch_signals()?;
    let poa = orb.root_poa()?;
    let service = SchedulingService::new()
        .strategy(arguments.strategy.into())
        .limits(limits);
    let service = service.serve_in(&poa);
    let service =
        service.map_err(|error| ServiceFailure::Serve(error, orb.last_failure().map(Box::new)))?;
    poa.manager().activate().map_err(|_| INACTIVE)?;
    if let Some(file) = arguments.ior_file {
        let written = chronorb_rt::write_file(&file, format!("{}\n", service.ior()).as_bytes());
        written.map_err(|source| ServiceFailure::File { file, source })?;
    }
    let binding = match arguments.bind {
        Some(name) => {
            let bound = Binding::make(name, &arguments.server, client, &service);
            Some(bound.map_err(ServiceFailure::Bind)?)
        }
        None => None,
    };
    print_references(service.ior(), NAME)?;
    orb.notify_ready()?;
    orb.run_until_signal()?;
    let removed = binding.map_or(Ok(()), Binding::remove);
    removed.map_err(ServiceFailure::Unbind)
}

/// The name of the service: its initial reference, and its usual name in a name server.
const NAME: &str = "ScheduleService";
/// The endpoint that only programs on this machine reach.
const LOOPBACK: &str = "iiop://127.0.0.1:0";

pub(super) const EXAMPLES: &str = "\
Examples:
  chronorb sched serve
  chronorb sched serve --listen iiop://:2811 --strategy rms
  chronorb sched serve --max-operations 500 --max-operations-per-client 500
  chronorb sched serve --bind --ns corbaloc::names.example:2809/NameService
  chronorb sched serve --ior-file sched.ior -ORBServerTransportRule '10.0.0.0/24 tcp'

Clients reach the service by corbaloc:iiop:HOST:PORT/ScheduleService.

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        limits: LimitArguments,
    }

    #[test]
    fn the_default_limits_are_those_of_the_service() {
        let program = Program::parse_from(["program"]);
        let limits = program.limits.limits(Limits::default().answer);
        assert_eq!(limits, Limits::default());
    }
}
