//! System calls on sockets that have no safe wrapper elsewhere: socket(7), ip(7), ipv6(7).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;

#[cfg(feature = "udp")]
pub(crate) mod datagram;
pub(crate) mod interfaces;
pub(crate) mod passed;

/// Sets whether packets reach only hosts of the networks that this machine is attached to, and pass
/// no router (`SO_DONTROUTE`).
///
/// # Errors
/// Where the descriptor is not a socket.
pub(crate) fn set_dont_route(socket: impl AsFd, dont_route: bool) -> io::Result<()> {
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_DONTROUTE,
        dont_route.into(),
    )
}

/// Whether packets pass no router (`SO_DONTROUTE`).
///
/// # Errors
/// Where the descriptor is not a socket.
pub fn dont_route(socket: impl AsFd) -> io::Result<bool> {
    Ok(option(socket, libc::SOL_SOCKET, libc::SO_DONTROUTE)? != 0)
}

/// Sets the priority of packets in this machine's queues, higher is more urgent (`SO_PRIORITY`).
///
/// # Errors
/// `PermissionDenied` above 6 for a process without `CAP_NET_ADMIN`; `InvalidInput` above
/// `i32::MAX`.
pub fn set_packet_priority(socket: impl AsFd, priority: u32) -> io::Result<()> {
    let priority = i32::try_from(priority).map_err(|_| io::ErrorKind::InvalidInput)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority)
}

/// The priority of packets in this machine's queues; see [`set_packet_priority`].
///
/// # Errors
/// Where the descriptor is not a socket.
pub fn packet_priority(socket: impl AsFd) -> io::Result<u32> {
    Ok(option(socket, libc::SOL_SOCKET, libc::SO_PRIORITY)?.cast_unsigned())
}

/// Restricts a socket to this network interface (`SO_BINDTOIFINDEX`). Changing the interface of a
/// socket needs `CAP_NET_RAW`.
///
/// # Errors
/// `NotFound` where the network namespace of the socket has no such interface; `PermissionDenied`;
/// where the descriptor is not a socket.
pub(crate) fn bind_to_interface(socket: impl AsFd, index: u32) -> io::Result<()> {
    let index = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, index)
}

/// Restricts a socket to the multicast groups that it has joined itself, instead of all that are
/// joined on this machine (`IP_MULTICAST_ALL`, or `IPV6_MULTICAST_ALL` if `is_ipv6`).
///
/// # Errors
/// Where the descriptor is not a socket of that family.
#[cfg(feature = "multicast")]
pub(crate) fn hear_only_joined_groups(socket: impl AsFd, is_ipv6: bool) -> io::Result<()> {
    let (protocol, option) = if is_ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL)
    } else {
        (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL)
    };
    set_option(socket, protocol, option, 0)
}

/// Sets an option whose value is a number.
fn set_option(socket: impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is alive and of the size given.
    let result =
        unsafe { libc::setsockopt(socket, level, option, (&raw const value).cast(), size) };
    check(result)
}

/// The value of an option that is a number.
fn option(socket: impl AsFd, level: c_int, option: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut size = size_of_val(&value) as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    let place = (&raw mut value).cast();
    // SAFETY: `place` is writable and of the size given.
    check(unsafe { libc::getsockopt(socket, level, option, place, &raw mut size) })?;
    Ok(value)
}

fn check(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_is_set_is_read_back() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(!dont_route(&socket).unwrap());
        set_dont_route(&socket, true).unwrap();
        assert!(dont_route(&socket).unwrap());

        assert_eq!(packet_priority(&socket).unwrap(), 0);
        set_packet_priority(&socket, 6).unwrap();
        assert_eq!(packet_priority(&socket).unwrap(), 6);
        let refused = set_packet_priority(&socket, u32::MAX).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert!(set_dont_route(&file, true).is_err());
        assert!(dont_route(&file).is_err());
        assert!(set_packet_priority(&file, 1).is_err());
        assert!(packet_priority(&file).is_err());
    }
}
