//! The server: one thread for each trial, on the processor and with the priority that it is told.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use chronorb_probe::{CompletionWork, Ring};
use chronorb_rt::{Scheduling, ThreadBuilder};

use super::order::{IoUring, Listening, Serve, Served, ServerOrder};
use super::ways::{Site, serve};
use crate::bench::allow_connections;
use crate::error::LabError;
use crate::process::{self, Parent};

/// Serves as the parent says, trial by trial. The process ends at once when standard input ends
/// before that.
///
/// # Errors
///
/// [`LabError::Process`] when the order cannot be read, [`LabError::Work`] when a trial fails.
pub(crate) fn server_main(order: &str) -> Result<(), LabError> {
    let ServerOrder { idle, lock_memory } = process::order(order)?;
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
    process::tell(&Listening { address, io_uring })?;
    let connections = (0..idle).map(|_| listener.accept().map(|(connection, _)| connection));
    let connections: Result<Vec<TcpStream>, _> = connections.collect();
    let connections = connections.map_err(LabError::work("accepting idle connections"))?;
    let (listener, connections) = (Arc::new(listener), Arc::new(connections));

    while let Some(trial) = parent.hear::<Option<Serve>>()? {
        let way = trial.way.name();
        run(trial, &listener, &connections).map_err(LabError::work(way))?;
        process::tell(&Served {})?;
    }
    Ok(())
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Serves one connection.
fn run(
    trial: Serve,
    listener: &Arc<TcpListener>,
    idle: &Arc<Vec<TcpStream>>,
) -> Result<(), Failure> {
    let (hot, _) = listener.accept()?;
    hot.set_nodelay(true)?;
    let (listener, idle) = (Arc::clone(listener), Arc::clone(idle));
    let thread = ThreadBuilder::new("waits")
        .scheduling(trial.priority.map_or(Scheduling::OTHER, Scheduling::fifo))
        .affinity(&[trial.processor])
        .prefault_stack(true)
        .spawn(move || {
            let idle = idle.get(..trial.idle as usize).unwrap_or(&idle);
            let site = Site {
                listener: &listener,
                idle,
                hot: &hot,
            };
            serve(trial.way, &site)
        })?;
    let served = thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok(served?)
}

/// Tries whether there is io_uring.
fn io_uring() -> IoUring {
    match Ring::new(1, 0, 0) {
        Ok(ring) => IoUring::Permitted(
            match ring.completion_work() {
                CompletionWork::Deferred => "deferred",
                CompletionWork::Cooperative => "cooperative",
                CompletionWork::Interrupting => "interrupting",
            }
            .to_owned(),
        ),
        Err(error) => IoUring::Refused(error.to_string()),
    }
}

/// The part of a process that is the server.
pub(crate) const SERVER: &str = "waits-server";
