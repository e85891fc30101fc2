//! Plans in TOML files.

#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::admission::{self, Admission, DriverKind, Interface};
use super::reservation::{Cap, Output, Policy, Processing, Reservation};
use values::{CapValue, PortsValue, RateValue, TimeValue};

/// The reservations of an interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// The interface.
    pub interface: Interface,
    /// The classes, in the order in which their rules are evaluated.
    pub classes: Vec<Reservation>,
}

/// The error of a file that is not a valid plan.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("line {line}, column {column}: {problem}")]
pub struct PlanError {
    /// The line, from 1 on; 0 if the file cannot be read.
    pub line: usize,
    /// The character in the line, from 1 on.
    pub column: usize,
    /// The problem, and the permitted values.
    pub problem: String,
}

impl Plan {
    /// Parses a plan. `to_native` maps a CORBA priority to a native one.
    ///
    /// # Errors
    /// [`PlanError`] if the text is not TOML, has unknown keys, or has invalid values.
    pub fn parse(text: &str, to_native: &dyn Fn(i16) -> Option<u8>) -> Result<Self, PlanError> {
        let file: PlanFile = toml::from_str(text).map_err(|error| {
            PlanError::at(text, &error.span().unwrap_or_default(), error.message())
        })?;
        let interface = file.interface.into_interface();
        let mut classes = Vec::new();
        for class in file.classes {
            let span = class.span();
            let reservation = class
                .into_inner()
                .into_reservation(&interface, to_native)
                .map_err(|problem| PlanError::at(text, &span, &problem))?;
            classes.push(reservation);
        }
        Ok(Self { interface, classes })
    }

    /// Reads the plan from a regular file of at most 1 MiB; see [`parse`](Self::parse).
    ///
    /// # Errors
    /// As [`parse`](Self::parse), or if the file cannot be read.
    pub fn read(path: &Path, to_native: &dyn Fn(i16) -> Option<u8>) -> Result<Self, PlanError> {
        let text = chronorb_rt::read_text(path).map_err(|error| PlanError {
            line: 0,
            column: 0,
            problem: format!("the file cannot be read: {error}"),
        })?;
        Self::parse(&text, to_native)
    }

    /// Checks that all reservations can be kept.
    pub fn admit(&self) -> Admission {
        admission::admit(&self.interface, &self.classes)
    }
}

impl PlanError {
    fn at(text: &str, span: &Range<usize>, problem: &str) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_begins = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_begins..].chars().count() + 1,
            problem: problem.to_owned(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    interface: InterfaceTable,
    #[serde(default, rename = "class")]
    classes: Vec<Spanned<ClassTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceTable {
    name: String,
    rate: Option<RateValue>,
    #[serde(default = "usual_mtu")]
    mtu: u32,
    #[serde(default)]
    driver: DriverValue,
}

impl InterfaceTable {
    fn into_interface(self) -> Interface {
        Interface {
            name: self.name,
            rate: self.rate.map(|rate| rate.0),
            mtu: self.mtu as usize,
            driver: match self.driver {
                DriverValue::Auto => DriverKind::Auto,
                DriverValue::Xdp => DriverKind::Xdp,
                DriverValue::Packet => DriverKind::Packet,
                DriverValue::Kernel => DriverKind::Kernel,
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassTable {
    name: String,
    priority: Option<i16>,
    native: Option<u8>,
    policy: Option<PolicyValue>,
    #[serde(default)]
    processing: ProcessingValue,
    period: Option<TimeValue>,
    budget: Option<u32>,
    cap: Option<CapValue>,
    packet: Option<u32>,
    cost: Option<TimeValue>,
    #[serde(default, alias = "ports")]
    port: PortsValue,
    dscp: Option<u8>,
    vlan_priority: Option<u8>,
    queue: Option<u32>,
    connections: Option<u32>,
    buffer: Option<u32>,
    #[serde(default)]
    output: OutputValue,
    cpu: Option<u16>,
}

impl ClassTable {
    fn into_reservation(
        self,
        interface: &Interface,
        to_native: &dyn Fn(i16) -> Option<u8>,
    ) -> Result<Reservation, String> {
        let usual = Reservation::default();
        let (policy, priority) = self.scheduling(to_native)?;
        let (processing, expected) = self.processing(interface)?;
        let size = |given: Option<u32>, usual| given.map_or(usual, |size| size as usize);
        let reservation = Reservation {
            policy,
            priority,
            corba_priority: self.priority,
            processing,
            expected,
            packet: self.packet.map(|packet| packet as usize),
            cost: self.cost.map(|cost| cost.0),
            ports: self.port.0,
            dscp: self.dscp,
            vlan_priority: self.vlan_priority,
            queue: size(self.queue, usual.queue),
            connections: size(self.connections, usual.connections),
            buffer: size(self.buffer, usual.buffer),
            output: match self.output {
                OutputValue::Direct => Output::Direct,
                OutputValue::Scheduled => Output::Scheduled,
            },
            cpu: self.cpu.map(usize::from),
            name: self.name,
        };
        let checked = reservation.check();
        checked.map_err(|error| format!("class {:?}: {error}", reservation.name))?;
        Ok(reservation)
    }

    /// Returns the policy and the native priority.
    fn scheduling(&self, to_native: &dyn Fn(i16) -> Option<u8>) -> Result<(Policy, u8), String> {
        let native = match (self.priority, self.native) {
            (Some(_), Some(_)) => {
                return Err(self.wrong("has both priority and native: leave one of them out"));
            }
            (None, native) => native.unwrap_or(0),
            (Some(corba), None) => to_native(corba).ok_or_else(|| {
                self.wrong(&format!(
                    "has priority {corba}, which is not of 0 to 32767, or has no native one"
                ))
            })?,
        };
        Ok(match (self.policy, native) {
            (Some(PolicyValue::Deadline), _) if self.priority.is_some() => (Policy::Deadline, 0),
            (Some(PolicyValue::Deadline), native) => (Policy::Deadline, native),
            (Some(PolicyValue::Fifo), native) => (Policy::Fifo, native),
            (Some(PolicyValue::Rr), native) => (Policy::RoundRobin, native),
            (Some(PolicyValue::Other), native) => (Policy::Other, native),
            (None, 0) => (Policy::Other, 0),
            (None, native) => (Policy::Fifo, native),
        })
    }

    /// Returns the processing mode and the expected packets.
    fn processing(&self, interface: &Interface) -> Result<(Processing, Option<Cap>), String> {
        let period = self.period.map(|period| period.0);
        match self.processing {
            ProcessingValue::Periodic => match (period, self.budget, self.cap) {
                (Some(period), Some(budget), None) => {
                    Ok((Processing::Periodic { period, budget }, None))
                }
                (_, _, Some(_)) => Err(self.wrong("is periodic and has a cap: its budget is one")),
                _ => Err(self.wrong("is periodic: give it both a period and a budget")),
            },
            ProcessingValue::Arrival => match (period, self.budget, self.cap) {
                (None, None, None) => Ok((Processing::OnArrival, None)),
                (Some(period), Some(packets), None) => {
                    Ok((Processing::OnArrival, Some(Cap { packets, period })))
                }
                (_, _, Some(_)) => Err(self.wrong(
                    "is processed on arrival, where nothing can keep a cap: processing = \
                    \"demand\" does",
                )),
                _ => Err(self.wrong(
                    "is processed on arrival: give it both the period and the budget that its \
                    peers keep to, or neither",
                )),
            },
            ProcessingValue::Demand if self.budget.is_some() => Err(self.wrong(
                "is processed on demand and has a budget: cap is what limits it, processing = \
                \"periodic\" what gives it a budget",
            )),
            ProcessingValue::Demand => {
                let cap = match (self.cap, period) {
                    (None, None) => None,
                    (None, Some(_)) => {
                        return Err(self.wrong("has a period and no cap: give it one"));
                    }
                    (Some(cap), period) => Some(self.cap(cap, period, interface)?),
                };
                Ok((Processing::OnDemand { cap }, None))
            }
        }
    }

    fn cap(
        &self,
        cap: CapValue,
        period: Option<Duration>,
        interface: &Interface,
    ) -> Result<Cap, String> {
        match (cap, period) {
            (CapValue::Packets(packets), Some(period)) => Ok(Cap { packets, period }),
            (CapValue::Packets(_), None) => {
                Err(self.wrong("has a cap in packets and no period: give it one"))
            }
            (CapValue::Share(share), period) => {
                let packet = self.packet.map_or(interface.mtu, |packet| packet as usize);
                interface.cap(share, packet, period).ok_or_else(|| {
                    self.wrong(
                        "has a cap in percent, and the interface no rate: give it rate = \"100 \
                        Mbit\", or the cap in packets",
                    )
                })
            }
        }
    }

    fn wrong(&self, problem: &str) -> String {
        format!("class {:?}: it {problem}", self.name)
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DriverValue {
    #[default]
    Auto,
    Xdp,
    Packet,
    Kernel,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PolicyValue {
    Fifo,
    Rr,
    Deadline,
    Other,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProcessingValue {
    Arrival,
    #[default]
    Demand,
    Periodic,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OutputValue {
    #[default]
    Direct,
    Scheduled,
}

const fn usual_mtu() -> u32 {
    1500
}
