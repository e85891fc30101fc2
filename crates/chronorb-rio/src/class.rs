//! Classes of packets, and the rules that classify packets.
//!
//! The [rules](Rules) of an interface are evaluated in order, and the first match decides. They
//! apply only to whole TCP packets for an address of the interface. All other packets, and those
//! that cannot be parsed, go to the kernel. [`Rules::classify`] implements the rules for drivers
//! that inspect frames themselves. Other drivers give the kernel programs with the same semantics,
//! which also leave a packet that they cannot parse to the kernel.
//!
//! The VLAN number is not inspected: a driver is opened for the interface that has the addresses.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::frame::Headers;

/// The maximum number of classes of an interface.
pub const MAX_CLASSES: usize = 32;

/// The maximum number of rules of an interface, over all of its classes.
pub const MAX_RULES: usize = 128;

/// The greatest differentiated services code point (RFC 2474).
pub const MAX_DSCP: u8 = 63;

/// The greatest priority of a VLAN tag (802.1Q).
pub const MAX_VLAN_PRIORITY: u8 = 7;

/// A class of packets, which share a queue, a thread and a priority.
///
/// Its number is below [`MAX_CLASSES`] and implies no priority.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClassId(u8);

impl ClassId {
    /// Creates the class with this number. Returns `None` if it is [`MAX_CLASSES`] or more.
    pub const fn new(number: usize) -> Option<Self> {
        if number < MAX_CLASSES {
            Some(Self(number as u8))
        } else {
            None
        }
    }

    /// Returns the number of the class.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A rule that selects TCP packets for a class. A field that is `None` matches anything.
///
/// A rule matches only whole packets for an address of the interface. Fragments, packets of other
/// protocols, and frames for another hardware address always go to the kernel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule {
    /// The class of matching packets.
    pub class: ClassId,
    /// The destination address.
    pub to: Option<IpAddr>,
    /// The destination ports.
    pub ports: Option<RangeInclusive<u16>>,
    /// The differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// The priority of the VLAN tag (802.1Q), 0 to 7. A packet without a tag has none.
    pub vlan_priority: Option<u8>,
}

/// The destination of TCP packets to the host that no rule matches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unknown {
    /// The kernel, as without RIO.
    #[default]
    Kernel,
    /// A class, for example that of best effort.
    Class(ClassId),
}

/// The destination of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The kernel, as without RIO.
    Kernel,
    /// This class.
    Class(ClassId),
}

impl Rule {
    /// Creates a rule that matches all TCP packets to the interface. Set further fields to narrow
    /// it.
    pub const fn all(class: ClassId) -> Self {
        Self {
            class,
            to: None,
            ports: None,
            dscp: None,
            vlan_priority: None,
        }
    }

    /// Checks that the rule can match some packet.
    ///
    /// # Errors
    /// [`RuleError`] if it cannot.
    pub fn check(&self) -> Result<(), RuleError> {
        if let Some(dscp) = self.dscp.filter(|dscp| *dscp > MAX_DSCP) {
            return Err(RuleError::Dscp(dscp));
        }
        if let Some(priority) = self.vlan_priority.filter(|it| *it > MAX_VLAN_PRIORITY) {
            return Err(RuleError::VlanPriority(priority));
        }
        match &self.ports {
            Some(ports) if ports.is_empty() || *ports.end() == 0 => Err(RuleError::Ports {
                first: *ports.start(),
                last: *ports.end(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns whether the rule matches a whole TCP packet. The caller has already checked that it
    /// is for an address of the interface.
    #[inline]
    fn matches(&self, headers: &Headers, port: u16) -> bool {
        self.to.is_none_or(|to| to == headers.to)
            && self.ports.as_ref().is_none_or(|it| it.contains(&port))
            && self.dscp.is_none_or(|dscp| dscp == headers.dscp)
            && (self.vlan_priority).is_none_or(|it| Some(it) == headers.vlan_priority())
    }
}

/// The rules of an interface, in order of evaluation.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Allocated with its final capacity, so that it never reallocates.
    rules: Vec<Rule>,
    unknown: Unknown,
}

impl Rules {
    /// Creates an empty list, which leaves all packets to the kernel.
    pub fn new() -> Self {
        Self {
            rules: Vec::with_capacity(MAX_RULES),
            unknown: Unknown::Kernel,
        }
    }

    /// Classifies a packet by its headers, for an interface with this hardware address and these
    /// addresses.
    #[inline]
    pub fn classify(&self, headers: &Headers, hardware: [u8; 6], own: &[(IpAddr, u8)]) -> Verdict {
        let Some(tcp) = headers.tcp else {
            return Verdict::Kernel;
        };
        if headers.ethernet.to != hardware {
            return Verdict::Kernel;
        }
        if !own.iter().any(|(address, _)| *address == headers.to) {
            return Verdict::Kernel;
        }
        let found = (self.rules.iter()).find(|rule| rule.matches(headers, tcp.to));
        match (found, self.unknown) {
            (Some(Rule { class, .. }), _) => Verdict::Class(*class),
            (None, Unknown::Class(class)) => Verdict::Class(class),
            (None, Unknown::Kernel) => Verdict::Kernel,
        }
    }

    /// Appends a rule.
    ///
    /// # Errors
    /// [`RuleError`]; the list is unchanged then.
    pub fn add(&mut self, rule: Rule) -> Result<(), RuleError> {
        rule.check()?;
        if self.rules.len() == MAX_RULES {
            return Err(RuleError::TooMany);
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Removes the first equal rule. Returns whether there was one.
    pub fn remove(&mut self, rule: &Rule) -> bool {
        let at = self.rules.iter().position(|it| it == rule);
        at.map(|at| self.rules.remove(at)).is_some()
    }

    /// Removes all rules of a class.
    pub fn remove_class(&mut self, class: ClassId) {
        self.rules.retain(|rule| rule.class != class);
        if self.unknown == Unknown::Class(class) {
            self.unknown = Unknown::Kernel;
        }
    }

    /// Sets the destination of TCP packets to the interface that no rule matches.
    pub const fn set_unknown(&mut self, unknown: Unknown) {
        self.unknown = unknown;
    }

    /// Returns the destination of packets that no rule matches.
    pub const fn unknown(&self) -> Unknown {
        self.unknown
    }

    /// Returns the rules in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

/// An error of a rule.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RuleError {
    /// The code point is out of range.
    #[error("the code point (dscp) {0} is not of 0 to {MAX_DSCP}")]
    Dscp(u8),
    /// The VLAN priority is out of range.
    #[error("the VLAN priority {0} is not of 0 to {MAX_VLAN_PRIORITY}")]
    VlanPriority(u8),
    /// The range of ports is empty, or contains only port 0.
    #[error("there is no port from {first} to {last}")]
    Ports {
        /// The first port of the range.
        first: u16,
        /// The last port of the range.
        last: u16,
    },
    /// The interface has the maximum number of rules.
    #[error("an interface has at most {MAX_RULES} rules")]
    TooMany,
}

#[cfg(test)]
mod tests;
