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

/// The sockets of a class, one for each receive queue. Once both halves of its path are gone they
/// are closed, and its frames go back.
///
/// All is sent by the socket of the first queue: what goes out needs no second one, since nothing
/// waits in any, and so it keeps its order.
#[derive(Debug)]
pub(super) struct ClassSockets {
    /// By the numbers of the queues; none after they are closed.
    sockets: Vec<OwnedFd>,
    /// Readable where one of several is.
    any: Option<OwnedFd>,
    /// What comes in, by the numbers of the queues.
    pub(super) incoming: Arc<[Incoming]>,
    pub(super) outgoing: Ring<Descriptor>,
    pub(super) share: Share,
    pub(super) pool: Arc<Pool>,
}

/// What comes in for a class by one receive queue.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) ring: Ring<Descriptor>,
    /// Where its frames go back to.
    pub(super) queue: Arc<Queue>,
}

impl ClassSockets {
    /// Sockets for so many packets each way, a power of two, which the kernel sends nothing to yet.
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
                incoming.push(Incoming {
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

    /// They themselves, by the numbers of the queues.
    pub(super) fn all(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    /// Has the kernel send what is in the outgoing ring. Never waits.
    pub(super) fn kick(&self) -> Result<(), Errno> {
        rustix::net::send(self.first(), &[], SendFlags::DONTWAIT).map(|_| ())
    }

    /// Tells the kernel, if it wants that, of empty frames for a queue. Never waits.
    pub(super) fn tell_of_empty_frames(&self, queue: usize) {
        if self.pool.is_zero_copy && self.incoming[queue].queue.wants_a_call() {
            let socket = &self.sockets[queue];
            let _told = rustix::net::recv(socket, &mut [0_u8; 0][..], RecvFlags::DONTWAIT);
        }
    }

    /// What the kernel has counted, by queue.
    pub(super) fn statistics(&self) -> impl Iterator<Item = XdpStatistics> {
        let asked = self.sockets.iter().map(xdp_statistics);
        asked.filter_map(Result::ok)
    }

    /// The socket of the first queue.
    pub(super) fn first(&self) -> &OwnedFd {
        &self.sockets[0]
    }
}

impl AsFd for ClassSockets {
    /// Readable where frames are there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        let any = self.any.as_ref();
        any.unwrap_or_else(|| self.first()).as_fd()
    }
}

impl Drop for ClassSockets {
    fn drop(&mut self) {
        // From now on the kernel neither puts anything into their rings nor takes anything out.
        self.sockets.clear();
        for Incoming { ring, queue } in self.incoming.iter() {
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

/// The positions of what is in a ring.
fn left(ring: &Ring<Descriptor>) -> impl Iterator<Item = u32> {
    let consumer = ring.consumer().load(Ordering::Acquire);
    let producer = ring.producer().load(Ordering::Acquire);
    let count = producer.wrapping_sub(consumer);
    (0..count).map(move |at| consumer.wrapping_add(at))
}

/// The incoming ring of a socket that is not bound yet.
fn incoming(socket: &OwnedFd, share: &Share) -> io::Result<Ring<Descriptor>> {
    let len = share.incoming as u32;
    set_xdp_rx_ring_size(socket, len)?;
    let places = xdp_mmap_offsets(socket)?;
    Ring::map(socket, XDP_PGOFF_RX_RING, places.rx, len)
}

/// The outgoing ring of a socket that is not bound yet.
fn outgoing(socket: &OwnedFd, share: &Share) -> io::Result<Ring<Descriptor>> {
    // As many as there are frames to send, so that it is never full.
    let len = (64 * share.words.len()).next_power_of_two() as u32;
    set_xdp_tx_ring_size(socket, len)?;
    let places = xdp_mmap_offsets(socket)?;
    Ring::map(socket, XDP_PGOFF_TX_RING, places.tx, len)
}

/// What is readable, as a level, where one of these is.
fn any_of(sockets: &[OwnedFd]) -> io::Result<OwnedFd> {
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for socket in sockets {
        let unnamed = epoll::EventData::new_u64(0);
        epoll::add(&any, socket, unnamed, epoll::EventFlags::IN)?;
    }
    Ok(any)
}
