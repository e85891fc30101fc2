//! Filters: the tree that a consumer subscribes with.

use std::ops::{BitAnd, BitOr, Not};
use std::slice;
use std::time::Duration;

use crate::event::{ANY_SOURCE, ANY_TYPE, Header};

/// When a timer of a subscription fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimerKind {
    /// Once, after its time.
    Once,
    /// At each multiple of its time since the subscription.
    Interval,
    /// After nothing was delivered for its time.
    ///
    /// As a child of a [`Filter::Conjunction`] it stands for the missing events: when it fires,
    /// the conjunction delivers what it has, and the event of the timer.
    Deadline,
}

/// A tree that decides which events a consumer gets, and in which sets.
///
/// `|` makes a disjunction, `&` a logical and, `!` a negation. A group without children never
/// accepts an event.
///
/// # Example
/// ```
/// use chronorb_events::{Event, Filter};
///
/// let filter = Filter::event(10, 20) | Filter::of_type(21);
/// assert!(filter.passes(&Event::new(10, 20, ()).header));
/// assert!(!filter.passes(&Event::new(11, 20, ()).header));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Events of a source and a type. Zero matches every source or type, on either side.
    Leaf {
        /// The source, or [`ANY_SOURCE`].
        source: i32,
        /// The type, or [`ANY_TYPE`].
        event_type: i32,
    },
    /// Every event.
    Everything,
    /// Events whose masked source and type have these values.
    Masked {
        /// The bits of the source that are compared.
        source_mask: i32,
        /// The bits of the type that are compared.
        type_mask: i32,
        /// The value of the masked source.
        source_value: i32,
        /// The value of the masked type.
        type_value: i32,
    },
    /// Events with at least one bit of each mask, as far as the inner filter accepts them.
    Bits {
        /// At least one of these bits is set in the source.
        source_mask: i32,
        /// At least one of these bits is set in the type.
        type_mask: i32,
        /// The inner filter.
        then: Box<Self>,
    },
    /// Events that the inner filter does not accept. The inner filter has no state.
    Negation(Box<Self>),
    /// Events that every child accepts. The children have no state.
    All(Vec<Self>),
    /// The deliveries of all children. An event is delivered by itself at most once.
    Any(Vec<Self>),
    /// One set of events, in order of arrival, when every child has delivered.
    ///
    /// An event belongs to the first child that still lacks one and accepts it. Events for
    /// children that have theirs are not kept.
    Conjunction(Vec<Self>),
    /// The event of a timer, and no other.
    Timer {
        /// When it fires.
        kind: TimerKind,
        /// The time until it fires.
        time: Duration,
    },
}

impl Filter {
    /// Events of a source and a type.
    pub fn event(source: i32, event_type: i32) -> Self {
        Self::Leaf { source, event_type }
    }

    /// Events of a type, from every source.
    pub fn of_type(event_type: i32) -> Self {
        Self::event(ANY_SOURCE, event_type)
    }

    /// Events of a source, of every type.
    pub fn from_source(source: i32) -> Self {
        Self::event(source, ANY_TYPE)
    }

    /// A timer that fires at each multiple of a time.
    pub fn each(time: Duration) -> Self {
        let kind = TimerKind::Interval;
        Self::Timer { kind, time }
    }

    /// A timer that fires once.
    pub fn after(time: Duration) -> Self {
        let kind = TimerKind::Once;
        Self::Timer { kind, time }
    }

    /// A timer that fires when nothing was delivered for a time.
    pub fn silence(time: Duration) -> Self {
        let kind = TimerKind::Deadline;
        Self::Timer { kind, time }
    }

    /// Whether the filter keeps nothing between events, so that [`passes`](Self::passes) is all
    /// that it does.
    pub fn is_stateless(&self) -> bool {
        match self {
            Self::Leaf { .. } | Self::Everything | Self::Masked { .. } => true,
            Self::Bits { then, .. } | Self::Negation(then) => then.is_stateless(),
            Self::All(children) | Self::Any(children) => children.iter().all(Self::is_stateless),
            // Without children it accepts nothing.
            Self::Conjunction(children) => children.is_empty(),
            Self::Timer { .. } => false,
        }
    }

    /// The number of nodes, which bounds the work that one event can cause.
    pub fn nodes(&self) -> usize {
        let children = self.children().iter().map(Self::nodes);
        children.fold(1, usize::saturating_add)
    }

    /// The most firings of its interval and deadline timers in a second, on average and rounded
    /// up. A timer that fires once does not count.
    pub fn firings_per_second(&self) -> u64 {
        let mut periods = Vec::new();
        self.add_periods(&mut periods);
        firings_per_second(periods)
    }

    /// Adds the times of timers that fire again and again, in nanoseconds.
    fn add_periods(&self, periods: &mut Vec<u128>) {
        if let Self::Timer { kind, time } = self
            && *kind != TimerKind::Once
        {
            periods.push(time.as_nanos());
        }
        for child in self.children() {
            child.add_periods(periods);
        }
    }

    /// The filters immediately within this one.
    pub(crate) fn children(&self) -> &[Self] {
        match self {
            Self::Bits { then, .. } => slice::from_ref(then),
            Self::Negation(inner) => slice::from_ref(inner),
            Self::All(children) | Self::Any(children) | Self::Conjunction(children) => children,
            Self::Leaf { .. } | Self::Everything | Self::Masked { .. } | Self::Timer { .. } => &[],
        }
    }

    /// Whether an event can contribute to a delivery. It is the whole filter if the filter has no
    /// state.
    pub fn passes(&self, header: &Header) -> bool {
        match self {
            Self::Leaf { source, event_type } => leaf_passes(*source, *event_type, header),
            Self::Everything => true,
            Self::Masked {
                source_mask,
                type_mask,
                source_value,
                type_value,
            } => {
                header.source & source_mask == *source_value
                    && header.event_type & type_mask == *type_value
            }
            Self::Bits {
                source_mask,
                type_mask,
                then,
            } => {
                header.source & source_mask != 0
                    && header.event_type & type_mask != 0
                    && then.passes(header)
            }
            Self::Negation(inner) => !inner.passes(header),
            Self::All(children) => {
                !children.is_empty() && children.iter().all(|child| child.passes(header))
            }
            Self::Any(children) | Self::Conjunction(children) => {
                children.iter().any(|child| child.passes(header))
            }
            Self::Timer { .. } => false,
        }
    }
}

/// The firings per second of timers with these times in nanoseconds, rounded up. It is the greatest
/// number for a time of zero.
pub(crate) fn firings_per_second(periods: impl IntoIterator<Item = u128>) -> u64 {
    // In units of 10⁻¹⁸ firings, so that rounding them does not add up to one.
    const UNIT: u128 = 1_000_000_000_000_000_000;
    const SECOND: u128 = 1_000_000_000;
    let rates = periods.into_iter().map(|period| {
        let rate = (UNIT * SECOND).checked_div(period);
        rate.map_or(u128::MAX, |rate| rate.max(1))
    });
    let sum = rates.fold(0, u128::saturating_add);
    u64::try_from(sum.div_ceil(UNIT)).unwrap_or(u64::MAX)
}

/// Whether a leaf accepts an event. Zero is every source or type on either side.
pub(crate) fn leaf_passes(source: i32, event_type: i32, header: &Header) -> bool {
    let source_passes = source == header.source || source == ANY_SOURCE || header.source == 0;
    let type_passes =
        event_type == header.event_type || event_type == ANY_TYPE || header.event_type == 0;
    source_passes && type_passes
}

impl BitOr for Filter {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        match self {
            Self::Any(mut children) => {
                children.push(other);
                Self::Any(children)
            }
            first => Self::Any(vec![first, other]),
        }
    }
}

impl BitAnd for Filter {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        match self {
            Self::All(mut children) => {
                children.push(other);
                Self::All(children)
            }
            first => Self::All(vec![first, other]),
        }
    }
}

impl Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self::Negation(Box::new(self))
    }
}
