//! Admission of subscriptions by the response times of their consumers.
//!
//! Each publication with a period is a stream of events, and so is each timer. A consumer runs for
//! each event that its filter takes, with its execution time, at the priority of its lane, and has
//! to end within the period of the stream. All consumers share one processor in the analysis.

mod ledger;
mod loads;
mod shortfall;
mod streams;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chronorb::{SystemException, SystemExceptionKind};
use chronorb_channel::Budget;
use chronorb_events::Header;
use chronorb_sched::Time;

use crate::failure::{BAD_PARAM, system};

pub(crate) use ledger::{AdmissionLedger, AdmissionPlace, Verdict};
pub(crate) use streams::{ConsumerLoad, PublishedStream};

/// The needs of operations by their handles, as a scheduling service knows them.
pub trait OperationSource: Send + Sync + 'static {
    /// Returns the needs of an operation; `None` if no operation has this handle.
    ///
    /// The channel calls this while a client connects, and holds no lock meanwhile. It asks at most
    /// 64 times for one connection.
    ///
    /// # Errors
    /// The exception that the client gets, as of a service that is not reached.
    fn operation(&self, handle: i32) -> Result<Option<OperationNeeds>, SystemException>;
}

impl OperationSource for HashMap<i32, OperationNeeds> {
    fn operation(&self, handle: i32) -> Result<Option<OperationNeeds>, SystemException> {
        Ok(self.get(&handle).copied())
    }
}

/// The needs of an operation: of a consumer for each event, or of a supplier.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OperationNeeds {
    /// The worst-case execution time of a consumer. Zero leaves it out of the analysis.
    pub cost: Duration,
    /// The period of a supplier. Without one its events are left out of the analysis. A consumer
    /// with a queue, an execution time and a period may use its lane for so long in each period;
    /// then its events wait for the next one.
    pub period: Option<Duration>,
    /// Whether the period is that of callers, so that it is no budget of a consumer.
    pub is_called: bool,
    /// The lane of a consumer, from 0. Without one it belongs to the last lane.
    pub lane: Option<usize>,
    /// The order within the lane. A greater one is more urgent.
    pub subpriority: i32,
}

/// The treatment of a client with which deadlines could be missed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AdmissionPolicy {
    /// Refuses its connection with `NO_RESOURCES`.
    #[default]
    Refuse,
    /// Connects it, and reports the shortfall. A client whose streams exceed their quota, or the
    /// bound of the work, is connected too, and later analyses leave it out.
    Report,
}

/// The admission of a channel.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(crate) operations: Arc<dyn OperationSource>,
    pub(crate) policy: AdmissionPolicy,
}

impl OperationNeeds {
    /// The budget of a consumer.
    pub(crate) fn budget(&self) -> Option<Budget> {
        let (cost, period) = (self.cost, self.period?);
        (!cost.is_zero() && !self.is_called).then_some(Budget { cost, period })
    }
}

impl Admission {
    /// Returns the needs of the operation of a consumer: the first of its handles that is not 0.
    pub(crate) fn of_consumer(
        &self,
        mut handles: impl Iterator<Item = i32>,
    ) -> Result<OperationNeeds, SystemException> {
        let handle = handles.find(|handle| *handle != 0);
        let needs = handle.map(|handle| self.operations.operation(handle));
        Ok(needs.transpose()?.flatten().unwrap_or_default())
    }

    /// Returns the streams of publications, each with its handle and its events in each period.
    ///
    /// # Errors
    /// `BAD_PARAM` for more than [`MOST_HANDLES`] different handles, of which none is asked for
    /// then; the exceptions of the source.
    pub(crate) fn streams_of(
        &self,
        publications: impl Iterator<Item = (Header, i32, i32)> + Clone,
    ) -> Result<Vec<PublishedStream>, SystemException> {
        let handles = publications.clone().map(|(_, handle, _)| handle);
        let handles: BTreeSet<_> = handles.filter(|handle| *handle != 0).collect();
        if handles.len() > MOST_HANDLES {
            return Err(BAD_PARAM);
        }
        let mut periods = BTreeMap::new();
        for handle in handles {
            let needs = self.operations.operation(handle)?.unwrap_or_default();
            let period = needs.period.map(nanos).filter(|period| *period > 0);
            periods.extend(period.map(|period| (handle, period)));
        }
        let streams = publications.filter_map(|(header, handle, events)| {
            Some(PublishedStream {
                header,
                period: *periods.get(&handle)?,
                events: u64::try_from(events).unwrap_or(1).max(1),
            })
        });
        Ok(streams.collect())
    }
}

fn nanos(time: Duration) -> Time {
    Time::try_from(time.as_nanos()).unwrap_or(Time::MAX)
}

/// The exception of a client that is not admitted.
pub(crate) const NOT_ADMITTED: SystemException = system(SystemExceptionKind::NoResources);
/// The most operations that one supplier may name, since each is a call of the scheduler.
const MOST_HANDLES: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A source that counts its calls.
    struct CallCounter(Arc<AtomicUsize>);

    impl OperationSource for CallCounter {
        fn operation(&self, handle: i32) -> Result<Option<OperationNeeds>, SystemException> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Some(OperationNeeds {
                period: Some(Duration::from_millis(handle as u64)),
                ..OperationNeeds::default()
            }))
        }
    }

    #[test]
    fn each_of_a_suppliers_operations_is_asked_for_once() {
        let calls = Arc::new(AtomicUsize::new(0));
        let admission = Admission {
            operations: Arc::new(CallCounter(calls.clone())),
            policy: AdmissionPolicy::Refuse,
        };
        let publications = |handles: i32| {
            let handles = (0..1024).map(move |it| it % (handles + 1));
            handles.map(|handle| (Header::default(), handle, 1))
        };
        let most = MOST_HANDLES as i32;
        let streams = admission.streams_of(publications(most)).unwrap();
        assert_eq!(calls.swap(0, Ordering::Relaxed), MOST_HANDLES);
        // Each 65th publication names none.
        assert_eq!(streams.len(), 1024 - 1024_usize.div_ceil(MOST_HANDLES + 1));
        assert_eq!(admission.streams_of(publications(most + 1)), Err(BAD_PARAM));
        assert_eq!(calls.load(Ordering::Relaxed), 0);
    }
}
