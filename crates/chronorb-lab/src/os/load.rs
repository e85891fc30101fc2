//! What competes with the ORB for the processors: work of ordinary scheduling.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;

use chronorb_rt::{Scheduling, ThreadBuilder};
use serde::{Deserialize, Serialize};

use crate::bench::Cpus;
use crate::error::LabError;
use crate::process::{Parent, Ready};
use crate::work;

/// What others do meanwhile.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing.
    Idle,
    /// On each processor a thread that computes.
    Hogs,
    /// On each processor a thread that computes, one that writes a file to its disk, and two that send each other
    /// data over the loopback interface.
    Mixed,
}

impl Load {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Idle, Self::Hogs, Self::Mixed];

    /// In words.
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
pub(super) fn make(load: Load) -> Result<(), LabError> {
    let cpus = Cpus::of_this_process()?;
    let parent = Parent::or_exit();
    for cpu in cpus.iter() {
        if load != Load::Idle {
            spawn("hog", cpu, compute)?;
        }
        if load == Load::Mixed {
            let (near, far) = pair().map_err(LabError::work("connecting the load to itself"))?;
            let file = Scratch::new(cpu).map_err(LabError::work("making a file for the load"))?;
            spawn("writer", cpu, move || write(file))?;
            spawn("sender", cpu, move || send(near))?;
            spawn("receiver", cpu, move || receive(far))?;
        }
    }
    Ok(parent.conclude(&Ready {})?)
}

fn spawn(name: &str, cpu: usize, work: impl FnOnce() + Send + 'static) -> Result<(), LabError> {
    let thread = ThreadBuilder::new(name)
        .scheduling(Scheduling::OTHER)
        .affinity(&[cpu])
        .spawn(work);
    thread
        .map(drop)
        .map_err(LabError::work("starting the load"))
}

fn compute() {
    loop {
        work::cube(7, STEPS);
    }
}

/// Writes to a file, which is bounded, and waits for the disk each time.
fn write(mut file: Scratch) {
    let block = vec![0x5a; BLOCK];
    loop {
        for _ in 0..BLOCKS {
            // A full disk is a load too.
            let _ = file.0.write_all(&block);
            let _ = file.0.sync_data();
        }
        let _ = file.0.rewind();
    }
}

fn send(mut stream: TcpStream) {
    let block = vec![0x5a; BLOCK];
    while stream.write_all(&block).is_ok() {}
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

/// A file that nobody else sees: it has no name any more.
struct Scratch(File);

impl Scratch {
    fn new(cpu: usize) -> io::Result<Self> {
        let name = format!("chronorb-load-{}-{cpu}", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        let file = File::create_new(&path)?;
        std::fs::remove_file(&path)?;
        Ok(Self(file))
    }
}

const STEPS: u32 = 10_000;
const BLOCK: usize = 64 * 1024;
/// Of a file, before it begins again.
const BLOCKS: u32 = 64;
