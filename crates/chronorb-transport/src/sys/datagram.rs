//! Datagrams, with the address of this machine that each was sent to.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_void};
use rustix::io::Errno;

/// The source and destination of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct DatagramInfo {
    /// The number of its octets; for a truncated one, the size of the buffer.
    pub(crate) len: usize,
    /// The sender.
    pub(crate) peer: SocketAddr,
    /// The address of this machine to answer from; `None` if the kernel did not report it, or the
    /// datagram was sent to a group.
    pub(crate) local: Option<IpAddr>,
    /// The interface that received it, for link-local addresses; 0 if it is unknown.
    pub(crate) interface: u32,
}

/// Makes the kernel report the addresses of this machine that datagrams are sent to (`IP_PKTINFO`,
/// `IPV6_RECVPKTINFO`), for [`receive_datagram`].
///
/// # Errors
/// It is not a socket of IPv4, or of IPv6 if `is_ipv6`.
pub(crate) fn tell_destinations(socket: impl AsFd, is_ipv6: bool) -> io::Result<()> {
    let (level, option) = if is_ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)
    } else {
        (libc::IPPROTO_IP, libc::IP_PKTINFO)
    };
    super::set_option(socket, level, option, 1)
}

/// Receives a datagram into the room, without waiting.
///
/// # Errors
/// `WouldBlock` if there is none; and errors that the network has reported for earlier ones
/// (ip(7)).
pub(crate) fn receive_datagram(socket: impl AsFd, room: &mut [u8]) -> io::Result<DatagramInfo> {
    let mut peer = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut control = Control([0; CONTROL_LEN]);
    let mut piece = libc::iovec {
        iov_base: room.as_mut_ptr().cast::<c_void>(),
        iov_len: room.len(),
    };
    // SAFETY: all of its fields may be zero.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_name = peer.as_mut_ptr().cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_LEN as _;
    // SAFETY: every pointer in `header` is to something alive, writable and of the size given.
    let n = unsafe {
        libc::recvmsg(
            socket.as_fd().as_raw_fd(),
            &raw mut header,
            libc::MSG_DONTWAIT,
        )
    };
    let len = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: it was zeroed, and the kernel has written an address or nothing.
    let peer = unsafe { socket_address(peer.assume_init_ref()) };
    // SAFETY: the kernel has filled the control messages of `header`, which are alive.
    let (local, interface) = unsafe { destination(&header) };
    Ok(DatagramInfo {
        len,
        peer: peer.ok_or(Errno::AFNOSUPPORT)?,
        local: local.filter(|local| !local.is_multicast() && !local.is_unspecified()),
        interface,
    })
}

/// # Safety
/// It has the type of its address family.
unsafe fn socket_address(address: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match c_int::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: by the caller's word; a storage is large enough and aligned for it.
            let v4 = unsafe { &*(&raw const *address).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*(&raw const *address).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// # Safety
/// The control messages of `header` are those that the kernel wrote.
unsafe fn destination(header: &libc::msghdr) -> (Option<IpAddr>, u32) {
    // SAFETY: by the caller's word.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: the macros give null or a message within the control octets.
    while let Some(control) = unsafe { message.as_ref() } {
        // SAFETY: `message` is one of `header`.
        let data = unsafe { libc::CMSG_DATA(message) };
        match (control.cmsg_level, control.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: messages of this type carry this; it may be unaligned.
                let info = unsafe { data.cast::<libc::in_pktinfo>().read_unaligned() };
                let ip = Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr));
                return (Some(ip.into()), info.ipi_ifindex.cast_unsigned());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: as above.
                let info = unsafe { data.cast::<libc::in6_pktinfo>().read_unaligned() };
                let ip = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                return (Some(ip.into()), info.ipi6_ifindex);
            }
            _ => {}
        }
        // SAFETY: both are as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    (None, 0)
}

/// Room for control messages, aligned as their headers are.
#[repr(align(16))]
struct Control([u8; CONTROL_LEN]);

const CONTROL_LEN: usize = 128;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_datagram_tells_where_it_came_from_and_where_it_went() {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        tell_destinations(&socket, false).unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        peer.send_to(b"hello", ("127.0.0.2", port)).unwrap();
        let mut room = [0; 10];
        let info = receive_datagram(&socket, &mut room).unwrap();
        assert_eq!(&room[..info.len], b"hello");
        assert_eq!(info.peer, peer.local_addr().unwrap());
        assert_eq!(info.local, Some([127, 0, 0, 2].into()));
        assert_ne!(info.interface, 0);
    }

    #[test]
    fn what_does_not_fit_is_cut_and_what_is_not_there_not_awaited() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let error = receive_datagram(&socket, &mut [0; 3]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.send_to(b"hello", socket.local_addr().unwrap())
            .unwrap();
        let mut room = [0; 3];
        let info = receive_datagram(&socket, &mut room).unwrap();
        assert_eq!((info.len, &room), (3, b"hel"));
        assert_eq!(info.local, None, "it was not asked for");
    }

    #[test]
    fn both_families_come_to_a_socket_of_both() {
        let Ok(socket) = UdpSocket::bind("[::]:0") else {
            eprintln!("NOT TESTED: IPv6, which this machine does not have.");
            return;
        };
        tell_destinations(&socket, true).unwrap();
        let port = socket.local_addr().unwrap().port();
        for (from, to) in [("127.0.0.1:0", "127.0.0.3"), ("[::1]:0", "::1")] {
            let peer = UdpSocket::bind(from).unwrap();
            peer.send_to(b"hello", (to, port)).unwrap();
            let info = receive_datagram(&socket, &mut [0; 9]).unwrap();
            let to: IpAddr = to.parse().unwrap();
            assert_eq!(info.local.map(|ip| ip.to_canonical()), Some(to));
            let peer = peer.local_addr().unwrap();
            assert_eq!(info.peer.ip().to_canonical(), peer.ip());
        }
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(tell_destinations(&file, false).is_err());
        assert!(receive_datagram(&file, &mut [0; 9]).is_err());
    }
}
