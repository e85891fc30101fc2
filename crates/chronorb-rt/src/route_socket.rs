//! The socket by which the kernel is asked about its network, rtnetlink(7).

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::sys;

/// A socket to the kernel's network of the calling thread's namespace, where it stays.
///
/// The kernel's refusals have a text, and lists are of what was asked for only, as far as the kernel can do these. Waiting
/// for an answer ends after `patience`, which is not zero, with `WouldBlock`.
///
/// # Errors
/// The process has no file descriptor left.
pub fn route_socket(patience: Duration) -> io::Result<OwnedFd> {
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
        // Kernels that do not know one say less, or more, and still answer.
        let _ = sys::set_protocol_option(socket.as_fd(), libc::SOL_NETLINK, option, 1);
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use rustix::net::{RecvFlags, recv};

    use super::*;

    #[test]
    fn waiting_for_an_answer_ends() {
        let socket = route_socket(Duration::from_millis(1)).expect("anybody may");
        let error = recv(&socket, &mut [0; 16][..], RecvFlags::empty()).unwrap_err();
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::WouldBlock);
    }
}
