//! The rules of an interface: which class has what, in the order in which they came.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::DriverError;
use crate::class::{ClassId, MAX_CLASSES, MAX_RULES, Rule, Unknown};

/// The classes that are open, and their rules. Where several rules match, the oldest wins.
#[derive(Clone, Debug)]
pub(super) struct Table {
    open: [bool; MAX_CLASSES],
    rules: Vec<Rule>,
    unknown: Unknown,
}

impl Table {
    /// No class is open.
    pub(super) fn new() -> Self {
        Self {
            open: [false; MAX_CLASSES],
            rules: Vec::with_capacity(MAX_RULES),
            unknown: Unknown::Kernel,
        }
    }

    /// Opens a class; `rules` become its own, whichever class they name.
    pub(super) fn open(&mut self, class: ClassId, rules: &[Rule]) -> Result<(), DriverError> {
        if self.is_open(class) {
            return Err(DriverError::Open(class));
        }
        if self.rules.len() + rules.len() > MAX_RULES {
            return Err(DriverError::TooManyRules);
        }
        self.open[class.index()] = true;
        let own = rules.iter().cloned().map(|rule| Rule { class, ..rule });
        self.rules.extend(own);
        Ok(())
    }

    /// Closes a class, and forgets its rules.
    pub(super) fn close(&mut self, class: ClassId) {
        self.open[class.index()] = false;
        self.rules.retain(|rule| rule.class != class);
    }

    pub(super) fn is_open(&self, class: ClassId) -> bool {
        self.open[class.index()]
    }

    /// Adds a rule of an open class.
    pub(super) fn add(&mut self, rule: &Rule) -> Result<(), DriverError> {
        if !self.is_open(rule.class) {
            return Err(DriverError::Closed(rule.class));
        }
        if self.rules.len() == MAX_RULES {
            return Err(DriverError::TooManyRules);
        }
        self.rules.push(rule.clone());
        Ok(())
    }

    /// Takes the youngest rule like this one away.
    pub(super) fn remove(&mut self, rule: &Rule) {
        if let Some(place) = self.rules.iter().rposition(|there| there == rule) {
            self.rules.remove(place);
        }
    }

    pub(super) fn set_unknown(&mut self, unknown: Unknown) {
        self.unknown = unknown;
    }

    /// The class of a frame to a host that has these addresses; `None` if it is for the kernel.
    pub(super) fn classify(&self, frame: &[u8], addresses: &[(IpAddr, u8)]) -> Option<ClassId> {
        let packet = Packet::of_frame(frame)?;
        if !addresses.iter().any(|(address, _)| *address == packet.to) {
            return None;
        }
        let rule = self.rules.iter().find(|rule| packet.is_matched_by(rule));
        match (rule, self.unknown) {
            (Some(rule), _) => Some(rule.class),
            (None, Unknown::Class(class)) if self.is_open(class) => Some(class),
            (None, _) => None,
        }
    }
}

/// What rules look at, of a TCP packet that is no fragment.
struct Packet {
    to: IpAddr,
    port: u16,
    dscp: u8,
    vlan_priority: Option<u8>,
}

impl Packet {
    fn of_frame(frame: &[u8]) -> Option<Self> {
        let mut kind = u16_at(frame, 12)?;
        let mut packet = frame.get(14..)?;
        let mut vlan_priority = None;
        if kind == VLAN {
            vlan_priority = Some(*packet.first()? >> 5);
            kind = u16_at(packet, 2)?;
            packet = packet.get(4..)?;
        }
        let (to, traffic, segment): (IpAddr, u8, _) = match kind {
            IPV4 => {
                let header = packet.first_chunk::<20>()?;
                let len = usize::from(header[0] & 0xf) * 4;
                let is_fragment = u16_at(header, 6)? & 0x3fff != 0;
                if header[0] >> 4 != 4 || len < 20 || is_fragment || header[9] != TCP {
                    return None;
                }
                let to: [u8; 4] = *header[16..].first_chunk()?;
                (Ipv4Addr::from(to).into(), header[1], packet.get(len..)?)
            }
            IPV6 => {
                let header = packet.first_chunk::<40>()?;
                if header[0] >> 4 != 6 || header[6] != TCP {
                    return None;
                }
                let to: [u8; 16] = *header[24..].first_chunk()?;
                let traffic = header[0] << 4 | header[1] >> 4;
                (Ipv6Addr::from(to).into(), traffic, packet.get(40..)?)
            }
            _ => return None,
        };
        Some(Self {
            to,
            port: u16_at(segment, 2)?,
            dscp: traffic >> 2,
            vlan_priority,
        })
    }

    fn is_matched_by(&self, rule: &Rule) -> bool {
        rule.to.is_none_or(|to| to == self.to)
            && rule
                .ports
                .as_ref()
                .is_none_or(|ports| ports.contains(&self.port))
            && rule.dscp.is_none_or(|dscp| dscp == self.dscp)
            && (rule.vlan_priority.is_none() || rule.vlan_priority == self.vlan_priority)
    }
}

fn u16_at(octets: &[u8], offset: usize) -> Option<u16> {
    let pair = octets.get(offset..)?.first_chunk()?;
    Some(u16::from_be_bytes(*pair))
}

const VLAN: u16 = 0x8100;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
