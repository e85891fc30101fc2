//! Guards, which keep the kernel silent about ports that RIO serves.
//!
//! Drivers that only copy packets leave them to the kernel too. The kernel would reset (RST)
//! connections to ports that it does not know. A guard is a kernel socket that listens on the port
//! with a filter that drops everything. Thus the kernel answers neither connection requests nor
//! packets of connections, and no other program can bind the port. A guard ends with the process.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{bind, getsockname, listen, sockopt};
use thiserror::Error;

use super::socket::{attach_filter, socket};
use crate::bpf::classic::Instruction;

/// A guard of an address and port, in force until it is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Guard {
    /// Guards this address and port. Port 0 stands for any free one.
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

    /// Returns the guarded address and port.
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
            // Kernel connections that have ended do not prevent a guard if nothing else holds the
            // port.
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

/// Returns whether a process has a kernel connection at this address and port. A connection without
/// a process has ended, though the kernel may keep it for a while.
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

/// Parses an address from `/proc/net/tcp`: hexadecimal words in memory order, and the port.
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

/// An error of [`Guard::new`].
#[derive(Debug, Error)]
pub(crate) enum GuardError {
    /// The port is in use, by another program or by this one.
    #[error("{0} is taken: `ss -tanp` shows the owner")]
    Taken(SocketAddr),
    /// The host does not have the address.
    #[error("{0} is no address of this host; `ip address` lists those that it has")]
    NotHere(IpAddr),
    /// The process may not bind the port.
    #[error(
        "{0} needs cap_net_bind_service: take a port from 1024 on, run as root, or grant it \
         (`setcap cap_net_bind_service+ep PROGRAM`)"
    )]
    Denied(SocketAddr),
    /// Another error.
    #[error("{address} cannot be guarded: {source}")]
    Failed {
        /// The address to be guarded.
        address: SocketAddr,
        /// The error of the system call.
        source: io::Error,
    },
}

/// A filter that drops everything.
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
