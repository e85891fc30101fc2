//! Sockets of AF_XDP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags as Flags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XdpStatistics,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::memory::{Descriptor, Ring};
use super::pool::{Pool, Share};
use super::sync::Ordering;
use crate::driver::DriverError;
use crate::driver::socket::failed;

/// The socket of a class. Once both halves of its path are gone it is closed, and its frames go back.
#[derive(Debug)]
pub(super) struct ClassSocket {
    /// Until it is closed.
    socket: Option<OwnedFd>,
    pub(super) incoming: Ring<Descriptor>,
    pub(super) outgoing: Ring<Descriptor>,
    pub(super) share: Share,
    pub(super) pool: Arc<Pool>,
}

impl ClassSocket {
    /// A socket for so many packets each way, a power of two, which the kernel sends nothing to yet.
    pub(super) fn open(
        pool: Arc<Pool>,
        interface: u32,
        packets: usize,
    ) -> Result<Self, DriverError> {
        let new = socket()?;
        let share = pool.take(packets)?;
        let made = rings(&new, &share).and_then(|rings| {
            let address = SocketAddrXdpWithSharedUmem {
                addr: SocketAddrXdp::new(Flags::XDP_SHARED_UMEM, interface, QUEUE),
                shared_umem_fd: pool.anchor().as_fd(),
            };
            rustix::net::bind(&new, &address)?;
            Ok(rings)
        });
        let (incoming, outgoing) = made.map_err(|source| {
            pool.give(&share);
            let what = "an AF_XDP socket of a class";
            DriverError::Failed { what, source }
        })?;
        Ok(Self {
            socket: Some(new),
            incoming,
            outgoing,
            share,
            pool,
        })
    }

    /// Has the kernel send what is in the outgoing ring. Never waits.
    pub(super) fn kick(&self) -> Result<(), Errno> {
        rustix::net::send(self, &[], SendFlags::DONTWAIT).map(|_| ())
    }

    /// Tells the kernel that there are empty frames again. Never waits.
    pub(super) fn tell_of_empty_frames(&self) -> Result<(), Errno> {
        rustix::net::recv(self, &mut [0_u8; 0][..], RecvFlags::DONTWAIT).map(|_| ())
    }

    /// What the kernel has counted.
    pub(super) fn statistics(&self) -> Option<XdpStatistics> {
        xdp_statistics(self).ok()
    }
}

impl AsFd for ClassSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let socket = self.socket.as_ref();
        socket
            .expect("it is closed only when it is dropped")
            .as_fd()
    }
}

impl Drop for ClassSocket {
    fn drop(&mut self) {
        // From now on the kernel neither puts anything into its rings nor takes anything out.
        self.socket = None;
        let left = |ring: &Ring<Descriptor>| {
            let consumer = ring.consumer().load(Ordering::Acquire);
            let producer = ring.producer().load(Ordering::Acquire);
            let count = producer.wrapping_sub(consumer);
            (0..count).map(move |at| consumer.wrapping_add(at))
        };
        for position in left(&self.incoming) {
            self.pool
                .refill(self.incoming.entry(position).load().address);
        }
        for position in left(&self.outgoing) {
            self.pool.sent(self.outgoing.entry(position).load().address);
        }
        self.pool.give(&self.share);
    }
}

/// Both rings of a socket that is not bound yet.
fn rings(socket: &OwnedFd, share: &Share) -> io::Result<(Ring<Descriptor>, Ring<Descriptor>)> {
    let incoming = share.incoming as u32;
    // As many as there are frames to send, so that it is never full.
    let outgoing = (64 * share.words.len()).next_power_of_two() as u32;
    set_xdp_rx_ring_size(socket, incoming)?;
    set_xdp_tx_ring_size(socket, outgoing)?;
    let places = xdp_mmap_offsets(socket)?;
    let incoming = Ring::map(socket, XDP_PGOFF_RX_RING, places.rx, incoming)?;
    let outgoing = Ring::map(socket, XDP_PGOFF_TX_RING, places.tx, outgoing)?;
    Ok((incoming, outgoing))
}

/// A new socket.
pub(super) fn socket() -> Result<OwnedFd, DriverError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)
        .map_err(|errno| failed("an AF_XDP socket", super::CAPABILITIES)(errno.into()))
}

/// Binds a socket, and with it the frames that are registered with it, to the first queue of an interface. For a while after
/// somebody has closed one there, the kernel still has its frames: this waits for it.
pub(super) fn bind(socket: &OwnedFd, interface: u32, flags: Flags) -> io::Result<()> {
    let address = SocketAddrXdp::new(flags, interface, QUEUE);
    let deadline = Instant::now() + LAST_FRAMES;
    let mut pause = Duration::from_millis(1);
    loop {
        match rustix::net::bind(socket, &address) {
            Err(Errno::BUSY) if Instant::now() < deadline => {
                sleep(pause);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
            done => return Ok(done?),
        }
    }
}

/// The only queue that an interface may have.
const QUEUE: u32 = 0;
/// How long the kernel may take to be done with the frames of a socket that was closed.
const LAST_FRAMES: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
