//! The server that is attacked.

use std::sync::Arc;

use chronorb::config::{OrbConfig, RealTimeMode};
use chronorb::data::{Any, TypeCode};
use chronorb::prelude::*;
use chronorb::transport::parse_endpoints;
use chronorb_cdr::{Arena, CdrError, Decoder};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::order::Target;
use crate::bench;
use crate::error::LabError;
use crate::idl::hostile::{Big, Item, VictimServant, VictimSkeleton};

/// Serves by the default settings until the parent closes standard input.
pub(super) fn serve() -> Result<(), LabError> {
    limit_memory()?;
    let orb = orb()?;
    let target = offer(&orb).map_err(LabError::work("offering the object"))?;
    bench::serve(&orb, &target)
}

/// Limits the memory of this process, because the machine and its disk must outlive it.
pub(super) fn limit_memory() -> Result<(), LabError> {
    let bound = |resource, octets| {
        let limit = Rlimit {
            current: Some(octets),
            maximum: Some(octets),
        };
        setrlimit(resource, limit).map_err(LabError::work("limiting the victim's memory"))
    };
    bound(Resource::As, MEMORY)?;
    bound(Resource::Core, 0)
}

/// An ORB with the default settings, of this machine alone and without priorities.
pub(super) fn orb() -> Result<Orb, LabError> {
    orb_with(|_| {})
}

/// Like [`orb`], with other settings.
pub(super) fn orb_with(change: impl FnOnce(&mut OrbConfig)) -> Result<Orb, LabError> {
    let mut config = OrbConfig::default();
    config.listen_endpoints =
        parse_endpoints("iiop://127.0.0.1:0").map_err(LabError::work("choosing an endpoint"))?;
    config.real_time = RealTimeMode::Off;
    change(&mut config);
    Orb::with_config(config).map_err(LabError::work("starting the ORB"))
}

fn offer(orb: &Orb) -> Result<Target, Box<dyn std::error::Error + Send + Sync>> {
    let root = orb.root_poa()?;
    let object = root.serve(VictimSkeleton::new(Victim))?;
    root.manager().activate()?;
    target_of(orb, &object)
}

/// Returns the reference of an object, and its address and key in its IIOP profile.
pub(super) fn target_of(
    orb: &Orb,
    object: &Object,
) -> Result<Target, Box<dyn std::error::Error + Send + Sync>> {
    let profiles = &object.ior().profiles;
    let profile = profiles.iter().find(|profile| profile.tag == IIOP);
    let (address, key) = address_and_key(&profile.ok_or("no profile of IIOP")?.data)?;
    Ok(Target {
        reference: orb.object_to_string(object),
        address: address.parse()?,
        key,
    })
}

/// Reads the address and the object key of an IIOP profile (CORBA 3.3 part 2, 9.7.2).
pub(super) fn address_and_key(profile: &[u8]) -> Result<(String, Vec<u8>), CdrError> {
    let mut octets = profile.to_vec();
    let arena = Arena::new(4096);
    let mut d = Decoder::of_encapsulation(&mut octets, &arena)?;
    // The version.
    d.read_octets(2)?;
    let host = d.read_str()?.to_owned();
    let port = d.read_u16()?;
    Ok((format!("{host}:{port}"), d.read_octet_seq()?.to_vec()))
}

/// Takes whatever it is given.
#[derive(Debug)]
struct Victim;

impl VictimServant for Victim {
    fn ping(&self, _call: &Call<'_>, value: i32) -> Result<i32, SystemException> {
        Ok(value)
    }

    fn store(&self, _call: &Call<'_>, data: &[u8]) -> Result<u32, SystemException> {
        Ok(u32::try_from(data.len()).unwrap_or(u32::MAX))
    }

    fn fetch<'a>(&self, call: &Call<'a>, size: u32) -> Result<&'a [u8], SystemException> {
        let size = size.min(GREATEST_REPLY) as usize;
        Ok(call.arena().copy_slice(&vec![0; size])?)
    }

    fn take_any(&self, _call: &Call<'_>, value: &Any<'_>) -> Result<(), SystemException> {
        drop(value.to_owned());
        Ok(())
    }

    fn take_type(&self, _call: &Call<'_>, type_: &TypeCode<'_>) -> Result<(), SystemException> {
        drop(type_.to_owned());
        Ok(())
    }

    fn take_big(&self, _call: &Call<'_>, _value: &Big<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    fn take_items<'a>(
        &self,
        _call: &Call<'a>,
        _values: &'a [Option<&'a Arc<dyn Item>>],
    ) -> Result<(), SystemException> {
        Ok(())
    }

    fn take_object(
        &self,
        _call: &Call<'_>,
        _reference: Option<&Object>,
    ) -> Result<(), SystemException> {
        Ok(())
    }

    fn take_objects<'a>(
        &self,
        _call: &Call<'a>,
        _references: &'a [Option<&'a Object>],
    ) -> Result<(), SystemException> {
        Ok(())
    }
}

/// All that the process may map.
const MEMORY: u64 = 4 << 30;
const GREATEST_REPLY: u32 = 1 << 20;
/// `TAG_INTERNET_IOP`.
pub(super) const IIOP: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_by_address_and_key() {
        let orb = orb().unwrap();
        let target = offer(&orb).unwrap();
        assert!(target.address.ip().is_loopback(), "{target:?}");
        assert!(!target.key.is_empty());
        orb.shutdown(true).unwrap();
    }
}
