//! Addresses of interfaces.

use std::net::IpAddr;

use super::message::{Answer, MalformedMessage, Request};
use super::{Netlink, NetlinkError};

impl Netlink {
    /// The addresses of an interface, each with the length of its network's prefix.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn addresses(&mut self, index: u32) -> Result<Vec<(IpAddr, u8)>, NetlinkError> {
        let what = format_args!("list the addresses of the interface {index}");
        let fixed = fixed(libc::AF_UNSPEC, 0, index);
        let request = Request::new(libc::RTM_GETADDR, libc::NLM_F_DUMP, &fixed);
        // Kernels without strict lists report the addresses of all interfaces.
        self.list(&what, &request, |answer| read(answer, index))
    }

    /// Gives an interface an address in a network with a prefix of `prefix` bits. It can be used at
    /// once: whether another host has it is not looked for.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where it has the address already.
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let family = match address {
            IpAddr::V4(_) => libc::AF_INET,
            IpAddr::V6(_) => libc::AF_INET6,
        };
        let mut request = Request::new(libc::RTM_NEWADDR, flags, &fixed(family, prefix, index));
        let octets = octets(address);
        request.attribute(libc::IFA_LOCAL, &octets);
        request.attribute(libc::IFA_ADDRESS, &octets);
        request.number(libc::IFA_FLAGS, libc::IFA_F_NODAD);
        let what = format_args!("give the interface {index} the address {address}/{prefix}");
        self.order(&what, request)
    }
}

/// The octets of an address, as attributes have them.
pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The address that an attribute has.
pub(super) fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => value.first_chunk::<4>().map(|octets| (*octets).into()),
        16 => value.first_chunk::<16>().map(|octets| (*octets).into()),
        _ => None,
    }
}

/// `struct ifaddrmsg`.
fn fixed(family: i32, prefix: u8, index: u32) -> [u8; FIXED] {
    let mut fixed = [family as u8, prefix, 0, 0, 0, 0, 0, 0];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed
}

/// The address with its prefix, if it is this interface's.
pub(super) fn read(
    answer: Answer<'_>,
    index: u32,
) -> Result<Option<(IpAddr, u8)>, MalformedMessage> {
    if answer.kind != libc::RTM_NEWADDR {
        return Ok(None);
    }
    let (fixed, attributes) = answer.split::<FIXED>()?;
    // `IFA_ADDRESS` is the other end's on a link of two hosts, where `IFA_LOCAL` is this one's.
    let found = match attributes.find(libc::IFA_LOCAL)? {
        None => attributes.find(libc::IFA_ADDRESS)?,
        local => local,
    };
    let address = found
        .and_then(|found| address(found.value))
        .ok_or(MalformedMessage)?;
    let its = u32::from_ne_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    Ok((its == index).then_some((address, fixed[1])))
}

/// Octets of `struct ifaddrmsg`.
const FIXED: usize = 8;
