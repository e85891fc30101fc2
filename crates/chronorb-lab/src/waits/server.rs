//! The server: a thread for each trial, on the processor and with the priority of its order.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use chronorb_probe::{CompletionWork, Ring};

use super::client::pinned;
use super::order::{IoUring, ListenerReport, TrialOrder, WaitsServerOrder};
use super::ways::{Connections, serve};
use crate::bench::allow_connections;
use crate::error::LabError;
use crate::process::{self, Parent, Ready};

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
        Ok(CompletionWork::Deferred) => IoUring::Permitted("deferred".to_owned()),
        Ok(CompletionWork::Cooperative) => IoUring::Permitted("cooperative".to_owned()),
        Ok(CompletionWork::Interrupting) => IoUring::Permitted("interrupting".to_owned()),
        Err(error) => IoUring::Refused(error.to_string()),
    }
}

/// The part of a process that is the server.
pub(crate) const SERVER: &str = "waits-server";
