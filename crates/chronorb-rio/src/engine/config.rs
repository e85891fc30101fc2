//! The configuration of a class.

use std::time::Duration;

use chronorb_rt::{Reservation, Scheduling};

/// The configuration with which a class is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// The name, for people. The name of the class's thread begins with `rio-`.
    pub name: String,
    /// The thread that does the protocol work, and the time at which it does it.
    pub processing: ClassProcessing,
    /// The scheduling of the class's thread.
    pub urgency: Urgency,
    /// The maximum processor time of a packet, if it was measured. Only admission control uses it;
    /// it is not enforced.
    pub cost: Option<Duration>,
    /// The maximum number of packets that the peers send in a period, for
    /// [`ClassProcessing::OnArrival`], which enforces no bound. Only admission control uses it.
    pub expected: Option<(usize, Duration)>,
    /// The CPU of the class's thread; `None` for any.
    pub cpu: Option<usize>,
    /// The maximum number of waiting frames in each direction. For incoming frames it applies to
    /// each receive queue.
    pub queue: usize,
    /// The maximum number of connections, including those that are closing.
    pub connections: usize,
    /// The length of each connection's buffer in each direction, in octets.
    pub buffer: usize,
    /// The maximum number of half-open connections, which need some 300 octets each and do not
    /// count as connections. The oldest is dropped for a new one.
    pub backlog: usize,
    /// The differentiated services code point of outgoing packets, 0 to 63.
    pub dscp: Option<u8>,
    /// The priority in the VLAN tag of outgoing packets, 0 to 7, if the peer's packets are tagged.
    pub vlan_priority: Option<u8>,
    /// The priority of outgoing packets in queues that the interface shares among classes, higher
    /// is more urgent, or the number of a traffic class there (`SO_PRIORITY`, socket(7)). Drivers
    /// that bypass such queues ignore it.
    pub packet_priority: u32,
    /// The thread that does the protocol work of output.
    pub output: ClassOutput,
    /// The maximum duration of the TCP handshake; a slower connection is dropped.
    pub handshake_time: Duration,
    /// The maximum time that a peer may leave data unacknowledged before the connection is broken.
    pub silence: Duration,
    /// The maximum silence of an idle peer, which is probed four times meanwhile; `None` is
    /// unlimited.
    pub keep_alive: Option<Duration>,
    /// The maximum time that a connection may take to close after its handle was dropped.
    pub linger: Duration,
}

/// The thread that does the protocol work of a class, and the time at which it does it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClassProcessing {
    /// The thread that waits for connections or their input does it when packets arrive. It is a
    /// thread of the lane, which already has the right priority. Some thread must always wait at
    /// the acceptor, even if no peer connects.
    OnArrival,
    /// The class's own thread does it when packets arrive.
    OnDemand {
        /// The maximum number of packets in each period of this length.
        cap: Option<(usize, Duration)>,
    },
    /// The class's own thread processes at most `budget` packets in each period.
    Periodic {
        /// The time between the starts of two periods.
        period: Duration,
        /// The maximum number of packets in a period.
        budget: usize,
    },
}

/// The scheduling of a class's thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Urgency {
    /// A priority.
    Native(Scheduling),
    /// A deadline reservation.
    Deadline(Reservation),
}

/// The thread that does the protocol work for outgoing data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ClassOutput {
    /// The sending thread.
    #[default]
    Sender,
    /// The class's thread, within its budget.
    Scheduled,
}

impl Default for ClassConfig {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            processing: ClassProcessing::OnDemand { cap: None },
            urgency: Urgency::Native(Scheduling::OTHER),
            cost: None,
            expected: None,
            cpu: None,
            queue: 512,
            connections: 64,
            buffer: 64 << 10,
            backlog: 2048,
            dscp: None,
            vlan_priority: None,
            packet_priority: 0,
            output: ClassOutput::Sender,
            handshake_time: Duration::from_secs(5),
            silence: Duration::from_secs(20),
            keep_alive: None,
            linger: Duration::from_secs(5),
        }
    }
}
