//! Connecting by TCP within a deadline.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use chronorb_rt::Deadline;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{self, sockopt};
use rustix::time::Timespec;

use super::connection::TcpConnection;
use super::{options, socket};
use crate::timed::TimedSocket;
use crate::{ConnectError, SocketOptions};

/// Connects, by the given interface if there is one, and waits until the deadline.
pub(super) fn connect(
    address: SocketAddr,
    wanted: SocketOptions,
    interface: Option<u32>,
    deadline: Deadline,
) -> Result<TcpConnection, ConnectError> {
    let refused = |source: io::Error| ConnectError::Refused {
        address: address.to_string(),
        source,
    };
    let socket = socket(&address, interface).map_err(refused)?;
    options::set(&socket, wanted).map_err(refused)?;
    rustix::io::ioctl_fionbio(&socket, true).map_err(|e| refused(e.into()))?;
    match net::connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => wait_connected(&socket, address, deadline)?,
        Err(error) => return Err(refused(error.into())),
    }
    rustix::io::ioctl_fionbio(&socket, false).map_err(|e| refused(e.into()))?;
    Ok(TcpConnection::new(TimedSocket::new(socket)))
}

fn wait_connected(
    socket: &OwnedFd,
    address: SocketAddr,
    deadline: Deadline,
) -> Result<(), ConnectError> {
    let timed_out = || ConnectError::TimedOut {
        address: address.to_string(),
    };
    let refused = |source: io::Error| ConnectError::Refused {
        address: address.to_string(),
        source,
    };
    loop {
        let remaining = deadline.remaining().ok_or_else(timed_out)?;
        let time_out = Timespec {
            tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: remaining.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&time_out)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                return match sockopt::socket_error(socket) {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(error)) | Err(error) => Err(refused(error.into())),
                };
            }
            Err(error) => return Err(refused(error.into())),
        }
    }
}
