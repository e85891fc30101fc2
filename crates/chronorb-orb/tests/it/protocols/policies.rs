//! Protocol policies set socket options: these are read back from the kernel at both ends of a
//! connection.

use chronorb_orb::poa::Policy;
use chronorb_orb::rtcorba::{
    ClientPolicy, Lane, NetworkPriority, Protocols, SetOverride, TcpProtocolProperties,
    ThreadpoolLanes,
};
use rustix::net::{getpeername, getsockname, sockopt};
use rustix::process::{ForeignRawFd, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::support::adapters::profile_of;
use crate::support::descriptors::uncopied;
use crate::support::laned::{LanedServer, PROPAGATED, Pool, corba, endpoints, laned_by};
use crate::support::{add, orb, orb_with, served_by};

/// The kernel's options of a socket.
#[derive(Debug, Eq, PartialEq)]
struct SocketState {
    /// Twice the requested size: the kernel includes its overhead (socket(7)).
    send_buffer_size: usize,
    recv_buffer_size: usize,
    keep_alive: bool,
    no_delay: bool,
    dont_route: bool,
    dscp: u8,
    priority: u32,
}

impl SocketState {
    fn of(socket: &OwnedFd) -> std::io::Result<Self> {
        Ok(Self {
            send_buffer_size: sockopt::socket_send_buffer_size(socket)?,
            recv_buffer_size: sockopt::socket_recv_buffer_size(socket)?,
            keep_alive: sockopt::socket_keepalive(socket)?,
            no_delay: sockopt::tcp_nodelay(socket)?,
            dont_route: chronorb_transport::dont_route(socket)?,
            // The lower two bits are the kernel's (ECN).
            dscp: sockopt::ip_tos(socket)? >> 2,
            priority: chronorb_transport::packet_priority(socket)?,
        })
    }
}

/// Returns the connected sockets of this process at a port: those at the client's end, and those at
/// the server's.
fn sockets(port: u16) -> (Vec<SocketState>, Vec<SocketState>) {
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    connected(|peer, local, file| {
        let seen = || SocketState::of(file).expect("it is a TCP socket");
        if peer == port {
            clients.push(seen());
        } else if local == Some(port) {
            servers.push(seen());
        }
    });
    (clients, servers)
}

/// Shows the connected sockets of this process, with the ports of their peers and their own.
fn connected(mut see: impl FnMut(u16, Option<u16>, &OwnedFd)) {
    let _copies = uncopied();
    let this = pidfd_open(getpid(), PidfdFlags::empty()).expect("a descriptor is free");
    let files = std::fs::read_dir("/proc/self/fd").expect("proc is mounted");
    let numbers = files.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
    for number in numbers.collect::<Vec<ForeignRawFd>>() {
        let Ok(file) = pidfd_getfd(&this, number, PidfdGetfdFlags::empty()) else {
            // The descriptor by which the list was read.
            continue;
        };
        let port_of = |address: Option<SocketAddr>| address.map(|address| address.port());
        let local = getsockname(&file).ok().and_then(|a| a.try_into().ok());
        let peer = getpeername(&file).ok().flatten();
        let Some(peer) = port_of(peer.and_then(|a| a.try_into().ok())) else {
            continue;
        };
        see(peer, port_of(local), &file);
    }
}

/// Returns the port of the only lane.
fn port_of_lane(s: &LanedServer) -> u16 {
    let (lane, port) = endpoints(&s.object).pop_first().expect("a lane");
    assert_eq!(lane, URGENT);
    port
}

/// In the fifth of the seven classes of priorities.
const URGENT: i16 = 20_000;

#[test]
fn both_sides_end_connections_without_a_sign_of_life() {
    const TIME: Duration = Duration::from_secs(8);
    let site = served_by(orb_with(|config| config.peer_timeout = Some(TIME)));
    let client = orb_with(|config| config.peer_timeout = Some(TIME));
    let object = client.ior_to_object(site.object.ior().clone());
    let object = object.expect("it is not nil");
    assert_eq!(add(&object, 1, 2), Ok(3));
    let port = profile_of(&object).port;
    let (mut clients, mut servers) = (0, 0);
    connected(|at_peer, at_local, socket| {
        if at_peer != port && at_local != Some(port) {
            return;
        }
        // A socket of datagrams of another test may have the number, too.
        let Ok(time) = sockopt::tcp_user_timeout(socket) else {
            return;
        };
        let times = (
            time,
            sockopt::tcp_keepidle(socket).expect("it is a TCP socket"),
            sockopt::tcp_keepintvl(socket).expect("it is a TCP socket"),
        );
        assert_eq!(times, (8_000, TIME / 2, TIME / 8));
        clients += u32::from(at_peer == port);
        servers += u32::from(at_peer != port);
    });
    assert_eq!((clients, servers), (1, 1));
    let _ = client.shutdown(true);
}

#[test]
fn each_side_has_the_properties_of_its_policy() {
    let of_server = TcpProtocolProperties {
        send_buffer_size: 40_000,
        recv_buffer_size: 50_000,
        keep_alive: false,
        no_delay: true,
        network_priority: NetworkPriority::FromPriority,
        ..Default::default()
    };
    let of_client = TcpProtocolProperties {
        send_buffer_size: 20_000,
        recv_buffer_size: 30_000,
        keep_alive: true,
        dont_route: true,
        no_delay: false,
        network_priority: NetworkPriority::Fixed(46),
    };
    let server = orb();
    let protocols = |properties| Protocols::iiop(properties).expect("they are in range");
    server
        .policy_manager()
        .set_server_protocol(protocols(of_server))
        .expect("nothing is open yet");
    let pool = server.rt().create_threadpool_with_lanes(&ThreadpoolLanes {
        lanes: vec![Lane::new(corba(URGENT), 1)],
        ..Default::default()
    });
    let policies = [
        Policy::Threadpool(pool.expect("the lane opens")),
        Policy::PriorityModel(PROPAGATED, corba(URGENT)),
    ];
    let s = laned_by(server, Pool::Default, &policies);
    let policy = ClientPolicy::ClientProtocol(protocols(of_client));
    let object = s.object.with_policy_overrides(&[policy], SetOverride::Set);
    let object = object.expect("it is one");
    s.at(Some(URGENT), || {
        assert_eq!(add(&object, 1, 1), Ok(2));
        let (client, server) = sockets(port_of_lane(&s));
        assert_eq!(
            client,
            [SocketState {
                send_buffer_size: 40_000,
                recv_buffer_size: 60_000,
                keep_alive: true,
                no_delay: false,
                dont_route: true,
                dscp: 46,
                priority: 5,
            }]
        );
        assert_eq!(
            server,
            [SocketState {
                send_buffer_size: 80_000,
                recv_buffer_size: 100_000,
                keep_alive: false,
                no_delay: true,
                dont_route: false,
                dscp: 32,
                priority: 4,
            }]
        );
    });
}
