//! Observers: objects that are told what the consumers and suppliers of a channel need and offer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chronorb::quota::Charge;
use chronorb::{SystemException, SystemExceptionKind};
use chronorb_rt::{Deadline, Gate, PiMutex, SpawnError, ThreadBuilder};

use crate::event::{empty_data, wire_header};
use crate::failure::GONE;
use crate::idl::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use crate::idl::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, Observer, Publication, SupplierQOS,
};
use crate::idl::rtec_event_comm;
use crate::supplier::Leaves;

/// A kind of clients whose sources and types observers are told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Consumers,
    Suppliers,
}

/// The clients of a channel, as observers are told.
pub(crate) trait ObservedClients: Send + Sync + 'static {
    /// The sources and types of the clients of a kind, in ascending order, each once.
    fn leaves(&self, kind: Kind) -> Leaves;
}

/// The observers of a channel. Each has a thread of its own, so none delays another.
#[derive(Default)]
pub(crate) struct Observers {
    by_handle: PiMutex<BTreeMap<u32, Arc<ObserverEnd>>>,
}

impl Observers {
    /// Removes observers that were given up.
    pub(crate) fn purge(&self) {
        self.by_handle.lock().retain(|_, end| !end.is_over());
    }

    /// Adds an observer and tells it the present state. Returns its handle.
    ///
    /// # Errors
    /// [`SpawnError`] without a thread for it.
    pub(crate) fn append(
        &self,
        observer: &Observer,
        timeout: Duration,
        place: Charge,
        clients: Weak<dyn ObservedClients>,
    ) -> Result<u32, SpawnError> {
        let mut observers = self.by_handle.lock();
        let handle = observers.last_key_value().map_or(1, |(last, _)| last + 1);
        let object = observer.as_object().with_timeout(timeout);
        let end = Arc::new(ObserverEnd {
            reference: Observer::unchecked_narrow(&object),
            clients,
            pending: PiMutex::new(VecDeque::from([Kind::Consumers, Kind::Suppliers])),
            signal: Gate::new(0),
            _place: place,
        });
        let of_thread = end.clone();
        ThreadBuilder::new("events.observer").spawn(move || of_thread.run())?;
        observers.insert(handle, end);
        Ok(handle)
    }

    /// Removes an observer. Returns whether it was there.
    pub(crate) fn remove(&self, handle: u32) -> bool {
        let end = self.by_handle.lock().remove(&handle);
        end.is_some_and(|end| {
            let was_over = end.is_over();
            end.end();
            !was_over
        })
    }

    /// Removes all observers.
    pub(crate) fn clear(&self) {
        for end in std::mem::take(&mut *self.by_handle.lock()).values() {
            end.end();
        }
    }

    /// The number of observers.
    pub(crate) fn len(&self) -> usize {
        let observers = self.by_handle.lock();
        observers.values().filter(|end| !end.is_over()).count()
    }

    /// Has all observers told the state of a kind of clients, without waiting for them.
    pub(crate) fn tell(&self, kind: Kind) {
        for end in self.by_handle.lock().values() {
            end.add(kind);
        }
    }
}

/// An observer, and what it is still to be told.
struct ObserverEnd {
    reference: Observer,
    clients: Weak<dyn ObservedClients>,
    /// The kinds whose state it is to be told. A state is whole, so each waits once at most.
    pending: PiMutex<VecDeque<Kind>>,
    /// Advances with each update, up to [`OVER`].
    signal: Gate,
    _place: Charge,
}

/// The state of the gate after the end.
const OVER: u32 = u32::MAX;
/// The failures in a row after which an observer is given up.
const FAILURES: u32 = 3;
/// The longest wait between two looks at the gate.
const WAIT: Duration = Duration::from_secs(3600);

impl ObserverEnd {
    fn is_over(&self) -> bool {
        self.signal.get() == OVER
    }

    fn end(&self) {
        self.signal.set(OVER);
    }

    fn add(&self, kind: Kind) {
        let mut pending = self.pending.lock();
        if pending.contains(&kind) {
            return;
        }
        pending.push_back(kind);
        drop(pending);
        let seen = self.signal.get();
        if seen != OVER {
            // If another thread advances it at the same time, the observer is awake, too.
            let next = if seen + 1 == OVER { 0 } else { seen + 1 };
            let _ = self.signal.compare_set(seen, next);
        }
    }

    fn run(&self) {
        let mut failures = 0;
        loop {
            let seen = self.signal.get();
            if seen == OVER {
                return;
            }
            let next = self.pending.lock().pop_front();
            let Some(kind) = next else {
                self.signal.wait_while(seen, Deadline::after(WAIT));
                continue;
            };
            match self.send(kind) {
                Ok(()) => failures = 0,
                Err(exception) => {
                    failures += 1;
                    let is_gone = exception.kind == SystemExceptionKind::ObjectNotExist;
                    if is_gone || failures >= FAILURES {
                        return self.end();
                    }
                }
            }
        }
    }

    fn send(&self, kind: Kind) -> Result<(), SystemException> {
        let Some(clients) = self.clients.upgrade() else {
            return Err(GONE);
        };
        let leaves = clients.leaves(kind);
        drop(clients);
        // As in TAO the flag is set, so that a gateway can pass the structure on as its own.
        match kind {
            Kind::Consumers => self.reference.update_consumer(&ConsumerQOS {
                dependencies: &dependencies(&leaves),
                is_gateway: true,
            }),
            Kind::Suppliers => self.reference.update_supplier(&SupplierQOS {
                publications: &publications(&leaves),
                is_gateway: true,
            }),
        }
    }
}

/// The designator of a disjunction.
const DISJUNCTION: i32 = 9;

/// Returns a disjunction of leaves. Its first entry has their number in the place of the source.
fn dependencies(leaves: &[(i32, i32)]) -> Vec<Dependency<'static>> {
    let count = i32::try_from(leaves.len()).unwrap_or(i32::MAX);
    let entry = |&(source, event_type): &(i32, i32)| Dependency {
        event: rtec_event_comm::Event {
            header: wire_header(source, event_type),
            data: empty_data(),
        },
        rt_info: 0,
    };
    let group = (count, DISJUNCTION);
    std::iter::once(&group).chain(leaves).map(entry).collect()
}

fn publications(leaves: &[(i32, i32)]) -> Vec<Publication<'static>> {
    let entry = |&(source, event_type): &(i32, i32)| Publication {
        event: rtec_event_comm::Event {
            header: wire_header(source, event_type),
            data: empty_data(),
        },
        dependency_info: DependencyInfo {
            dependency_type: DependencyTypeT::OneWayCall,
            number_of_calls: 0,
            rt_info: 0,
            rt_info_depended_on: 0,
            enabled: DependencyEnabledTypeT::DependencyEnabled,
        },
    };
    leaves.iter().map(entry).collect()
}
