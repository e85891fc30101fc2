//! The number of context switches for each request.

use super::fleet::{Members, OsFleet, soon};
use super::outcome::RequestRow;
use super::{OsRun, thousandths};
use crate::bench::{Pace, Placement};
use crate::error::LabError;
use crate::stats::Record;

/// Counts context switches by the number of clients: one of high priority, the others of low.
pub(super) fn measure(run: &OsRun<'_>) -> Result<Vec<RequestRow>, LabError> {
    let mut placements = vec![Placement::SameCpu];
    placements.extend(run.cpus.are_several().then_some(Placement::AcrossCpus));
    let mut rows = Vec::new();
    for placement in placements {
        for &clients in &run.plan.clients {
            run.watch.begin("context switches of requests");
            let case = run.fifo(placement);
            let mut fleet = OsFleet::start(Members::high_and_low(case, clients - 1))?;
            let paces = vec![Pace::BackToBack; clients as usize];
            let measured = fleet.run(soon(), &paces, run.plan.counting, 1)?.measured;
            fleet.stop()?;
            let requests: u64 = measured.calls.iter().map(Record::calls).sum();
            let each = |switches: u64| thousandths(switches as f64 / requests.max(1) as f64);
            rows.push(RequestRow {
                placement,
                clients,
                requests,
                client_switches_per_request: each(measured.client_switches),
                server_switches_per_request: each(measured.server_switches),
            });
        }
    }
    Ok(rows)
}
