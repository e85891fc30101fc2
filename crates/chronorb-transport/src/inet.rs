//! Hosts and ports, as all transports have them that listen at some.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use chronorb_rt::Deadline;

use crate::endpoint::split_address;
use crate::names::{addresses_of_endpoint, addresses_of_peer};
use crate::sys::interfaces::interface_addresses;
use crate::{Address, ConnectError, Endpoint, EndpointError, ListenError};

/// The option of an endpoint with the number of ports to try, from the given one on.
pub(crate) const PORT_SPAN: &str = "portspan";
/// The option of an endpoint with the hosts that object references name instead of the bound one,
/// each perhaps with a port of its own: `HOST[:PORT][,…]`.
pub(crate) const HOSTNAME_IN_IOR: &str = "hostname_in_ior";

/// Attempts to find a port that is free at all addresses of a host.
const ATTEMPTS: u16 = 16;

/// An endpoint at a host.
pub(crate) struct HostEndpoint<'e> {
    endpoint: &'e Endpoint,
    host: &'e str,
    port: u16,
    span: u16,
    /// The addresses to publish, if they are given; port 0 stands for the bound one.
    told: Vec<Address>,
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
        let told = endpoint.option(HOSTNAME_IN_IOR).into_iter();
        let told = told.flat_map(|hosts| hosts.split(',')).map(published_host);
        let told: Result<_, String> = told.collect();
        Ok(Self {
            endpoint,
            host: if host == "*" { "" } else { host },
            port,
            span,
            told: told.map_err(|problem| endpoint.error(problem))?,
        })
    }

    /// Opens its addresses by `open`, which also returns the bound one: all addresses of a name, at
    /// the same port, except for those that this machine does not have. Returns the results, and
    /// the addresses to publish.
    pub(crate) fn open<T>(
        &self,
        open: impl Fn(SocketAddr) -> io::Result<(T, SocketAddr)>,
    ) -> Result<(Vec<T>, Vec<Address>), ListenError> {
        let text = || self.endpoint.to_string();
        let ips = bindable(self.host).map_err(|source| ListenError::Unresolved {
            endpoint: text(),
            source,
        })?;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for first in self.ports() {
            let (mut opened, mut bound) = (Vec::new(), None);
            for ip in &ips {
                let port = bound.map_or(first, |bound: SocketAddr| bound.port());
                match open(SocketAddr::new(*ip, port)) {
                    Ok((one, local)) => {
                        opened.push(one);
                        bound.get_or_insert(local);
                        if self.host.is_empty() {
                            break;
                        }
                    }
                    // The port is to be the same at all of them.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                        (last, bound) = (error, None);
                        break;
                    }
                    Err(error) => last = error,
                }
            }
            if let Some(local) = bound {
                return Ok((opened, self.published(local)));
            }
        }
        Err(ListenError::Refused {
            endpoint: text(),
            source: last,
        })
    }

    fn published(&self, local: SocketAddr) -> Vec<Address> {
        let port = |port| if port == 0 { local.port() } else { port };
        let address = |host: String| Address::host(host, local.port());
        let hosts = match self.host {
            _ if !self.told.is_empty() => {
                let told = self.told.iter().filter_map(Address::as_host);
                return told
                    .map(|(host, own)| Address::host(host, port(own)))
                    .collect();
            }
            _ if local.ip().is_unspecified() => reachable_hosts(local.is_ipv6()),
            "" => vec![local.ip().to_string()],
            host => vec![host.to_owned()],
        };
        hosts.into_iter().map(address).collect()
    }

    fn ports(&self) -> impl Iterator<Item = u16> + use<> {
        // A free port of one address may be taken at another one.
        let number = if self.port == 0 { ATTEMPTS } else { self.span };
        let (first, is_any) = (self.port, self.port == 0);
        (0..number).map_while(move |next| {
            if is_any {
                Some(0)
            } else {
                first.checked_add(next)
            }
        })
    }
}

/// Reads a host that references are to name, perhaps with a port; 0 without one.
fn published_host(text: &str) -> Result<Address, String> {
    let address = match text.parse::<IpAddr>() {
        Ok(_) => Address::host(text, 0),
        Err(_) => split_address(text)?,
    };
    let (host, _) = address.as_host().unwrap_or_default();
    let is_known = host
        .bytes()
        .all(|c| c.is_ascii_alphanumeric() || b"-._:%".contains(&c));
    let is_any = host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
    if host.is_empty() || !is_known || is_any {
        return Err(format!("clients cannot reach the published host {host:?}"));
    }
    Ok(address)
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
    let addresses = addresses_of_endpoint(host)?.into_iter();
    let mut ips: Vec<_> = addresses.map(|address| address.ip()).collect();
    ips.dedup();
    Ok(ips)
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
