//! The socket: requests, and the kernel's answers.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use thiserror::Error;

use super::message::{Answer, Answers, MalformedMessage, Request};
use crate::sys;

/// A socket to the network of one namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    room: Vec<u8>,
}

impl Netlink {
    /// A socket to the network of the calling thread's namespace. No right is needed to open it or
    /// to ask; changes need `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn open() -> Result<Self, NetlinkError> {
        let socket = route_socket(PATIENCE);
        let socket = socket.map_err(|error| NetlinkError::io("open a netlink socket", error))?;
        Ok(Self {
            socket,
            sequence: 0,
            room: vec![0; ROOM],
        })
    }

    /// Sends a request for an action, or for one item, which `what` names. `take` gets the answer.
    pub(super) fn request(
        &mut self,
        what: &dyn fmt::Display,
        request: Request,
        mut take: impl FnMut(Answer<'_>) -> Result<(), MalformedMessage>,
    ) -> Result<(), NetlinkError> {
        self.exchange(what, request, &mut take).map(|_| ())
    }

    /// Sends a request whose answer is only an acknowledgement.
    pub(super) fn order(
        &mut self,
        what: &dyn fmt::Display,
        request: Request,
    ) -> Result<(), NetlinkError> {
        self.request(what, request, |_| Ok(()))
    }

    /// Lists items, each of which `read` makes of an answer; it returns `None` for other answers.
    pub(super) fn list<T>(
        &mut self,
        what: &dyn fmt::Display,
        request: &Request,
        read: impl Fn(Answer<'_>) -> Result<Option<T>, MalformedMessage>,
    ) -> Result<Vec<T>, NetlinkError> {
        // A list that changed while it was sent may lack items that were there all the time.
        for _ in 0..ATTEMPTS {
            let mut list = Vec::new();
            let is_whole = self.exchange(what, request.clone(), &mut |answer| {
                list.extend(read(answer)?);
                Ok(())
            })?;
            if is_whole {
                return Ok(list);
            }
        }
        Err(NetlinkError::io(what, io::ErrorKind::Interrupted.into()))
    }

    /// Whether the list is consistent.
    fn exchange(
        &mut self,
        what: &dyn fmt::Display,
        request: Request,
        take: &mut dyn FnMut(Answer<'_>) -> Result<(), MalformedMessage>,
    ) -> Result<bool, NetlinkError> {
        let failed = |error: io::Error| NetlinkError::io(what, error);
        self.sequence = self.sequence.wrapping_add(1);
        let octets = request.finish(self.sequence);
        let octets = octets.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let kernel = SocketAddrNetlink::new(0, 0);
        let sent = sendto(&self.socket, &octets, SendFlags::empty(), &kernel);
        sent.map_err(|error| failed(error.into()))?;
        let mut is_whole = true;
        loop {
            let received = recv(&self.socket, &mut self.room[..], RecvFlags::TRUNC);
            let (_, len) = received.map_err(|error| failed(error.into()))?;
            let datagram = self.room.get(..len).ok_or_else(|| malformed(what))?;
            for answer in Answers(datagram) {
                let answer = answer.map_err(|_| malformed(what))?;
                // An answer to a request that was abandoned.
                if answer.sequence != self.sequence {
                    continue;
                }
                is_whole &= i32::from(answer.flags) & libc::NLM_F_DUMP_INTR == 0;
                match i32::from(answer.kind) {
                    libc::NLMSG_DONE => return Ok(is_whole),
                    libc::NLMSG_ERROR => match answer.verdict().map_err(|_| malformed(what))? {
                        (0, _) => return Ok(is_whole),
                        (error, text) => return Err(NetlinkError::refused(what, error, text)),
                    },
                    _ => take(answer).map_err(|_| malformed(what))?,
                }
            }
        }
    }
}

/// A socket to the kernel's network of the calling thread's namespace, where it stays.
///
/// Refusals of the kernel have a text, and lists are filtered, as far as the kernel supports that.
/// Waiting for an answer ends after `patience`, which is not zero, with `WouldBlock`.
///
/// # Errors
/// The process has no file descriptor left.
pub(super) fn route_socket(patience: Duration) -> io::Result<OwnedFd> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // `NETLINK_ROUTE`, which is protocol 0.
        None,
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
    for option in [
        libc::NETLINK_EXT_ACK,
        libc::NETLINK_CAP_ACK,
        libc::NETLINK_GET_STRICT_CHK,
    ] {
        // Kernels that lack an option send less, or more, and still answer.
        let _ = sys::set_option(socket.as_fd(), libc::SOL_NETLINK, option, 1);
    }
    Ok(socket)
}

/// The reason why the kernel's network could not be queried or changed.
#[derive(Debug, Error)]
pub enum NetlinkError {
    /// The process may not do it.
    #[error(
        "cannot {what}: it needs CAP_NET_ADMIN; run as root, or grant it (`setcap \
         cap_net_admin+ep PROGRAM`)"
    )]
    Denied {
        /// The attempted operation.
        what: String,
    },
    /// The kernel refused.
    #[error(
        "cannot {what}: {source}{}",
        text.as_ref().map(|text| format!(" ({text})")).unwrap_or_default()
    )]
    Refused {
        /// The attempted operation.
        what: String,
        /// The kernel's error.
        source: io::Error,
        /// The kernel's explanation.
        text: Option<String>,
    },
    /// The kernel's answer is malformed.
    #[error("cannot {what}: the kernel's answer is not as rtnetlink(7) says")]
    Malformed {
        /// The attempted operation.
        what: String,
    },
}

impl NetlinkError {
    /// A system call failed.
    pub(crate) fn io(what: impl fmt::Display, source: io::Error) -> Self {
        Self::Refused {
            what: what.to_string(),
            source,
            text: None,
        }
    }

    /// Whether the requested item does not exist.
    pub fn is_absent(&self) -> bool {
        let Self::Refused { source, .. } = self else {
            return false;
        };
        matches!(
            source.raw_os_error(),
            Some(libc::ENODEV | libc::ENOENT | libc::ESRCH)
        )
    }

    fn refused(what: impl fmt::Display, error: i32, text: Option<&str>) -> Self {
        let what = what.to_string();
        match error {
            libc::EPERM => Self::Denied { what },
            _ => Self::Refused {
                what,
                source: io::Error::from_raw_os_error(error),
                text: text.map(str::to_owned),
            },
        }
    }
}

impl From<NetlinkError> for io::Error {
    fn from(error: NetlinkError) -> Self {
        let kind = match &error {
            NetlinkError::Denied { .. } => io::ErrorKind::PermissionDenied,
            NetlinkError::Refused { source, .. } => source.kind(),
            NetlinkError::Malformed { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

fn malformed(what: &dyn fmt::Display) -> NetlinkError {
    NetlinkError::Malformed {
        what: what.to_string(),
    }
}

/// The kernel answers within the call that asks it, but for a lock that it may have to wait for.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than the kernel sends at once.
const ROOM: usize = 64 << 10;
const ATTEMPTS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_an_answer_ends() {
        let socket = route_socket(Duration::from_millis(1)).expect("it needs no right");
        let error = recv(&socket, &mut [0; 16][..], RecvFlags::empty()).unwrap_err();
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::WouldBlock);
    }
}
