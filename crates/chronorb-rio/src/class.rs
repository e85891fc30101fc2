//! Classes of packets, and the rules that say which packet is of which.
//!
//! The [rules](Rules) of an interface are asked in their order, and the first that matches decides.
//! They are asked for packets of TCP only that are whole and go to an address of the interface: all
//! else is the kernel's, and so is what cannot be read. [`Rules::classify`] says it for drivers
//! that look at frames themselves; the programs that other drivers give to the kernel say the same,
//! and where they cannot read a packet they leave it to the kernel.
//!
//! The number of a VLAN is not looked at: a driver is opened for the interface that has the
//! addresses.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::frame::Headers;

/// Classes that an interface can have.
pub const MAX_CLASSES: usize = 32;

/// Rules that an interface can have, over all of its classes.
pub const MAX_RULES: usize = 128;

/// The greatest differentiated services code point (RFC 2474).
pub const MAX_DSCP: u8 = 63;

/// The greatest priority of a VLAN tag (802.1Q).
pub const MAX_VLAN_PRIORITY: u8 = 7;

/// A class of packets: those that share a queue, a thread and a priority.
///
/// A number below [`MAX_CLASSES`], which says nothing of the priority.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClassId(u8);

impl ClassId {
    /// The class of this number; `None` from [`MAX_CLASSES`] on.
    pub const fn new(number: usize) -> Option<Self> {
        if number < MAX_CLASSES {
            Some(Self(number as u8))
        } else {
            None
        }
    }

    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// TCP packets of one class. What is `None` may be anything.
///
/// Only packets to an address of the interface that are whole are matched: fragments, packets of
/// other protocols, and frames to another hardware address than the interface's go to the kernel
/// whatever the rules say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule {
    /// The class.
    pub class: ClassId,
    /// To this address.
    pub to: Option<IpAddr>,
    /// To one of these ports.
    pub ports: Option<RangeInclusive<u16>>,
    /// With this differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// With this priority in its VLAN tag (802.1Q), 0 to 7; a packet without a tag has none.
    pub vlan_priority: Option<u8>,
}

/// Where TCP packets to the host go that no rule matches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unknown {
    /// To the kernel, as if nobody had looked.
    #[default]
    Kernel,
    /// Into a class, for example that of best effort.
    Class(ClassId),
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// To the kernel, as if nobody had looked.
    Kernel,
    /// To this class.
    Class(ClassId),
}

impl Rule {
    /// All TCP packets to the interface, for this class; further fields make it narrower.
    pub const fn all(class: ClassId) -> Self {
        Self {
            class,
            to: None,
            ports: None,
            dscp: None,
            vlan_priority: None,
        }
    }

    /// Whether any packet can match it.
    ///
    /// # Errors
    /// [`RuleError`], where none can.
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

    /// Whether a whole TCP packet is of this rule. Whether it goes to an address of the interface
    /// is not asked here.
    #[inline]
    fn matches(&self, headers: &Headers, port: u16) -> bool {
        self.to.is_none_or(|to| to == headers.to)
            && self.ports.as_ref().is_none_or(|it| it.contains(&port))
            && self.dscp.is_none_or(|dscp| dscp == headers.dscp)
            && (self.vlan_priority).is_none_or(|it| Some(it) == headers.vlan_priority())
    }
}

/// The rules of an interface, in the order in which they are asked.
#[derive(Clone, Debug)]
pub struct Rules {
    /// With room for all that there can be, so that it never moves.
    rules: Vec<Rule>,
    unknown: Unknown,
}

impl Rules {
    /// None: all packets go to the kernel.
    pub fn new() -> Self {
        Self {
            rules: Vec::with_capacity(MAX_RULES),
            unknown: Unknown::Kernel,
        }
    }

    /// Where a packet with these headers goes, if the interface has this hardware address and these
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

    /// Adds a rule behind all others.
    ///
    /// # Errors
    /// [`RuleError`]; all is as before then.
    pub fn add(&mut self, rule: Rule) -> Result<(), RuleError> {
        rule.check()?;
        if self.rules.len() == MAX_RULES {
            return Err(RuleError::TooMany);
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Takes away the first rule that is the same, and says whether there was one.
    pub fn remove(&mut self, rule: &Rule) -> bool {
        let at = self.rules.iter().position(|it| it == rule);
        at.map(|at| self.rules.remove(at)).is_some()
    }

    /// Takes away all rules of a class.
    pub fn remove_class(&mut self, class: ClassId) {
        self.rules.retain(|rule| rule.class != class);
        if self.unknown == Unknown::Class(class) {
            self.unknown = Unknown::Kernel;
        }
    }

    /// Says where TCP packets to the interface go that no rule matches.
    pub const fn set_unknown(&mut self, unknown: Unknown) {
        self.unknown = unknown;
    }

    /// Where these go.
    pub const fn unknown(&self) -> Unknown {
        self.unknown
    }

    /// The rules, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a rule cannot be.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RuleError {
    /// There is no such code point.
    #[error("the code point (dscp) {0} is not of 0 to {MAX_DSCP}")]
    Dscp(u8),
    /// There is no such priority.
    #[error("the VLAN priority {0} is not of 0 to {MAX_VLAN_PRIORITY}")]
    VlanPriority(u8),
    /// No port is in the range; 0 is none.
    #[error("there is no port from {first} to {last}")]
    Ports {
        /// The first of the range.
        first: u16,
        /// The last.
        last: u16,
    },
    /// The interface has as many as it can have.
    #[error("an interface has at most {MAX_RULES} rules")]
    TooMany,
}

#[cfg(test)]
mod tests;
