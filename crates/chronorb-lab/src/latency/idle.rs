//! What many idle connections cost.

use std::net::TcpListener;

use serde::Serialize;

use super::outcome::{self, Row};
use super::plan::Plan;
use super::system::System;
use crate::bench::{
    Cpus, Fleet, IdleClients, Operation, Placement, Scheduled, Waits, allow_files, check_permitted,
};
use crate::error::LabError;
use crate::progress::Progress;
use crate::stats::median;
use crate::usage::resident;

/// What was found of a server with many idle connections, beside one without.
#[derive(Clone, Debug, Serialize)]
pub struct IdleConnections {
    /// How many it was to have.
    pub wanted: u32,
    /// How many it had, besides that of the client.
    pub connections: u32,
    /// Why it had fewer; empty where it had all.
    pub fewer_because: String,
    /// How client and server were scheduled: `SCHED_FIFO` where that is permitted.
    pub scheduled: Scheduled,
    /// The client's calls of a server that has no other connection, round by round.
    pub alone: Vec<Row>,
    /// Those of one that has all of these.
    pub among_idle: Vec<Row>,
    /// The memory of the server before they came, in octets, as far as it is resident.
    pub resident_before: u64,
    /// With them.
    pub resident_with: u64,
}

impl IdleConnections {
    /// A figure of the server with idle connections by that of the one without: the median of the
    /// rounds.
    pub(super) fn ratio(&self, of: impl Fn(&Row) -> f64) -> Option<f64> {
        let pairs = self.among_idle.iter().zip(&self.alone);
        median(pairs.map(|(among, alone)| of(among) / of(alone).max(1e-3)))
    }

    /// Octets of the server's memory for each connection.
    pub(super) fn octets_each(&self) -> f64 {
        let more = self.resident_with.saturating_sub(self.resident_before);
        more as f64 / f64::from(self.connections.max(1))
    }
}

/// Measures two servers of chronorb by turns, one of which has the idle connections.
pub(super) fn measure(
    plan: &Plan,
    cpus: &Cpus,
    request: &[u8],
) -> Result<IdleConnections, LabError> {
    let wanted = plan.connections;
    let files = allow_files(u64::from(wanted) + OTHER_FILES);
    let possible = files.saturating_sub(OTHER_FILES);
    let connections = u32::try_from(possible).unwrap_or(u32::MAX).min(wanted);
    let fewer_because = match connections < wanted {
        true => format!(
            "a process may have {files} files open (RLIMIT_NOFILE); to have more: ulimit -Hn, \
             LimitNOFILE= of the service, or nofile in limits.d"
        ),
        false => String::new(),
    };
    let scheduled = match check_permitted(Scheduled::Fifo) {
        Ok(()) => Scheduled::Fifo,
        Err(_) => Scheduled::Other,
    };
    let server = |address: &str| {
        let mut fleet = Fleet::orb_at(
            address,
            Waits::Block,
            scheduled,
            connections + OTHER_CLIENTS,
        )?;
        fleet.add_client(Operation::Cube, 1)?;
        Ok::<_, LabError>(fleet)
    };
    let address = free_address()?;
    let mut servers = [server("127.0.0.1:0")?, server(&address)?];

    // Whatever calls need, both have it by now.
    for server in &mut servers {
        server.run(0, (cpus, Placement::SameCpu), plan.warm_up, plan.calls)?;
    }
    let resident_before = resident(servers[1].server());
    let progress = Progress::start("idle connections", connections.into());
    let idle = IdleClients::connect(&address, connections, request, |part| {
        progress.advance(part.into());
    })?;
    drop(progress);
    let resident_with = resident(servers[1].server());

    let mut rows = [Vec::new(), Vec::new()];
    let progress = Progress::start("calls beside idle connections", plan.rounds.into());
    for round in 1..=plan.rounds {
        for index in 0..servers.len() {
            let index = (index + round as usize) % servers.len();
            let place = (cpus, Placement::SameCpu);
            let took = servers[index].run(0, place, plan.warm_up, plan.calls)?;
            let (row, _) = outcome::row(
                System::Chronorb,
                Placement::SameCpu,
                round,
                &took.latencies_ns,
            );
            rows[index].push(row);
        }
        progress.advance(1);
    }
    drop(progress);
    idle.disconnect()?;
    for server in servers {
        server.stop()?;
    }
    let [alone, among_idle] = rows;
    Ok(IdleConnections {
        wanted,
        connections,
        fewer_because,
        scheduled,
        alone,
        among_idle,
        resident_before,
        resident_with,
    })
}

/// An address that nobody has, as yet.
fn free_address() -> Result<String, LabError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.to_string())
        .map_err(LabError::work("looking for a free port"))
}

/// Files of a server that are no connections of the idle clients.
const OTHER_FILES: u64 = 100;
/// Connections of a server that are none of the idle clients.
const OTHER_CLIENTS: u32 = 16;
