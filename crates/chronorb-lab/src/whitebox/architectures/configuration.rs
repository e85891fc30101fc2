//! The architectures, their ORBs of the papers, and their servers.

use chronorb::prelude::*;
use chronorb::rtcorba::Threadpool;
use chronorb_orb::Architecture;
use chronorb_probe::keep_activity_times;

use super::super::WhiteboxPlan;
use super::super::order::{Pass, SubjectName};
use super::super::outcome::{ArchitectureCosts, SideCosts, Subject};
use super::super::server::{Failure, activate, lanes};
use super::super::trial::{CallsByName, KernelTrace, WhiteboxTrial};
use super::CLIENTS;
use crate::bench;
use crate::error::LabError;

/// An architecture of client and server.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// The architecture that both ORBs are configured with.
    pub architecture: Architecture,
    /// The name in texts and tables.
    pub title: &'static str,
    /// The name in charts.
    pub short: &'static str,
    /// The ORB of the papers that had it, if one had.
    pub stands_for: Option<&'static str>,
    /// The server's threads.
    pub pool: ServerPool,
}

/// The threads of the server, which has two servants: one of high priority and one of low.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerPool {
    /// A lane with one thread for each servant.
    Lanes,
    /// One pool with two threads for both.
    Shared,
}

/// The architectures of the papers' ORBs, and Half-Sync/Half-Async.
pub const CONFIGURATIONS: [Configuration; 5] = [
    Configuration::of(Architecture::RealTime, "real-time", "real-time").as_orb("TAO"),
    Configuration::of(Architecture::HalfSync, "Half-Sync/Half-Async", "half-sync"),
    Configuration::of(Architecture::WorkerPool, "worker pool", "worker pool")
        .as_orb("CORBAplus")
        .with_shared_pool(),
    Configuration::of(
        Architecture::LeaderFollowersMuxed,
        "multiplexed Leader/Followers",
        "muxed L/F",
    )
    .as_orb("miniCOOL")
    .with_shared_pool(),
    Configuration::of(Architecture::FilterChain, "filter chain", "filter chain").as_orb("MT-Orbix"),
];

impl Configuration {
    /// An architecture that no ORB of the papers had, with lanes.
    const fn of(architecture: Architecture, title: &'static str, short: &'static str) -> Self {
        Self {
            architecture,
            title,
            short,
            stands_for: None,
            pool: ServerPool::Lanes,
        }
    }

    const fn as_orb(self, orb: &'static str) -> Self {
        Self {
            stands_for: Some(orb),
            ..self
        }
    }

    const fn with_shared_pool(self) -> Self {
        Self {
            pool: ServerPool::Shared,
            ..self
        }
    }

    /// The name for programs.
    pub(crate) const fn name(&self) -> &'static str {
        self.architecture.name()
    }

    /// Counts, times and traces the calls of ten clients.
    pub(in super::super) fn measure(
        self,
        plan: WhiteboxPlan,
        tracing: &mut KernelTrace,
    ) -> Result<impl Iterator<Item = ArchitectureCosts>, LabError> {
        let trial = WhiteboxTrial {
            subject: SubjectName::Architecture(self.name().to_owned()),
            has_server: true,
            clients: CLIENTS,
        };
        let mut costs = trial.count(Pass::Counts, plan.calls_of_each)?;
        let timed = trial.count(Pass::Times, plan.calls_of_each)?;
        for (costs, timed) in costs.iter_mut().flatten().zip(timed.iter().flatten()) {
            costs.times = timed.times;
        }
        let (clients, traced) = (u64::from(CLIENTS), plan.traced_of_each());
        // Each thread that calls is told to begin, and reports its end, by an octet.
        let signals = ["read", "write"].map(|name| (name.to_owned(), (clients, clients)));
        let beside = [signals.into(), CallsByName::new()];
        let system_calls = tracing.trace(&trial, traced, &beside)?;
        let calls = [plan.calls_of_each, traced].map(|each| clients * u64::from(each));
        Ok(SideCosts::of_sides(self, calls, costs, system_calls))
    }

    /// Makes the ORB of a server or a client. All options that matter are fixed, so that the
    /// environment has no influence.
    pub(super) fn orb(&self, pass: Pass) -> Result<Orb, LabError> {
        let fixed = "-ORBRealTime preferred -ORBClientWait block -ORBServerWait block";
        let options = fixed.split(' ').chain(["-ORBArchitecture", self.name()]);
        let orb = bench::start_orb(&options.collect::<Vec<_>>())?;
        if pass == Pass::Times {
            keep_activity_times();
        }
        Ok(orb)
    }

    /// Serves an object of each priority until the parent closes standard input.
    pub(in super::super) fn serve(&self, pass: Pass) -> Result<(), LabError> {
        let orb = self.orb(pass)?;
        let offer = || {
            let pool = match self.pool {
                ServerPool::Lanes => lanes(&orb, &[LOW, HIGH])?,
                ServerPool::Shared => orb.rt().create_threadpool(&Threadpool::new(HIGH, 2))?,
            };
            let offer = |(name, priority)| {
                let policies = [
                    Policy::Threadpool(pool),
                    Policy::PriorityModel(PriorityModel::ServerDeclared, priority),
                ];
                Ok(orb.object_to_string(&activate(&orb, name, &policies)?))
            };
            let objects = [("high", HIGH), ("low", LOW)].into_iter().map(offer);
            objects.collect::<Result<Vec<_>, Failure>>()
        };
        let objects = offer().map_err(LabError::work("offering the objects"))?;
        bench::serve(&orb, &objects)
    }
}

impl Subject for Configuration {
    fn title(&self) -> &'static str {
        self.title
    }

    fn heading(&self) -> String {
        let orb = self.stands_for.map(|orb| format!(" (as {orb})"));
        format!("{}{}", self.title, orb.unwrap_or_default())
    }
}

/// The priority of one client and its servant.
pub(super) const HIGH: Priority = Priority::new(20_000).expect("not negative");
/// The priority of the nine other clients and their servant.
pub(super) const LOW: Priority = Priority::new(10_000).expect("not negative");

#[cfg(test)]
mod tests {
    use super::super::super::published::PUBLISHED;
    use super::*;

    #[test]
    fn every_orb_of_the_papers_has_an_architecture_of_its_own_name() {
        for of in PUBLISHED {
            let mut all = CONFIGURATIONS.iter();
            assert!(all.any(|configuration| configuration.stands_for == Some(of.orb)));
        }
        for (at, of) in CONFIGURATIONS.iter().enumerate() {
            assert!(
                CONFIGURATIONS[..at]
                    .iter()
                    .all(|other| other.name() != of.name())
            );
        }
    }
}
