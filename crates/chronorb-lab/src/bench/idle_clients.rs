//! Processes that hold many idle connections to a server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use chronorb_rt::Deadline;
use serde::{Deserialize, Serialize};

use super::place;
use crate::error::LabError;
use crate::process::{self, Child, Parent, Ready};

/// Processes that hold idle connections.
pub(crate) struct IdleClients {
    processes: Vec<Child>,
}

/// The order to one process.
#[derive(Debug, Deserialize, Serialize)]
struct IdleOrder {
    /// The address of the server.
    address: String,
    /// The number of connections.
    count: u32,
    /// The request that each connection makes once, so that the server completes its set-up.
    request: Vec<u8>,
}

impl IdleClients {
    /// Makes all connections. `tick` gets the number of each part of them.
    pub(crate) fn connect(
        address: &str,
        connections: u32,
        request: &[u8],
        mut tick: impl FnMut(u32),
    ) -> Result<Self, LabError> {
        let mut processes = Vec::new();
        let mut left = connections;
        while left > 0 {
            let part = left.min(EACH);
            let order = IdleOrder {
                address: address.to_owned(),
                count: part,
                request: request.to_owned(),
            };
            let mut child = Child::launch("idle clients", IDLE_CLIENTS, &order)?;
            let Ready {} = child.hear(Deadline::after(PATIENCE))?;
            processes.push(child);
            left -= part;
            tick(part);
        }
        Ok(Self { processes })
    }

    /// Closes all connections.
    pub(crate) fn disconnect(self) -> Result<(), LabError> {
        for process in self.processes {
            process.stop(Deadline::after(PATIENCE))?;
        }
        Ok(())
    }
}

/// Makes connections, and holds them until the parent ends the input.
pub(crate) fn idle_clients_main(order: &str) -> Result<(), LabError> {
    let order: IdleOrder = process::order(order)?;
    place::allow_files(u64::from(order.count) + OTHER_FILES);
    let parent = Parent::or_exit();
    let connections: Vec<TcpStream> = (0..order.count)
        .map(|_| connect(&order))
        .collect::<io::Result<_>>()
        .map_err(LabError::work("connecting to the server"))?;
    parent.conclude(&Ready {})?;
    drop(connections);
    Ok(())
}

/// Makes a connection, and one call on it.
fn connect(order: &IdleOrder) -> io::Result<TcpStream> {
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

/// The number of connections of a process.
const EACH: u32 = 2_500;
const OTHER_FILES: u64 = 32;
const LONGEST_REPLY: u32 = 4096;
const PATIENCE: Duration = Duration::from_secs(60);
/// The part of a process that holds idle connections.
pub(crate) const IDLE_CLIENTS: &str = "idle-clients";
