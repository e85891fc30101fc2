//! Classes of packets, and the rules that say which packet is of which.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Classes that an interface can have.
pub const MAX_CLASSES: usize = 32;

/// Rules that an interface can have, over all of its classes.
pub const MAX_RULES: usize = 128;

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
/// Only packets to an address of the interface that are whole are matched: fragments, and packets of other protocols, go
/// to the kernel whatever the rules say.
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
