//! The attacks, and what each of them sends.

use serde::{Deserialize, Serialize};

use super::messages;
use super::plan::HostilePlan;

/// An attack.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attack {
    /// Connections on which nothing is sent.
    IdleConnections,
    /// Connections on which half the header of a message is sent.
    HalfHeaders,
    /// Connections with a great request of which the last octet is held back.
    UnfinishedRequests,
    /// Requests of nearly the greatest size, one after the other.
    GreatRequests,
    /// Messages whose header is wrong, on new connections again and again.
    MalformedMessages,
    /// Requests whose fragments never include the last one.
    EndlessFragments,
    /// Requests for great replies that are never read.
    UnreadReplies,
    /// An any whose type is an alias of itself.
    OwnAlias,
    /// Anys within anys, each behind a chain of aliases.
    NestedAnys,
    /// Structs within structs, each of which takes a lot of the stack.
    NestedStructs,
    /// Values with thousands of unknown identifiers.
    ValueIdentifiers,
    /// Type codes that refer again and again to one with a long identifier.
    SharedNames,
    /// Many unions of one octet with thousands of arms.
    UnionArms,
    /// References with tens of thousands of profiles.
    Profiles,
    /// Tens of thousands of references.
    References,
}

/// The behaviour of an attacker.
pub(super) enum Conduct {
    /// Opens so many connections, sends this on each, holds them, and opens those again that the
    /// server closes.
    Hold {
        connections: usize,
        opening: Vec<u8>,
    },
    /// Each of its threads sends this request again and again and waits for each reply.
    Call(Vec<u8>),
    /// Each of its threads sends the first message and then the second again and again.
    Stream(Vec<u8>, Vec<u8>),
    /// Each of its threads sends malformed messages on one connection after the other.
    Malformed,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::IdleConnections,
        Self::HalfHeaders,
        Self::UnfinishedRequests,
        Self::GreatRequests,
        Self::MalformedMessages,
        Self::EndlessFragments,
        Self::UnreadReplies,
        Self::OwnAlias,
        Self::NestedAnys,
        Self::NestedStructs,
        Self::ValueIdentifiers,
        Self::SharedNames,
        Self::UnionArms,
        Self::Profiles,
        Self::References,
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
            Self::IdleConnections => ("idle-connections", "idle connections"),
            Self::HalfHeaders => ("half-headers", "half headers"),
            Self::UnfinishedRequests => ("unfinished-requests", "unfinished requests"),
            Self::GreatRequests => ("great-requests", "great requests"),
            Self::MalformedMessages => ("malformed-messages", "malformed messages"),
            Self::EndlessFragments => ("endless-fragments", "endless fragments"),
            Self::UnreadReplies => ("unread-replies", "replies never read"),
            Self::OwnAlias => ("own-alias", "alias of itself"),
            Self::NestedAnys => ("nested-anys", "nested anys"),
            Self::NestedStructs => ("nested-structs", "nested structs"),
            Self::ValueIdentifiers => ("value-identifiers", "identifiers of values"),
            Self::SharedNames => ("shared-names", "shared names in type codes"),
            Self::UnionArms => ("union-arms", "unions with many arms"),
            Self::Profiles => ("profiles", "reference with many profiles"),
            Self::References => ("references", "many references"),
        }
    }

    /// The attack with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attack| attack.name() == name)
    }

    /// Returns the behaviour of the attackers towards the object with this key.
    pub(super) fn conduct(self, key: &[u8], plan: &HostilePlan) -> Conduct {
        let size = |full| plan.size(full);
        let hold = |connections, opening| Conduct::Hold {
            connections: size(connections),
            opening,
        };
        match self {
            Self::IdleConnections => hold(CONNECTIONS, Vec::new()),
            Self::HalfHeaders => hold(CONNECTIONS, messages::half_header()),
            // Together these requests are beyond what a lane buffers.
            Self::UnfinishedRequests => hold(25, messages::unfinished(key, size(GREATEST_BODY))),
            Self::GreatRequests => Conduct::Call(messages::store(key, size(GREATEST_BODY))),
            Self::MalformedMessages => Conduct::Malformed,
            Self::EndlessFragments => {
                let (first, next) = messages::endless(key, size(64 << 10));
                Conduct::Stream(first, next)
            }
            Self::UnreadReplies => {
                let request = messages::fetch(key, size(1 << 20) as u32);
                hold(50, request.repeat(16))
            }
            Self::OwnAlias => Conduct::Call(messages::own_alias(key)),
            Self::NestedAnys => {
                let (levels, aliases) = (60, size(60));
                Conduct::Call(messages::nested_anys(key, levels, aliases))
            }
            Self::NestedStructs => Conduct::Call(messages::nested_structs(key, size(60))),
            Self::ValueIdentifiers => {
                let [ids, len, values] = [1_000, 1_000, 5_000].map(size);
                Conduct::Call(messages::value_ids(key, ids, len, values))
            }
            Self::SharedNames => {
                let (len, members) = (size(64 << 10), size(4_000));
                Conduct::Call(messages::shared_names(key, len, members))
            }
            Self::UnionArms => {
                let (arms, values) = (size(9_000), size(100_000));
                Conduct::Call(messages::unions(key, arms, values))
            }
            Self::Profiles => Conduct::Call(messages::profiles(key, size(60_000))),
            Self::References => Conduct::Call(messages::references(key, size(60_000))),
        }
    }
}

/// More connections than a server takes by default.
pub(super) const CONNECTIONS: usize = 1_100;
/// A little less than the greatest message.
const GREATEST_BODY: usize = (16 << 20) - 4096;

#[cfg(test)]
mod tests {
    use super::super::Hostile;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn names_are_those_of_the_figures() {
        for attack in Attack::ALL {
            assert_eq!(Attack::named(attack.name()), Some(attack));
            assert_eq!(serde_json::json!(attack), attack.name());
        }
        assert_eq!(Attack::named("none"), None);
    }

    #[test]
    fn messages_are_within_what_a_server_takes() {
        for plan in [Hostile::full(), HostilePlan::tiny()] {
            for attack in Attack::ALL {
                if let Conduct::Call(message) = attack.conduct(b"key", &plan) {
                    assert!(message.len() <= 16 << 20, "{attack:?}: {}", message.len());
                }
            }
        }
    }
}
