//! `chronorb sched serve`: the scheduling service until a signal.

use std::io::{self, Write};
use std::path::PathBuf;

use chronorb_orb::{InitError, LastFailure, NotifyError, Orb, OrbConfig, SystemException};
use chronorb_sched::LevelStrategy;
use chronorb_sched_service::{SchedulingService, ServeError};
use clap::{Args, ValueEnum};
use thiserror::Error;

use crate::listen::{Endpoints, INACTIVE, cause, endpoints, references, set_endpoints};
use crate::ns::{Binding, NsError, ServerArguments, calling_config};

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
    let orb = Orb::with_config(config)?;
    orb.catch_signals()?;
    let poa = orb.root_poa()?;
    let service = SchedulingService::new().strategy(arguments.strategy.into());
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
    let mut out = io::stdout().lock();
    for reference in references(service.ior(), NAME) {
        writeln!(out, "{reference}")?;
    }
    out.flush()?;
    drop(out);
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
  chronorb sched serve --bind --ns corbaloc::names.example:2809/NameService
  chronorb sched serve --ior-file sched.ior -ORBServerTransportRule '10.0.0.0/24 tcp'

Clients reach the service by corbaloc:iiop:HOST:PORT/ScheduleService.

Exit status: 0 when all went well, 1 when something failed, 2 when the command line is wrong.";
