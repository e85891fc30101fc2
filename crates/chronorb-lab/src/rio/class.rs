//! Classes of packets, as options of endpoints of RIO.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A class of packets, and its processing.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketClass {
    pub(super) name: &'static str,
    pub(super) processing: Processing,
    /// The `SCHED_FIFO` priority of the thread that processes the packets; none for `SCHED_OTHER`.
    pub(super) fifo: Option<u8>,
    /// The greatest number of connections.
    pub(super) connections: u32,
    /// Octets of a connection's receive buffer, unless RIO's default is used.
    pub(super) buffer: Option<u32>,
}

/// The time at which packets of a class are processed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Processing {
    /// Packets are processed on arrival, by the thread that waits for their content.
    Arrival,
    /// Packets are processed on arrival, by the thread of the class.
    Demand,
    /// Packets are processed on arrival, at most `packets` of them in each period.
    Capped { period: Duration, packets: u32 },
    /// At most `packets` packets are processed at the beginning of each period.
    Periodic { period: Duration, packets: u32 },
}

/// The address, interface and driver with which a server of RIO listens.
#[derive(Clone, Debug)]
pub(super) struct RioHost {
    pub(super) address: IpAddr,
    pub(super) interface: String,
    /// `auto`, `xdp` or `packet`.
    pub(super) driver: String,
}

impl PacketClass {
    /// Returns a class for one flow.
    pub(super) const fn of_flow(
        name: &'static str,
        processing: Processing,
        fifo: Option<u8>,
    ) -> Self {
        Self {
            name,
            processing,
            fifo,
            connections: FEW,
            buffer: None,
        }
    }

    /// Returns the endpoint of the class.
    pub(super) fn endpoint(&self, host: &RioHost, port: u16) -> String {
        let at = SocketAddr::new(host.address, port);
        let RioHost {
            interface, driver, ..
        } = host;
        let Self {
            name, connections, ..
        } = self;
        let processing = match self.processing {
            Processing::Arrival => "arrival".to_owned(),
            Processing::Demand => "demand".to_owned(),
            Processing::Capped { period, packets } => {
                format!("demand&period={}ms&cap={packets}", period.as_millis())
            }
            Processing::Periodic { period, packets } => {
                format!("periodic&period={}ms&budget={packets}", period.as_millis())
            }
        };
        let policy = self.fifo.map_or_else(
            || "other".to_owned(),
            |priority| format!("fifo&priority={priority}"),
        );
        let buffer = self.buffer.map(|buffer| format!("&buffer={buffer}"));
        // In generic mode, behind the driver: the work of a veth is done by the sender's CPU,
        // before the receiver's is chosen.
        format!(
            "riop://{at}/interface={interface}&driver={driver}&mode=generic&class={name}\
             &connections={connections}&processing={processing}&policy={policy}{}",
            buffer.unwrap_or_default(),
        )
    }
}

/// One connection for each flow, and some that have ended.
pub(super) const FEW: u32 = 4;

/// Returns the endpoint of a server that uses the kernel's TCP.
pub(super) fn of_kernel(address: IpAddr) -> String {
    format!("iiop://{}", SocketAddr::new(address, 0))
}

#[cfg(test)]
mod tests {
    use chronorb_transport::parse_endpoints;

    use super::*;

    fn host() -> RioHost {
        RioHost {
            address: [10, 1, 0, 2].into(),
            interface: "rio0".to_owned(),
            driver: "auto".to_owned(),
        }
    }

    #[test]
    fn a_class_becomes_an_endpoint() {
        let processing = Processing::Periodic {
            period: Duration::from_millis(10),
            packets: 8,
        };
        let class = PacketClass {
            buffer: Some(131_072),
            ..PacketClass::of_flow("first", processing, Some(60))
        };
        let endpoint = class.endpoint(&host(), 7001);
        assert_eq!(
            endpoint,
            "riop://10.1.0.2:7001/interface=rio0&driver=auto&mode=generic&class=first\
             &connections=4&processing=periodic&period=10ms&budget=8\
             &policy=fifo&priority=60&buffer=131072"
        );
        let parsed = parse_endpoints(&endpoint).expect("it can be read");
        assert_eq!(parsed[0].option("budget"), Some("8"));
    }

    #[test]
    fn a_class_that_is_not_urgent_is_left_to_time_sharing() {
        let processing = Processing::Capped {
            period: Duration::from_millis(10),
            packets: 10,
        };
        let class = PacketClass::of_flow("rest", processing, None);
        let endpoint = class.endpoint(&host(), 7002);
        assert!(endpoint.ends_with("&processing=demand&period=10ms&cap=10&policy=other"));
    }
}
