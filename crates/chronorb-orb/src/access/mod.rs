//! Access rules: which peers may connect to this ORB, and to which servers it may connect.
//!
//! The rules are those of omniORB (`serverTransportRule`, `clientTransportRule`), with identities
//! beside addresses. A list of rules is judged once for each connection. A server judges a peer
//! when the connection is accepted, or after the TLS handshake where a rule depends on the
//! certificate. A client judges an address before it connects.

mod parse;

use std::fmt;
use std::net::IpAddr;

use chronorb_rt::Deadline;
use chronorb_transport::{Address, Connection, RemoteAddress, host_addresses, interface_addresses};

pub use parse::RuleError;

/// An ordered list of access rules. The first rule that matches a peer decides. A peer that no rule
/// matches is refused, but an empty list permits everybody.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TransportRules(Vec<TransportRule>);

/// An access rule: conditions, and the permissions of a peer that meets all of them.
///
/// Its text is `CONDITION… ACTION[,ACTION…]`, for example `10.0.0.0/8 tcp,ssl`. Conditions:
///
/// | Condition | Met by |
/// |---|---|
/// | `*` | every peer |
/// | `localhost` | peers on this machine |
/// | `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `fd00::/8`, `10.0.0.1` | addresses; a peer by a Unix-domain socket or shared memory is at 127.0.0.1 and ::1 |
/// | `subject="CN=radar,O=Example"` | peers whose certificate has this subject (RFC 4514) |
/// | `san=dns:radar.example`, `san=ip:…`, `san=uri:…`, `san=email:…` | peers whose certificate has this alternative name |
/// | `uid=1000`, `uid=self`, `gid=1000` | peers by a Unix-domain socket or shared memory with this user or group |
///
/// Actions are the protocols that are permitted: `tcp` (IIOP, by kernel sockets or RIO), `unix`
/// (UIOP, SHMIOP), `ssl` (SSLIOP), the scheme of a protocol, `any`, or `none`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TransportRule {
    conditions: Vec<Condition>,
    pub(crate) action: Action,
    text: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Condition {
    Everybody,
    Localhost,
    /// The bits of an address that are compared.
    Network {
        address: u128,
        mask: u128,
    },
    Subject(String),
    AlternativeName(String),
    User(u32),
    Group(u32),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    Refuse,
    PermitAll,
    /// Permits protocols by scheme.
    Permit(Vec<String>),
}

/// The judgement of a list of rules on a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Judgement {
    Permitted,
    /// The number of the rule that refuses, from 1; 0 where no rule matches.
    Refused(usize),
    /// A rule depends on something that is not known before the peer is connected and has proved
    /// its identity.
    Open,
}

/// The known facts about a peer.
#[derive(Debug)]
struct Candidate<'c> {
    scheme: &'c str,
    address: CandidateAddress,
    /// The user and the group.
    user: Fact<(u32, u32)>,
    names: Fact<Names>,
}

#[derive(Clone, Copy, Debug)]
enum CandidateAddress {
    Host(IpAddr),
    ThisMachine,
    Unknown,
}

/// The names in a certificate.
#[derive(Debug)]
struct Names {
    subject: String,
    alternative: Vec<String>,
}

/// A property that a peer has, does not have, or has not shown yet.
#[derive(Debug)]
enum Fact<T> {
    Known(T),
    Absent,
    Pending,
}

impl<T> Fact<T> {
    /// Whether it meets a condition; `None` while that is not known.
    fn meets(&self, condition: impl FnOnce(&T) -> bool) -> Option<bool> {
        match self {
            Self::Known(value) => Some(condition(value)),
            Self::Absent => Some(false),
            Self::Pending => None,
        }
    }
}

impl TransportRules {
    /// Adds a rule after the others.
    pub fn push(&mut self, rule: TransportRule) {
        self.0.push(rule);
    }

    /// Removes all rules.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether there are no rules, so that everybody is permitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules in order.
    pub fn iter(&self) -> impl Iterator<Item = &TransportRule> {
        self.0.iter()
    }

    /// Judges the peer of a connection. The judgement is final once the connection is established.
    pub(crate) fn judge(&self, connection: &dyn Connection) -> Judgement {
        if self.0.is_empty() {
            return Judgement::Permitted;
        }
        let scheme = connection.remote().scheme;
        self.judge_as(scheme, connection)
    }

    /// Judges the peer of a connection of a protocol that is known already.
    pub(crate) fn judge_as(&self, scheme: &str, connection: &dyn Connection) -> Judgement {
        let (address, user) = match connection.remote().address {
            RemoteAddress::Host(host) => {
                let ip = host.ip().to_canonical();
                (CandidateAddress::Host(ip), Fact::Absent)
            }
            RemoteAddress::Process(process) => (
                CandidateAddress::ThisMachine,
                Fact::Known((process.uid, process.gid)),
            ),
            RemoteAddress::Unknown => (CandidateAddress::Unknown, Fact::Absent),
        };
        let needs_names = self.0.iter().any(TransportRule::needs_names);
        let names = match (needs_names, connection.is_established()) {
            (false, _) => Fact::Absent,
            (true, true) => names_of(connection),
            (true, false) => Fact::Pending,
        };
        self.decide(&Candidate {
            scheme,
            address,
            user,
            names,
        })
    }

    /// Judges an address before a connection to it is made. A name is permitted where all of its
    /// addresses are, and is judged again by the address that it led to.
    pub(crate) fn judge_address(
        &self,
        scheme: &str,
        address: &Address,
        deadline: Deadline,
    ) -> Judgement {
        let at = |address| {
            let candidate = Candidate {
                scheme,
                address,
                user: match address {
                    CandidateAddress::ThisMachine => Fact::Pending,
                    _ => Fact::Absent,
                },
                names: if WITHOUT_CERTIFICATES.contains(&scheme) {
                    Fact::Absent
                } else {
                    Fact::Pending
                },
            };
            self.decide(&candidate)
        };
        if self.0.is_empty() {
            return Judgement::Permitted;
        }
        let Some((host, _)) = address.as_host() else {
            return at(CandidateAddress::ThisMachine);
        };
        if let Ok(literal) = host.parse::<IpAddr>() {
            return at(CandidateAddress::Host(literal.to_canonical()));
        }
        // Where the name cannot be resolved, connecting fails by itself.
        let found = host_addresses(host, deadline).unwrap_or_default();
        let judged = found
            .iter()
            .map(|found| at(CandidateAddress::Host(found.ip().to_canonical())));
        judged
            .into_iter()
            .find(|judgement| matches!(judgement, Judgement::Refused(_)))
            .unwrap_or(Judgement::Open)
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Judgement {
        for (index, rule) in self.0.iter().enumerate() {
            match rule.matches(candidate) {
                Some(false) => {}
                Some(true) if rule.action.permits(candidate.scheme) => return Judgement::Permitted,
                Some(true) => return Judgement::Refused(index + 1),
                None => return Judgement::Open,
            }
        }
        if self.0.is_empty() {
            Judgement::Permitted
        } else {
            Judgement::Refused(0)
        }
    }
}

impl FromIterator<TransportRule> for TransportRules {
    fn from_iter<I: IntoIterator<Item = TransportRule>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}

impl TransportRule {
    /// Whether a peer meets all conditions; `None` while that is not known.
    fn matches(&self, candidate: &Candidate<'_>) -> Option<bool> {
        let mut matches = Some(true);
        for condition in &self.conditions {
            match condition.is_met(candidate) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => matches = None,
            }
        }
        matches
    }

    fn needs_names(&self) -> bool {
        let of_names = |condition: &Condition| {
            matches!(
                condition,
                Condition::Subject(_) | Condition::AlternativeName(_)
            )
        };
        self.conditions.iter().any(of_names)
    }

    /// Whether it names the user of a peer.
    pub(crate) fn names_user(&self) -> bool {
        let of_user = |condition: &Condition| matches!(condition, Condition::User(_));
        self.conditions.iter().any(of_user)
    }

    /// The schemes in the rules, which an ORB must know.
    pub(crate) fn schemes(&self) -> &[String] {
        match &self.action {
            Action::Permit(schemes) => schemes,
            Action::Refuse | Action::PermitAll => &[],
        }
    }
}

/// The text that it was made of.
impl fmt::Display for TransportRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    fn is_met(&self, candidate: &Candidate<'_>) -> Option<bool> {
        match self {
            Self::Everybody => Some(true),
            Self::Localhost => Some(match candidate.address {
                CandidateAddress::Host(address) => address.is_loopback() || is_own_address(address),
                CandidateAddress::ThisMachine => true,
                CandidateAddress::Unknown => false,
            }),
            Self::Network { address, mask } => {
                let covers = |ip: IpAddr| bits(ip) & mask == *address;
                Some(match candidate.address {
                    CandidateAddress::Host(ip) => covers(ip),
                    CandidateAddress::ThisMachine => {
                        covers([127, 0, 0, 1].into())
                            || covers(std::net::Ipv6Addr::LOCALHOST.into())
                    }
                    CandidateAddress::Unknown => false,
                })
            }
            Self::Subject(subject) => candidate.names.meets(|names| names.subject == *subject),
            Self::AlternativeName(name) => candidate
                .names
                .meets(|names| names.alternative.contains(name)),
            Self::User(user) => candidate.user.meets(|(uid, _)| uid == user),
            Self::Group(group) => candidate.user.meets(|(_, gid)| gid == group),
        }
    }
}

impl Action {
    pub(crate) fn permits(&self, scheme: &str) -> bool {
        match self {
            Self::Refuse => false,
            Self::PermitAll => true,
            Self::Permit(schemes) => schemes.iter().any(|permitted| permitted == scheme),
        }
    }
}

/// The names in the certificate of an established connection.
fn names_of(connection: &dyn Connection) -> Fact<Names> {
    #[cfg(feature = "ssliop")]
    if let Some(certificate) = connection.peer_certificate()
        && let Some(names) = chronorb_transport::tls::CertificateNames::read(&certificate)
    {
        return Fact::Known(Names {
            subject: names.subject,
            alternative: names.alternative,
        });
    }
    let _ = connection;
    Fact::Absent
}

fn is_own_address(address: IpAddr) -> bool {
    interface_addresses()
        .into_iter()
        .any(|own| own.to_canonical() == address)
}

/// Protocols of this ORB by which no peer has a certificate.
const WITHOUT_CERTIFICATES: [&str; 6] = ["iiop", "riop", "uiop", "shmiop", "diop", "miop"];

/// The bits of an address. Those of IPv4 are mapped into IPv6.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests;
