//! Classes of packets, as endpoints of RIO say them.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A class, and how its packets are processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) processing: Processing,
    /// The `SCHED_FIFO` priority of the thread that processes them; nothing for `SCHED_OTHER`.
    pub(super) fifo: Option<u8>,
    /// How many connections it has at most.
    pub(super) connections: u32,
    /// Octets of a connection's receive buffer; nothing for what is usual.
    pub(super) buffer: Option<u32>,
}

/// When packets of a class are processed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Processing {
    /// At once, by the thread that waits for what is in them.
    Arrival,
    /// When they are there, by the thread of the class.
    Demand,
    /// The same, but at most so many in each period.
    Capped { period: Duration, packets: u32 },
    /// At the beginning of each period, so many of them at most.
    Periodic { period: Duration, packets: u32 },
}

/// Where a server of RIO listens.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) host: IpAddr,
    pub(super) interface: String,
    /// `auto`, `xdp` or `packet`.
    pub(super) driver: String,
}

impl Class {
    /// Its endpoint.
    pub(super) fn endpoint(&self, place: &Place, port: u16) -> String {
        // Behind the driver: a veth has its own work done by the CPU of whoever sends, before the receiver's is chosen.
        let mut text = format!(
            "riop://{}/interface={}&driver={}&mode=generic&class={}&connections={}",
            SocketAddr::new(place.host, port),
            place.interface,
            place.driver,
            self.name,
            self.connections,
        );
        let _ = match self.processing {
            Processing::Arrival => write!(text, "&processing=arrival"),
            Processing::Demand => write!(text, "&processing=demand"),
            Processing::Capped { period, packets } => write!(
                text,
                "&processing=demand&period={}ms&cap={packets}",
                period.as_millis()
            ),
            Processing::Periodic { period, packets } => write!(
                text,
                "&processing=periodic&period={}ms&budget={packets}",
                period.as_millis()
            ),
        };
        let _ = match self.fifo {
            Some(priority) => write!(text, "&policy=fifo&priority={priority}"),
            None => write!(text, "&policy=other"),
        };
        if let Some(buffer) = self.buffer {
            let _ = write!(text, "&buffer={buffer}");
        }
        text
    }
}

/// As many connections as there are flows, and some that have ended.
pub(super) const FEW: u32 = 4;

/// The endpoint of a server that uses the kernel's TCP.
pub(super) fn of_kernel(host: IpAddr) -> String {
    format!("iiop://{}", SocketAddr::new(host, 0))
}

#[cfg(test)]
mod tests {
    use chronorb_transport::parse_endpoints;

    use super::*;

    fn place() -> Place {
        Place {
            host: [10, 1, 0, 2].into(),
            interface: "rio0".to_owned(),
            driver: "auto".to_owned(),
        }
    }

    #[test]
    fn a_class_becomes_an_endpoint() {
        let class = Class {
            name: "first",
            processing: Processing::Periodic {
                period: Duration::from_millis(10),
                packets: 8,
            },
            fifo: Some(60),
            connections: 4,
            buffer: Some(131_072),
        };
        let endpoint = class.endpoint(&place(), 7001);
        assert_eq!(
            endpoint,
            "riop://10.1.0.2:7001/interface=rio0&driver=auto&mode=generic&class=first&connections=4&processing=periodic&period=10ms&budget=8\
             &policy=fifo&priority=60&buffer=131072"
        );
        let parsed = parse_endpoints(&endpoint).expect("it can be read");
        assert_eq!(parsed[0].option("budget"), Some("8"));
    }

    #[test]
    fn what_is_not_urgent_is_left_to_time_sharing() {
        let class = Class {
            name: "rest",
            processing: Processing::Capped {
                period: Duration::from_millis(10),
                packets: 10,
            },
            fifo: None,
            connections: 4,
            buffer: None,
        };
        let endpoint = class.endpoint(&place(), 7002);
        assert!(endpoint.ends_with("&processing=demand&period=10ms&cap=10&policy=other"));
    }
}
