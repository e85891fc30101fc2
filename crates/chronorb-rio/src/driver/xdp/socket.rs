//! Sockets of AF_XDP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XdpStatistics};
use rustix::net::{RecvFlags, SendFlags};

use super::memory::{Descriptor, Ring};
use super::pool::{Pool, Share};
use super::queue::{Queue, socket};
use super::sync::Ordering;
use crate::driver::DriverError;

/// The sockets of a class, one for each receive queue. They are closed, and the frames returned,
/// after both halves of the path are dropped.
///
/// All frames are sent by the socket of the first queue. A second one is not needed because no
/// outgoing frame waits in any queue, and the frames stay in order.
#[derive(Debug)]
pub(super) struct ClassSockets {
    /// The sockets in the order of the queues; empty after they are closed.
    sockets: Vec<OwnedFd>,
    /// A descriptor that is readable if one of several sockets is.
    any: Option<OwnedFd>,
    /// The incoming rings in the order of the queues.
    pub(super) incoming: Arc<[ReceiveRing]>,
    pub(super) outgoing: Ring<Descriptor>,
    pub(super) share: Share,
    pub(super) pool: Arc<Pool>,
}

/// The incoming ring of a class at one receive queue.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    pub(super) ring: Ring<Descriptor>,
    /// The queue to which frames are given back.
    pub(super) queue: Arc<Queue>,
}

impl ClassSockets {
    /// Opens sockets for this many packets in each direction, a power of two. The kernel does not
    /// send packets to them yet.
    pub(super) fn open(
        pool: Arc<Pool>,
        interface: u32,
        packets: usize,
    ) -> Result<Self, DriverError> {
        let queues = pool.queues();
        let sockets = (queues.iter().map(|_| socket())).collect::<Result<Vec<_>, _>>()?;
        let share = pool.take(packets)?;
        let made = || {
            let outgoing = outgoing(&sockets[0], &share)?;
            let mut incoming = Vec::with_capacity(queues.len());
            for ((number, queue), socket) in (0..).zip(queues).zip(&sockets) {
                incoming.push(ReceiveRing {
                    ring: self::incoming(socket, &share)?,
                    queue: queue.clone(),
                });
                rustix::net::bind(socket, &queue.shared(interface, number))?;
            }
            let any = match &sockets[..] {
                [_] => None,
                several => Some(any_of(several)?),
            };
            Ok((incoming.into(), outgoing, any))
        };
        let (incoming, outgoing, any) = made().map_err(|source| {
            pool.give(&share);
            let what = "an AF_XDP socket of a class";
            DriverError::Failed { what, source }
        })?;
        Ok(Self {
            sockets,
            any,
            incoming,
            outgoing,
            share,
            pool,
        })
    }

    /// Returns the sockets in the order of the queues.
    pub(super) fn all(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    /// Makes the kernel send the frames in the outgoing ring. Never blocks.
    pub(super) fn kick(&self) -> Result<(), Errno> {
        rustix::net::send(self.first(), &[], SendFlags::DONTWAIT).map(|_| ())
    }

    /// Notifies the kernel of empty frames at a queue, if needed. Never blocks.
    pub(super) fn tell_of_empty_frames(&self, queue: usize) {
        if self.pool.is_zero_copy && self.incoming[queue].queue.wants_a_call() {
            let socket = &self.sockets[queue];
            let _told = rustix::net::recv(socket, &mut [0_u8; 0][..], RecvFlags::DONTWAIT);
        }
    }

    /// Returns the kernel's statistics of each queue.
    pub(super) fn statistics(&self) -> impl Iterator<Item = XdpStatistics> {
        let asked = self.sockets.iter().map(xdp_statistics);
        asked.filter_map(Result::ok)
    }

    /// Returns the socket of the first queue.
    pub(super) fn first(&self) -> &OwnedFd {
        &self.sockets[0]
    }
}

impl AsFd for ClassSockets {
    /// Returns a descriptor that is readable while frames wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        let any = self.any.as_ref();
        any.unwrap_or_else(|| self.first()).as_fd()
    }
}

impl Drop for ClassSockets {
    fn drop(&mut self) {
        // From now on the kernel no longer accesses the rings.
        self.sockets.clear();
        for ReceiveRing { ring, queue } in self.incoming.iter() {
            for position in left(ring) {
                queue.refill(ring.entry(position).load().address);
            }
        }
        for position in left(&self.outgoing) {
            self.pool.sent(self.outgoing.entry(position).load().address);
        }
        self.pool.give(&self.share);
    }
}

/// Returns the positions of the entries in a ring.
fn left(ring: &Ring<Descriptor>) -> impl Iterator<Item = u32> {
    let consumer = ring.consumer().load(Ordering::Acquire);
    let producer = ring.producer().load(Ordering::Acquire);
    let count = producer.wrapping_sub(consumer);
    (0..count).map(move |at| consumer.wrapping_add(at))
}

/// Creates the incoming ring of an unbound socket.
fn incoming(socket: &OwnedFd, share: &Share) -> io::Result<Ring<Descriptor>> {
    let len = share.incoming as u32;
    set_xdp_rx_ring_size(socket, len)?;
    let places = xdp_mmap_offsets(socket)?;
    Ring::map(socket, XDP_PGOFF_RX_RING, places.rx, len)
}

/// Creates the outgoing ring of an unbound socket.
fn outgoing(socket: &OwnedFd, share: &Share) -> io::Result<Ring<Descriptor>> {
    // As many entries as outgoing frames, so that it is never full.
    let len = (64 * share.words.len()).next_power_of_two() as u32;
    set_xdp_tx_ring_size(socket, len)?;
    let places = xdp_mmap_offsets(socket)?;
    Ring::map(socket, XDP_PGOFF_TX_RING, places.tx, len)
}

/// Returns a descriptor that is readable (level-triggered) if one of these sockets is.
fn any_of(sockets: &[OwnedFd]) -> io::Result<OwnedFd> {
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for socket in sockets {
        let unnamed = epoll::EventData::new_u64(0);
        epoll::add(&any, socket, unnamed, epoll::EventFlags::IN)?;
    }
    Ok(any)
}
