//! The monitor's thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronorb_rt::{Deadline, Gate, PiMutex, SpawnError, Thread, ThreadBuilder, Wake};
use thiserror::Error;

use super::place::{self, Socket, SocketError};
use super::serve::{ENDED, RUNNING, STOPPING, Server, Switch};
use crate::config::MonitorSocket;
use crate::core::{Core, MonitorHandle};

/// The monitor could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The socket could not be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The thread could not be started.
    #[error("its thread: {0}")]
    Thread(#[from] SpawnError),
    /// There is no descriptor left.
    #[error("no descriptor: {0}")]
    Descriptor(#[from] std::io::Error),
}

/// The monitor of an ORB, as the ORB has it.
pub(crate) struct Monitor {
    path: PathBuf,
    switch: Arc<Switch>,
    thread: PiMutex<Option<Thread<()>>>,
}

impl Monitor {
    /// Opens the socket and starts the thread, if that is asked for.
    pub(crate) fn start(core: &Arc<Core>) -> Result<Option<Self>, MonitorError> {
        let path = match &core.config.monitor {
            MonitorSocket::Off => return Ok(None),
            MonitorSocket::On => {
                let name = format!("{}-{}.sock", std::process::id(), core.number);
                place::own_directory()?.join(name)
            }
            MonitorSocket::At(path) => path.clone(),
        };
        let socket = Socket::open(path)?;
        let path = socket.path().to_owned();
        let switch = Arc::new(Switch {
            state: Gate::new(RUNNING),
            wake: Wake::new()?,
        });
        let server = Server::new(Arc::downgrade(core), socket, switch.clone());
        let name = format!("monitor {}", core.config.orb_id);
        let thread = ThreadBuilder::new(name)
            .stack_size(STACK_SIZE)
            .spawn(move || server.run())?;
        Ok(Some(Self {
            path,
            switch,
            thread: PiMutex::new(Some(thread)),
        }))
    }
}

impl MonitorHandle for Monitor {
    fn path(&self) -> &Path {
        &self.path
    }

    fn stop(&self) {
        let _ = self.switch.state.compare_set(RUNNING, STOPPING);
        self.switch.wake.notify();
    }

    fn wait_until_ended(&self, deadline: Deadline) {
        let mut state = self.switch.state.get();
        while state != ENDED && !deadline.has_passed() {
            state = self.switch.state.wait_while(state, deadline);
        }
        let thread = self.thread.lock().take();
        if state == ENDED
            && let Some(thread) = thread
        {
            let _ = thread.join();
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Octets of stack of its thread.
const STACK_SIZE: usize = 256 << 10;
