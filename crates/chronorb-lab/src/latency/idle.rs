//! The cost of many idle connections.

use std::net::TcpListener;

use serde::Serialize;

use super::outcome::LatencyRow;
use super::plan::LatencyPlan;
use super::system::LatencySystem;
use crate::bench::{
    CallScheduling, Cpus, Fleet, IdleClients, Operation, OrbSettings, Placement, Waits,
    allow_files, check_permitted, take_turns,
};
use crate::error::LabError;
use crate::pairs::median_ratio;
use crate::progress::Progress;
use crate::usage::resident;

/// A comparison of a server that has many idle connections with one that has none.
#[derive(Clone, Debug, Serialize)]
pub struct IdleConnections {
    /// The planned number of idle connections.
    pub wanted: u32,
    /// The number that the server had, besides that of the client.
    pub connections: u32,
    /// The reason why it had fewer; empty if it had all.
    pub fewer_because: String,
    /// The scheduling of client and server: `SCHED_FIFO` if that is permitted.
    pub scheduled: CallScheduling,
    /// The calls of the server without other connections, a row for each round.
    pub alone: Vec<LatencyRow>,
    /// The calls of the server with the idle connections, a row for each round.
    pub among_idle: Vec<LatencyRow>,
    /// The resident memory of the server before the idle connections, in octets.
    pub resident_before: u64,
    /// The resident memory of the server with them, in octets.
    pub resident_with: u64,
}

impl IdleConnections {
    /// Returns the ratio of a figure with idle connections to that without: the median of the
    /// rounds.
    pub(super) fn ratio(&self, of: impl Fn(&LatencyRow) -> f64) -> Option<f64> {
        median_ratio(&self.among_idle, &self.alone, |row| row.round, of)
    }

    /// Returns the octets of the server's memory for each connection.
    pub(super) fn octets_each(&self) -> f64 {
        let more = self.resident_with.saturating_sub(self.resident_before);
        more as f64 / f64::from(self.connections.max(1))
    }
}

/// Measures two servers of chronorb by turns, one of which has the idle connections.
pub(super) fn measure(
    plan: &LatencyPlan,
    cpus: &Cpus,
    request: &[u8],
) -> Result<IdleConnections, LabError> {
    let wanted = plan.connections;
    let files = allow_files(u64::from(wanted) + OTHER_FILES);
    let possible = files.saturating_sub(OTHER_FILES);
    let connections = u32::try_from(possible).unwrap_or(u32::MAX).min(wanted);
    let fewer_because = if connections < wanted {
        format!(
            "a process may have {files} files open (RLIMIT_NOFILE); to have more: ulimit -Hn, \
             LimitNOFILE= of the service, or nofile in limits.d"
        )
    } else {
        String::new()
    };
    let permitted = check_permitted(CallScheduling::Fifo);
    let scheduled = permitted.map_or(CallScheduling::Other, |()| CallScheduling::Fifo);
    let server = |address: &str| {
        let settings = OrbSettings {
            max_connections: connections + OTHER_CLIENTS,
            ..OrbSettings::of(format!("iiop://{address}"))
        };
        let mut fleet = Fleet::orb_by(&settings, Waits::Block, scheduled)?;
        fleet.add_client(Operation::Cube, 1)?;
        Ok::<_, LabError>(fleet)
    };
    let address = free_address()?;
    let mut servers = [server("127.0.0.1:0")?, server(&address)?];

    // The first calls make both servers allocate what calls need.
    let place = (cpus, Placement::SameCpu);
    for server in &mut servers {
        server.run(0, place, plan.warm_up, plan.calls)?;
    }
    let resident_before = resident(servers[1].server());
    let progress = Progress::start("idle connections", connections.into());
    let idle = IdleClients::connect(&address, connections, request, |part| {
        progress.advance(part.into());
    })?;
    drop(progress);
    let resident_with = resident(servers[1].server());

    let mut rows = [Vec::new(), Vec::new()];
    let [alone, among_idle] = servers;
    let mut servers = [(0, alone), (1, among_idle)];
    let title = "calls beside idle connections";
    take_turns(
        title,
        plan.rounds,
        &[()],
        &mut servers,
        |round, (), (of, server)| {
            let batch = server.run(0, place, plan.warm_up, plan.calls)?;
            let trial = (LatencySystem::Chronorb, Placement::SameCpu);
            rows[*of].push(LatencyRow::of(trial, round, &batch.record()));
            Ok(())
        },
    )?;
    idle.disconnect()?;
    for (_, server) in servers {
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

/// Returns an address that is free at present.
fn free_address() -> Result<String, LabError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.to_string())
        .map_err(LabError::work("looking for a free port"))
}

/// The files of a server beside the connections of the idle clients.
const OTHER_FILES: u64 = 100;
/// The connections of a server beside those of the idle clients.
const OTHER_CLIENTS: u32 = 16;
