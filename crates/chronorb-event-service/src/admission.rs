//! Admission of subscriptions by the response times of their consumers.
//!
//! Each publication with a period is a stream of events, and so is each timer. A consumer runs for
//! each event that its filter takes, with its execution time, at the priority of its lane, and has
//! to end within the period of the stream. All consumers share one processor in the analysis.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use chronorb::{SystemException, SystemExceptionKind};
use chronorb_channel::Budget;
use chronorb_events::{Filter, Header, TimerKind};
use chronorb_sched::{
    AdmissionControl, AdmissionError, Resource, Shortfall, Step, StepOwner, Time, Transaction,
};

use crate::failure::system;

/// The needs of operations by their handles, as a scheduling service knows them.
pub trait OperationSource: Send + Sync + 'static {
    /// Returns the needs of an operation; `None` if no operation has this handle.
    ///
    /// The channel calls this while a client connects, and holds no lock meanwhile.
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
    /// Connects it, and reports the shortfall.
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
        (!cost.is_zero()).then_some(Budget { cost, period })
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
    pub(crate) fn streams_of(
        &self,
        publications: impl Iterator<Item = (Header, i32, i32)>,
    ) -> Result<Vec<PublishedStream>, SystemException> {
        let mut known = HashMap::new();
        let mut streams = Vec::new();
        for (header, handle, events) in publications {
            let needs = match known.get(&handle) {
                Some(needs) => *needs,
                None if handle == 0 => OperationNeeds::default(),
                None => {
                    let needs = self.operations.operation(handle)?.unwrap_or_default();
                    known.insert(handle, needs);
                    needs
                }
            };
            if let Some(period) = needs.period.map(nanos).filter(|period| *period > 0) {
                streams.push(PublishedStream {
                    header,
                    period,
                    events: u64::try_from(events).unwrap_or(1).max(1),
                });
            }
        }
        Ok(streams)
    }
}

/// A publication with a period.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PublishedStream {
    header: Header,
    /// In nanoseconds.
    period: Time,
    /// The events of each period.
    events: u64,
}

/// The load of a consumer.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerLoad {
    filter: Filter,
    cost: Time,
    priority: u32,
}

/// A stream of deliveries to a consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DeliveryStream {
    period: Time,
    events: u64,
    /// The index of the publication whose events are delivered one by one.
    publication: Option<usize>,
}

impl DeliveryStream {
    fn rate(&self) -> f64 {
        self.events as f64 / self.period as f64
    }
}

impl ConsumerLoad {
    /// The load of a consumer of one of `lanes`; `None` without an execution time.
    pub(crate) fn new(
        filter: &Filter,
        needs: &OperationNeeds,
        lane: usize,
        lanes: usize,
    ) -> Option<Self> {
        let cost = Some(nanos(needs.cost)).filter(|cost| *cost > 0)?;
        Some(Self {
            filter: filter.clone(),
            cost,
            priority: u32::try_from(lanes.saturating_sub(lane)).unwrap_or(u32::MAX),
        })
    }

    /// Adds its executions while these publications are there.
    pub(crate) fn add_to(
        &self,
        transactions: &mut Vec<Transaction>,
        published: &[PublishedStream],
    ) {
        let indices: Vec<_> = (0..published.len()).collect();
        let streams = streams(&self.filter, published, &indices);
        transactions.extend(streams.into_iter().map(|stream| {
            let cost = self.cost.saturating_mul(stream.events);
            Transaction::new(stream.period, vec![Step::new(0, cost, self.priority)])
        }));
    }
}

/// Returns the streams that a filter delivers of some of the publications.
fn streams(
    filter: &Filter,
    published: &[PublishedStream],
    indices: &[usize],
) -> Vec<DeliveryStream> {
    if filter.is_stateless() {
        let passing = indices.iter().filter(|index| {
            let header = &published[**index].header;
            may_pass(filter, header)
        });
        let stream = |index: &usize| DeliveryStream {
            period: published[*index].period,
            events: published[*index].events,
            publication: Some(*index),
        };
        return passing.map(stream).collect();
    }
    match filter {
        Filter::Timer { kind, time } => timer(*kind, *time).into_iter().collect(),
        Filter::Bits {
            source_mask,
            type_mask,
            then,
        } => {
            let may_have = |value: i32, mask: &i32| value == 0 || value & mask != 0;
            let left = indices.iter().copied().filter(|index| {
                let header = &published[*index].header;
                may_have(header.source, source_mask) && may_have(header.event_type, type_mask)
            });
            streams(then, published, &left.collect::<Vec<_>>())
        }
        Filter::Any(children) => {
            let mut all: Vec<DeliveryStream> = Vec::new();
            for stream in children
                .iter()
                .flat_map(|it| streams(it, published, indices))
            {
                // An event is delivered by itself once.
                if stream.publication.is_none() || !all.contains(&stream) {
                    all.push(stream);
                }
            }
            all
        }
        Filter::Conjunction(children) => {
            let each = children.iter().filter(|child| !is_deadline(child));
            let each = each.map(|child| streams(child, published, indices));
            // A set needs an event of each child, so it comes as seldom as the most seldom one.
            let rate = |streams: &Vec<DeliveryStream>| -> f64 {
                streams.iter().map(DeliveryStream::rate).sum()
            };
            let least = each.min_by(|a, b| rate(a).total_cmp(&rate(b)));
            let deadlines = children.iter().filter(|child| is_deadline(child));
            let deadlines = deadlines.flat_map(|child| streams(child, published, indices));
            let sets = least.unwrap_or_default().into_iter().chain(deadlines);
            sets.map(|stream| DeliveryStream {
                publication: None,
                ..stream
            })
            .collect()
        }
        // Those have no state.
        _ => Vec::new(),
    }
}

fn is_deadline(filter: &Filter) -> bool {
    matches!(filter, Filter::Timer { kind, .. } if *kind == TimerKind::Deadline)
}

fn timer(kind: TimerKind, time: Duration) -> Option<DeliveryStream> {
    // A timer that fires once is no load for good.
    let is_periodic = kind != TimerKind::Once;
    (is_periodic && !time.is_zero()).then(|| DeliveryStream {
        period: nanos(time),
        events: 1,
        publication: None,
    })
}

/// Whether a filter may accept an event that a publication stands for. Zero is any source or type.
fn may_pass(filter: &Filter, header: &Header) -> bool {
    if header.source != 0 && header.event_type != 0 {
        return filter.passes(header);
    }
    match filter {
        Filter::All(children) => children.iter().all(|child| may_pass(child, header)),
        Filter::Any(children) => children.iter().any(|child| may_pass(child, header)),
        Filter::Leaf { .. } => filter.passes(header),
        _ => true,
    }
}

/// Checks whether a client's executions fit beside those of others.
///
/// # Errors
/// The shortfall as text.
pub(crate) fn check(running: Vec<Transaction>, added: &[Transaction]) -> Result<(), String> {
    if running.len() + added.len() > MOST_STREAMS {
        return Err(format!(
            "the consumers have more than {MOST_STREAMS} streams of events"
        ));
    }
    let control = AdmissionControl::new(vec![Resource::default()], running);
    let admitted = control.and_then(|mut control| control.admit(added));
    admitted.map(drop).map_err(|error| match error {
        AdmissionError::Late(shortfall) => described(&shortfall),
        other => other.to_string(),
    })
}

fn described(shortfall: &Shortfall) -> String {
    let mut text = String::new();
    if let Some(late) = shortfall.late.first() {
        let consumer = match late.owner {
            StepOwner::Candidate => "its consumer",
            _ => "another consumer",
        };
        let deadline = Duration::from_nanos(late.deadline);
        let _ = match late.response.time() {
            Some(time) => write!(
                text,
                "{consumer} could end {:?} after an event, and has {deadline:?}",
                Duration::from_nanos(time)
            ),
            None => write!(
                text,
                "the processor is overloaded: {consumer} could end at any time, and has \
                 {deadline:?}"
            ),
        };
    }
    if shortfall.costs > 0 {
        let percent = shortfall.costs / 10_000;
        let _ = write!(text, "; {percent} % of the execution times would fit");
    }
    if let Some(periods) = shortfall.periods {
        let (whole, hundredths) = (periods / 1_000_000, periods % 1_000_000 / 10_000);
        let _ = write!(
            text,
            "; periods {whole}.{hundredths:02} times as long would fit"
        );
    }
    text
}

fn nanos(time: Duration) -> Time {
    Time::try_from(time.as_nanos()).unwrap_or(Time::MAX)
}

/// The exception of a client that is not admitted.
pub(crate) const NOT_ADMITTED: SystemException = system(SystemExceptionKind::NoResources);
/// The most streams of events to consumers that are analysed.
const MOST_STREAMS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn published(publications: &[(i32, i32, u64)]) -> Vec<PublishedStream> {
        let publication = |&(source, event_type, period): &(i32, i32, u64)| PublishedStream {
            header: Header {
                source,
                event_type,
                ..Header::default()
            },
            period: period * MS,
            events: 1,
        };
        publications.iter().map(publication).collect()
    }

    fn periods(filter: &Filter, publications: &[(i32, i32, u64)]) -> Vec<u64> {
        let published = published(publications);
        let indices: Vec<_> = (0..published.len()).collect();
        let streams = streams(filter, &published, &indices);
        streams.iter().map(|stream| stream.period / MS).collect()
    }

    #[test]
    fn a_filter_has_the_streams_of_the_publications_that_pass() {
        let published = [(10, 20, 50), (11, 20, 100), (11, 21, 200)];
        assert_eq!(periods(&Filter::of_type(20), &published), [50, 100]);
        assert_eq!(periods(&!Filter::event(10, 20), &published), [100, 200]);
        let twice = Filter::event(10, 20) | Filter::from_source(10);
        assert_eq!(periods(&twice, &published), [50]);
        // Events of any type may be of another one.
        assert_eq!(periods(&!Filter::event(10, 20), &[(10, 0, 30)]), [30]);
    }

    #[test]
    fn a_conjunction_is_as_seldom_as_the_most_seldom_part() {
        let published = [(1, 20, 50), (2, 20, 200)];
        let both = Filter::Conjunction(vec![Filter::event(1, 20), Filter::event(2, 20)]);
        assert_eq!(periods(&both, &published), [200]);
        let limit = Filter::silence(Duration::from_millis(80));
        let parts = vec![Filter::event(1, 20), Filter::event(2, 20), limit];
        assert_eq!(periods(&Filter::Conjunction(parts), &published), [200, 80]);
        // A part without events lets none complete.
        let absent = Filter::Conjunction(vec![Filter::event(1, 20), Filter::event(3, 20)]);
        assert_eq!(periods(&absent, &published), Vec::<u64>::new());
        let timers = Filter::each(Duration::from_millis(7)) | Filter::after(Duration::from_secs(1));
        assert_eq!(periods(&timers, &published), [7]);
    }

    #[test]
    fn the_shortfall_says_what_would_fit() {
        let task = |cost, period| Transaction::new(period, vec![Step::new(0, cost, 1)]);
        let running = vec![task(30 * MS, 100 * MS)];
        assert_eq!(check(running.clone(), &[task(20 * MS, 60 * MS)]), Ok(()));
        let text = check(running, &[task(40 * MS, 60 * MS)]).unwrap_err();
        let expected = "its consumer could end 80ms after an event, and has 60ms; 75 % of the \
                        execution times would fit";
        assert_eq!(text, expected);
    }
}
