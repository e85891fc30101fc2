//! What a class is opened with.

use std::time::Duration;

use chronorb_rt::{Reservation, Scheduling};

/// A class, as it is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// Its name, for people; its thread's name begins with `rio-`.
    pub name: String,
    /// Which thread does the protocol work, and when.
    pub processing: Processing,
    /// How the thread of the class is scheduled.
    pub urgency: Urgency,
    /// Processor time that a packet takes at most, if it was measured. Admission counts with it,
    /// nothing enforces it.
    pub cost: Option<Duration>,
    /// How many packets its peers promise to send at most in which time, where
    /// [`Processing::OnArrival`] bounds nothing. As `cost`, it is for admission alone.
    pub expected: Option<(usize, Duration)>,
    /// The CPU of that thread; any where it is `None`.
    pub cpu: Option<usize>,
    /// Frames that wait at most, each way; of those that come in, for each queue by which they
    /// come.
    pub queue: usize,
    /// Connections at most, those that end included.
    pub connections: usize,
    /// Octets of the buffer of each connection, each way.
    pub buffer: usize,
    /// Half-open connections at most, which are none of these and take some 300 octets each; then
    /// the oldest gives way.
    pub backlog: usize,
    /// The differentiated services code point of its packets, 0 to 63.
    pub dscp: Option<u8>,
    /// The priority in the VLAN tag of its packets, 0 to 7, where the peer's have a tag.
    pub vlan_priority: Option<u8>,
    /// The priority of its packets in queues of the interface that they have in common with others,
    /// higher is more urgent, or the number of a class there (`SO_PRIORITY`, socket(7)). A driver
    /// that goes by no such queue has no use for it.
    pub packet_priority: u32,
    /// Who sends.
    pub output: Output,
    /// How long a half-open connection may be so.
    pub handshake_time: Duration,
    /// How long a peer may leave octets unacknowledged, before the connection is broken.
    pub silence: Duration,
    /// How long an idle peer may be silent, though it is asked four times meanwhile; `None` is for
    /// ever.
    pub keep_alive: Option<Duration>,
    /// How long a connection that nobody has any more may take to end.
    pub linger: Duration,
}

/// Which thread does the protocol work of a class, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Processing {
    /// The thread that waits for the connections, when packets arrive: that of the lane, which has
    /// its priority already. What accepts has to be waited for all the time, also while nobody
    /// connects.
    OnArrival,
    /// The class's own thread, when packets arrive.
    OnDemand {
        /// At most so many packets in each of these periods.
        cap: Option<(usize, Duration)>,
    },
    /// The class's own thread, at most `budget` packets in each period.
    Periodic {
        /// How far apart the beginnings of periods are.
        period: Duration,
        /// Packets.
        budget: usize,
    },
}

/// How the thread of a class is scheduled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Urgency {
    /// By its priority.
    Native(Scheduling),
    /// By its deadline.
    Deadline(Reservation),
}

/// Who does the protocol work for what is sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Output {
    /// The thread that sends.
    #[default]
    Sender,
    /// The thread of the class, within its budget.
    Scheduled,
}

impl Default for ClassConfig {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            processing: Processing::OnDemand { cap: None },
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
            output: Output::Sender,
            handshake_time: Duration::from_secs(5),
            silence: Duration::from_secs(20),
            keep_alive: None,
            linger: Duration::from_secs(5),
        }
    }
}
