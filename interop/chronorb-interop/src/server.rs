//! The objects of a server.

use chronorb::prelude::*;
use chronorb_giop::{IiopProfile, Ior, TAG_INTERNET_IOP};

use crate::Failure;
use crate::idl::*;
use crate::servants::{
    BottomObject, EchoObject, FaultyObject, HubObject, NotesObject, PanelObject, PreciseObject,
    RelationsObject, WidesObject,
};

/// Activates an object of each interface, and returns the hub that refers to them.
///
/// The hub is also found as `corbaloc::HOST:PORT/Hub`.
///
/// # Errors
/// Any error of the ORB.
pub fn serve(orb: &Orb) -> Result<Hub, Failure> {
    let root = orb.root_poa()?;
    let poa = root.create_poa(
        "interop",
        Some(root.manager()),
        &[
            Policy::Lifespan(Lifespan::Persistent),
            Policy::IdAssignment(IdAssignment::User),
        ],
    )?;
    let echo: Echo = activate(&poa, "echo", EchoSkeleton::new(EchoObject))?;
    let hub = HubObject {
        wides: activate(&poa, "wides", WidesSkeleton::new(WidesObject))?,
        precise: activate(&poa, "precise", PreciseSkeleton::new(PreciseObject))?,
        faulty: activate(&poa, "faulty", FaultySkeleton::new(FaultyObject))?,
        notes: activate(&poa, "notes", NotesSkeleton::new(NotesObject::default()))?,
        panel: activate(&poa, "panel", PanelSkeleton::new(PanelObject::default()))?,
        bottom: activate(&poa, "bottom", BottomSkeleton::new(BottomObject::default()))?,
        relations: activate(&poa, "relations", RelationsSkeleton::new(RelationsObject))?,
        forwarded: forwarded(orb, &echo)?,
        deactivated: deactivated(&poa)?,
        echo,
    };
    let hub: Hub = activate(&poa, "hub", HubSkeleton::new(hub))?;
    orb.register_initial_reference("Hub", hub.as_object())?;
    root.manager().activate()?;
    Ok(hub)
}

fn activate<I: Interface>(
    poa: &Poa,
    id: &str,
    skeleton: impl chronorb::Skeleton,
) -> Result<I, Failure> {
    poa.activate_object_with_id(id, skeleton)?;
    Ok(I::from_object(poa.id_to_reference(&id.into())?))
}

fn deactivated(poa: &Poa) -> Result<Echo, Failure> {
    let reference = activate(poa, "deactivated", EchoSkeleton::new(EchoObject))?;
    poa.deactivate_object(&"deactivated".into())?;
    Ok(reference)
}

/// Returns a reference with a key of no object: the ORB forwards its requests to `target`, as to
/// any initial reference.
fn forwarded(orb: &Orb, target: &Echo) -> Result<Echo, Failure> {
    let name = "Forwarded";
    orb.register_initial_reference(name, target.as_object())?;
    let Ior { type_id, profiles } = target.as_object().ior().clone();
    let profiles = profiles
        .into_iter()
        .filter(|profile| profile.tag == TAG_INTERNET_IOP)
        .map(|profile| {
            let mut profile = IiopProfile::decode(&profile.data)?;
            profile.object_key = name.into();
            profile.tagged()
        })
        .collect::<Result<_, _>>()?;
    let object = orb.ior_to_object(Ior { type_id, profiles })?;
    Ok(Echo::unchecked_narrow(&object))
}
