//! The load that competes with the ORB for the CPUs: threads of ordinary scheduling.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use chronorb_rt::Scheduling;
use serde::{Deserialize, Serialize};

use super::threads;
use crate::bench::Cpus;
use crate::error::LabError;
use crate::process::{Parent, Ready};
use crate::work;

/// The load beside client and server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompetingLoad {
    /// No load.
    Idle,
    /// A computing thread on each CPU.
    Hogs,
    /// On each CPU a thread that computes, one that writes a file to its disk, and two that send
    /// each other data over the loopback interface.
    Mixed,
}

impl CompetingLoad {
    /// All loads.
    pub const ALL: [Self; 3] = [Self::Idle, Self::Hogs, Self::Mixed];

    /// Returns the name of the load in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Hogs => "hogs",
            Self::Mixed => "hogs and I/O",
        }
    }
}

/// Makes the load until the parent closes standard input.
pub(super) fn make(load: CompetingLoad) -> Result<(), LabError> {
    let parent = Parent::or_exit();
    for cpu in Cpus::of_this_process()?.iter() {
        let ordinary = Scheduling::OTHER;
        if load != CompetingLoad::Idle {
            threads::start("hog", ordinary, cpu, compute)?;
        }
        if load == CompetingLoad::Mixed {
            let (near, far) = pair().map_err(LabError::work("connecting the load to itself"))?;
            let file = scratch(cpu).map_err(LabError::work("making a file for the load"))?;
            threads::start("writer", ordinary, cpu, move || write(file))?;
            threads::start("sender", ordinary, cpu, move || send(near))?;
            threads::start("receiver", ordinary, cpu, move || receive(far))?;
        }
    }
    Ok(parent.conclude(&Ready {})?)
}

fn compute() {
    loop {
        work::cube(7, STEPS);
    }
}

/// Writes to a file of bounded size, and waits for the disk after each block.
fn write(mut file: File) {
    loop {
        for _ in 0..BLOCKS {
            // A full disk is a load too.
            let _ = file.write_all(&[0x5a; BLOCK]);
            let _ = file.sync_data();
        }
        let _ = file.rewind();
    }
}

fn send(mut stream: TcpStream) {
    while stream.write_all(&[0x5a; BLOCK]).is_ok() {}
}

fn receive(mut stream: TcpStream) {
    let mut block = vec![0; BLOCK];
    while stream.read(&mut block).is_ok_and(|octets| octets > 0) {}
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    Ok((near, listener.accept()?.0))
}

/// Creates a file that no other process can open: it has no name any more.
fn scratch(cpu: usize) -> io::Result<File> {
    let name = format!("chronorb-load-{}-{cpu}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = File::create_new(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

const STEPS: u32 = 10_000;
const BLOCK: usize = 64 * 1024;
/// The number of blocks of a file. The writer starts again after them.
const BLOCKS: u32 = 64;
