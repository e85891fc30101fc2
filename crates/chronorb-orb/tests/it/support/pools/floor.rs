//! Servants that a test holds and releases.

use std::collections::BTreeSet;
use std::sync::Arc;

use chronorb_cdr::Decoder;
use chronorb_orb::codegen::v1::{bad_operation, reply_error};
use chronorb_orb::rtcorba::Priority;
use chronorb_orb::{Call, Object, Operation, ReplyWriter, Skeleton, SystemException};
use chronorb_rt::{Deadline, Gate, PiMutex};

use crate::support::{PATIENCE, PROBE_ID, call};

/// The state of held servants: the running requests, and those that may continue.
#[derive(Default)]
pub(crate) struct Floor {
    state: PiMutex<FloorState>,
    changes: Changes,
}

#[derive(Default)]
struct FloorState {
    sights: Vec<Sight>,
    released: BTreeSet<u32>,
    open: bool,
    running: usize,
    most: usize,
    notes: u32,
}

/// A counter of changes, for waiting threads.
struct Changes(Gate);

impl Default for Changes {
    fn default() -> Self {
        Self(Gate::new(0))
    }
}

/// A servant's observation of its thread.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    /// The number of the request.
    pub(crate) number: u32,
    pub(crate) tid: u32,
    /// The lane whose thread it is, by its name; `None` for a thread of no lane.
    pub(crate) lane: Option<usize>,
    /// The priority of the request.
    pub(crate) corba: Option<i16>,
    /// The thread's priority according to `RTCORBA::Current`.
    pub(crate) current: Option<i16>,
    pub(crate) native: i32,
}

impl Sight {
    fn of(call: &Call<'_>, number: u32) -> Self {
        Self {
            number,
            tid: chronorb_rt::thread_id(),
            lane: lane_of_thread(),
            corba: call.priority().map(Priority::value),
            current: call.orb().rt_current().priority().ok().map(|p| p.value()),
            native: chronorb_rt::current().map_or(-1, |s| i32::from(s.priority)),
        }
    }
}

/// Returns the calling thread's lane: threads of lanes are named `pool:lane.number orb`.
fn lane_of_thread() -> Option<usize> {
    let thread = std::thread::current();
    let (_, lane) = thread.name()?.split_once(':')?;
    lane.split_once('.')?.0.parse().ok()
}

impl Floor {
    fn change<R>(&self, change: impl FnOnce(&mut FloorState) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state);
        self.changes.0.set(self.changes.0.get().wrapping_add(1));
        result
    }

    /// Waits until `find` returns something; a test that gets stuck fails here.
    fn await_some<R>(&self, what: &str, find: impl Fn(&FloorState) -> Option<R>) -> R {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let seen = self.changes.0.get();
            if let Some(found) = find(&self.state.lock()) {
                return found;
            }
            assert!(!deadline.has_passed(), "{what}");
            self.changes.0.wait_while(seen, deadline);
        }
    }

    /// Records the observation, and waits until it is released.
    fn hold(&self, sight: Sight) {
        let number = sight.number;
        self.change(|state| {
            state.sights.push(sight);
            state.running += 1;
            state.most = state.most.max(state.running);
        });
        self.await_some(&format!("request {number} was never released"), |state| {
            (state.open || state.released.contains(&number)).then_some(())
        });
        self.change(|state| state.running -= 1);
    }

    /// Releases one request, which may not have begun.
    pub(crate) fn release(&self, number: u32) {
        self.change(|state| state.released.insert(number));
    }

    /// Releases all requests, including future ones.
    pub(crate) fn open(&self) {
        self.change(|state| state.open = true);
    }

    /// Holds requests again.
    pub(crate) fn shut(&self) {
        self.change(|state| state.open = false);
    }

    /// Returns the observation of a request when it began.
    pub(crate) fn begun(&self, number: u32) -> Sight {
        self.await_some(&format!("request {number} never began"), |state| {
            let mut sights = state.sights.iter();
            sights.find(|sight| sight.number == number).cloned()
        })
    }

    /// Returns the observation of the `n`th request to begin.
    pub(crate) fn nth_begun(&self, n: usize) -> Sight {
        self.await_some(&format!("none was the {n}th to begin"), |state| {
            state.sights.get(n).cloned()
        })
    }

    pub(crate) fn count_begun(&self) -> usize {
        self.state.lock().sights.len()
    }

    pub(crate) fn has_begun(&self, number: u32) -> bool {
        let state = self.state.lock();
        state.sights.iter().any(|sight| sight.number == number)
    }

    /// Returns the number of held requests.
    pub(crate) fn running(&self) -> usize {
        self.state.lock().running
    }

    /// Waits until this many requests are held at the same time.
    pub(crate) fn await_running(&self, count: usize) {
        self.await_some(&format!("there never were {count} at work"), |state| {
            (state.running >= count).then_some(())
        });
    }

    /// Returns the maximum number of requests held at the same time.
    pub(crate) fn most(&self) -> usize {
        self.state.lock().most
    }

    /// Returns the number of served oneways.
    pub(crate) fn notes(&self) -> u32 {
        self.state.lock().notes
    }
}

/// A servant whose requests are held.
pub(crate) struct HoldingServant(pub(crate) Arc<Floor>);

impl Skeleton for HoldingServant {
    fn repository_id(&self) -> &'static str {
        PROBE_ID
    }

    fn is_a(&self, id: &str) -> bool {
        id == PROBE_ID
    }

    fn dispatch<'a>(
        &self,
        call: &Call<'a>,
        operation: &[u8],
        d: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        match operation {
            b"hold" | b"hold_and_panic" => {
                let number = d.read_u32()?;
                d.read_octet_seq()?;
                self.0.hold(Sight::of(call, number));
                assert!(operation == b"hold", "the servant was asked to panic");
                reply.normal()?.write_u32(number).map_err(reply_error)
            }
            b"pass" => reply.normal().map(drop),
            b"note" => {
                self.0.change(|state| state.notes += 1);
                Ok(())
            }
            b"look" => {
                let sight = Sight::of(call, 0);
                let lane = sight.lane.map_or(u32::MAX, |lane| lane as u32);
                let e = reply.normal()?;
                e.write_u32(lane)
                    .and_then(|()| e.write_i16(sight.corba.unwrap_or(-1)))
                    .and_then(|()| e.write_i16(sight.current.unwrap_or(-1)))
                    .and_then(|()| e.write_i32(sight.native))
                    .map_err(reply_error)
            }
            _ => Err(bad_operation()),
        }
    }
}

/// Returns the lane, the CORBA priority, that of `RTCORBA::Current` and the native one of a request
/// that is not held.
pub(crate) fn look(object: &Object) -> Result<(u32, i16, i16, i32), SystemException> {
    call(object, "look", &|_| Ok(()), |d| {
        Ok((d.read_u32()?, d.read_i16()?, d.read_i16()?, d.read_i32()?))
    })
}

/// Sends a oneway, which is counted.
pub(crate) fn note(object: &Object) -> Result<(), SystemException> {
    object.invoke_oneway(&Operation::oneway("note"), &|_| Ok(()))
}
