//! The attacks on services.

use std::io;

use serde::{Deserialize, Serialize};

use super::assailant::Assailant;
use super::{events, names, scheduling};

/// A service that is attacked.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// `ns serve`.
    Names,
    /// `events serve`.
    Events,
    /// `sched serve`.
    Scheduling,
}

impl Service {
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
    /// Iterators that nobody uses.
    Iterators,
    /// Names in a context of a server that answers no connection.
    BlackHole,
    /// Proxies that are never connected.
    UnconnectedProxies,
    /// Consumers at an address that answers no connection.
    UnreachableConsumers,
    /// Consumers at an address of datagrams that nobody reads.
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

use ServiceAttack as A;

/// What an attack does with a number of portions, until it is over or cannot go on.
type Act = fn(&mut Assailant<'_>) -> io::Result<()>;

impl ServiceAttack {
    /// All of them.
    pub const ALL: [Self; 18] = [
        A::LongTexts,
        A::UnboundContexts,
        A::Bindings,
        A::Iterators,
        A::BlackHole,
        A::UnconnectedProxies,
        A::UnreachableConsumers,
        A::DatagramConsumers,
        A::ManyTimers,
        A::ManyMasks,
        A::IncompleteGroups,
        A::EventLoop,
        A::SlowReader,
        A::UnreadStatistics,
        A::SilentObservers,
        A::OperationChains,
        A::OperationSets,
        A::Recomputing,
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
            A::LongTexts => ("long-texts", "long texts"),
            A::UnboundContexts => ("unbound-contexts", "contexts without names"),
            A::Bindings => ("bindings", "bindings"),
            A::Iterators => ("iterators", "iterators"),
            A::BlackHole => ("black-hole", "federation to a black hole"),
            A::UnconnectedProxies => ("unconnected-proxies", "proxies never connected"),
            A::UnreachableConsumers => ("unreachable-consumers", "unreachable consumers"),
            A::DatagramConsumers => ("datagram-consumers", "consumers by datagrams"),
            A::ManyTimers => ("many-timers", "many timers"),
            A::ManyMasks => ("many-masks", "many masks"),
            A::IncompleteGroups => ("incomplete-groups", "groups never complete"),
            A::EventLoop => ("event-loop", "channel as its own consumer"),
            A::SlowReader => ("slow-reader", "large events to a slow reader"),
            A::UnreadStatistics => ("unread-statistics", "statistics never read"),
            A::SilentObservers => ("silent-observers", "observers that do not answer"),
            A::OperationChains => ("operation-chains", "chains of operations"),
            A::OperationSets => ("operation-sets", "sets of all operations"),
            A::Recomputing => ("recomputing", "computing repeatedly"),
        }
    }

    /// The attack with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attack| attack.name() == name)
    }

    /// The service that is attacked.
    #[must_use]
    pub const fn service(self) -> Service {
        match self {
            A::LongTexts | A::UnboundContexts | A::Bindings | A::Iterators | A::BlackHole => {
                Service::Names
            }
            A::UnconnectedProxies
            | A::UnreachableConsumers
            | A::DatagramConsumers
            | A::ManyTimers
            | A::ManyMasks
            | A::IncompleteGroups
            | A::EventLoop
            | A::SlowReader
            | A::UnreadStatistics
            | A::SilentObservers => Service::Events,
            A::OperationChains | A::OperationSets | A::Recomputing => Service::Scheduling,
        }
    }

    pub(super) fn act(self) -> Act {
        match self {
            A::LongTexts => names::long_texts,
            A::UnboundContexts => names::unbound_contexts,
            A::Bindings => names::bindings,
            A::Iterators => names::iterators,
            A::BlackHole => names::black_hole,
            A::UnconnectedProxies => events::unconnected_proxies,
            A::UnreachableConsumers => events::unreachable_consumers,
            A::DatagramConsumers => events::datagram_consumers,
            A::ManyTimers => events::many_timers,
            A::ManyMasks => events::many_masks,
            A::IncompleteGroups => events::incomplete_groups,
            A::EventLoop => events::event_loop,
            A::SlowReader => events::slow_reader,
            A::UnreadStatistics => events::unread_statistics,
            A::SilentObservers => events::silent_observers,
            A::OperationChains => scheduling::operation_chains,
            A::OperationSets => scheduling::operation_sets,
            A::Recomputing => scheduling::recomputing,
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
        for service in Service::ALL {
            assert_eq!(serde_json::json!(service), service.name());
        }
    }
}
