//! Many connections that do nothing.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use chronorb_rt::Deadline;

use super::order::{CrowdOrder, Ready};
use super::{CROWD_COMMAND, place};
use crate::error::LabError;
use crate::process::{self, Child, Parent, ProcessError};

/// Processes that hold connections to a server, each of which was used once.
pub(crate) struct Crowd {
    processes: Vec<Child>,
}

impl Crowd {
    /// Connects `connections` times to `address`; calls `tick` when a process has done its part.
    pub(crate) fn gather(
        address: &str,
        connections: u32,
        request: &[u8],
        mut tick: impl FnMut(u32),
    ) -> Result<Self, LabError> {
        let mut processes = Vec::new();
        let mut left = connections;
        while left > 0 {
            let part = left.min(EACH);
            let order = CrowdOrder {
                address: address.to_owned(),
                connections: part,
                request: request.to_owned(),
            };
            let mut child = Child::start("crowd of connections", CROWD_COMMAND, &order)?;
            let Ready {} = child.hear(Deadline::after(PATIENCE))?;
            processes.push(child);
            left -= part;
            tick(part);
        }
        Ok(Self { processes })
    }

    /// Closes all connections.
    pub(crate) fn disperse(self) -> Result<(), LabError> {
        for process in self.processes {
            process.stop(Deadline::after(PATIENCE))?;
        }
        Ok(())
    }
}

/// Connects, uses each connection once, and keeps them until the parent closes standard input.
pub(super) fn main(order: CrowdOrder) -> Result<(), LabError> {
    place::allow_files(u64::from(order.connections) + OTHER_FILES);
    let parent = Parent::listen(|| {});
    let connections: Vec<TcpStream> = (0..order.connections)
        .map(|_| connect(&order))
        .collect::<io::Result<_>>()
        .map_err(LabError::work("connecting to the server"))?;
    process::tell(&Ready {})?;
    // It says nothing any more: its end is what is waited for.
    let over: Result<(), _> = parent.hear();
    drop(connections);
    match over {
        Ok(()) | Err(ProcessError::Orphaned) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One connection, which has sent a request and has an answer, whatever it says.
fn connect(order: &CrowdOrder) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(&order.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&order.request)?;
    let mut header = [0; 12];
    stream.read_exact(&mut header)?;
    let size = header[8..].try_into().unwrap_or_default();
    let size = match header[6] & 1 {
        1 => u32::from_le_bytes(size),
        _ => u32::from_be_bytes(size),
    };
    let is_reply = &header[..4] == b"GIOP" && header[7] == 1 && size <= LONGEST_REPLY;
    if !is_reply {
        return Err(io::Error::other(format!("no reply came but {header:?}")));
    }
    stream.read_exact(&mut vec![0; size as usize])?;
    Ok(stream)
}

/// The connections of a process.
const EACH: u32 = 2_500;
const OTHER_FILES: u64 = 32;
const LONGEST_REPLY: u32 = 4096;
const PATIENCE: Duration = Duration::from_secs(60);
