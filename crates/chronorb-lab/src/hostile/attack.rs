//! The attacks, and what each of them sends.

use serde::{Deserialize, Serialize};

use super::messages;
use super::plan::Plan;

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
    /// Requests in fragments that never end.
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

    /// Its name on the command line and in figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IdleConnections => "idle-connections",
            Self::HalfHeaders => "half-headers",
            Self::UnfinishedRequests => "unfinished-requests",
            Self::GreatRequests => "great-requests",
            Self::MalformedMessages => "malformed-messages",
            Self::EndlessFragments => "endless-fragments",
            Self::UnreadReplies => "unread-replies",
            Self::OwnAlias => "own-alias",
            Self::NestedAnys => "nested-anys",
            Self::NestedStructs => "nested-structs",
            Self::ValueIdentifiers => "value-identifiers",
            Self::SharedNames => "shared-names",
            Self::UnionArms => "union-arms",
            Self::Profiles => "profiles",
            Self::References => "references",
        }
    }

    /// The name of the attack, in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::IdleConnections => "idle connections",
            Self::HalfHeaders => "half headers",
            Self::UnfinishedRequests => "unfinished requests",
            Self::GreatRequests => "great requests",
            Self::MalformedMessages => "malformed messages",
            Self::EndlessFragments => "endless fragments",
            Self::UnreadReplies => "replies never read",
            Self::OwnAlias => "alias of itself",
            Self::NestedAnys => "nested anys",
            Self::NestedStructs => "nested structs",
            Self::ValueIdentifiers => "identifiers of values",
            Self::SharedNames => "shared names in type codes",
            Self::UnionArms => "unions with many arms",
            Self::Profiles => "reference with many profiles",
            Self::References => "many references",
        }
    }

    /// The attack with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attack| attack.name() == name)
    }

    /// The behaviour of its attackers towards the object with this key.
    pub(super) fn conduct(self, key: &[u8], plan: &Plan) -> Conduct {
        let size = |full| plan.size(full);
        let hold = |connections, opening| Conduct::Hold {
            connections: size(connections),
            opening,
        };
        match self {
            Self::IdleConnections => hold(CONNECTIONS, Vec::new()),
            Self::HalfHeaders => hold(CONNECTIONS, messages::half_header()),
            Self::UnfinishedRequests => {
                hold(HOLDERS, messages::unfinished(key, size(GREATEST_BODY)))
            }
            Self::GreatRequests => Conduct::Call(messages::store(key, size(GREATEST_BODY))),
            Self::MalformedMessages => Conduct::Malformed,
            Self::EndlessFragments => {
                let (first, next) = messages::endless(key, size(FRAGMENT));
                Conduct::Stream(first, next)
            }
            Self::UnreadReplies => {
                let request = messages::fetch(key, size(GREAT_REPLY) as u32);
                hold(UNREAD, request.repeat(UNREAD_EACH))
            }
            Self::OwnAlias => Conduct::Call(messages::own_alias(key)),
            Self::NestedAnys => {
                let (levels, aliases) = ANYS;
                Conduct::Call(messages::nested_anys(key, levels, size(aliases)))
            }
            Self::NestedStructs => Conduct::Call(messages::nested_structs(key, size(STRUCTS))),
            Self::ValueIdentifiers => {
                let [ids, len, values] = IDS.map(size);
                Conduct::Call(messages::value_ids(key, ids, len, values))
            }
            Self::SharedNames => {
                let (len, members) = NAMES;
                Conduct::Call(messages::shared_names(key, size(len), size(members)))
            }
            Self::UnionArms => {
                let (arms, values) = UNIONS;
                Conduct::Call(messages::unions(key, size(arms), size(values)))
            }
            Self::Profiles => Conduct::Call(messages::profiles(key, size(PROFILES))),
            Self::References => Conduct::Call(messages::references(key, size(REFERENCES))),
        }
    }
}

/// More than a server takes by default.
pub(super) const CONNECTIONS: usize = 1_100;
/// Connections that hold a great request each; together they are beyond what a lane buffers.
const HOLDERS: usize = 25;
/// A little less than the greatest message.
const GREATEST_BODY: usize = (16 << 20) - 4096;
const FRAGMENT: usize = 64 * 1024;
const UNREAD: usize = 50;
const UNREAD_EACH: usize = 16;
const GREAT_REPLY: usize = 1 << 20;
/// Levels, and aliases of each.
const ANYS: (usize, usize) = (60, 60);
const STRUCTS: usize = 60;
/// Identifiers, octets of the unknown one, and values.
const IDS: [usize; 3] = [1_000, 1_000, 5_000];
/// Octets of the identifier, and members that have it.
const NAMES: (usize, usize) = (64 * 1024, 4_000);
/// Arms, and values.
const UNIONS: (usize, usize) = (9_000, 100_000);
const PROFILES: usize = 60_000;
const REFERENCES: usize = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

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
        for plan in [Plan::full(), Plan::tiny()] {
            for attack in Attack::ALL {
                let message = match attack.conduct(b"key", &plan) {
                    Conduct::Call(message) => message,
                    Conduct::Hold { .. } | Conduct::Stream(..) | Conduct::Malformed => continue,
                };
                assert!(message.len() <= 16 << 20, "{attack:?}: {}", message.len());
            }
        }
    }
}
