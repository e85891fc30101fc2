//! ORBs with many POAs and objects.

use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use chronorb_orb::poa::{ObjectId, Poa, Policy};
use chronorb_orb::stages::{Frame, Stages, object_key};
use chronorb_orb::{Demultiplexing, Object, Orb, OrbConfig, RealTimeMode, parse_endpoints};
use chronorb_rt::Deadline;

use super::operations::{EmptySkeleton, Find};
use crate::error::LabError;

/// Octet strings next to each other in memory: object keys, messages, names.
#[derive(Clone, Debug, Default)]
pub(super) struct OctetTable {
    octets: Vec<u8>,
    ends: Vec<usize>,
}

impl OctetTable {
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
        self.ends.push(self.octets.len());
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.octets[start..self.ends[index]]
    }

    /// Replaces the strings by some of another table.
    pub(super) fn gather(&mut self, all: &Self, entries: &[u32]) {
        self.octets.clear();
        self.ends.clear();
        for &entry in entries {
            self.push(all.get(entry as usize));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for OctetTable {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut all = Self::default();
        items.into_iter().for_each(|item| all.push(item.as_ref()));
        all
    }
}

/// An ORB of this process, which is shut down on drop.
pub(super) struct Home {
    pub(super) orb: Orb,
    pub(super) root: Poa,
}

impl Home {
    /// Starts an ORB whose requests find POA and servant by this strategy, with an active root POA.
    pub(super) fn new(strategy: Demultiplexing) -> Result<Self, LabError> {
        let endpoints = parse_endpoints("iiop://127.0.0.1:0");
        let mut config = OrbConfig::default();
        config.orb_id = "lab".to_owned();
        config.listen_endpoints = endpoints.map_err(LabError::work("the endpoint"))?;
        config.threads = 1.into();
        config.real_time = RealTimeMode::Off;
        config.arena_size = 64 << 10;
        config.poa_demultiplexing = strategy;
        config.servant_demultiplexing = strategy;
        let orb = Orb::with_config(config).map_err(LabError::work("the ORB could not be made"))?;
        let root = orb.root_poa().map_err(LabError::work("the root POA"))?;
        let active = root.manager().activate();
        active.map_err(LabError::work("the POA manager"))?;
        Ok(Self { orb, root })
    }

    /// Waits until its thread serves connections, and so has the memory that it needs.
    pub(super) fn wait_for_threads(&self) -> Result<(), LabError> {
        let lane = || self.orb.snapshot().pools.remove(0).lanes.remove(0);
        let endpoint = lane().endpoints.remove(0);
        let address = endpoint.trim_start_matches("iiop://");
        let connection = TcpStream::connect(address);
        drop(connection.map_err(LabError::work("the ORB's endpoint"))?);
        let deadline = Deadline::after(PATIENCE);
        while lane().accepted == 0 || lane().connections > 0 {
            if deadline.has_passed() {
                return Err(LabError::work("waiting for the ORB's thread")(
                    io::Error::from(io::ErrorKind::TimedOut),
                ));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Returns the stages of its requests.
    pub(super) fn stages(&self) -> Result<Stages, LabError> {
        let any = self.root.create_reference("").map_err(no_reference)?;
        Ok(Stages::new(&any))
    }

    /// Returns so many POAs: the root, and new ones.
    pub(super) fn poas(&self, count: u32) -> Result<Vec<Poa>, LabError> {
        let others = (1..count).map(|n| self.poa(&format!("adapter_{n}"), &[]));
        std::iter::once(Ok(self.root.clone()))
            .chain(others)
            .collect()
    }

    /// Creates a POA.
    pub(super) fn poa(&self, name: &str, policies: &[Policy]) -> Result<Poa, LabError> {
        let manager = Some(self.root.manager());
        let poa = self.root.create_poa(name, manager, policies);
        poa.map_err(LabError::work("a POA could not be made"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // It fails only if a servant waits for itself, and none runs.
        let _ = self.orb.shutdown(true);
    }
}

/// Activates so many objects, each with a servant of its own, and returns their references. The
/// system or the caller names them.
pub(super) fn activate<F: Find>(
    poa: &Poa,
    system_ids: bool,
    count: u32,
    find: F,
) -> impl Iterator<Item = Result<Object, LabError>> {
    (0..count).map(move |n| {
        let id = if system_ids {
            poa.activate_object(EmptySkeleton(find))
        } else {
            let id = ObjectId::new(format!("object-{n:06}"));
            let active = poa.activate_object_with_id(id.clone(), EmptySkeleton(find));
            active.map(|()| id)
        };
        let id = id.map_err(LabError::work("an object could not be activated"))?;
        poa.id_to_reference(&id).map_err(no_reference)
    })
}

/// Returns an object key that names the POA, and an object that need not exist.
pub(super) fn key_within(poa: &Poa) -> Result<Vec<u8>, LabError> {
    let reference = poa.create_reference("").map_err(no_reference)?;
    Ok(key_of(&reference).to_vec())
}

/// Returns the object key of a reference of this ORB.
pub(super) fn key_of(reference: &Object) -> &[u8] {
    object_key(reference).expect("the ORB can use its own references")
}

/// Returns the message of a request.
pub(super) fn message(
    stages: &Stages,
    target: &Object,
    operation: &str,
) -> Result<Vec<u8>, LabError> {
    let mut frame = Frame::new(256, 64 << 10);
    let written = stages.write_request(&mut frame, target, operation);
    written.map_err(LabError::work("a request could not be written"))?;
    Ok(frame.as_slice().to_vec())
}

fn no_reference(error: impl std::error::Error + Send + Sync + 'static) -> LabError {
    LabError::work("a reference could not be made")(Box::new(error))
}

/// The time that a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);
