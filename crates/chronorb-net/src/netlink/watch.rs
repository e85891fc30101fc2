//! News of the kernel's network.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use chronorb_rt::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{RecvFlags, bind, recv};

use super::NetlinkError;
use super::socket::route_socket;

/// A notification of changes in the network of the calling thread's namespace. The changes
/// themselves must be queried, because news may be lost if there are too many.
///
/// Whatever has changed since it was opened is heard.
#[derive(Debug)]
pub struct Watch(OwnedFd);

impl Watch {
    /// Interfaces that come, go or change.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn links() -> Result<Self, NetlinkError> {
        Self::open(RTMGRP_LINK)
    }

    /// Neighbours that become known or are given up.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn neighbours() -> Result<Self, NetlinkError> {
        Self::open(RTMGRP_NEIGH)
    }

    /// Waits for news; false if there have been none in time.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn wait(&self, deadline: Deadline) -> Result<bool, NetlinkError> {
        while let Some(left) = deadline.remaining() {
            let left = Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    self.drain();
                    return Ok(true);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(false)
    }

    fn open(groups: u32) -> Result<Self, NetlinkError> {
        let socket = route_socket(PATIENCE).map_err(failed)?;
        bind(&socket, &SocketAddrNetlink::new(0, groups)).map_err(failed)?;
        Ok(Self(socket))
    }

    /// Empties the socket. A loss of news is an error of the socket, which is cleared here too.
    fn drain(&self) {
        loop {
            match recv(&self.0, &mut [0; 1][..], RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

fn failed(error: impl Into<io::Error>) -> NetlinkError {
    NetlinkError::io("wait for news of the network", error.into())
}

/// Nothing is waited for by the socket itself.
const PATIENCE: Duration = Duration::from_secs(1);

// <linux/rtnetlink.h>
const RTMGRP_LINK: u32 = 1;
const RTMGRP_NEIGH: u32 = 4;
