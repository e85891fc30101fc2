//! The attacks on services.

use std::io;

use serde::{Deserialize, Serialize};

use super::assailant::Assailant;
use super::{events, names, scheduling};

/// A service that is attacked.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackedService {
    /// `ns serve`.
    Names,
    /// `events serve`.
    Events,
    /// `sched serve`.
    Scheduling,
}

impl AttackedService {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Names, Self::Events, Self::Scheduling];

    /// The name on the command line and in figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Events => "events",
            Self::Scheduling => "scheduling",
        }
    }

    /// The command that serves it.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Names => "ns serve",
            Self::Events => "events serve",
            Self::Scheduling => "sched serve",
        }
    }
}

/// An attack on a service.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceAttack {
    /// Texts of a MiB that are no names.
    LongTexts,
    /// Contexts that are bound to no name.
    UnboundContexts,
    /// Bindings of the root context.
    Bindings,
    /// Iterators that are never used.
    Iterators,
    /// Names in a context of a server that answers no connection.
    BlackHole,
    /// Proxies that are never connected.
    UnconnectedProxies,
    /// Consumers at an address that answers no connection.
    UnreachableConsumers,
    /// Consumers at an address of datagrams that are never read.
    DatagramConsumers,
    /// Subscriptions of many short timers.
    ManyTimers,
    /// Subscriptions of many masks, and sets of many events.
    ManyMasks,
    /// Groups that keep large events, and never complete.
    IncompleteGroups,
    /// A channel that is its own consumer.
    EventLoop,
    /// Large events for a consumer that reads slowly.
    SlowReader,
    /// Statistics that are never read.
    UnreadStatistics,
    /// Observers that do not answer, and subscriptions that they are told.
    SilentObservers,
    /// A chain of operations with many rates.
    OperationChains,
    /// Answers with all operations, again and again.
    OperationSets,
    /// Schedules that are computed again and again.
    Recomputing,
}

/// An attack, which goes on until it is over or the server refuses more.
type Act = fn(&mut Assailant<'_>) -> io::Result<()>;

impl ServiceAttack {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::LongTexts,
        Self::UnboundContexts,
        Self::Bindings,
        Self::Iterators,
        Self::BlackHole,
        Self::UnconnectedProxies,
        Self::UnreachableConsumers,
        Self::DatagramConsumers,
        Self::ManyTimers,
        Self::ManyMasks,
        Self::IncompleteGroups,
        Self::EventLoop,
        Self::SlowReader,
        Self::UnreadStatistics,
        Self::SilentObservers,
        Self::OperationChains,
        Self::OperationSets,
        Self::Recomputing,
    ];

    /// The name on the command line and in figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// The name of the attack, in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::LongTexts => ("long-texts", "long texts"),
            Self::UnboundContexts => ("unbound-contexts", "contexts without names"),
            Self::Bindings => ("bindings", "bindings"),
            Self::Iterators => ("iterators", "iterators"),
            Self::BlackHole => ("black-hole", "federation to a black hole"),
            Self::UnconnectedProxies => ("unconnected-proxies", "proxies never connected"),
            Self::UnreachableConsumers => ("unreachable-consumers", "unreachable consumers"),
            Self::DatagramConsumers => ("datagram-consumers", "consumers by datagrams"),
            Self::ManyTimers => ("many-timers", "many timers"),
            Self::ManyMasks => ("many-masks", "many masks"),
            Self::IncompleteGroups => ("incomplete-groups", "groups never complete"),
            Self::EventLoop => ("event-loop", "channel as its own consumer"),
            Self::SlowReader => ("slow-reader", "large events to a slow reader"),
            Self::UnreadStatistics => ("unread-statistics", "statistics never read"),
            Self::SilentObservers => ("silent-observers", "observers that do not answer"),
            Self::OperationChains => ("operation-chains", "chains of operations"),
            Self::OperationSets => ("operation-sets", "sets of all operations"),
            Self::Recomputing => ("recomputing", "computing repeatedly"),
        }
    }

    /// The attack with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attack| attack.name() == name)
    }

    /// The service that is attacked.
    #[must_use]
    pub const fn service(self) -> AttackedService {
        match self {
            Self::LongTexts
            | Self::UnboundContexts
            | Self::Bindings
            | Self::Iterators
            | Self::BlackHole => AttackedService::Names,
            Self::UnconnectedProxies
            | Self::UnreachableConsumers
            | Self::DatagramConsumers
            | Self::ManyTimers
            | Self::ManyMasks
            | Self::IncompleteGroups
            | Self::EventLoop
            | Self::SlowReader
            | Self::UnreadStatistics
            | Self::SilentObservers => AttackedService::Events,
            Self::OperationChains | Self::OperationSets | Self::Recomputing => {
                AttackedService::Scheduling
            }
        }
    }

    pub(super) fn act(self) -> Act {
        match self {
            Self::LongTexts => names::long_texts,
            Self::UnboundContexts => names::unbound_contexts,
            Self::Bindings => names::bindings,
            Self::Iterators => names::iterators,
            Self::BlackHole => names::black_hole,
            Self::UnconnectedProxies => events::unconnected_proxies,
            Self::UnreachableConsumers => events::unreachable_consumers,
            Self::DatagramConsumers => events::datagram_consumers,
            Self::ManyTimers => events::many_timers,
            Self::ManyMasks => events::many_masks,
            Self::IncompleteGroups => events::incomplete_groups,
            Self::EventLoop => events::event_loop,
            Self::SlowReader => events::slow_reader,
            Self::UnreadStatistics => events::unread_statistics,
            Self::SilentObservers => events::silent_observers,
            Self::OperationChains => scheduling::operation_chains,
            Self::OperationSets => scheduling::operation_sets,
            Self::Recomputing => scheduling::recomputing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_figures() {
        for attack in ServiceAttack::ALL {
            assert_eq!(ServiceAttack::named(attack.name()), Some(attack));
            assert_eq!(serde_json::json!(attack), attack.name());
        }
        assert_eq!(ServiceAttack::named("none"), None);
        for service in AttackedService::ALL {
            assert_eq!(serde_json::json!(service), service.name());
        }
    }
}
