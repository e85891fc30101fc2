//! The client's side: a server's process, and the calls to it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, Scheduling, SpawnError, ThreadBuilder};

use super::case::{Processors, Setting, WaitMethod, WaitsClass};
use super::plan::WaitsPlan;
use super::server::{
    IoUring, ListenerReport, REPLY, REQUEST, SERVER, TrialOrder, WaitsServerOrder,
};
use crate::bench::allow_connections;
use crate::error::LabError;
use crate::process::{Child, ProcessError, Ready};
use crate::stats::Record;

/// A server, its idle connections, and the processors and the priority of both sides.
pub(super) struct WaitsFleet {
    server: Child,
    address: SocketAddr,
    _idle: Vec<TcpStream>,
    /// The client's processor, and the server's where it has its own.
    processors: [usize; 2],
    priority: Option<u8>,
    pub(super) io_uring: IoUring,
}

impl WaitsFleet {
    /// Starts the server and makes the idle connections.
    pub(super) fn start(
        plan: &WaitsPlan,
        lock_memory: bool,
        processors: [usize; 2],
        priority: Option<u8>,
    ) -> Result<Self, LabError> {
        let idle = plan.most_idle();
        let order = WaitsServerOrder { idle, lock_memory };
        let (server, listener) = Child::start("server", SERVER, &order)?;
        let ListenerReport { address, io_uring } = listener;
        let idle = allow_connections(idle)
            .and_then(|()| (0..idle).map(|_| TcpStream::connect(address)).collect())
            .map_err(LabError::work("connecting idle connections"))?;
        Ok(Self {
            server,
            address,
            _idle: idle,
            processors,
            priority,
            io_uring,
        })
    }

    /// Measures the calls of a way in a setting.
    pub(super) fn run(
        &mut self,
        setting: Setting,
        way: WaitMethod,
        plan: &WaitsPlan,
    ) -> Result<Record, LabError> {
        let [client, other] = self.processors;
        let is_shared = setting.processors == Processors::One;
        let priority = (self.priority).filter(|_| setting.class == WaitsClass::RealTime);
        self.server.tell(&Some(TrialOrder {
            way,
            processor: if is_shared { client } else { other },
            priority,
            idle: setting.idle,
        }))?;
        let (address, plan) = (self.address, plan.clone());
        let record = pinned(client, priority, move || calls(address, &plan))
            .map_err(LabError::work("starting the client's thread"))?;
        let failure = match record {
            Ok(record) => {
                let Ready {} = self.server.hear(Deadline::after(PATIENCE))?;
                return Ok(record);
            }
            Err(error) => LabError::work(format!("calling: {}", way.name()))(error),
        };
        // A failed server reports the cause, which its client does not know.
        match self.server.hear::<Ready>(Deadline::after(GRACE)) {
            Err(cause @ ProcessError::Ended { .. }) => Err(cause.into()),
            Ok(_) | Err(_) => Err(failure),
        }
    }

    /// Ends the server.
    pub(super) fn stop(self) -> Result<(), LabError> {
        Ok(self.server.dismiss(Deadline::after(PATIENCE))?)
    }
}

/// Runs `work` in a thread on a processor, with a priority of `SCHED_FIFO` if there is one, and
/// waits until it ends.
pub(super) fn pinned<T: Send + 'static>(
    processor: usize,
    priority: Option<u8>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SpawnError> {
    let thread = ThreadBuilder::new("waits")
        .scheduling(priority.map_or(Scheduling::OTHER, Scheduling::fifo))
        .affinity(&[processor])
        .prefault_stack(true)
        .spawn(work)?;
    let result = thread.join();
    Ok(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Makes the calls of a trial, each as soon as the one before is answered.
fn calls(address: SocketAddr, plan: &WaitsPlan) -> io::Result<Record> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut record = Record::new();
    for _ in 0..plan.warm_up {
        call(&mut connection)?;
    }
    let start = Monotonic::now();
    for _ in 0..plan.calls {
        let sent = Monotonic::now();
        call(&mut connection)?;
        record.add(sent.since(start), Monotonic::now().since(sent));
    }
    Ok(record)
}

/// Makes one call: a `send`, and a `recv`, as replies are small.
fn call(connection: &mut TcpStream) -> io::Result<()> {
    connection.write_all(&[0xa5; REQUEST])?;
    connection.read_exact(&mut [0; REPLY])
}

/// The longest wait for a reply or for the server.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time in which a failed server reports the cause.
const GRACE: Duration = Duration::from_secs(2);
