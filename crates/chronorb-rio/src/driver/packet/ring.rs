//! The ring that the kernel puts packets into (packet(7), `PACKET_RX_RING`), mapped into this
//! process.
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

/// A ring of packets, each in a slot of its own.
///
/// It is of version 2, which hands over each packet at once. Version 3 packs packets tighter, but
/// hands a block of them over only when it is full or its time is out, a millisecond at least: a
/// packet alone was seen after 860 µs there, and after 34 µs here.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Mapping,
    /// Octets of a slot, a power of two.
    slot: usize,
    /// Slots, a power of two.
    slots: usize,
    /// The slot that the next packet is in, or will be; counted on and on.
    next: usize,
}

/// A packet in the ring.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    /// The frame, behind room for a VLAN tag. It has no tag itself. Where it was too long for the
    /// slot, this is its beginning.
    pub(super) octets: &'a mut [u8],
    /// Octets of the frame, all of it.
    pub(super) len: usize,
    /// The tag that the kernel has taken off: its protocol and its control information.
    pub(super) vlan: Option<[u16; 2]>,
    /// `TP_STATUS_…`.
    pub(super) status: u32,
}

impl Ring {
    /// Octets before a frame in which a tag has room.
    pub(super) const TAG: usize = 4;

    /// Gives a socket a ring of at least two slots, for frames of so many octets. What is longer
    /// can be received from the socket as well.
    pub(super) fn map(socket: impl AsFd, longest: usize, slots: usize) -> io::Result<Self> {
        let slots = slots.next_power_of_two();
        let slot = (HEADERS_LEN + longest).next_power_of_two();
        // A block is as long as a page at least.
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

    /// The next packet; `None` if there is none. The kernel does not write to its slot before it is
    /// [given back](Self::give_back).
    #[allow(
        clippy::needless_pass_by_ref_mut,
        reason = "who has the slot may write to it"
    )]
    pub(super) fn next(&mut self) -> Option<Slot<'_>> {
        let status = self.status(self.next).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot_start(self.next);
        // SAFETY: the slot begins with its header, and is ours since the status says so.
        let header = unsafe { slot.cast::<tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac).saturating_sub(Self::TAG);
        let room = self.slot.saturating_sub(start);
        let len = (header.tp_snaplen as usize + Self::TAG).min(room);
        // SAFETY: the octets are in the slot, by `room`; the kernel does not touch it now, and the
        // borrow of the ring keeps it from being given back.
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
        Some(Slot {
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

    /// How many packets are there. Each of them is looked at.
    pub(super) fn waiting(&self) -> usize {
        let is_there = |ahead: &usize| {
            let status = self.status(self.next.wrapping_add(*ahead));
            status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
        };
        (0..self.slots).take_while(is_there).count()
    }

    fn slot_start(&self, number: usize) -> NonNull<u8> {
        let place = number & (self.slots - 1);
        // SAFETY: the ring has so many slots.
        unsafe { self.memory.start().add(place * self.slot) }
    }

    fn status(&self, number: usize) -> &AtomicU32 {
        // SAFETY: the header of a slot begins with its status, a word that both sides reach by
        // atomics alone while the slot may be the other's.
        unsafe { AtomicU32::from_ptr(self.slot_start(number).cast().as_ptr()) }
    }
}

/// How many packets found no slot since this was last asked.
pub(super) fn take_drops(socket: impl AsFd) -> u64 {
    // SAFETY: the option is two numbers: packets and drops.
    let told = unsafe { option::<[u32; 2]>(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS) };
    told.map_or(0, |[_, drops]| drops.into())
}

fn number(size: usize) -> io::Result<u32> {
    u32::try_from(size).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Octets before the frame in a slot, more than there ever are: headers of the ring, an address,
/// alignment.
const HEADERS_LEN: usize = 128;
/// The protocol of a VLAN tag (802.1Q).
const VLAN: u16 = 0x8100;
