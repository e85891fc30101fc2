//! Network interfaces.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::message::{Answer, Attribute, MalformedMessage, Request};
use super::{Netlink, NetlinkError};

/// The kernel's description of a network interface.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinkInfo {
    /// The name.
    pub name: String,
    /// The index in its network namespace.
    pub index: u32,
    /// The hardware address, if it has one of six octets.
    pub hardware: Option<[u8; 6]>,
    /// Octets of the longest packet, without the Ethernet header.
    pub mtu: usize,
    /// The kind as the kernel names it, `veth` or `bridge`; `None` for devices.
    pub kind: Option<String>,
    /// The number of the bridge that it is a port of.
    pub master: Option<u32>,
    /// Whether it is up by its own setting.
    pub is_up: bool,
    /// Whether it carries packets: it is up, there is a carrier, and the kernel has noticed, which
    /// is a little later.
    pub is_running: bool,
    /// An administrative text.
    pub alias: Option<String>,
}

/// One end of a pair of virtual Ethernet interfaces that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// The name.
    pub name: &'a str,
    /// The network namespace that it shall be in; `None` for that of the socket.
    pub namespace: Option<BorrowedFd<'a>>,
    /// The number of receive queues, and of transmit queues.
    pub queues: u32,
}

impl Netlink {
    /// The interface of this name.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] where there is none: [`NetlinkError::is_absent`].
    pub fn link(&mut self, name: &str) -> Result<LinkInfo, NetlinkError> {
        let what = format_args!("read the interface {name:?}");
        let mut request = Request::new(libc::RTM_GETLINK, libc::NLM_F_ACK, &fixed(0, 0, 0));
        request.text(libc::IFLA_IFNAME, name);
        let mut link = None;
        self.request(&what, request, |answer| {
            link = read(answer)?;
            Ok(())
        })?;
        link.ok_or_else(|| NetlinkError::io(what, no_device()))
    }

    /// All interfaces of the namespace.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn links(&mut self) -> Result<Vec<LinkInfo>, NetlinkError> {
        let request = Request::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &fixed(0, 0, 0));
        self.list(&"list the interfaces", &request, read)
    }

    /// The interface that has this address.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] where none has it: [`NetlinkError::is_absent`].
    pub fn link_with_address(&mut self, address: IpAddr) -> Result<LinkInfo, NetlinkError> {
        let what = format_args!("find the interface of the address {address}");
        for link in self.links()? {
            let addresses = self.addresses(link.index)?;
            if addresses.iter().any(|(its, _)| *its == address) {
                return Ok(link);
            }
        }
        Err(NetlinkError::io(what, no_device()))
    }

    /// Makes a pair of virtual Ethernet interfaces: packets sent at one end are received at the
    /// other.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where a name is taken.
    pub fn create_veth(
        &mut self,
        one: VethEnd<'_>,
        other: VethEnd<'_>,
    ) -> Result<(), NetlinkError> {
        let what = format_args!("create the veth pair {:?} and {:?}", one.name, other.name);
        let mut request = create();
        one.tell(&mut request);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, "veth");
            info.nest(libc::IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |peer| {
                    peer.fixed(&fixed(0, 0, 0));
                    other.tell(peer);
                });
            });
        });
        self.order(&what, request)
    }

    /// Makes an interface of a kind that needs no parameters: `bridge`, `ifb` or `dummy`.
    ///
    /// # Errors
    /// [`NetlinkError`], for example if the name is taken, or if the kernel does not have the kind.
    pub fn create_link(&mut self, name: &str, kind: &str) -> Result<(), NetlinkError> {
        let mut request = create();
        request.text(libc::IFLA_IFNAME, name);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, kind)
        });
        self.order(&format_args!("create the {kind} {name:?}"), request)
    }

    /// Removes an interface; of a pair, both ends.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn delete_link(&mut self, index: u32) -> Result<(), NetlinkError> {
        let request = Request::new(libc::RTM_DELLINK, libc::NLM_F_ACK, &fixed(index, 0, 0));
        self.order(&format_args!("delete the interface {index}"), request)
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_up(&mut self, index: u32, is_up: bool) -> Result<(), NetlinkError> {
        let up = libc::IFF_UP as u32;
        let flags = if is_up { up } else { 0 };
        let request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &fixed(index, flags, up));
        let direction = if is_up { "up" } else { "down" };
        self.order(
            &format_args!("set the interface {index} {direction}"),
            request,
        )
    }

    /// Sets how many octets the longest packet has, without the Ethernet header.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where the interface cannot take such.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        let mut request = change(index);
        request.number(libc::IFLA_MTU, mtu);
        self.order(
            &format_args!("set the MTU of the interface {index} to {mtu}"),
            request,
        )
    }

    /// Makes an interface a port of a bridge.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_master(&mut self, index: u32, bridge: u32) -> Result<(), NetlinkError> {
        let mut request = change(index);
        request.number(libc::IFLA_MASTER, bridge);
        self.order(
            &format_args!("make the interface {index} a port of {bridge}"),
            request,
        )
    }

    /// Gives an interface a text, by which people and programs know it again.
    ///
    /// # Errors
    /// [`NetlinkError`], for example where it is longer than 255 octets.
    pub fn set_alias(&mut self, index: u32, alias: &str) -> Result<(), NetlinkError> {
        let mut request = change(index);
        request.text(libc::IFLA_IFALIAS, alias);
        self.order(
            &format_args!("give the interface {index} the alias {alias:?}"),
            request,
        )
    }

    /// Lets an interface have no address of IPv6 by itself, so that the kernel sends nothing by it
    /// unasked.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_no_own_address(&mut self, index: u32) -> Result<(), NetlinkError> {
        let mut request = change(index);
        request.nest(libc::IFLA_AF_SPEC, |spec| {
            spec.nest(libc::AF_INET6 as u16, |inet6| {
                inet6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
            });
        });
        self.order(
            &format_args!("leave the interface {index} without an address"),
            request,
        )
    }
}

impl VethEnd<'_> {
    fn tell(self, request: &mut Request) {
        request.text(libc::IFLA_IFNAME, self.name);
        request.number(libc::IFLA_NUM_RX_QUEUES, self.queues);
        request.number(libc::IFLA_NUM_TX_QUEUES, self.queues);
        if let Some(namespace) = self.namespace {
            let descriptor = namespace.as_fd().as_raw_fd().cast_unsigned();
            request.number(libc::IFLA_NET_NS_FD, descriptor);
        }
    }
}

fn create() -> Request {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    Request::new(libc::RTM_NEWLINK, flags, &fixed(0, 0, 0))
}

fn change(index: u32) -> Request {
    Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &fixed(index, 0, 0))
}

/// Makes a `struct ifinfomsg`. The kernel sets the flags that are in `changed` to their values in
/// `flags`.
fn fixed(index: u32, flags: u32, changed: u32) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..16].copy_from_slice(&changed.to_ne_bytes());
    fixed
}

pub(super) fn read(answer: Answer<'_>) -> Result<Option<LinkInfo>, MalformedMessage> {
    if answer.kind != libc::RTM_NEWLINK {
        return Ok(None);
    }
    let (fixed, attributes) = answer.split::<FIXED>()?;
    let number =
        |at: usize| u32::from_ne_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let mut link = LinkInfo {
        name: String::new(),
        index: number(4),
        hardware: None,
        mtu: 0,
        kind: None,
        master: None,
        is_up: number(8) & libc::IFF_UP as u32 != 0,
        is_running: number(8) & libc::IFF_RUNNING as u32 != 0,
        alias: None,
    };
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            libc::IFLA_IFNAME => link.name = attribute.text().ok_or(MalformedMessage)?.to_owned(),
            libc::IFLA_ADDRESS => link.hardware = attribute.value.try_into().ok(),
            libc::IFLA_MTU => link.mtu = attribute.number().ok_or(MalformedMessage)? as usize,
            libc::IFLA_MASTER => link.master = attribute.number(),
            libc::IFLA_IFALIAS => link.alias = attribute.text().map(str::to_owned),
            libc::IFLA_LINKINFO => {
                let kind = attribute.nested().find(libc::IFLA_INFO_KIND)?;
                link.kind = kind.and_then(Attribute::text).map(str::to_owned);
            }
            _ => {}
        }
    }
    Ok(Some(link))
}

fn no_device() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::ENODEV)
}

/// Octets of `struct ifinfomsg`.
const FIXED: usize = 16;
/// From `<linux/veth.h>`.
const VETH_INFO_PEER: u16 = 1;
/// From `<linux/if_link.h>`.
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
