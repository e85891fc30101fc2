//! A scheduling service with a client of another ORB.

use chronorb::config::OrbConfig;
use chronorb::prelude::*;
use chronorb::quota::QuotaLimits;
use chronorb_sched::LevelStrategy;
use chronorb_sched_service::SchedulingService;
use chronorb_sched_service::idl::rtec_base::DependencyTypeT;
use chronorb_sched_service::idl::rtec_scheduler::{
    AnomalySeverity, CriticalityT, ImportanceT, InfoTypeT, Scheduler, SchedulingAnomalyBuf,
};

/// A millisecond in units of 100 ns.
pub(crate) const MS: u64 = 10_000;

pub(crate) use CriticalityT::{
    HighCriticality as HIGH, LowCriticality as LOW, VeryHighCriticality as VERY_HIGH,
    VeryLowCriticality as VERY_LOW,
};
pub(crate) use DependencyTypeT::{OneWayCall as ONE_WAY, TwoWayCall as TWO_WAY};
pub(crate) use InfoTypeT::Operation as OPERATION;

/// The needs of an operation; times in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    pub(crate) cost: u64,
    pub(crate) period: u64,
    pub(crate) criticality: CriticalityT,
    pub(crate) importance: ImportanceT,
    pub(crate) threads: i32,
    pub(crate) kind: InfoTypeT,
}

/// Needs of an operation with this execution time and period.
pub(crate) fn needs(cost: u64, period: u64) -> Needs {
    Needs {
        cost,
        period,
        criticality: LOW,
        importance: ImportanceT::LowImportance,
        threads: 0,
        kind: OPERATION,
    }
}

impl Needs {
    pub(crate) fn with(self, criticality: CriticalityT, importance: ImportanceT) -> Self {
        Self {
            criticality,
            importance,
            ..self
        }
    }

    pub(crate) fn threads(self, threads: i32) -> Self {
        Self { threads, ..self }
    }

    pub(crate) fn of_kind(self, kind: InfoTypeT) -> Self {
        Self { kind, ..self }
    }
}

pub(crate) struct Fixture {
    server: Orb,
    client: Orb,
    pub(crate) scheduler: Scheduler,
}

impl Fixture {
    pub(crate) fn new(strategy: LevelStrategy) -> Self {
        Self::of(SchedulingService::new().strategy(strategy))
    }

    pub(crate) fn of(service: SchedulingService) -> Self {
        let server = orb();
        let client = orb();
        let poa = server.root_poa().unwrap();
        let object = service.serve_in(&poa).unwrap();
        poa.manager().activate().unwrap();
        let text = server.object_to_string(&object);
        let object = client.string_to_object(&text).unwrap();
        let scheduler = Scheduler::narrow(&object).unwrap().unwrap();
        Self {
            server,
            client,
            scheduler,
        }
    }

    /// Another client of the service, at a connection of its own.
    pub(crate) fn client(&self) -> Client {
        let orb = orb();
        let text = self.client.object_to_string(self.scheduler.as_object());
        let object = orb.string_to_object(&text).unwrap();
        let scheduler = Scheduler::narrow(&object).unwrap().unwrap();
        Client { orb, scheduler }
    }

    /// The use, the origins and the refusals of a quota of the service.
    pub(crate) fn quota(&self, name: &str) -> (u64, u64, u64) {
        let snapshot = self.server.snapshot();
        let quota = snapshot.quotas.iter().find(|quota| quota.name == name);
        let quota = quota.expect("a quota");
        (quota.used, quota.origins, quota.refused)
    }

    /// Creates an operation and sets its needs.
    pub(crate) fn add(&self, name: &str, needs: Needs) -> i32 {
        let handle = self.scheduler.create(name).unwrap();
        self.set(handle, needs);
        handle
    }

    /// Adds a rate to an operation.
    pub(crate) fn set(&self, handle: i32, needs: Needs) {
        let cost = needs.cost * MS;
        let period = i32::try_from(needs.period * MS).unwrap();
        let (criticality, importance) = (needs.criticality, needs.importance);
        let (threads, kind) = (needs.threads, needs.kind);
        self.scheduler
            .set(
                handle,
                criticality,
                cost,
                cost,
                cost,
                period,
                importance,
                0,
                threads,
                kind,
            )
            .unwrap();
    }

    /// Computes a schedule and returns the anomalies.
    pub(crate) fn compute(&self) -> Vec<SchedulingAnomalyBuf> {
        self.scheduler.recompute_scheduling(1, 98).unwrap()
    }

    /// The thread priority, subpriority and level of an operation.
    pub(crate) fn place(&self, name: &str) -> (i32, i32, i32) {
        self.scheduler.entry_point_priority(name).unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.client.shutdown(true).unwrap();
        self.server.shutdown(true).unwrap();
    }
}

/// A client of a service.
pub(crate) struct Client {
    orb: Orb,
    pub(crate) scheduler: Scheduler,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.orb.shutdown(true).unwrap();
    }
}

/// The limits of a quota that one origin may use up.
pub(crate) const fn all_of(total: u64) -> QuotaLimits {
    QuotaLimits {
        total,
        per_origin: total,
    }
}

fn orb() -> Orb {
    let endpoint = ["p", "-ORBListenEndpoints", "iiop://127.0.0.1:0"];
    let mut args = endpoint.map(str::to_owned).to_vec();
    Orb::with_config(OrbConfig::read(&mut args).unwrap()).unwrap()
}

/// The severity and text of each anomaly.
pub(crate) fn texts(anomalies: &[SchedulingAnomalyBuf]) -> Vec<(AnomalySeverity, &str)> {
    let each = anomalies.iter();
    each.map(|it| (it.severity, &*it.description)).collect()
}
