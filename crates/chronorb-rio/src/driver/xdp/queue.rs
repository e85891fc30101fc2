//! The receive queues of an interface. The kernel requires a socket and rings for each of them. The
//! queues can share one frame memory (`XDP_SHARED_UMEM`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_umem_completion_ring_size, set_xdp_umem_fill_ring_size,
    set_xdp_umem_reg, xdp_mmap_offsets,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags as Flags, SocketAddrXdpWithSharedUmem,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::memory::{Frames, Ring};
use super::pool::Layout;
use super::shared::Fill;
use super::sync::AtomicU64;
use crate::driver::DriverError;
use crate::driver::socket;

/// The part of a receive queue that classes share.
#[derive(Debug)]
pub(super) struct Queue {
    /// The fill ring, which gives the kernel empty frames.
    fill: Ring<AtomicU64>,
    /// The length of a frame in octets.
    frame: u64,
    /// The socket that is bound to the queue and belongs to no class.
    anchor: OwnedFd,
}

/// All receive queues of an interface, with the frames bound to them.
#[derive(Debug)]
pub(super) struct Queues {
    /// The queues in the order of their numbers, at least one.
    pub(super) all: Box<[Arc<Queue>]>,
    /// The completion ring, which returns sent frames. All frames are sent by the first queue.
    pub(super) completion: Ring<AtomicU64>,
    /// Whether the interface accesses the frames directly (zero copy).
    pub(super) is_zero_copy: bool,
}

impl Queues {
    /// Binds frames to the queues of an interface. Zero copy is tried only if `may_be_native`.
    pub(super) fn bind(
        frames: &Frames,
        layout: &Layout,
        interface: u32,
        may_be_native: bool,
    ) -> Result<Self, DriverError> {
        let anchor = socket()?;
        register(&anchor, frames, layout)?;
        // Neither ring may ever be full.
        let sent = (64 * layout.words).next_power_of_two() as u32;
        let (fill, completion) = rings(&anchor, layout, sent).map_err(failed(RINGS))?;
        let pieces = match layout.run {
            1 => Flags::empty(),
            _ => Flags::XDP_USE_SG,
        };
        let bind_first = |way| {
            let flags = Flags::XDP_USE_NEED_WAKEUP | pieces | way;
            bind(&anchor, &SocketAddrXdp::new(flags, interface, 0))
        };
        let is_zero_copy = may_be_native && bind_first(Flags::XDP_ZEROCOPY).is_ok();
        if !is_zero_copy {
            bind_first(Flags::XDP_COPY).map_err(refused)?;
        }
        let first = Queue {
            fill,
            frame: layout.frame as u64,
            anchor,
        };
        let mut all = vec![Arc::new(first)];
        for number in 1..layout.queues {
            match Queue::beside(&all[0], layout, interface, number) {
                Ok(queue) => all.push(Arc::new(queue)),
                // Some interfaces support zero copy only at some of their queues.
                Err(_) if is_zero_copy => {
                    drop(all);
                    return Self::bind(frames, layout, interface, false);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            all: all.into(),
            completion,
            is_zero_copy,
        })
    }
}

impl Queue {
    /// Creates the queue with this number, with the frames of the first one.
    fn beside(
        first: &Self,
        layout: &Layout,
        interface: u32,
        number: u32,
    ) -> Result<Self, DriverError> {
        let anchor = socket()?;
        // The socket sends nothing, but the kernel requires both rings.
        let (fill, _) = rings(&anchor, layout, 2).map_err(failed(RINGS))?;
        bind(&anchor, &first.shared(interface, number)).map_err(refused)?;
        Ok(Self {
            fill,
            frame: layout.frame as u64,
            anchor,
        })
    }

    /// Returns the address that binds a socket to a queue with the frames of this one.
    pub(super) fn shared(&self, interface: u32, number: u32) -> SocketAddrXdpWithSharedUmem<'_> {
        SocketAddrXdpWithSharedUmem {
            addr: SocketAddrXdp::new(Flags::XDP_SHARED_UMEM, interface, number),
            shared_umem_fd: self.anchor.as_fd(),
        }
    }

    /// Gives the kernel an empty frame, which must belong to this queue.
    #[inline]
    pub(super) fn refill(&self, address: u64) {
        let fill = Fill {
            producer: self.fill.producer(),
            slots: self.fill.entries(),
            frame: self.frame,
        };
        fill.put(address);
    }

    /// Returns whether the kernel needs a system call to notice empty frames. This occurs only with
    /// zero copy.
    #[inline]
    pub(super) fn wants_a_call(&self) -> bool {
        self.fill.wants_a_call()
    }
}

/// Registers the frames with the kernel.
fn register(anchor: &OwnedFd, frames: &Frames, layout: &Layout) -> Result<(), DriverError> {
    let registration = XdpUmemReg {
        addr: frames.address(),
        len: frames.len() as u64,
        chunk_size: layout.frame as u32,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    set_xdp_umem_reg(anchor, registration).map_err(|errno| match errno {
        Errno::NOBUFS => DriverError::Failed {
            what: "frames for AF_XDP",
            source: io::Error::other(format!(
                "{} MiB for {} receive queues are more memory than the process may lock: raise \
                LimitMEMLOCK, grant cap_ipc_lock, or have the interface use fewer queues (`ethtool \
                -L`)",
                frames.len().div_ceil(1 << 20),
                layout.queues
            )),
        },
        errno => failed("frames for AF_XDP")(errno.into()),
    })
}

/// Creates the fill ring of an unbound socket, and its completion ring with this many entries.
fn rings(
    anchor: &OwnedFd,
    layout: &Layout,
    sent: u32,
) -> io::Result<(Ring<AtomicU64>, Ring<AtomicU64>)> {
    let empty = layout.incoming.next_power_of_two() as u32;
    set_xdp_umem_fill_ring_size(anchor, empty)?;
    set_xdp_umem_completion_ring_size(anchor, sent)?;
    // A socket without a receive or transmit ring cannot be bound. This one receives nothing.
    set_xdp_rx_ring_size(anchor, 2)?;
    let places = xdp_mmap_offsets(anchor)?;
    let fill = Ring::map(anchor, XDP_UMEM_PGOFF_FILL_RING, places.fr, empty)?;
    let completion = Ring::map(anchor, XDP_UMEM_PGOFF_COMPLETION_RING, places.cr, sent)?;
    Ok((fill, completion))
}

/// Binds a socket, and with it the frames, to a queue. After a socket has closed, the kernel keeps
/// its frames for a while; this function waits for their release.
fn bind(socket: &OwnedFd, address: &impl SocketAddrArg) -> io::Result<()> {
    let deadline = Instant::now() + LAST_FRAMES;
    let mut pause = Duration::from_millis(1);
    loop {
        match rustix::net::bind(socket, address) {
            Err(Errno::BUSY) if Instant::now() < deadline => {
                sleep(pause);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
            done => return Ok(done?),
        }
    }
}

/// Opens an unbound AF_XDP socket.
pub(super) fn socket() -> Result<OwnedFd, DriverError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)
        .map_err(|errno| socket::failed("an AF_XDP socket", CAPABILITIES)(errno.into()))
}

fn refused(source: io::Error) -> DriverError {
    match source.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EINVAL) => DriverError::Unsupported {
            what: "AF_XDP on this interface, for packets of this length",
            source,
        },
        _ => failed("AF_XDP on a queue of the interface")(source),
    }
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> DriverError {
    move |source| DriverError::Failed { what, source }
}

/// The capabilities that AF_XDP needs.
pub(super) const CAPABILITIES: &str = "cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw";
const RINGS: &str = "rings of AF_XDP";
/// The maximum time that the kernel takes to release the frames of a closed socket.
const LAST_FRAMES: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
