//! How many context switches a request has.

use super::class::{Class, HIGH, LOW};
use super::classes::LOW_THREADS;
use super::fleet::{Members, OsFleet};
use super::load::Load;
use super::outcome::RequestRow;
use super::plan::Plan;
use crate::bench::{Cpus, Pace, Placement};
use crate::error::LabError;
use crate::stats::Record;
use crate::watch::Watch;

/// Counts them by the number of clients: one of high priority, and the others of low.
pub(super) fn measure(
    plan: &Plan,
    class: Class,
    lock_memory: bool,
    watch: &Watch,
) -> Result<Vec<RequestRow>, LabError> {
    let cpus = Cpus::of_this_process()?;
    let mut rows = Vec::new();
    for placement in [Placement::SameCpu, Placement::AcrossCpus] {
        if placement == Placement::AcrossCpus && !cpus.are_several() {
            continue;
        }
        for &clients in &plan.clients {
            watch.begin("context switches of requests");
            let low = clients.saturating_sub(1) as usize;
            let mut fleet = OsFleet::start(&Members {
                class,
                lock_memory,
                placement,
                load: Load::Idle,
                lanes: vec![(LOW, LOW_THREADS), (HIGH, 1)],
                callers: [vec![HIGH], vec![LOW; low]].concat(),
            })?;
            let paces = vec![Pace::BackToBack; clients as usize];
            let course = fleet.run(&paces, plan.counting, 1, |_| Ok(()))?;
            fleet.stop()?;
            let measured = course.measured;
            let requests: u64 = measured.calls.iter().map(Record::calls).sum();
            let each = |switches: u64| per_request(switches, requests);
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

fn per_request(switches: u64, requests: u64) -> f64 {
    (switches as f64 / requests.max(1) as f64 * 1e3).round() / 1e3
}
