//! Whole frames of a network interface, packet(7).

#![allow(
    unsafe_code,
    reason = "addresses of links and what is told beside frames have no safe wrapper elsewhere"
)]

use core::mem::{self, MaybeUninit};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::{c_int, c_void};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};

use crate::sys;

/// A socket that takes all frames that come in by an interface, and sends frames as they are. It
/// never waits.
#[derive(Debug)]
pub struct LinkSocket(OwnedFd);

impl LinkSocket {
    /// A socket at the interface of this number, in the calling thread's network namespace.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_RAW`; otherwise the system's error.
    pub fn open(index: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // No protocol yet: until it is bound it would take the frames of all interfaces.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        for option in [libc::PACKET_AUXDATA, libc::PACKET_IGNORE_OUTGOING] {
            sys::set_option(socket.as_fd(), libc::SOL_PACKET, option, 1)?;
        }
        // SAFETY: a `sockaddr_ll` consists of numbers, for which zero is valid.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = c_int::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is alive and of the size given.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
        match bound {
            0 => Ok(Self(socket)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes a frame in, with its VLAN tag where it has one, and returns how long it is.
    ///
    /// # Errors
    /// `WouldBlock` where there is none; `InvalidData` for one that the room, which has 4 octets
    /// more than it, cannot hold; otherwise the system's error.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        let mut control = Control([0; CONTROL]);
        let mut piece = libc::iovec {
            iov_base: room.as_mut_ptr().cast::<c_void>(),
            iov_len: room.len(),
        };
        // SAFETY: all of its fields may be zero.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
        // SAFETY: every pointer in `header` is to something alive, writable and of the size given.
        let len = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, libc::MSG_TRUNC) };
        let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
        if len + TAG > room.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: the kernel has filled the control messages of `header`, which are alive.
        match unsafe { tag(&header) } {
            Some(tag) if len >= ADDRESSES => {
                room.copy_within(ADDRESSES..len, ADDRESSES + TAG);
                room[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
                Ok(len + TAG)
            }
            _ => Ok(len),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// `WouldBlock` or `ENOBUFS` where the interface's queue is full; otherwise the system's error.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(&self.0, frame, SendFlags::empty())?;
        Ok(())
    }
}

impl AsFd for LinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The VLAN tag that the kernel has taken off a frame, as it was there.
///
/// # Safety
/// The control messages of `header` are those that the kernel wrote.
unsafe fn tag(header: &libc::msghdr) -> Option<[u8; TAG]> {
    // SAFETY: by the caller's word.
    let message = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (message.cmsg_level, message.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    let mut data = MaybeUninit::<libc::tpacket_auxdata>::zeroed();
    // SAFETY: a message of this kind has such data, which need not be aligned.
    let data = unsafe {
        let from = libc::CMSG_DATA(message);
        data.as_mut_ptr()
            .cast::<u8>()
            .copy_from(from, size_of::<libc::tpacket_auxdata>());
        data.assume_init()
    };
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let [a, b] = data.tp_vlan_tpid.to_be_bytes();
    let [c, d] = data.tp_vlan_tci.to_be_bytes();
    Some([a, b, c, d])
}

#[repr(align(8))]
struct Control([u8; CONTROL]);

/// Room for one message, the header of which is no longer than its data.
const CONTROL: usize = 64;
/// Octets of a VLAN tag.
const TAG: usize = 4;
/// Octets of both addresses, after which the tag is.
const ADDRESSES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_has_no_socket() {
        assert!(LinkSocket::open(u32::MAX).is_err());
        assert!(LinkSocket::open(i32::MAX as u32).is_err());
    }
}
