//! The server: a thread for each trial, on the processor and with the priority of its order; and
//! the messages between it and the client beside the calls.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use chronorb_probe::Ring;
use serde::{Deserialize, Serialize};

use super::case::WaitMethod;
use super::client::pinned;
use super::ways::{Connections, serve};
use crate::bench::allow_connections;
use crate::error::LabError;
use crate::process::{self, Parent, Ready};

/// The octets of a request: about as many as those of a small call by GIOP.
pub(super) const REQUEST: usize = 60;
/// The octets of a reply.
pub(super) const REPLY: usize = 28;

/// The argument of the server's process.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct WaitsServerOrder {
    /// The number of idle connections, which are accepted first.
    pub(super) idle: u32,
    pub(super) lock_memory: bool,
}

/// The server's message when it listens.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ListenerReport {
    pub(super) address: SocketAddr,
    pub(super) io_uring: IoUring,
}

/// The availability of io_uring.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoUring {
    /// The kernel permits it, and does the work of completions `deferred`, `cooperative` or
    /// `interrupting` (see [`chronorb_probe::CompletionWork`]).
    Permitted(String),
    /// The kernel refuses it, for this reason.
    Refused(String),
}

/// The order for one trial, whose connection the server accepts next.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TrialOrder {
    pub(super) way: WaitMethod,
    pub(super) processor: usize,
    /// The priority of `SCHED_FIFO`; without it, the thread is an ordinary one.
    pub(super) priority: Option<u8>,
    /// The number of idle connections in the thread's set.
    pub(super) idle: u32,
}

/// Serves trial by trial as the parent orders, and ends the process if the parent ends.
///
/// # Errors
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a trial fails.
pub(crate) fn server_main(order: &str) -> Result<(), LabError> {
    let WaitsServerOrder { idle, lock_memory } = process::order(order)?;
    let parent = Parent::or_exit();
    if lock_memory {
        chronorb_rt::lock_all().map_err(LabError::work("locking memory"))?;
    }
    let listening = || -> std::io::Result<_> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        allow_connections(idle)?;
        Ok((listener.local_addr()?, listener))
    };
    let (address, listener) = listening().map_err(LabError::work("listening"))?;
    let io_uring = io_uring();
    process::tell(&ListenerReport { address, io_uring })?;
    let idle = (0..idle).map(|_| listener.accept().map(|(connection, _)| connection));
    let idle: Result<Vec<TcpStream>, _> = idle.collect();
    let idle = idle.map_err(LabError::work("accepting idle connections"))?;
    let lane = Arc::new((listener, idle));

    while let Some(trial) = parent.hear::<Option<TrialOrder>>()? {
        let way = trial.way.name();
        run(&trial, &lane).map_err(LabError::work(way))?;
        process::tell(&Ready {})?;
    }
    Ok(())
}

/// Accepts and serves the connection of a trial.
fn run(
    trial: &TrialOrder,
    lane: &Arc<(TcpListener, Vec<TcpStream>)>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (hot, _) = lane.0.accept()?;
    hot.set_nodelay(true)?;
    let (lane, way, idle) = (Arc::clone(lane), trial.way, trial.idle as usize);
    let served = pinned(trial.processor, trial.priority, move || {
        let (listener, all) = &*lane;
        let connections = Connections {
            listener,
            idle: all.get(..idle).unwrap_or(all),
            hot: &hot,
        };
        serve(way, &connections)
    });
    Ok(served??)
}

/// Tries io_uring.
fn io_uring() -> IoUring {
    match Ring::new(1, 0, 0).map(|ring| ring.completion_work()) {
        Ok(work) => IoUring::Permitted(format!("{work:?}").to_lowercase()),
        Err(error) => IoUring::Refused(error.to_string()),
    }
}

/// The part of a process that is the server.
pub(crate) const SERVER: &str = "waits-server";
