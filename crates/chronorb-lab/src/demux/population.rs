//! ORBs with many POAs and objects.

use chronorb_orb::poa::{IdAssignment, Lifespan, ObjectId, Poa, Policy};
use chronorb_orb::stages::{Frame, Stages, object_key};
use chronorb_orb::{Demultiplexing, Object, Orb, OrbConfig, RealTimeMode, parse_endpoints};

use super::operations::{Empty, Find};
use crate::error::LabError;

/// Octets of many things, one after the other: object keys, messages, names.
#[derive(Clone, Debug, Default)]
pub(super) struct Octets {
    octets: Vec<u8>,
    ends: Vec<usize>,
}

impl Octets {
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
        self.ends.push(self.octets.len());
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.octets[start..self.ends[index]]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Octets {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut all = Self::default();
        for item in items {
            all.push(item.as_ref());
        }
        all
    }
}

/// An ORB of this process, which ends with this.
pub(super) struct Home {
    pub(super) orb: Orb,
    pub(super) root: Poa,
}

impl Home {
    /// An ORB whose requests find POA and servant by this strategy, with an active root POA.
    pub(super) fn new(strategy: Demultiplexing) -> Result<Self, LabError> {
        let mut config = OrbConfig::default();
        config.orb_id = "lab".to_owned();
        config.listen_endpoints =
            parse_endpoints("iiop://127.0.0.1:0").map_err(LabError::work("the endpoint"))?;
        config.threads = 1;
        config.real_time = RealTimeMode::Off;
        config.arena_size = 64 << 10;
        config.poa_demultiplexing = strategy;
        config.servant_demultiplexing = strategy;
        let orb = Orb::with_config(config).map_err(LabError::work("the ORB could not be made"))?;
        let root = orb.root_poa().map_err(LabError::work("the root POA"))?;
        root.manager()
            .activate()
            .map_err(LabError::work("the POA manager"))?;
        Ok(Self { orb, root })
    }

    /// The stages of its requests.
    pub(super) fn stages(&self) -> Result<Stages, LabError> {
        let any = self.root.create_reference("");
        let any = any.map_err(LabError::work("a reference could not be made"))?;
        Ok(Stages::new(&any))
    }

    /// So many POAs in all, of which the root is one.
    pub(super) fn poas(&self, count: u32) -> Result<Vec<Poa>, LabError> {
        let mut poas = vec![self.root.clone()];
        for n in 1..count {
            poas.push(self.poa(&format!("adapter_{n}"), &[])?);
        }
        Ok(poas)
    }

    /// A POA of its own.
    pub(super) fn poa(&self, name: &str, policies: &[Policy]) -> Result<Poa, LabError> {
        let manager = Some(self.root.manager());
        let made = self.root.create_poa(name, manager, policies);
        made.map_err(LabError::work("a POA could not be made"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // It can only say that a servant waits for itself, and none runs.
        let _ = self.orb.shutdown(true);
    }
}

/// Who names the objects of a POA, and for how long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ids {
    System,
    User,
    Persistent,
}

impl Ids {
    pub(super) fn policies(self) -> &'static [Policy] {
        match self {
            Self::System => &[],
            Self::User => &[Policy::IdAssignment(IdAssignment::User)],
            Self::Persistent => &[
                Policy::IdAssignment(IdAssignment::User),
                Policy::Lifespan(Lifespan::Persistent),
            ],
        }
    }
}

/// Activates so many objects, each with a servant of its own, and shows their references.
pub(super) fn activate<F: Find>(
    poa: &Poa,
    ids: Ids,
    count: u32,
    find: F,
    mut each: impl FnMut(&Object),
) -> Result<(), LabError> {
    for n in 0..count {
        let servant = Empty(find);
        let id = if ids == Ids::System {
            poa.activate_object(servant)
                .map_err(LabError::work("an object could not be activated"))?
        } else {
            let id = ObjectId::new(format!("object-{n:06}"));
            poa.activate_object_with_id(id.clone(), servant)
                .map_err(LabError::work("an object could not be activated"))?;
            id
        };
        let reference = poa.id_to_reference(&id);
        each(&reference.map_err(LabError::work("a reference could not be made"))?);
    }
    Ok(())
}

/// An object key that names the POA, and an object that need not be there.
pub(super) fn key_within(poa: &Poa) -> Result<Vec<u8>, LabError> {
    let failed = LabError::work("a reference could not be made");
    let reference = poa.create_reference("").map_err(failed)?;
    Ok(key_of(&reference).to_vec())
}

/// The object key of a reference of this ORB.
pub(super) fn key_of(reference: &Object) -> &[u8] {
    object_key(reference).expect("the ORB can use its own references")
}

/// The message of a request.
pub(super) fn message(
    stages: &Stages,
    target: &Object,
    operation: &str,
) -> Result<Vec<u8>, LabError> {
    let mut frame = Frame::new(256, 64 << 10);
    stages
        .write_request(&mut frame, target, operation)
        .map_err(LabError::work("a request could not be written"))?;
    Ok(frame.as_slice().to_vec())
}
