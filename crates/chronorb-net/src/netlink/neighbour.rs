//! Hardware addresses of hosts on the same network.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use chronorb_rt::Deadline;
use thiserror::Error;

use super::address::octets;
use super::message::{Answer, MalformedMessage, Request};
use super::{Netlink, NetlinkError, Watch};

/// The kernel's knowledge of a host on the network of an interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Neighbour {
    /// The hardware address.
    Known([u8; 6]),
    /// The address is being requested.
    Sought,
    /// The host did not answer.
    Failed,
    /// The address was not requested.
    Unknown,
}

impl Netlink {
    /// Returns the kernel's knowledge of a host on the network of an interface.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn neighbour(&mut self, index: u32, address: IpAddr) -> Result<Neighbour, NetlinkError> {
        let what = format_args!("look for the neighbour {address}");
        let mut request = Request::new(libc::RTM_GETNEIGH, libc::NLM_F_ACK, &fixed(index, address));
        request.attribute(libc::NDA_DST, &octets(address));
        let mut neighbour = Neighbour::Unknown;
        let asked = self.request(&what, request, |answer| {
            neighbour = read(answer)?.unwrap_or(neighbour);
            Ok(())
        });
        match asked {
            Err(error) if error.is_absent() => Ok(Neighbour::Unknown),
            asked => asked.map(|()| neighbour),
        }
    }
}

/// The hardware address of a host on the network of an interface of the calling thread's namespace.
/// If the kernel does not know it, it is brought to ask for it by a datagram to the host, and
/// waited for.
///
/// # Errors
/// [`ResolveError`].
pub fn resolve(index: u32, address: IpAddr, deadline: Deadline) -> Result<[u8; 6], ResolveError> {
    let mut netlink = Netlink::open()?;
    if let Neighbour::Known(hardware) = netlink.neighbour(index, address)? {
        return Ok(hardware);
    }
    // News are listened for before they are brought about, so that none is missed.
    let news = Watch::neighbours()?;
    provoke(index, address)
        .map_err(|error| NetlinkError::io(format_args!("send to {address}"), error))?;
    loop {
        match netlink.neighbour(index, address)? {
            Neighbour::Known(hardware) => return Ok(hardware),
            Neighbour::Failed => return Err(ResolveError::Silent(address)),
            Neighbour::Sought | Neighbour::Unknown => {}
        }
        if !news.wait(deadline)? {
            return Err(ResolveError::Late(address));
        }
    }
}

/// Makes the kernel resolve a host: it has to, in order to send this packet.
fn provoke(index: u32, address: IpAddr) -> io::Result<()> {
    let (here, to) = match address {
        IpAddr::V4(_) => (
            SocketAddr::from(([0; 4], 0)),
            SocketAddr::new(address, DISCARD),
        ),
        IpAddr::V6(v6) => {
            let to = std::net::SocketAddrV6::new(v6, DISCARD, 0, index);
            (SocketAddr::from(([0_u16; 8], 0)), to.into())
        }
    };
    UdpSocket::bind(here)?.send_to(&[], to)?;
    Ok(())
}

/// The reason why the hardware address of a host is unknown.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// The host does not answer.
    #[error("no host on the network answers for {0}")]
    Silent(IpAddr),
    /// The host has not answered in time.
    #[error("{0} has not answered in time")]
    Late(IpAddr),
    /// The kernel cannot be asked.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// `struct ndmsg`.
fn fixed(index: u32, address: IpAddr) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    fixed[0] = match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    };
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed
}

pub(super) fn read(answer: Answer<'_>) -> Result<Option<Neighbour>, MalformedMessage> {
    if answer.kind != libc::RTM_NEWNEIGH {
        return Ok(None);
    }
    let (fixed, attributes) = answer.split::<FIXED>()?;
    let state = u16::from_ne_bytes([fixed[8], fixed[9]]);
    if state & libc::NUD_FAILED != 0 {
        return Ok(Some(Neighbour::Failed));
    }
    // An entry that has been given up keeps the address that it had.
    let hardware = match state & KNOWN {
        0 => None,
        _ => attributes.find(libc::NDA_LLADDR)?,
    };
    let hardware = hardware.and_then(|hardware| hardware.value.try_into().ok());
    Ok(Some(hardware.map_or(Neighbour::Sought, Neighbour::Known)))
}

/// Octets of `struct ndmsg`.
const FIXED: usize = 12;
/// The states in which the address can be used.
const KNOWN: u16 = libc::NUD_REACHABLE
    | libc::NUD_STALE
    | libc::NUD_DELAY
    | libc::NUD_PROBE
    | libc::NUD_PERMANENT
    | libc::NUD_NOARP;
/// The port of the discard service.
const DISCARD: u16 = 9;
