//! The receive ring of a packet socket (packet(7), `PACKET_RX_RING`), mapped into this process.
#![allow(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use core::ptr::NonNull;
use std::io;
use std::os::fd::AsFd;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use chronorb_rt::Mapping;
use libc::{tpacket_req, tpacket_versions, tpacket2_hdr};
use rustix::param::page_size;

use crate::driver::socket::{option, set_number, set_option};

/// A ring of packets, each in its own slot.
///
/// It uses version 2, which hands over each packet at once. Version 3 stores packets more densely,
/// but hands over a block only when it is full or after a timeout of at least a millisecond. A
/// single packet took 860 µs with version 3 and 34 µs with version 2.
#[derive(Debug)]
pub(super) struct PacketRing {
    memory: Mapping,
    /// The length of a slot in octets, a power of two.
    slot: usize,
    /// The number of slots, a power of two.
    slots: usize,
    /// The slot of the next packet; never wraps to the number of slots.
    next: usize,
}

/// A packet in the ring.
#[derive(Debug)]
pub(super) struct RingSlot<'a> {
    /// The untagged frame, or its beginning if it is longer than the slot. Room for a VLAN tag
    /// precedes it.
    pub(super) octets: &'a mut [u8],
    /// The length of the whole frame in octets.
    pub(super) len: usize,
    /// The stripped tag: its protocol and its control information.
    pub(super) vlan: Option<[u16; 2]>,
    /// `TP_STATUS_…`.
    pub(super) status: u32,
}

impl PacketRing {
    /// The room for a tag before a frame, in octets.
    pub(super) const TAG: usize = 4;

    /// Gives a socket a ring of at least two slots for frames of this length. Longer frames can be
    /// received from the socket.
    pub(super) fn map(socket: impl AsFd, longest: usize, slots: usize) -> io::Result<Self> {
        let slots = slots.next_power_of_two();
        let slot = (HEADERS_LEN + longest).next_power_of_two();
        // A block is at least as long as a page.
        let slot = slot.max(page_size() / slots);
        let block = slot.max(page_size());
        let request = tpacket_req {
            tp_block_size: number(block)?,
            tp_block_nr: number(slot * slots / block)?,
            tp_frame_size: number(slot)?,
            tp_frame_nr: number(slots)?,
        };
        let version = tpacket_versions::TPACKET_V2 as libc::c_int;
        set_number(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        set_number(&socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, 1)?;
        // SAFETY: the option is such a request.
        unsafe { set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request) }?;
        Ok(Self {
            memory: Mapping::shared(socket, 0, slot * slots)?,
            slot,
            slots,
            next: 0,
        })
    }

    /// Returns the next packet; `None` if there is none. The kernel does not write to its slot
    /// before it is [given back](Self::give_back).
    #[allow(
        clippy::needless_pass_by_ref_mut,
        reason = "the owner of the slot may write to it"
    )]
    pub(super) fn next(&mut self) -> Option<RingSlot<'_>> {
        let status = self.status(self.next).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot_start(self.next);
        // SAFETY: the slot begins with its header, and its status says that this process owns it.
        let header = unsafe { slot.cast::<tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac).saturating_sub(Self::TAG);
        let room = self.slot.saturating_sub(start);
        let len = (header.tp_snaplen as usize + Self::TAG).min(room);
        // SAFETY: `room` keeps the octets within the slot. The kernel does not access it now, and
        // the borrow of the ring prevents that it is given back.
        let octets = unsafe { slice::from_raw_parts_mut(slot.add(start).as_ptr(), len) };
        let vlan = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let has_protocol = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let protocol = if has_protocol {
                header.tp_vlan_tpid
            } else {
                VLAN
            };
            [protocol, header.tp_vlan_tci]
        });
        Some(RingSlot {
            octets,
            len: header.tp_len as usize,
            vlan,
            status,
        })
    }

    /// Gives the slot of the next packet back to the kernel.
    pub(super) fn give_back(&mut self) {
        self.status(self.next)
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = self.next.wrapping_add(1);
    }

    /// Counts the waiting packets. The cost is linear in their number.
    pub(super) fn waiting(&self) -> usize {
        let is_there = |ahead: &usize| {
            let status = self.status(self.next.wrapping_add(*ahead));
            status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
        };
        (0..self.slots).take_while(is_there).count()
    }

    fn slot_start(&self, number: usize) -> NonNull<u8> {
        let place = number & (self.slots - 1);
        // SAFETY: `place` is below the number of slots.
        unsafe { self.memory.start().add(place * self.slot) }
    }

    fn status(&self, number: usize) -> &AtomicU32 {
        // SAFETY: the header of a slot begins with its status. Both sides access this word only
        // atomically while the other may own the slot.
        unsafe { AtomicU32::from_ptr(self.slot_start(number).cast().as_ptr()) }
    }
}

/// Returns the number of packets that found no free slot since the last call.
pub(super) fn take_drops(socket: impl AsFd) -> u64 {
    // SAFETY: the option is two numbers: packets and drops.
    let told = unsafe { option::<[u32; 2]>(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS) };
    told.map_or(0, |[_, drops]| drops.into())
}

fn number(size: usize) -> io::Result<u32> {
    u32::try_from(size).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The maximum number of octets before the frame in a slot: ring headers, an address and alignment.
const HEADERS_LEN: usize = 128;
/// The EtherType of a VLAN tag (802.1Q).
const VLAN: u16 = 0x8100;
