//! The output of a class at a slow interface.

use crate::engine::device::{Egress, Envelope};
use crate::frame::Ethernet;
use crate::path::{PathError, TransmitCounts, TransmitError, Transmitter};

/// An interface that accepts one frame at a time.
#[derive(Debug, Default)]
struct Slow {
    queued: u64,
    sent: u64,
}

impl Transmitter for Slow {
    fn transmit(
        &mut self,
        len: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), TransmitError> {
        write(&mut vec![0; len]);
        self.queued += 1;
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        true
    }

    fn flush(&mut self) -> Result<(), PathError> {
        self.sent += u64::from(self.is_pending());
        Ok(())
    }

    fn is_pending(&self) -> bool {
        self.sent < self.queued
    }

    fn counts(&self) -> TransmitCounts {
        TransmitCounts {
            frames: self.sent,
            ..TransmitCounts::default()
        }
    }
}

#[test]
fn what_the_interface_does_not_take_at_once_is_not_forgotten() {
    let mut egress = Egress::new(Box::new(Slow::default()), 1500);
    let ethernet = Ethernet {
        to: [2; 6],
        from: [4; 6],
        vlan: None,
        kind: Ethernet::IPV4,
    };
    let envelope = Envelope { ethernet, dscp: 0 };
    for _ in 0..3 {
        egress.put(&envelope, 40, |packet| packet.fill(0));
    }
    for sent in [1, 2, 3, 3] {
        egress.flush().expect("it is there");
        assert_eq!(egress.transmitter().counts().frames, sent);
    }
}
