//! The server: sends small messages back, and takes bulk data in.

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use chronorb_rio::Riop;
use chronorb_rt::{Monotonic, Scheduling, lock_all, set_current};
use chronorb_transport::tcp::Tcp;
use chronorb_transport::{
    Acceptor, Connection, Deadline, IoError, Setup, Transport, parse_endpoints,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::history::OctetHistory;
use super::order::{AcceptorOrder, BLOCK, RioServer, Service};
use crate::error::LabError;
use crate::process::{self, Parent};
use crate::work;

/// Serves all connections, and reports the octets of the sinks when they have ended. The process
/// ends at once when standard input ends before that.
pub(super) fn serve(order: &RioServer) -> Result<(), LabError> {
    let _parent = Parent::or_exit();
    if order.lock_memory {
        lock_all().map_err(LabError::work("locking memory"))?;
    }
    // All acceptors share the interface, which is open as long as this exists.
    let rio = Riop::default();
    let acceptors = order.acceptors.iter().map(|of| open(of, &rio));
    let acceptors = acceptors.collect::<Result<Vec<_>, _>>()?;
    let addresses = acceptors.iter().map(|acceptor| address(acceptor.as_ref()));
    process::tell(&addresses.collect::<Result<Vec<_>, _>>()?)?;
    let histories: Result<Vec<_>, _> = thread::scope(|scope| {
        let orders = order.acceptors.iter().zip(&acceptors);
        let threads: Vec<_> = orders
            .map(|(order, acceptor)| scope.spawn(|| accept_all(order, acceptor.as_ref())))
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect(NO_PANIC));
        joined.collect()
    });
    Ok(process::tell(&histories?.concat())?)
}

/// Opens an endpoint, with RIO if its scheme says so, else with the kernel's TCP.
fn open(order: &AcceptorOrder, rio: &Riop) -> Result<Box<dyn Acceptor>, LabError> {
    let endpoints = parse_endpoints(&order.endpoint);
    let endpoints = endpoints.map_err(LabError::work("reading an endpoint"))?;
    let is_rio = endpoints[0].scheme == rio.scheme();
    let transport: &dyn Transport = if is_rio { rio } else { &Tcp };
    let acceptors = transport.listen(&endpoints[0], Setup::default());
    let mut acceptors = acceptors.map_err(LabError::work("listening"))?;
    Ok(acceptors.remove(0))
}

/// Returns the address of an acceptor.
fn address(acceptor: &dyn Acceptor) -> Result<SocketAddr, LabError> {
    let published = &acceptor.published()[0];
    let host = published.as_host().and_then(|(host, port)| {
        let host: IpAddr = host.parse().ok()?;
        Some(SocketAddr::new(host, port))
    });
    host.ok_or_else(|| LabError::work("listening")(format!("{published} is no address")))
}

/// Accepts as many connections as there are services, and serves each in a thread of its own.
///
/// The acceptor is not polled after that, so packets of a connection wake only the thread that
/// waits for them.
fn accept_all(
    order: &AcceptorOrder,
    acceptor: &dyn Acceptor,
) -> Result<Vec<OctetHistory>, LabError> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for service in &order.services {
            let connection = next(acceptor)?;
            threads.push(scope.spawn(move || serve_one(*service, connection.as_ref())));
        }
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect(NO_PANIC));
        joined.filter_map(Result::transpose).collect()
    })
}

/// Waits for the next connection.
fn next(acceptor: &dyn Acceptor) -> Result<Box<dyn Connection>, LabError> {
    let doing = "taking a connection in";
    loop {
        if let Some(connection) = acceptor.accept().map_err(LabError::work(doing))? {
            return Ok(connection);
        }
        let descriptor = acceptor.as_fd();
        let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut descriptors, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(LabError::work(doing)(error)),
        }
    }
}

/// Serves a connection until the peer ends it: sends its octets back, or computes for each block.
fn serve_one(
    service: Service,
    connection: &dyn Connection,
) -> Result<Option<OctetHistory>, LabError> {
    schedule(service.fifo)?;
    let mut room = vec![0; BLOCK];
    let mut history = service.sink_steps.map(|_| OctetHistory::begin(ROOM));
    let mut in_block = 0;
    loop {
        let octets = match connection.recv(&mut room, Deadline::after(PATIENCE)) {
            Ok(octets) => octets,
            Err(IoError::Ended | IoError::Closed) => return Ok(history),
            Err(error) => return Err(LabError::work("waiting for data")(error)),
        };
        let Some(history) = &mut history else {
            let sent = connection.send_all(&room[..octets], Deadline::after(PATIENCE));
            sent.map_err(LabError::work("sending an echo back"))?;
            continue;
        };
        history.add(Monotonic::now(), octets);
        in_block += octets;
        while in_block >= BLOCK {
            in_block -= BLOCK;
            if let Some(steps @ 1..) = service.sink_steps {
                work::cube(7, steps);
            }
        }
    }
}

/// Gives the calling thread a `SCHED_FIFO` priority, or leaves it as it is.
pub(super) fn schedule(fifo: Option<u8>) -> Result<(), LabError> {
    let Some(priority) = fifo else { return Ok(()) };
    set_current(Scheduling::fifo(priority)).map_err(LabError::work("setting the priority"))
}

/// The longest time without data.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The length of a history that needs no more memory.
const ROOM: Duration = Duration::from_secs(120);
const NO_PANIC: &str = "threads of the server do not panic";
