//! The addresses of the machine's network interfaces.
//!
//! The crate `if-addrs` (0.15) does not replace this module. It does not tell the flag `IFF_UP`,
//! only `IFF_RUNNING`, which an interface has after its link is established. A server that starts
//! with the machine would publish the loopback address until then.

#![allow(unsafe_code, reason = "getifaddrs gives a linked list of raw pointers")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// Returns the addresses of all interfaces that are up, in the kernel's order; empty if they are
/// not available. For a server that listens on all of them and has to publish one.
pub fn interface_addresses() -> Vec<IpAddr> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `list` is a valid place for the pointer that getifaddrs(3) stores.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut entry = list;
    // SAFETY: getifaddrs(3) succeeded, so `entry` walks a valid list that ends in null.
    while let Some(interface) = unsafe { entry.as_ref() } {
        if interface.ifa_flags & (libc::IFF_UP as u32) != 0 {
            // SAFETY: `ifa_addr` is null or points to an address that lives as long as the list.
            addresses.extend(unsafe { address(interface.ifa_addr) });
        }
        entry = interface.ifa_next;
    }
    // SAFETY: `list` was returned by getifaddrs(3), and no reference to it is left.
    unsafe { libc::freeifaddrs(list) };
    addresses
}

/// # Safety
/// `socket_address` is null or points to a socket address of the size that its family has.
unsafe fn address(socket_address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by the caller's word.
    let family = unsafe { socket_address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the address family determines this type.
            let v4 = unsafe { &*socket_address.cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the address family determines this type.
            let v6 = unsafe { &*socket_address.cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_among_them() {
        let addresses = interface_addresses();
        assert!(addresses.iter().any(IpAddr::is_loopback), "{addresses:?}");
    }
}
