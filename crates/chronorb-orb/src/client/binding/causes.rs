//! The causes of failures to bind, for people.

use std::fmt::Write as _;

use chronorb_giop::SystemException;
use chronorb_rt::Text;

use super::NO_USABLE_PROFILE;
use crate::client::route::NoRoute;
use crate::core::Object;
use crate::failure::{self, because};
use crate::profile::{POLICIES_CONFLICT, Profile};
use crate::protocol::Source;
use crate::rtcorba::{ClientPolicy, Priority};

/// Records why a call has no route.
#[cold]
pub(super) fn unroutable(
    none: NoRoute,
    profile: &Profile,
    priority: Option<Priority>,
) -> SystemException {
    let mut cause = Text::<256>::of(match none {
        NoRoute::OutsideOfBands => "the priority of the call is in none of the bands",
        NoRoute::NoEndpoint => "the server has no lane for the priority of the call",
        NoRoute::TooManyWays => "the reference has more addresses than a call tries",
    });
    if let Some(priority) = priority {
        let _ = write!(cause, ", {}", priority.value());
    }
    let lanes = profile.lanes.iter().filter_map(|(lane, _)| *lane);
    for (index, lane) in lanes.enumerate() {
        let part = if index == 0 { "; its lanes are" } else { "," };
        let _ = write!(cause, "{part} {}", lane.value());
    }
    because(none.into(), format_args!("{cause}"))
}

/// Records which policies cannot be followed.
#[cold]
pub(super) fn conflict(policies: &[ClientPolicy]) -> SystemException {
    let what = "the client's policies that the server, or this ORB, cannot follow";
    because(POLICIES_CONFLICT, format_args!("{what}: {policies:?}"))
}

/// Adds the cause of the calling thread's last failure to others.
#[cold]
pub(super) fn note_cause<const N: usize>(causes: &mut Text<N>) {
    if let Some(last) = failure::last().filter(|last| last.exception() == NO_USABLE_PROFILE) {
        let part = if causes.is_empty() { "" } else { "; " };
        let _ = write!(causes, "{part}{}", last.cause());
    }
}

/// Records the profiles of a reference, none of which this ORB can use.
#[cold]
pub(super) fn unusable(object: &Object) -> SystemException {
    let (core, ior) = (object.core(), object.ior());
    if Profile::from_ior(ior, Source::Application, core.profile_reader()).is_some() {
        let what = "the reference came in a message, and does not prove that its local address is \
                    on this machine";
        let remedy = if cfg!(feature = "access") {
            "a rule that permits the peer (-ORBClientTransportRule), as \"uid=self unix\", lets it \
             be used"
        } else {
            "a rule for it needs the feature access"
        };
        return because(NO_USABLE_PROFILE, format_args!("{what}: {remedy}"));
    }
    let protocols = &core.protocols;
    let mut profiles = ior.profiles.iter();
    if profiles.any(|profile| protocols.form_of(profile.tag).is_some()) {
        let what =
            "the reference has no address that this ORB can use: the profiles of its protocols";
        let why = "are malformed, have port 0, or name another machine";
        return because(NO_USABLE_PROFILE, format_args!("{what} {why}"));
    }
    let mut cause = Text::<256>::of("the reference has no profile that this ORB can use");
    for (index, profile) in ior.profiles.iter().enumerate() {
        let part = if index == 0 {
            "; the tags of its profiles are"
        } else {
            ","
        };
        let _ = write!(cause, "{part} {:#x}", profile.tag);
    }
    because(NO_USABLE_PROFILE, format_args!("{cause} (-ORBProtocols)"))
}
