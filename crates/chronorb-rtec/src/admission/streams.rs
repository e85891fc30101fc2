//! Streams of events: those of publications, and those that a filter delivers of them.

use std::collections::HashSet;
use std::time::Duration;

use chronorb_events::{Filter, Header, TimerKind};
use chronorb_sched::Time;

use super::{OperationNeeds, nanos};

/// A publication with a period.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PublishedStream {
    pub(super) header: Header,
    /// In nanoseconds.
    pub(super) period: Time,
    /// The events of each period.
    pub(super) events: u64,
}

/// A publication with a period, and the ticket of its supplier.
pub(super) type SuppliedStream = (u64, PublishedStream);

/// The load of a consumer.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerLoad {
    filter: Filter,
    cost: Time,
    pub(super) priority: u32,
    /// The nodes of the filter.
    pub(super) nodes: u64,
}

/// The executions of a consumer for one stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Execution {
    pub(super) period: Time,
    pub(super) cost: Time,
    /// The ticket of the supplier; `None` for a timer.
    pub(super) supplier: Option<u64>,
}

/// A stream of deliveries to a consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DeliveryStream {
    period: Time,
    events: u64,
    supplier: Option<u64>,
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
            nodes: nodes(filter),
        })
    }

    /// Whether a publication adds the same executions whatever else is published.
    pub(super) fn is_separable(&self) -> bool {
        self.filter.is_stateless()
    }

    /// Returns the steps that [`executions`](Self::executions) takes.
    pub(super) fn steps(&self, publications: usize) -> u64 {
        self.nodes.saturating_mul(publications as u64 + 1)
    }

    /// Returns its executions while these publications are there. If they are more than `most`,
    /// some are left out.
    pub(super) fn executions<'a>(
        &'a self,
        published: &[SuppliedStream],
        most: u64,
    ) -> impl Iterator<Item = Execution> + use<'a> {
        let indices: Vec<_> = (0..published.len()).collect();
        let streams = streams(&self.filter, published, &indices, most).into_iter();
        streams.map(|stream| Execution {
            period: stream.period,
            cost: self.cost.saturating_mul(stream.events),
            supplier: stream.supplier,
        })
    }
}

/// The nodes of a filter.
fn nodes(filter: &Filter) -> u64 {
    let below = match filter {
        Filter::Bits { then, .. } | Filter::Negation(then) => nodes(then),
        Filter::All(children) | Filter::Any(children) | Filter::Conjunction(children) => {
            children.iter().map(nodes).sum()
        }
        _ => 0,
    };
    1 + below
}

/// Returns the streams that a filter delivers of some of the publications. If they are more than
/// `most`, some are left out.
fn streams(
    filter: &Filter,
    published: &[SuppliedStream],
    indices: &[usize],
    most: u64,
) -> Vec<DeliveryStream> {
    if filter.is_stateless() {
        let passing = indices.iter().filter(|index| {
            let header = &published[**index].1.header;
            may_pass(filter, header)
        });
        let stream = |index: &usize| {
            let (supplier, published) = &published[*index];
            DeliveryStream {
                period: published.period,
                events: published.events,
                supplier: Some(*supplier),
                publication: Some(*index),
            }
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
                let header = &published[*index].1.header;
                may_have(header.source, source_mask) && may_have(header.event_type, type_mask)
            });
            streams(then, published, &left.collect::<Vec<_>>(), most)
        }
        Filter::Any(children) => {
            let mut all: Vec<DeliveryStream> = Vec::new();
            let mut publications = HashSet::new();
            for child in children {
                // An event is delivered by itself once.
                let new = streams(child, published, indices, most).into_iter();
                all.extend(
                    new.filter(|it| it.publication.is_none_or(|it| publications.insert(it))),
                );
                if all.len() as u64 > most {
                    break;
                }
            }
            all
        }
        Filter::Conjunction(children) => {
            let each = children.iter().filter(|child| !is_deadline(child));
            let each = each.map(|child| streams(child, published, indices, most));
            // A set needs an event of each child, so it comes as seldom as the most seldom one.
            let rate = |streams: &Vec<DeliveryStream>| -> f64 {
                streams.iter().map(DeliveryStream::rate).sum()
            };
            let least = each.min_by(|a, b| rate(a).total_cmp(&rate(b)));
            let deadlines = children.iter().filter(|child| is_deadline(child));
            let deadlines = deadlines.flat_map(|child| streams(child, published, indices, most));
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
        supplier: None,
        publication: None,
    })
}

/// Whether a filter may accept an event that a publication stands for. Zero is any source or type.
fn may_pass(filter: &Filter, header: &Header) -> bool {
    if header.source != 0 && header.event_type != 0 {
        return filter.passes(header);
    }
    match filter {
        Filter::All(children) => {
            !children.is_empty() && children.iter().all(|child| may_pass(child, header))
        }
        Filter::Any(children) => children.iter().any(|child| may_pass(child, header)),
        // A conjunction without state has no children, so it accepts nothing.
        Filter::Leaf { .. } | Filter::Conjunction(_) => filter.passes(header),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn published(publications: &[(i32, i32, u64)]) -> Vec<SuppliedStream> {
        let publication = |&(source, event_type, period): &(i32, i32, u64)| {
            let stream = PublishedStream {
                header: Header {
                    source,
                    event_type,
                    ..Header::default()
                },
                period: period * MS,
                events: 1,
            };
            (1, stream)
        };
        publications.iter().map(publication).collect()
    }

    fn periods(filter: &Filter, publications: &[(i32, i32, u64)]) -> Vec<u64> {
        let published = published(publications);
        let indices: Vec<_> = (0..published.len()).collect();
        let streams = streams(filter, &published, &indices, 100);
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
}
