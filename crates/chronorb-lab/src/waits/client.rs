//! The client, with the server that it has started.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use chronorb_rt::{Deadline, Monotonic, Scheduling, ThreadBuilder};

use super::case::{Class, Processors, Trial};
use super::order::{IoUring, Listening, REPLY, REQUEST, Serve, Served, ServerOrder};
use super::plan::Plan;
use super::server::SERVER;
use crate::bench::allow_connections;
use crate::error::LabError;
use crate::process::{Child, ProcessError};
use crate::stats::Record;

/// A server, the connections to it on which nothing happens, and where both sides may run.
pub(super) struct WaitsFleet {
    server: Child,
    address: SocketAddr,
    _idle: Vec<TcpStream>,
    /// That of the client, and that of a server which has one of its own.
    processors: [usize; 2],
    priority: Option<u8>,
    pub(super) io_uring: IoUring,
}

impl WaitsFleet {
    /// Starts a server and connects what stays idle.
    pub(super) fn start(
        plan: &Plan,
        lock_memory: bool,
        processors: [usize; 2],
        priority: Option<u8>,
    ) -> Result<Self, LabError> {
        let idle = plan.most_idle();
        let order = ServerOrder { idle, lock_memory };
        let (server, Listening { address, io_uring }) = Child::start("server", SERVER, &order)?;
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

    /// Measures one trial.
    pub(super) fn run(&mut self, trial: Trial, plan: &Plan) -> Result<Record, LabError> {
        let [client, other] = self.processors;
        let setting = trial.setting;
        let priority = (self.priority).filter(|_| setting.class == Class::RealTime);
        self.server.tell(&Some(Serve {
            way: trial.way,
            processor: match setting.processors {
                Processors::One => client,
                Processors::Two => other,
            },
            priority,
            idle: setting.idle,
        }))?;
        let (address, plan) = (self.address, plan.clone());
        let (done, outcome) = mpsc::channel();
        let thread = ThreadBuilder::new("waits-client")
            .scheduling(priority.map_or(Scheduling::OTHER, Scheduling::fifo))
            .affinity(&[client])
            .prefault_stack(true)
            .spawn(move || {
                // Nobody listens any more after a time-out.
                let _ = done.send(calls(address, &plan));
            });
        thread.map_err(LabError::work("starting the client's thread"))?;
        let doing = format!("calling: {}", trial.way.name());
        let error = match outcome.recv_timeout(PATIENCE) {
            Ok(Ok(record)) => {
                let Served {} = self.server.hear(Deadline::after(PATIENCE))?;
                return Ok(record);
            }
            Ok(Err(error)) => LabError::work(doing)(error),
            Err(_) => LabError::work(doing)("the calls did not end in time"),
        };
        // A server that failed says why, which the client does not know.
        match self.server.hear::<Served>(Deadline::after(GRACE)) {
            Err(failure @ ProcessError::Ended { .. }) => Err(failure.into()),
            Ok(_) | Err(_) => Err(error),
        }
    }

    /// Ends the server.
    pub(super) fn stop(self) -> Result<(), LabError> {
        Ok(self.server.dismiss(Deadline::after(PATIENCE))?)
    }
}

/// Makes the calls of a trial, each as soon as the one before is answered.
fn calls(address: SocketAddr, plan: &Plan) -> io::Result<Record> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
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

/// One `send` and, as replies are small, one `recv`.
fn call(connection: &mut TcpStream) -> io::Result<()> {
    connection.write_all(&[0xa5; REQUEST])?;
    connection.read_exact(&mut [0; REPLY])
}

/// How long a trial may take, whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server may take to say what is wrong.
const GRACE: Duration = Duration::from_secs(2);
