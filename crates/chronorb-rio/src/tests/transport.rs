//! The conformance tests of transports for RIO, on a wire in memory and between two hosts.
//!
//! Three tests are left out: one that shortens a kernel's backlog, and two in which another process
//! of the same test listens or connects, which would have its own network.

use crate::class::Unknown;
use crate::driver::wire;
use crate::driver::{self, Driver, DriverChoice, Link};
use crate::engine::{ClassConfig, Subsystem};
use crate::tests::support::rig::{FreePorts, KnownNeighbours};
use crate::transport::{Riop, RiopSettings};
use chronorb_rt::{Deadline, PiMutex, Wake};
use chronorb_testnet::{Host, INTERFACE, Layout, Network};
use chronorb_transport::{
    AcceptError, Acceptor, Address, ConnectError, Connection, Endpoint, EndpointError, ListenError,
    Setup, Transport,
};
use rustix::event::{PollFd, PollFlags, poll};
use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use crate::conformance::subject::Subject;

/// A transport that listens on one host and connects from the other.
#[derive(Debug)]
struct TwoHosts {
    server: Riop,
    client: Riop,
    /// Resources that must live as long as the transport.
    _kept: Box<dyn Kept>,
}

trait Kept: Any + std::fmt::Debug + Send + Sync {}

impl<T: Any + std::fmt::Debug + Send + Sync> Kept for T {}

impl Transport for TwoHosts {
    fn scheme(&self) -> &str {
        self.server.scheme()
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        self.server.check(endpoint)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        self.server.listen(endpoint, setup)
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        self.client.connect(address, setup, deadline)
    }
}

/// Returns both ends of a wire in memory.
fn on_a_wire() -> TwoHosts {
    let link = |host: u8| Link {
        name: format!("wire{host}"),
        index: host.into(),
        hardware: [2, 0, 0, 0, 0, host],
        mtu: 1500,
        addresses: vec![([10, 0, 0, host].into(), 24)],
    };
    let (_, left, right) = wire::join(link(1), link(2), 256);
    let known = [1, 2].map(|host: u8| ([10, 0, 0, host].into(), [2, 0, 0, 0, 0, host]));
    let neighbours = Arc::new(KnownNeighbours(known.into()));
    let [left, right] = [left, right].map(|end| {
        let subsystem = Subsystem::new(
            Arc::new(end.clone()),
            Arc::new(FreePorts::default()),
            neighbours.clone(),
        );
        // As a kernel would, it refuses packets without a connection or listener.
        let rest = subsystem.open(ClassConfig {
            name: "rest".to_owned(),
            connections: 1,
            ..ClassConfig::default()
        });
        let rest = rest.expect("it is the first");
        end.set_unknown(Unknown::Class(rest.id()))
            .expect("a wire can do that");
        (Arc::new(subsystem), rest)
    });
    two_hosts("wire1", &left.0, &right.0, (left.1, right.1))
}

/// Returns two hosts of the test network with this driver; `None` if they are not available.
fn between_hosts(driver: DriverChoice) -> Option<TwoHosts> {
    let network = Network::build_for_test(&Layout::default())?;
    let [client, server] = Host::BOTH.map(|host| {
        network.host(host).enter(|| {
            let options = driver::DriverOptions {
                driver,
                ..driver::DriverOptions::default()
            };
            let driver = driver::open(INTERFACE, options).expect("the test has the rights");
            let subsystem = Subsystem::of_host(driver.into());
            Arc::new(subsystem.expect("the namespace is there"))
        })
    });
    Some(two_hosts(INTERFACE, &client, &server, network))
}

fn two_hosts(
    interface: &str,
    client: &Arc<Subsystem>,
    server: &Arc<Subsystem>,
    kept: impl Kept,
) -> TwoHosts {
    let settings = RiopSettings {
        interface: Some(interface.to_owned()),
        ..RiopSettings::default()
    };
    let transport = |subsystem: &Arc<Subsystem>| {
        let riop = Riop::new(settings.clone());
        riop.add(subsystem.clone());
        riop
    };
    TwoHosts {
        server: transport(server),
        client: transport(client),
        _kept: Box::new(kept),
    }
}

/// The same two hosts with the kernel's TCP, which needs to know their namespaces.
#[derive(Debug)]
struct TwoKernels {
    hosts: TwoHosts,
    network: Network,
}

impl TwoKernels {
    fn new() -> Option<Self> {
        let network = Network::build_for_test(&Layout::default())?;
        let settings = RiopSettings {
            interface: Some(INTERFACE.to_owned()),
            driver: driver::DriverOptions {
                driver: DriverChoice::Kernel,
                ..driver::DriverOptions::default()
            },
            class: ClassConfig {
                // The kernel allocates memory on demand.
                connections: 1000,
                ..ClassConfig::default()
            },
            ..RiopSettings::default()
        };
        let [client, server] = Host::BOTH.map(|host| {
            let open = || Riop::open(settings.clone());
            network.host(host).enter(open).expect("it is there")
        });
        let hosts = TwoHosts {
            server,
            client,
            _kept: Box::new(()),
        };
        Some(Self { hosts, network })
    }
}

impl Transport for TwoKernels {
    fn scheme(&self) -> &str {
        self.hosts.scheme()
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        self.hosts.check(endpoint)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let listen = || self.hosts.listen(endpoint, setup);
        self.network.host(Host::B).enter(listen)
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        let connect = || self.hosts.connect(address, setup, deadline);
        self.network.host(Host::A).enter(connect)
    }
}

/// A transport whose acceptors always have a waiting thread, as in a lane. Classes on arrival need
/// it for their protocol work.
#[derive(Debug)]
struct AttendedTransport<T>(T);

impl<T: Transport> Transport for AttendedTransport<T> {
    fn scheme(&self) -> &str {
        self.0.scheme()
    }

    fn check(&self, endpoint: &Endpoint) -> Result<(), EndpointError> {
        self.0.check(endpoint)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        setup: Setup,
    ) -> Result<Vec<Box<dyn Acceptor>>, ListenError> {
        let acceptors = self.0.listen(endpoint, setup)?.into_iter();
        let attended = acceptors.map(|acceptor| -> Box<dyn Acceptor> {
            Box::new(AttendedAcceptor::new(acceptor.into()))
        });
        Ok(attended.collect())
    }

    fn connect(
        &self,
        address: &Address,
        setup: Setup,
        deadline: Deadline,
    ) -> Result<Box<dyn Connection>, ConnectError> {
        self.0.connect(address, setup, deadline)
    }
}

/// An acceptor with a thread that accepts, and waits for nothing else.
#[derive(Debug)]
struct AttendedAcceptor {
    inner: Arc<dyn Acceptor>,
    accepted: PiMutex<Receiver<AcceptResult>>,
    arrivals: Arc<Wake>,
    end: Arc<Wake>,
    thread: Option<JoinHandle<()>>,
}

type AcceptResult = Result<Box<dyn Connection>, AcceptError>;

impl AttendedAcceptor {
    fn new(inner: Arc<dyn Acceptor>) -> Self {
        let [arrivals, end] = [(); 2].map(|()| Arc::new(Wake::new().expect("a descriptor")));
        let (sender, accepted) = channel();
        let (its, told, is_over) = (inner.clone(), arrivals.clone(), end.clone());
        let attend = move || {
            loop {
                let mut both = [
                    PollFd::new(&its, PollFlags::IN),
                    PollFd::new(&is_over, PollFlags::IN),
                ];
                // A signal may end the wait early.
                let _ = poll(&mut both, None);
                if !both[1].revents().is_empty() {
                    return;
                }
                while let Some(accepted) = its.accept().transpose() {
                    let has_failed = matches!(accepted, Err(AcceptError::Failed(_)));
                    let is_over = sender.send(accepted).is_err() || has_failed;
                    told.notify();
                    if is_over {
                        return;
                    }
                }
            }
        };
        Self {
            inner,
            accepted: PiMutex::new(accepted),
            arrivals,
            end,
            thread: Some(thread::spawn(attend)),
        }
    }
}

impl Acceptor for AttendedAcceptor {
    fn accept(&self) -> Result<Option<Box<dyn Connection>>, AcceptError> {
        self.arrivals.drain();
        self.accepted.lock().try_recv().ok().transpose()
    }

    fn published(&self) -> &[Address] {
        self.inner.published()
    }
}

impl AsFd for AttendedAcceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }
}

impl Drop for AttendedAcceptor {
    fn drop(&mut self) {
        self.end.notify();
        let thread = self.thread.take().expect("it is dropped once");
        assert!(thread.join().is_ok() || thread::panicking());
    }
}

fn subject(transport: impl Transport + 'static, endpoint: &str) -> Subject {
    Subject::new(Box::new(transport), endpoint)
}

macro_rules! riop {
    ($name:ident, $subject:expr) => {
        mod $name {
            use super::*;

            statements_of_any!($subject);
            statements_of_two_ways!($subject);
            statements_of_streams!($subject);
        }
    };
}

riop!(
    on_demand,
    subject(on_a_wire(), "riop://10.0.0.2:0/interface=wire2")
        .refuses("riop:///a/path|driver=auto", "host")
        .refuses("riop://10.0.0.2:0/driver=serial", "serial")
        .refuses("riop://10.0.0.2:0/processing=never", "never")
        .refuses("riop://10.0.0.2:0/processing=periodic", "budget")
        .refuses("riop://10.0.0.2:0/processing=arrival&budget=8", "budget")
        .refuses("riop://10.0.0.2:0/period=10ms", "period")
        .refuses("riop://10.0.0.2:0/cost=20", "cost")
        .refuses("riop://[fd00::1%wire2]:0/cost=20us", "zone")
        .refuses("riop://10.0.0.2:0/policy=fifo&priority=99", "98")
        .refuses("riop://10.0.0.2:0/budget=8&period=10", "period")
        .refuses("riop://10.0.0.2:0/policy=fifo", "priority")
        .refuses("riop://10.0.0.2:0/policy=other&priority=5", "priority")
        .refuses("riop://10.0.0.2:0/policy=deadline", "periodic")
        .refuses("riop://10.0.0.2:0/connections=0", "connections")
        .refuses("riop://10.0.0.2:0/output=none", "output")
);
riop!(
    periodic,
    subject(
        on_a_wire(),
        "riop://10.0.0.2:0/interface=wire2&period=500us&budget=20&connections=20&queue=1024"
    )
);
riop!(
    with_a_cap_and_scheduled_output,
    subject(
        on_a_wire(),
        "riop://10.0.0.2:0/interface=wire2&cap=100&period=1ms&output=scheduled&buffer=16384"
    )
);
riop!(
    on_arrival,
    subject(
        AttendedTransport(on_a_wire()),
        "riop://10.0.0.2:0/interface=wire2&processing=arrival"
    )
);
riop!(
    on_arrival_by_packet_sockets,
    subject(
        match between_hosts(DriverChoice::Packet) {
            Some(hosts) => AttendedTransport(hosts),
            None => return,
        },
        "riop://10.79.0.2:0/interface=rio0&processing=arrival"
    )
);
riop!(
    on_arrival_by_xdp,
    subject(
        match between_hosts(DriverChoice::Xdp) {
            Some(hosts) => AttendedTransport(hosts),
            None => return,
        },
        "riop://[fd79::2]:0/interface=rio0&processing=arrival"
    )
);
riop!(
    by_packet_sockets,
    subject(
        match between_hosts(DriverChoice::Packet) {
            Some(hosts) => hosts,
            None => return,
        },
        "riop://10.79.0.2:0/interface=rio0"
    )
);
riop!(
    by_xdp,
    subject(
        match between_hosts(DriverChoice::Xdp) {
            Some(hosts) => hosts,
            None => return,
        },
        "riop://[fd79::2]:0/interface=rio0"
    )
);
riop!(
    by_the_kernel,
    subject(
        match TwoKernels::new() {
            Some(hosts) => hosts,
            None => return,
        },
        "riop://10.79.0.2:0/driver=kernel"
    )
    .refuses("riop://10.79.0.2:0/mode=native", "mode")
    .refuses("riop://10.79.0.2:0/budget=8&period=10ms", "setup --kernel")
    .refuses("riop://10.79.0.2:0/processing=arrival", "processing")
    .refuses("riop://10.79.0.2:0/priority=5", "priority")
    .refuses("riop://10.79.0.2:0/queue=64", "queue")
    .refuses("riop://10.79.0.2:0/class=unknown", "-ORBRioPlan")
);
