//! The clients of the name server.

use std::time::Duration;

use chronorb::prelude::*;
use chronorb_giop::{IiopProfile, TAG_INTERNET_IOP};
use chronorb_naming::idl::cos_naming::{NameComponent, NamingContext, ResolveErrorBuf};
use chronorb_rt::{Deadline, Monotonic};

use super::log::CallLog;
use super::order::{ClientOrder, FailureKind};
use crate::error::LabError;

/// Binds names anew, each to a greater value, and sees that none has an older one than was
/// acknowledged.
pub(super) fn run(
    order: &ClientOrder,
    orb: &Orb,
    object: &Object,
    log: &mut CallLog,
) -> Result<(), LabError> {
    let root = NamingContext::unchecked_narrow(object);
    let ids: Vec<String> = (0..NAMES)
        .map(|at| format!("{}-{at}", order.number))
        .collect();
    let mut acknowledged = order.acknowledged.clone();
    acknowledged.resize(ids.len(), 0);
    // Values that were tried are not tried again, so that a value tells its call.
    let mut value = acknowledged.iter().copied().max().unwrap_or(0) + UNREPORTED;
    let mut dice = fastrand::Rng::with_seed(Monotonic::now().as_nanos());
    while !log.is_over() {
        let at = dice.usize(..ids.len());
        let name = [NameComponent {
            id: &ids[at],
            kind: "",
        }];
        value += 1;
        let url = format!("corbaloc::127.0.0.1:1/{value}");
        let bound = orb.string_to_object(&url);
        let bound = bound.map_err(LabError::work("making a reference"))?;
        if log
            .call("rebind", || root.rebind(&name, Some(&bound)))
            .is_some()
        {
            acknowledged[at] = value;
        }
        let at = dice.usize(..ids.len());
        check(&root, &ids[at], acknowledged[at], value, log);
        log.report(&acknowledged)?;
    }
    let limit = Deadline::after(LAST_CHECK);
    for (id, least) in ids.iter().zip(&acknowledged) {
        while !check(&root, id, *least, value, log) && !limit.has_passed() {}
    }
    log.conclude(&acknowledged)
}

/// Resolves a name, whose value is at least that acknowledged. Returns whether it was answered.
fn check(root: &NamingContext, id: &str, least: u32, most: u32, log: &mut CallLog) -> bool {
    let name = [NameComponent { id, kind: "" }];
    let resolved = log.call("resolve", || match root.resolve(&name) {
        Ok(object) => Ok(object.and_then(|object| value_of(&object))),
        Err(ResolveErrorBuf::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    });
    let Some(value) = resolved else {
        return false;
    };
    let value = value.unwrap_or(0);
    if value < least {
        let words = format!("{id} has the value {value} after {least}");
        log.fail(FailureKind::Lost, words);
    } else if value > most {
        let words = format!("{id} has the value {value}, which was never bound");
        log.fail(FailureKind::Wrong, words);
    }
    true
}

/// Returns the value that is in the object key of a reference.
fn value_of(object: &Object) -> Option<u32> {
    let mut profiles = object.ior().profiles.iter();
    let profile = profiles.find(|profile| profile.tag == TAG_INTERNET_IOP)?;
    let profile = IiopProfile::decode(&profile.data).ok()?;
    String::from_utf8(profile.object_key).ok()?.parse().ok()
}

/// The names of a client.
const NAMES: usize = 32;
/// More values than a client can try between two reports.
const UNREPORTED: u32 = 1_000_000;
/// The time for the check of all names in the end.
const LAST_CHECK: Duration = Duration::from_secs(10);
