//! What keeps the kernel quiet about the ports that are served here.
//!
//! The kernel sees packets to these ports too, by drivers that do not take them away from it, and
//! would answer that nobody is there (RST). A guard is a listening socket of the kernel with a
//! filter that lets nothing through: the kernel says nothing then, neither to who connects nor to
//! who is connected, and no other program can have the port. It ends with the process.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{bind, getsockname, listen, sockopt};
use thiserror::Error;

use super::socket::{attach_filter, socket};
use crate::bpf::classic::Instruction;

/// Keeps the kernel quiet about an address and port, as long as it is there.
#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Guard {
    /// Guards this address and port; where the port is 0, one that is free.
    ///
    /// # Errors
    /// [`GuardError`].
    pub(crate) fn new(address: SocketAddr) -> Result<Self, GuardError> {
        Self::listen(address).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::ADDRINUSE) => GuardError::Taken(address),
            Some(Errno::ADDRNOTAVAIL) => GuardError::NotHere(address.ip()),
            Some(Errno::ACCESS) => GuardError::Denied(address),
            _ => GuardError::Failed {
                address,
                source: error,
            },
        })
    }

    /// What it guards.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    fn listen(address: SocketAddr) -> io::Result<Self> {
        let domain = match address {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        };
        let socket = socket(domain, libc::SOCK_STREAM, 0)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        attach_filter(&socket, &NOTHING)?;
        match bind(&socket, &address) {
            // Connections of the kernel's that have ended are no hindrance, as long as they are all
            // that is there.
            Err(Errno::ADDRINUSE) if !is_somebodys(address) => {
                sockopt::set_socket_reuseaddr(&socket, true)?;
                bind(&socket, &address)?;
            }
            bound => bound?,
        }
        listen(&socket, 1)?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Self {
            address,
            _socket: socket,
        })
    }
}

/// Whether a process has a connection of the kernel's at this address and port. One that is of no
/// process has ended, though the kernel may have to do with it for a while.
fn is_somebodys(address: SocketAddr) -> bool {
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    ["tcp", "tcp6"].into_iter().any(|kind| {
        let path = format!("/proc/thread-self/net/{kind}");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut words = line.split_ascii_whitespace();
            let local = words.nth(1).and_then(read_address);
            let node = words.nth(7);
            local == Some(address) && node != Some("0")
        })
    })
}

/// An address as the kernel writes it in `/proc/net/tcp`: words as they are in memory, and the
/// port.
fn read_address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let word = |at: usize| {
        let word = words.get(8 * at..8 * at + 8)?;
        Some(u32::from_be(u32::from_str_radix(word, 16).ok()?))
    };
    let ip: IpAddr = match words.len() {
        8 => Ipv4Addr::from_bits(word(0)?).into(),
        _ => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bits = words
                .into_iter()
                .fold(0, |bits, word| bits << 32 | u128::from(word));
            Ipv6Addr::from_bits(bits).to_canonical()
        }
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Why a port cannot be guarded.
#[derive(Debug, Error)]
pub(crate) enum GuardError {
    /// Another program has the port, or this one: it listens there, or has connections there still.
    #[error("{0} is taken: `ss -tanp` shows by whom")]
    Taken(SocketAddr),
    /// The address is none of this host's.
    #[error("{0} is no address of this host; `ip address` lists those that it has")]
    NotHere(IpAddr),
    /// The process may not have the port.
    #[error(
        "{0} needs cap_net_bind_service: take a port from 1024 on, run as root, or grant it \
         (`setcap cap_net_bind_service+ep PROGRAM`)"
    )]
    Denied(SocketAddr),
    /// Anything else.
    #[error("{address} cannot be guarded: {source}")]
    Failed {
        /// What was to be guarded.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A filter that lets nothing through.
const NOTHING: [Instruction; 1] = [Instruction {
    code: 0x06,
    jt: 0,
    jf: 0,
    k: 0,
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_guarded_once() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let guard = Guard::new(any).expect("there are ports");
        let again = Guard::new(guard.address());
        assert!(matches!(again, Err(GuardError::Taken(_))), "{again:?}");
    }
}
