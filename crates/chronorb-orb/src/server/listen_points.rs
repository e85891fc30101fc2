//! The listen points of clients that can be called back on their connections.

use std::net::IpAddr;
use std::sync::Arc;

#[cfg(feature = "ssliop")]
use chronorb_giop::TAG_SSL_SEC_TRANS;
use chronorb_giop::{TAG_INTERNET_IOP, contexts};
#[cfg(feature = "ssliop")]
use chronorb_transport::tls::CertificateNames;
use chronorb_transport::{Address, Connection, RemoteAddress};

use super::at::At;
use super::lane_link::LaneLink;
use crate::bidirectional::{Announcement, Credit, ListenPoint};
use crate::core::Core;
use crate::incident::Incident;

/// The proved part of a client's identity.
enum Identity {
    /// The source address of its connection. The client may have others that are not seen here.
    Source(IpAddr),
    /// The names in its certificate.
    #[cfg(feature = "ssliop")]
    Certificate(CertificateNames),
}

/// Notes the listen points of a client that can be called back, which are in a service context.
///
/// Without TLS the client's own address is believed. Others are claims, which count for references
/// that arrived on this connection. With TLS a listen point must have a host that the client's
/// certificate names, as if the server had connected there.
#[cold]
pub(super) fn learn_listen_points(core: &Core, at: At<'_>, data: &[u8]) {
    let connection = at.connection;
    if connection.is_originated() {
        return;
    }
    let refused = |number: i64| {
        let incidents = &at.lane.incidents;
        incidents.note(Incident::ListenPointRefused, connection, number);
    };
    let Some((protocol, identity)) = Identity::of(connection.transport()) else {
        return refused(0);
    };
    let Ok(points) = contexts::decode_listen_points(data) else {
        return refused(0);
    };
    if points.len() > MAX_LISTEN_POINTS as usize {
        return refused(points.len() as i64);
    }
    let Some(lane) = core.server().lane(at.lane) else {
        return;
    };
    for point in points {
        let number = i64::from(point.port);
        let Some(credit) = identity.credit(&point.host) else {
            refused(number);
            continue;
        };
        let (lane, key) = (lane.clone(), at.key);
        let path = Arc::new(LaneLink { lane, key });
        let has_room = connection.listen_points() < MAX_LISTEN_POINTS;
        let address = Address::host(point.host, point.port);
        let point = ListenPoint { protocol, address };
        match core.bidirectional.announce(point, credit, path, has_room) {
            Announcement::New => {
                if credit == Credit::Claimed {
                    connection.become_claimant();
                }
                connection.add_listen_point();
            }
            Announcement::Known => {}
            Announcement::Refused => refused(number),
        }
    }
}

impl Identity {
    /// The identity of a peer, with the number of its protocol; `None` if it proves none.
    fn of(transport: &dyn Connection) -> Option<(u32, Self)> {
        let remote = transport.remote();
        let RemoteAddress::Host(address) = remote.address else {
            return None;
        };
        match remote.scheme {
            "iiop" => Some((TAG_INTERNET_IOP, Self::Source(address.ip().to_canonical()))),
            #[cfg(feature = "ssliop")]
            "ssliop" => {
                let names = CertificateNames::read(&transport.peer_certificate()?)?;
                Some((TAG_SSL_SEC_TRANS, Self::Certificate(names)))
            }
            _ => None,
        }
    }

    /// The credit of a listen point at a host; `None` if it is refused.
    fn credit(&self, host: &str) -> Option<Credit> {
        let numeric = host.parse::<IpAddr>().ok().map(|host| host.to_canonical());
        match self {
            Self::Source(own) if numeric == Some(*own) => Some(Credit::Proved),
            Self::Source(_) => Some(Credit::Claimed),
            #[cfg(feature = "ssliop")]
            Self::Certificate(names) => {
                let name = match numeric {
                    Some(address) => format!("ip:{address}"),
                    None => format!("dns:{}", host.to_ascii_lowercase()),
                };
                names.alternative.contains(&name).then_some(Credit::Proved)
            }
        }
    }
}

/// The listen points of one connection.
pub(super) const MAX_LISTEN_POINTS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_source_address_is_proved_without_tls() {
        for (own, proved) in [
            ("10.0.0.1", ["10.0.0.1", "::ffff:10.0.0.1"]),
            ("2001:db8::1", ["2001:db8::1", "2001:db8:0::1"]),
        ] {
            let own: IpAddr = own.parse().expect("an address");
            let identity = Identity::Source(own);
            for host in proved {
                assert_eq!(identity.credit(host), Some(Credit::Proved), "{host}");
            }
            for host in ["10.0.0.2", "client.example", ""] {
                assert_eq!(identity.credit(host), Some(Credit::Claimed), "{host}");
            }
        }
    }

    #[cfg(feature = "ssliop")]
    #[test]
    fn only_the_names_of_a_certificate_are_proved_by_tls() {
        let names = [
            "dns:radar.example",
            "ip:10.0.0.1",
            "uri:spiffe://example/10.0.0.2",
        ];
        let identity = Identity::Certificate(CertificateNames {
            subject: "CN=10.0.0.2".to_owned(),
            alternative: names.map(str::to_owned).into(),
        });
        for host in [
            "radar.example",
            "Radar.Example",
            "10.0.0.1",
            "::ffff:10.0.0.1",
        ] {
            assert_eq!(identity.credit(host), Some(Credit::Proved), "{host}");
        }
        for host in [
            "example",
            "other.example",
            "10.0.0.2",
            "",
            "dns:radar.example",
        ] {
            assert_eq!(identity.credit(host), None, "{host}");
        }
    }
}
