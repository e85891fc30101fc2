//! Ways to other hosts.

use std::net::IpAddr;

use super::address::{address, octets};
use super::message::{Answer, MalformedMessage, Request};
use super::{Netlink, NetlinkError};

/// The way to another host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Route {
    /// The interface that packets leave by.
    pub index: u32,
    /// The router that they go to first; `None` where the host itself is on the interface's
    /// network.
    pub gateway: Option<IpAddr>,
    /// The address of this host that the kernel would send from.
    pub source: Option<IpAddr>,
}

impl Netlink {
    /// Returns the kernel's route to a host; with `index`, by that interface only.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] where there is no way (`ENETUNREACH`, `EHOSTUNREACH`).
    pub fn route_to(
        &mut self,
        destination: IpAddr,
        index: Option<u32>,
    ) -> Result<Route, NetlinkError> {
        let what = format_args!("find the way to {destination}");
        let octets = octets(destination);
        let bits = octets.len() as u8 * 8;
        let fixed = fixed(destination, bits, 0, 0, 0);
        let mut request = Request::new(libc::RTM_GETROUTE, libc::NLM_F_ACK, &fixed);
        request.attribute(libc::RTA_DST, &octets);
        if let Some(index) = index {
            request.number(libc::RTA_OIF, index);
        }
        let mut route = None;
        self.request(&what, request, |answer| {
            route = read(answer)?;
            Ok(())
        })?;
        route.ok_or_else(|| {
            let unreachable = std::io::Error::from_raw_os_error(libc::ENETUNREACH);
            NetlinkError::io(what, unreachable)
        })
    }

    /// Sends packets to hosts of a network with a prefix of `prefix` bits by a router; the network
    /// `0.0.0.0/0`, or `::/0`, is that of all hosts.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where the router is on no network of the interface.
    pub fn add_route(
        &mut self,
        (network, prefix): (IpAddr, u8),
        gateway: IpAddr,
        index: u32,
    ) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let main = libc::RT_TABLE_MAIN;
        let fixed = fixed(
            network,
            prefix,
            main,
            libc::RTPROT_STATIC,
            libc::RTN_UNICAST,
        );
        let mut request = Request::new(libc::RTM_NEWROUTE, flags, &fixed);
        if prefix > 0 {
            request.attribute(libc::RTA_DST, &octets(network));
        }
        request.attribute(libc::RTA_GATEWAY, &octets(gateway));
        request.number(libc::RTA_OIF, index);
        let what = format_args!("add the route to {network}/{prefix} by {gateway}");
        self.order(&what, request)
    }
}

/// `struct rtmsg`.
fn fixed(network: IpAddr, prefix: u8, table: u8, protocol: u8, kind: u8) -> [u8; FIXED] {
    let family = match network {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    let mut fixed = [0; FIXED];
    fixed[..2].copy_from_slice(&[family as u8, prefix]);
    fixed[4..8].copy_from_slice(&[table, protocol, libc::RT_SCOPE_UNIVERSE, kind]);
    fixed
}

pub(super) fn read(answer: Answer<'_>) -> Result<Option<Route>, MalformedMessage> {
    if answer.kind != libc::RTM_NEWROUTE {
        return Ok(None);
    }
    let (_, attributes) = answer.split::<FIXED>()?;
    let (mut index, mut gateway, mut source) = (None, None, None);
    for attribute in attributes {
        let attribute = attribute?;
        let its_address = || address(attribute.value).ok_or(MalformedMessage).map(Some);
        match attribute.kind {
            libc::RTA_OIF => index = attribute.number(),
            libc::RTA_GATEWAY => gateway = its_address()?,
            libc::RTA_PREFSRC => source = its_address()?,
            // A router of the other protocol: `struct rtvia`, its family before its address.
            RTA_VIA => {
                let octets = attribute.value.get(2..).ok_or(MalformedMessage)?;
                gateway = Some(address(octets).ok_or(MalformedMessage)?);
            }
            _ => {}
        }
    }
    Ok(index.map(|index| Route {
        index,
        gateway,
        source,
    }))
}

/// Octets of `struct rtmsg`.
const FIXED: usize = 12;
/// From `<linux/rtnetlink.h>`.
const RTA_VIA: u16 = 18;
