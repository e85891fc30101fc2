use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use chronorb_rt::Monotonic;
use chronorb_transport::Messages;
use chronorb_transport::multicast::{Collections, Counters, Limits, Packet};

/// Reads `data` as the packets of a group: datagrams, each after an octet that names its sender,
/// one for the time since the last, and two for its length. The received messages stay within
/// bounds, and are counted.
pub fn multicast_packets(data: &[u8]) {
    let mut collections = Collections::new(LIMITS, MESSAGES);
    let counters = Counters::default();
    let mut now = Monotonic::from_nanos(0);
    let mut messages = 0;
    let mut rest = data;
    while let [sender, passed, high, low, more @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (datagram, later) = more.split_at(len);
        rest = later;
        now = now + Duration::from_millis((*passed).into());
        let sender =
            SocketAddr::from((Ipv4Addr::new(10, 0, 0, sender >> 4), (*sender & 15).into()));
        let Ok(packet) = Packet::parse(datagram) else {
            continue;
        };
        assert!(packet.total.is_none_or(|total| packet.number < total));
        if let Some(message) = collections.push(sender, packet, now, &counters) {
            messages += 1;
            assert_eq!((MESSAGES.len)(message), Some(message.len()));
        }
        assert!(collections.len() <= LIMITS.collections);
        assert!(collections.octets() <= LIMITS.octets);
        assert_eq!(collections.is_empty(), collections.octets() == 0);
        assert_eq!(counters.counts().delivered, messages);
    }
}

const LIMITS: Limits = Limits {
    collections: 4,
    octets: 1 << 12,
    message: 1 << 10,
    age: Duration::from_secs(1),
};

/// A message: its length in the first octet, and none of length 0.
const MESSAGES: Messages = Messages {
    len: |octets| {
        octets
            .first()
            .copied()
            .filter(|len| *len > 0)
            .map(usize::from)
    },
    max: usize::MAX,
};
