//! The receiver of a packet socket.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::{RecvFlags, recv};

use super::State;
use super::ring::{PacketRing, RingSlot, take_drops};
use crate::class::ClassId;
use crate::driver::socket::{interface_exists, take_error};
use crate::path::{Frame, PathError, ReceiveCounts, Receiver};

#[derive(Debug)]
pub(super) struct PacketReceiver {
    pub(super) state: Arc<State>,
    pub(super) class: ClassId,
    pub(super) interface: u32,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) ring: PacketRing,
    /// The buffer for a frame that is longer than a slot because it was not segmented yet.
    pub(super) long: Box<[u8]>,
    /// Whether the last check found no frame.
    pub(super) was_empty: bool,
    pub(super) counts: ReceiveCounts,
    pub(super) dropped: AtomicU64,
}

impl PacketReceiver {
    /// The length of the longest frame before segmentation, and of a VLAN tag.
    pub(super) const LONGEST: usize = 65_535 + 14 + PacketRing::TAG;

    /// Checks the interface. A readable descriptor with an empty ring means that its state has
    /// changed.
    fn check(&mut self) -> Result<(), PathError> {
        if !self.was_empty {
            self.was_empty = true;
            return Ok(());
        }
        match take_error(&self.socket) {
            // An interface that is down can come up again.
            Err(_) if interface_exists(&self.socket, self.interface) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(()),
        }
    }
}

impl Receiver for PacketReceiver {
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<bool, PathError> {
        loop {
            let Some(slot) = self.ring.next() else {
                self.check()?;
                return Ok(false);
            };
            self.was_empty = false;
            let is_taken = match whole(slot, &self.socket, &mut self.long) {
                Some(frame) => {
                    self.counts.frames += 1;
                    self.counts.octets += frame.octets.len() as u64;
                    take(frame);
                    true
                }
                None => {
                    self.counts.failed += 1;
                    false
                }
            };
            self.ring.give_back();
            if is_taken {
                return Ok(true);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.ring.waiting()
    }

    fn counts(&self) -> ReceiveCounts {
        // Reading the statistics resets the kernel's counter.
        let dropped = take_drops(&self.socket);
        ReceiveCounts {
            dropped: self.dropped.fetch_add(dropped, Ordering::Relaxed) + dropped,
            ..self.counts
        }
    }
}

impl AsFd for PacketReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PacketReceiver {
    fn drop(&mut self) {
        self.state.close(self.class);
    }
}

/// Returns the frame of a slot with its tag; `None` if the kernel did not keep all of it.
fn whole<'a>(slot: RingSlot<'a>, socket: &OwnedFd, long: &'a mut [u8]) -> Option<Frame<'a>> {
    let octets = if slot.status & libc::TP_STATUS_COPY != 0 {
        let len = receive_long(socket, &mut long[PacketRing::TAG..])?;
        &mut long[..PacketRing::TAG + len]
    } else {
        slot.octets
    };
    if octets.len() != PacketRing::TAG + slot.len {
        return None;
    }
    let octets = match slot.vlan {
        None => &octets[PacketRing::TAG..],
        Some([protocol, control]) => {
            octets.copy_within(PacketRing::TAG..PacketRing::TAG + ADDRESSES_LEN, 0);
            let tag = octets.get_mut(ADDRESSES_LEN..)?.first_chunk_mut()?;
            let ([p0, p1], [c0, c1]) = (protocol.to_be_bytes(), control.to_be_bytes());
            *tag = [p0, p1, c0, c1];
            octets
        }
    };
    let checked = libc::TP_STATUS_CSUM_VALID | libc::TP_STATUS_CSUMNOTREADY;
    Some(Frame {
        octets,
        is_checked: slot.status & checked != 0,
    })
}

/// Receives the frame that was too long for its slot and returns its length. Returns `None` if
/// `room` is too short as well.
#[allow(clippy::disallowed_methods, reason = "it does not wait")]
fn receive_long(socket: &OwnedFd, room: &mut [u8]) -> Option<usize> {
    loop {
        match recv(socket, &mut *room, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((_, len)) => return (len <= room.len()).then_some(len),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// The length of both hardware addresses in octets.
const ADDRESSES_LEN: usize = 12;
