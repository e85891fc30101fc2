//! Hosts and ports, as all transports have them that listen at some.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use chronorb_rt::Deadline;

use crate::endpoint::split_address;
use crate::names::addresses_of_peer;
use crate::sys::interfaces::interface_addresses;
use crate::{Address, ConnectError, Endpoint, EndpointError, ListenError};

/// The option of an endpoint with the number of ports to try, from the given one on.
pub(crate) const PORT_SPAN: &str = "portspan";
/// The option of an endpoint with the host that object references name, instead of the bound one.
pub(crate) const HOSTNAME_IN_IOR: &str = "hostname_in_ior";

/// An endpoint at a host.
pub(crate) struct HostEndpoint<'e> {
    endpoint: &'e Endpoint,
    host: &'e str,
    port: u16,
    span: u16,
}

impl<'e> HostEndpoint<'e> {
    /// # Errors
    /// Where it is at a path, or its options cannot be read.
    pub(crate) fn of(endpoint: &'e Endpoint) -> Result<Self, EndpointError> {
        let Some((host, port)) = endpoint.address.as_host() else {
            return Err(endpoint.error("it needs a host and a port, and no path"));
        };
        let span = endpoint.option(PORT_SPAN).unwrap_or("1");
        let span = span.parse().ok().filter(|span| *span > 0).ok_or_else(|| {
            endpoint.error(format!(
                "the portspan {span:?} is not a number from 1 to 65535"
            ))
        })?;
        Ok(Self {
            endpoint,
            host,
            port,
            span,
        })
    }

    /// Opens the first of its addresses that `open` accepts. `open` also returns the bound address.
    /// Returns the result, and the addresses to publish.
    pub(crate) fn open<T>(
        &self,
        open: impl Fn(SocketAddr) -> io::Result<(T, SocketAddr)>,
    ) -> Result<(T, Vec<Address>), ListenError> {
        let text = || self.endpoint.to_string();
        let ips = bindable(self.host).map_err(|source| ListenError::Unresolved {
            endpoint: text(),
            source,
        })?;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for port in self.ports() {
            for ip in &ips {
                match open(SocketAddr::new(*ip, port)) {
                    Ok((opened, local)) => return Ok((opened, self.published(local))),
                    Err(error) => last = error,
                }
            }
        }
        Err(ListenError::Refused {
            endpoint: text(),
            source: last,
        })
    }

    fn published(&self, local: SocketAddr) -> Vec<Address> {
        let hosts = match self.endpoint.option(HOSTNAME_IN_IOR) {
            Some(host) => vec![host.to_owned()],
            None if local.ip().is_unspecified() => reachable_hosts(local.is_ipv6()),
            None if self.host.is_empty() => vec![local.ip().to_string()],
            None => vec![self.host.to_owned()],
        };
        let address = |host| Address::host(host, local.port());
        hosts.into_iter().map(address).collect()
    }

    fn ports(&self) -> impl Iterator<Item = u16> + use<> {
        let last = match self.port {
            0 => 0,
            first => first.saturating_add(self.span - 1),
        };
        self.port..=last
    }
}

/// The socket addresses of a peer, as far as they can be found before the deadline.
pub(crate) fn resolve(
    address: &Address,
    deadline: Deadline,
) -> Result<impl Iterator<Item = SocketAddr>, ConnectError> {
    let Some((host, port)) = address.as_host() else {
        return Err(ConnectError::Refused {
            address: address.to_string(),
            source: io::ErrorKind::AddrNotAvailable.into(),
        });
    };
    let found = addresses_of_peer(host, deadline).map_err(|source| ConnectError::Unresolved {
        host: host.to_owned(),
        source,
    })?;
    Ok(found.into_iter().map(move |mut address| {
        address.set_port(port);
        address
    }))
}

/// The addresses to bind to, the preferred one first.
fn bindable(host: &str) -> io::Result<Vec<IpAddr>> {
    if host.is_empty() {
        // One IPv6 socket takes both families; machines without IPv6 fall back to IPv4.
        return Ok(vec![
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            Ipv4Addr::UNSPECIFIED.into(),
        ]);
    }
    Ok((host, 0).to_socket_addrs()?.map(|a| a.ip()).collect())
}

/// Returns the addresses to publish for an unspecified one: those of all interfaces that are up,
/// IPv4 first, and the loopback address only if there is no other. Link-local addresses are
/// omitted, because they are meaningless on other links.
fn reachable_hosts(with_ipv6: bool) -> Vec<String> {
    let (mut hosts, mut of_ipv6) = (Vec::new(), Vec::new());
    for address in interface_addresses() {
        match address {
            _ if address.is_loopback() => {}
            IpAddr::V4(v4) if !v4.is_link_local() => hosts.push(v4.to_string()),
            IpAddr::V6(v6) if with_ipv6 && !v6.is_unicast_link_local() => {
                of_ipv6.push(v6.to_string());
            }
            _ => {}
        }
    }
    hosts.append(&mut of_ipv6);
    if hosts.is_empty() {
        hosts.push(Ipv4Addr::LOCALHOST.to_string());
    }
    hosts
}
