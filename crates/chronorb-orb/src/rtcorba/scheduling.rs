//! The time constraints of calls: deadlines that travel, and the order of requests in a lane.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use chronorb_giop::{AbsoluteDeadline, SchedulingContext, SynchronisedClock};
use chronorb_rt::{Monotonic, Rank};

use super::Priority;

/// The order in which the requests that wait in a lane are served.
///
/// A request that is being served is never interrupted for another one of its lane. Requests of
/// equal urgency are served in the order of arrival. Those without a deadline follow all others of
/// their criticality.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(
    feature = "monitor-client",
    derive(serde::Deserialize, serde::Serialize),
    serde(rename_all = "kebab-case")
)]
pub enum LaneOrder {
    /// In the order of arrival.
    #[default]
    Fifo,
    /// By the earliest deadline.
    Deadline,
    /// By the least laxity: the time to the deadline less the execution time.
    Laxity,
    /// By the greatest criticality, then the least laxity (maximum urgency first).
    #[cfg_attr(feature = "monitor-client", serde(rename = "muf"))]
    Urgency,
}

impl LaneOrder {
    /// Returns the name, as `-ORBLaneOrder` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Deadline => "deadline",
            Self::Laxity => "laxity",
            Self::Urgency => "muf",
        }
    }

    pub(crate) fn is_fifo(self) -> bool {
        self == Self::Fifo
    }

    /// Returns the rank of a request of this priority that waits for a thread.
    pub(crate) fn rank(self, priority: Option<Priority>, constraint: Option<&Constraint>) -> Rank {
        let level = priority.map_or(0, |priority| priority.value() as u128 + 1) << 112;
        if self.is_fifo() {
            return Rank::of(level);
        }
        let context = constraint.map_or_else(SchedulingContext::default, |it| it.context);
        let due = constraint
            .and_then(|it| it.due)
            .map_or(u64::MAX, Monotonic::as_nanos);
        let due = match self {
            Self::Fifo | Self::Deadline => due,
            Self::Laxity | Self::Urgency if due == u64::MAX => due,
            Self::Laxity | Self::Urgency => due.saturating_sub(context.execution),
        };
        let criticality = ordered(context.criticality) << 96;
        let among_critical = u128::from(!due) << 32 | ordered(context.importance);
        let worth = level | criticality | among_critical;
        let urgency = match self {
            Self::Urgency => worth,
            _ => level | among_critical,
        };
        Rank { urgency, worth }
    }
}

/// Returns a number that is greater for a greater value.
fn ordered(value: i16) -> u128 {
    u128::from(value.cast_unsigned() ^ 0x8000)
}

/// The deadline and the urgency of the calls that a thread makes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TimeConstraint {
    /// The time from now to the deadline.
    pub deadline: Duration,
    /// The processor time that a call needs, for lanes in the order of laxity; zero if unknown.
    pub execution: Duration,
    /// The criticality. The greater one is served first in lanes in the order of urgency, and keeps
    /// its place longest in an overloaded lane of any order but that of arrival.
    pub criticality: i16,
    /// The importance, which decides between requests of equal urgency.
    pub importance: i16,
}

impl TimeConstraint {
    /// Returns a constraint with this deadline from now, and no more.
    pub const fn within(deadline: Duration) -> Self {
        Self {
            deadline,
            execution: Duration::ZERO,
            criticality: 0,
            importance: 0,
        }
    }
}

/// Ends a time constraint of the calling thread when it is dropped: the thread then has the
/// constraint that it had before.
#[derive(Debug)]
#[must_use = "the time constraint ends when the guard is dropped"]
pub struct ConstraintGuard {
    before: Option<Constraint>,
    /// Keeps the guard on its thread.
    not_send: PhantomData<*const ()>,
}

impl Constraint {
    /// Gives the calls that this thread makes a constraint within the one that they have, of which
    /// the earlier deadline holds.
    pub(crate) fn enter_within(constraint: TimeConstraint) -> ConstraintGuard {
        let mut inner = Self::from_now(constraint);
        let outer_due = PRESENT.get().and_then(|outer| outer.due);
        if let Some((outer, due)) = outer_due.zip(inner.due) {
            let earlier = outer.as_nanos().min(due.as_nanos());
            inner.due = Some(Monotonic::from_nanos(earlier));
        }
        inner.enter()
    }

    /// Replaces the constraint of the calls that this thread makes, for an activity that is
    /// released now.
    #[cfg(feature = "schedule")]
    pub(crate) fn begin_activity(constraint: Option<TimeConstraint>) {
        let none = TimeConstraint::within(Duration::ZERO);
        let replaced = Self::from_now(constraint.unwrap_or(none));
        set_present(match constraint {
            Some(_) => Some(replaced),
            // A distributable thread goes on.
            None if replaced.context != SchedulingContext::default() => Some(Self {
                due: None,
                ..replaced
            }),
            None => None,
        });
    }
}

/// A time constraint with its deadline by the clock of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constraint {
    pub(crate) due: Option<Monotonic>,
    /// All but the times to the deadline.
    pub(crate) context: SchedulingContext,
}

impl Constraint {
    /// Returns a constraint from now on, for the calling thread.
    fn from_now(constraint: TimeConstraint) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let due = Monotonic::now()
            .as_nanos()
            .saturating_add(nanos(constraint.deadline));
        let outer = PRESENT.get();
        Self {
            due: Some(Monotonic::from_nanos(due)),
            context: SchedulingContext {
                execution: nanos(constraint.execution),
                criticality: constraint.criticality,
                importance: constraint.importance,
                // A distributable thread goes on.
                ..outer.map_or_else(SchedulingContext::default, |outer| outer.context)
            },
        }
    }

    /// Returns the constraint of a request that was received at a time. Its absolute deadline
    /// counts if the error of the clock is stated.
    #[inline]
    pub(crate) fn of_request(
        context: SchedulingContext,
        received: Monotonic,
        clock: impl FnOnce() -> Option<CommonClock>,
    ) -> Self {
        let left = match context.absolute {
            None => context.relative,
            Some(absolute) => left_by_clocks(context.relative, absolute, received, clock()),
        };
        let due = left.map(|left| {
            let due = received.as_nanos().saturating_add_signed(left);
            // The last number stands for no deadline in ranks.
            Monotonic::from_nanos(due.min(u64::MAX - 1))
        });
        let context = SchedulingContext {
            // Calls of the servant go on with the thread, one hop further.
            begins_thread: false,
            cancelled: false,
            hops: context.hops.saturating_add(1),
            ..context
        };
        Self { due, context }
    }

    /// Gives the calling thread this constraint.
    pub(crate) fn enter(self) -> ConstraintGuard {
        ConstraintGuard {
            before: set_present(Some(self)),
            not_send: PhantomData,
        }
    }

    /// Gives the calling thread this constraint until the guard at `place` is dropped. The guard is
    /// made there because it is large.
    #[inline]
    pub(crate) fn enter_at(self, place: &mut Option<ConstraintGuard>) {
        // Without a context there is no constraint before, as on a thread that serves requests.
        let before = if sends_context() { PRESENT.get() } else { None };
        *place = Some(ConstraintGuard {
            before,
            not_send: PhantomData,
        });
        PRESENT.set(Some(self));
        SENDS_CONTEXT.set(true);
    }

    /// Returns the constraint of a distributable thread within a segment without a deadline, on a
    /// thread that has this constraint.
    fn of_thread(self, thread: Self) -> Self {
        let context = SchedulingContext {
            execution: self.context.execution,
            criticality: self.context.criticality,
            importance: self.context.importance,
            ..thread.context
        };
        Self {
            due: self.due,
            context,
        }
    }

    fn left(&self, now: Monotonic) -> Option<i64> {
        let (due, now) = (self.due?.as_nanos(), now.as_nanos());
        Some(due.wrapping_sub(now).cast_signed())
    }
}

impl Drop for ConstraintGuard {
    #[inline]
    fn drop(&mut self) {
        if self.before.is_some() {
            set_present(self.before);
        } else {
            PRESENT.set(None);
            SENDS_CONTEXT.set(HAS_THREAD.get());
        }
    }
}

/// Sets the constraint of the calling thread. Returns the one before.
fn set_present(constraint: Option<Constraint>) -> Option<Constraint> {
    let before = PRESENT.replace(constraint);
    note_context();
    before
}

/// Notes whether the calling thread has a distributable thread, after a change of it. Its
/// constraint, with its context, is that which `source` returns when it is needed.
#[cfg(feature = "distributable-threads")]
#[inline]
pub(crate) fn set_of_thread(has_thread: bool, source: ConstraintSource) {
    HAS_THREAD.set(has_thread);
    SOURCE.set(has_thread.then_some(source));
    OF_THREAD.set(None);
    note_context();
}

/// Returns the constraint of the distributable thread that the calling thread has.
#[inline]
fn thread_constraint() -> Option<Constraint> {
    #[cfg(feature = "distributable-threads")]
    if let Some(source) = SOURCE.take() {
        OF_THREAD.set(source());
    }
    OF_THREAD.get()
}

fn note_context() {
    SENDS_CONTEXT.set(PRESENT.get().is_some() || HAS_THREAD.get());
}

/// The constraint of the calls of a thread, which requests carry that are sent later or by another
/// thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallConstraint {
    present: Option<Constraint>,
    of_thread: Option<Constraint>,
}

/// The constraint that requests of this thread carry until this is dropped.
#[must_use]
pub(crate) struct CarriedConstraint {
    before: CallConstraint,
    not_send: PhantomData<*const ()>,
}

impl CallConstraint {
    /// Returns that of the calls that this thread makes.
    pub(crate) fn of_calls() -> Self {
        Self {
            present: PRESENT.get(),
            of_thread: thread_constraint(),
        }
    }

    /// Returns the same for the requests of another distributable thread.
    #[cfg(feature = "distributable-threads")]
    pub(crate) fn with_thread(self, of_thread: Constraint) -> Self {
        Self {
            of_thread: Some(of_thread),
            ..self
        }
    }

    /// Lets requests of this thread carry it, until the result is dropped.
    pub(crate) fn carry(self) -> CarriedConstraint {
        let before = Self::of_calls();
        self.set();
        CarriedConstraint {
            before,
            not_send: PhantomData,
        }
    }

    /// Returns that of calls without any.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    fn set(self) {
        PRESENT.set(self.present);
        OF_THREAD.set(self.of_thread);
        HAS_THREAD.set(self.of_thread.is_some());
        #[cfg(feature = "distributable-threads")]
        SOURCE.set(None);
        note_context();
    }
}

impl Drop for CarriedConstraint {
    fn drop(&mut self) {
        self.before.set();
    }
}

/// Returns the time to the deadline of this thread, in nanoseconds.
pub(crate) fn time_left() -> Option<i64> {
    PRESENT.get()?.left(Monotonic::now())
}

/// Returns the deadline of the constraint of this thread.
#[cfg(feature = "distributable-threads")]
pub(crate) fn due() -> Option<Monotonic> {
    PRESENT.get()?.due
}

/// Whether requests of this thread carry a context.
#[inline]
pub(crate) fn sends_context() -> bool {
    SENDS_CONTEXT.get()
}

/// Returns the time that a request had left, when it was received, to the earlier one of its
/// deadlines.
#[cold]
#[inline(never)]
fn left_by_clocks(
    relative: Option<i64>,
    absolute: AbsoluteDeadline,
    received: Monotonic,
    clock: Option<CommonClock>,
) -> Option<i64> {
    let context = SchedulingContext {
        relative,
        absolute: Some(absolute),
        ..SchedulingContext::default()
    };
    context.remaining(clock.map(|clock| clock.at(received)))
}

/// Returns the content of the service context for a request that is sent now: that of the
/// distributable thread, else that of the constraint. The time of the constraint is that of a
/// distributable thread without a deadline.
///
/// An absolute deadline is sent as well if the error of the clock is stated.
#[inline(always)]
pub(crate) fn outgoing(
    clock: impl FnOnce() -> Option<CommonClock>,
) -> Option<[u8; SchedulingContext::LEN]> {
    let constraint = match (thread_constraint(), PRESENT.get()) {
        (Some(thread), Some(present)) if thread.due.is_none() => present.of_thread(thread),
        (Some(thread), _) => thread,
        (None, present) => present?,
    };
    let mut context = constraint.context;
    context.relative = constraint.left(Monotonic::now());
    context.absolute = clock().and_then(|clock| absolute(context.relative, clock));
    Some(context.encode())
}

/// Returns a deadline by synchronised clocks that is this time ahead.
#[cold]
#[inline(never)]
fn absolute(left: Option<i64>, clock: CommonClock) -> Option<AbsoluteDeadline> {
    let SynchronisedClock { now, uncertainty } = clock.read();
    Some(AbsoluteDeadline {
        tai: now.saturating_add_signed(left?),
        uncertainty,
    })
}

/// The clock by which machines agree on absolute times, `CLOCK_TAI`, where its error is stated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CommonClock {
    /// The greatest error, in nanoseconds.
    pub(crate) uncertainty: u32,
    /// The correction of the clock of this machine, in nanoseconds.
    pub(crate) correction: i64,
}

impl CommonClock {
    fn read(self) -> SynchronisedClock {
        SynchronisedClock {
            now: chronorb_rt::tai().saturating_add_signed(self.correction),
            uncertainty: self.uncertainty,
        }
    }

    /// Returns what the clock showed at a time that has passed.
    fn at(self, time: Monotonic) -> SynchronisedClock {
        let present = self.read();
        let since = Monotonic::now().since(time).as_nanos();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        SynchronisedClock {
            now: present.now.saturating_sub(since),
            ..present
        }
    }
}

/// Returns the time at which the request that this thread serves was read.
pub(crate) fn received() -> Monotonic {
    RECEIVED.get().unwrap_or_else(Monotonic::now)
}

/// Sets the time at which the next request of this thread was read, if that is not now.
pub(crate) fn set_received(time: Option<Monotonic>) {
    RECEIVED.set(time);
}

/// A function that returns the constraint of the distributable thread of the calling thread.
#[cfg(feature = "distributable-threads")]
type ConstraintSource = fn() -> Option<Constraint>;

thread_local! {
    static PRESENT: Cell<Option<Constraint>> = const { Cell::new(None) };
    /// The constraint and the context of the distributable thread.
    static OF_THREAD: Cell<Option<Constraint>> = const { Cell::new(None) };
    /// Whether there is a distributable thread.
    static HAS_THREAD: Cell<bool> = const { Cell::new(false) };
    /// The function that returns [`OF_THREAD`], where that is not known yet.
    #[cfg(feature = "distributable-threads")]
    static SOURCE: Cell<Option<ConstraintSource>> = const { Cell::new(None) };
    /// Whether there is a constraint or a distributable thread.
    static SENDS_CONTEXT: Cell<bool> = const { Cell::new(false) };
    static RECEIVED: Cell<Option<Monotonic>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint(due: Option<u64>, execution: u64, criticality: i16) -> Constraint {
        Constraint {
            due: due.map(Monotonic::from_nanos),
            context: SchedulingContext {
                execution,
                criticality,
                ..SchedulingContext::default()
            },
        }
    }

    /// The numbers of the constraints in the order in which they are served.
    fn served(order: LaneOrder, all: &[Constraint]) -> Vec<usize> {
        let rank = |at: &usize| order.rank(None, Some(&all[*at])).urgency;
        let mut numbers: Vec<_> = (0..all.len()).collect();
        numbers.sort_by_key(|at| std::cmp::Reverse(rank(at)));
        numbers
    }

    #[test]
    fn each_order_has_its_first_request() {
        let all = [
            constraint(Some(300), 0, 1),
            constraint(Some(100), 10, 0),
            constraint(Some(200), 150, -1),
            constraint(None, 1_000, 0),
        ];
        assert_eq!(served(LaneOrder::Fifo, &all), [0, 1, 2, 3]);
        assert_eq!(served(LaneOrder::Deadline, &all), [1, 2, 0, 3]);
        assert_eq!(served(LaneOrder::Laxity, &all), [2, 1, 0, 3]);
        assert_eq!(served(LaneOrder::Urgency, &all), [0, 1, 3, 2]);
    }

    #[test]
    fn the_order_of_laxity_does_not_break_where_laxity_is_negative() {
        let late = |due| constraint(Some(due), 150, 0);
        let all = [late(250), late(151), late(150), late(149), late(50)];
        // What cannot be in time any more comes first, all of equal urgency below zero.
        assert_eq!(served(LaneOrder::Laxity, &all)[3..], [1, 0]);
    }

    #[test]
    fn importance_decides_between_equals() {
        let mut all = [constraint(Some(5), 0, 0); 2];
        all[1].context.importance = 1;
        assert_eq!(served(LaneOrder::Deadline, &all), [1, 0]);
        assert_eq!(served(LaneOrder::Fifo, &all), [0, 1]);
    }

    #[test]
    fn the_priority_stands_above_all() {
        let urgent = constraint(Some(1), 0, i16::MAX);
        let [low, high] = [1, 2].map(Priority::new);
        for order in [LaneOrder::Deadline, LaneOrder::Laxity, LaneOrder::Urgency] {
            let less = order.rank(low, Some(&urgent));
            let more = order.rank(high, None);
            assert!(less.urgency < more.urgency && less.worth < more.worth);
            assert!(order.rank(None, Some(&urgent)).urgency < order.rank(low, None).urgency);
        }
    }

    #[test]
    fn what_is_less_critical_loses_its_room_whatever_its_deadline_is() {
        for order in [LaneOrder::Deadline, LaneOrder::Laxity, LaneOrder::Urgency] {
            let worth = |it: &Constraint| order.rank(None, Some(it)).worth;
            let critical = constraint(Some(900), 0, 2);
            assert!(
                worth(&critical) > worth(&constraint(Some(1), 0, 1)),
                "{order:?}"
            );
            assert!(
                worth(&critical) > worth(&constraint(Some(901), 0, 2)),
                "{order:?}"
            );
        }
    }

    #[test]
    fn a_constraint_ends_with_its_guard() {
        assert!(!sends_context() && outgoing(|| None).is_none());
        let outer = constraint(Some(u64::MAX - 1), 7, 3).enter();
        {
            let _inner = constraint(None, 0, 4).enter();
            assert_eq!(PRESENT.get().map(|it| it.context.criticality), Some(4));
            let sent = outgoing(|| None).map(|data| SchedulingContext::decode(&data));
            let sent = sent.and_then(|it| it.ok().flatten()).expect("constrained");
            assert_eq!((sent.relative, sent.criticality), (None, 4));
        }
        assert_eq!(PRESENT.get().map(|it| it.context.execution), Some(7));
        drop(outer);
        assert!(!sends_context());
    }

    #[test]
    fn any_time_to_the_deadline_can_be_received() {
        let received = Monotonic::from_nanos(1_000);
        let due = |relative| {
            let context = SchedulingContext {
                relative,
                ..SchedulingContext::default()
            };
            let constraint = Constraint::of_request(context, received, || None);
            constraint.due.map(Monotonic::as_nanos)
        };
        assert_eq!(due(Some(5)), Some(1_005));
        assert_eq!(due(Some(-5)), Some(995));
        assert_eq!(due(Some(i64::MIN)), Some(0));
        assert_eq!(due(Some(i64::MAX)), Some(1_000 + i64::MAX.unsigned_abs()));
        assert_eq!(due(None), None);
    }
}
