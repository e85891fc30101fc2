//! `chronorb ns serve`: a name server until a signal.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronorb_naming::store::{Directory, DirectoryError, OpenError, Store, WriteError};
use chronorb_naming::{
    Limits, NameServer, ReapPolicy, ServeError, Tree, import_omninames, import_text, unused_number,
};
use chronorb_orb::{InitError, LastFailure, NotifyError, Orb, OrbConfig, SystemException};
use chronorb_rt::Monotonic;
use clap::{Args, value_parser};
use thiserror::Error;

use crate::listen::{Endpoints, INACTIVE, cause, endpoints, print_references, set_endpoints};
use crate::quotas::{GivenLimits, QuotaArguments, QuotaOption, QuotaTable};

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The endpoint to listen at, as iiop://10.0.0.1:2809; iiop://:2809 is all interfaces of this
    /// machine [default: iiop://127.0.0.1:2809, if -ORBListenEndpoints names no other].
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoints)]
    listen: Vec<Endpoints>,

    /// Keep the names in this directory, which is created if it is missing. Without it they are
    /// kept in memory only.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,

    /// Begin with the names of this file, if the store is empty: the data file of omniNames, or
    /// bindings as text, in the form that the book describes.
    #[arg(long, value_name = "FILE", requires = "store")]
    import: Option<PathBuf>,

    /// Check all bound objects, this number of seconds after the last check, and unbind those that
    /// three checks in a row did not find, 1 to 86400. Without it no object is checked. The server
    /// connects to whatever clients bind, unless -ORBClientTransportRule refuses it.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400))]
    reap: Option<u64>,

    #[command(flatten)]
    limits: LimitArguments,
}

/// The limits of a name server.
#[derive(Args, Debug)]
struct LimitArguments {
    #[command(flatten)]
    quotas: QuotaArguments<NameQuotas, 4>,

    /// The greatest number of bindings in one context.
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = value_parser!(u32).range(1..))]
    max_bindings: u32,
}

#[derive(Debug)]
struct NameQuotas;

impl QuotaTable<4> for NameQuotas {
    const SHARER: &'static str = "origin";
    const QUOTAS: [QuotaOption; 4] = [
        QuotaOption::new(
            "contexts",
            1_000_000,
            "The greatest number of contexts. An origin (certificate, user, host; on the \
             loopback connection) has those that it made, until they are destroyed",
        )
        .within(1..=U32_MAX),
        QuotaOption::new(
            "octets",
            1 << 30,
            "The most octets of all bindings: those of component and reference, and 256 for each \
             binding",
        )
        .octets()
        .within(1..=u64::MAX),
        QuotaOption::new(
            "iterators",
            1_000,
            "The greatest number of iterators. Another one ends the oldest of the origin with \
             the most, or of its own if that has its share",
        )
        .within(1..=U32_MAX)
        .quarter(),
        QuotaOption::new(
            "federated-calls",
            8,
            "The greatest number of calls to other name servers at the same time. Beyond it \
             clients get CannotProceed. Each has a thread of the server for up to 2 seconds",
        )
        .within(0..=1_000)
        .quarter(),
    ];
}

impl LimitArguments {
    fn limits(&self) -> Limits {
        let [contexts, octets, iterators, federated_calls] = self.quotas.limits();
        let share = |limits: GivenLimits| limits.share.map(|share| share as usize);
        Limits {
            contexts: contexts.total as usize,
            contexts_per_origin: share(contexts),
            bindings: self.max_bindings as usize,
            octets: octets.total,
            octets_per_origin: octets.share,
            iterators: iterators.total as usize,
            iterators_per_origin: share(iterators),
            federated_calls: federated_calls.total as usize,
            federated_calls_per_origin: share(federated_calls),
            ..Limits::default()
        }
    }
}

/// The name server cannot serve.
#[derive(Debug, Error)]
pub(crate) enum ServeFailure {
    #[error(transparent)]
    Init(#[from] InitError),
    #[error("the name server cannot serve: {}", cause(.0, .1.as_deref()))]
    Serve(ServeError, Option<Box<LastFailure>>),
    #[error("the name server cannot serve: {0}")]
    System(#[from] SystemException),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("the names in {} cannot be read: {problem}", .store.display())]
    Open { store: PathBuf, problem: OpenError },
    #[error("{}: {problem}", .file.display())]
    Import {
        file: PathBuf,
        problem: Box<dyn Error + Send + Sync>,
    },
    #[error("{} is not imported, because {} has names already", .file.display(), .store.display())]
    NotEmpty { file: PathBuf, store: PathBuf },
    #[error("the names in {} cannot be written: {problem}", .store.display())]
    Write { store: PathBuf, problem: WriteError },
    #[error("systemd cannot be told that the server is ready: {0}")]
    Ready(#[from] NotifyError),
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}

/// Serves until a signal.
pub(crate) fn run(arguments: ServeArguments, mut config: OrbConfig) -> Result<(), ServeFailure> {
    set_endpoints(&mut config, arguments.listen, LOOPBACK);
    let orb = Orb::with_config(config)?;
    orb.catch_signals()?;
    let poa = orb.root_poa()?;
    let limits = arguments.limits.limits();
    let mut server = NameServer::new().limits(limits.clone());
    if let Some(folder) = &arguments.store {
        let (tree, store) = open_store(folder, arguments.import.as_deref(), limits)?;
        server = server.state(tree, store);
    }
    if let Some(seconds) = arguments.reap {
        server = server.reap(ReapPolicy {
            interval: Duration::from_secs(seconds),
            timeout: REAPING_TIMEOUT,
        });
    }
    let service = server.serve_in(&poa);
    let service =
        service.map_err(|error| ServeFailure::Serve(error, orb.last_failure().map(Box::new)))?;
    poa.manager().activate().map_err(|_| INACTIVE)?;
    print_references(service.root().ior(), "NameService")?;
    orb.notify_ready()?;
    orb.run_until_signal()?;
    Ok(())
}

/// Returns the state of a store, after the import of a file into an empty one.
fn open_store(
    folder: &Path,
    import: Option<&Path>,
    limits: Limits,
) -> Result<(Tree, Store), ServeFailure> {
    let now = Monotonic::now();
    let folder = || folder.to_owned();
    let mut tree = Tree::new(unused_number());
    let files = Directory::open(folder())?;
    let opened = Store::open(files, |change| tree.apply(&change, now));
    let mut store = opened.map_err(|problem| ServeFailure::Open {
        store: folder(),
        problem,
    })?;
    let Some(file) = import else {
        return Ok((tree, store));
    };
    let (file, is_empty) = (file.to_owned(), tree.changes().next().is_none());
    if !is_empty {
        let store = folder();
        return Err(ServeFailure::NotEmpty { file, store });
    }
    let read = read_import(&file).map_err(Into::into);
    let read = read.and_then(|data| imported_within(limits, &data));
    tree = read.map_err(|problem| ServeFailure::Import { file, problem })?;
    let written = store.write_snapshot(&mut tree.changes());
    written.map_err(|problem| ServeFailure::Write {
        store: folder(),
        problem,
    })?;
    Ok((tree, store))
}

/// Reads a file of names.
pub(super) fn read_import(file: &Path) -> io::Result<Vec<u8>> {
    chronorb_rt::read_file_up_to(file, MAX_IMPORT).map(|(data, _)| data)
}

/// Reads a data file of omniNames, which begins with its port, or a text.
pub(super) fn imported(data: &[u8]) -> Result<Tree, Box<dyn Error + Send + Sync>> {
    imported_within(Limits::default(), data)
}

fn imported_within(limits: Limits, data: &[u8]) -> Result<Tree, Box<dyn Error + Send + Sync>> {
    let first = unused_number();
    Ok(if data.starts_with(b"port ") {
        import_omninames(data, limits, first)?
    } else {
        import_text(std::str::from_utf8(data)?, limits, first)?
    })
}

/// The most of a number that the server counts in 32 bits on any machine.
const U32_MAX: u64 = u32::MAX as u64;
/// The octets of the longest file of names.
pub(super) const MAX_IMPORT: usize = 256 << 20;
/// The endpoint that only programs on this machine reach.
const LOOPBACK: &str = "iiop://127.0.0.1:2809";
/// The time limit for each object that is checked.
const REAPING_TIMEOUT: Duration = Duration::from_secs(1);

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
        assert_eq!(program.limits.limits(), Limits::default());
    }
}
