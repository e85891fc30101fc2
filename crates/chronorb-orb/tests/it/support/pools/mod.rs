//! Thread pools under virtual load: a test holds and releases servants, so a busy thread is a fact
//! and not a matter of timing; clients wait for them.

mod bench;
mod callers;
mod floor;
mod raw;
mod table;

use chronorb_orb::rtcorba::Priority;
use chronorb_orb::{SystemException, SystemExceptionKind};

use super::adapters::omg;
use super::has_real_time;

pub(crate) use bench::{Bench, await_rest};
pub(crate) use callers::{ActiveCall, Callers};
#[cfg(feature = "baselines")]
pub(crate) use floor::Sight;
pub(crate) use floor::{Floor, HoldingServant, look, note};
pub(crate) use raw::{Raw, SentRequest};
pub(crate) use table::{BALLAST, Buffering, Case, LANED, ROOM_FOR_TWO, STRATEGIES, Threads, cases};

pub(crate) const LOW: i16 = 8_000;
pub(crate) const MID: i16 = 16_000;
pub(crate) const HIGH: i16 = 24_000;

pub(crate) fn corba(value: i16) -> Priority {
    Priority::new(value).expect("not negative")
}

/// Returns the native priority by the default mapping, if the process may use it.
pub(crate) fn native(value: i16) -> i32 {
    match (value, has_real_time()) {
        (LOW, true) => 24,
        (MID, true) => 48,
        (HIGH, true) => 72,
        _ => 0,
    }
}

/// Returns the exception of a request that finds no room.
pub(crate) fn no_room() -> SystemException {
    omg(SystemExceptionKind::Transient, 1)
}
