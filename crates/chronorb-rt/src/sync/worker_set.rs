//! The threads of a lane: permits to dispatch, the backlog, and idle threads.

mod backlog;

use core::cmp::Reverse;
use core::fmt;
use std::collections::VecDeque;

use backlog::Backlog;
pub use backlog::{Bounds, Rank};

#[cfg(not(loom))]
use crate::sync::gate;
use crate::sync::primitives::Mutex;
use crate::sync::primitives::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::time::backoff::Backoff;
#[cfg(not(loom))]
use crate::time::clock::Deadline;

/// The set of threads of a lane. They process items of type `T`, for example requests.
///
/// Three parts are kept together, so that no item is missed:
///
/// * *Permits*: permits to process an item, as many as threads may work at a time. A thread that
///   takes one ([`try_begin`](Self::try_begin)) processes an item itself or hands it to a member,
///   and returns the permit afterwards ([`finish`](Self::finish)).
/// * *The backlog*: a bounded queue of items that found no permit ([`offer`](Self::offer)), by
///   [`Rank`]. `finish` hands out an item together with the permit, so that a permit is
///   never free while an item waits.
/// * *Members*: the threads. An idle member [rests](Self::rest). An item that has a permit is
///   [assigned](Self::assign), and a resting member is [called](Self::call) for it. A member checks
///   for assigned items before it waits, so that an assignment that found no resting member is not
///   lost.
///
/// Taking and returning a permit is lock-free while the backlog is empty. The worker set does not
/// determine how a member waits and is woken; [`park`](Self::park) and [`wake`](Self::wake) are one
/// way.
pub struct WorkerSet<T> {
    /// The free permits in the low half, the length of the backlog in the high half; one of them is
    /// 0.
    permits: AtomicU64,
    queue: Mutex<RunQueue<T>>,
    /// The length of `queue.assigned`.
    assigned: AtomicU32,
    members: Box<[Member]>,
    /// The number of permits.
    size: AtomicU32,
    least: u32,
    greatest: u32,
}

/// The outcome of [offering](WorkerSet::offer) an item.
#[derive(Debug)]
pub enum OfferOutcome<T> {
    /// There was a free permit, which the caller holds now.
    Permit(T),
    /// The item waits. The less urgent items that had to make room for it are returned.
    Waits(Vec<T>),
    /// The item is returned, because there is no room or the worker set is closed.
    Refused(T),
}

/// The reason why a member works again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WakeReason {
    /// The member was not called.
    ByItself,
    /// The member was called.
    Called,
    /// The member was called, and the caller changed its priority.
    Raised,
}

impl<T> WorkerSet<T> {
    /// Makes a worker set of `least` permits that may [grow](Self::grow) to `greatest`, with room
    /// for `members` threads.
    #[must_use]
    pub fn new(least: u32, greatest: u32, members: u32, bounds: Bounds) -> Self {
        Self {
            permits: AtomicU64::new(u64::from(least)),
            queue: Mutex::new(RunQueue {
                assigned: VecDeque::with_capacity(members as usize),
                backlog: Backlog::new(bounds),
                starting: 0,
                closed: false,
            }),
            assigned: AtomicU32::new(0),
            members: (0..members).map(|_| Member::vacant()).collect(),
            size: AtomicU32::new(least),
            least,
            greatest,
        }
    }

    /// Takes a permit, if one is free.
    #[inline]
    pub fn try_begin(&self) -> bool {
        let mut permits = self.permits.load(Ordering::SeqCst);
        while free(permits) > 0 {
            match self.swap_permits(permits, permits - PERMIT) {
                Ok(()) => return true,
                Err(present) => permits = present,
            }
        }
        false
    }

    /// Returns a permit; or keeps it for the most urgent item of the backlog, which is returned.
    #[inline]
    pub fn finish(&self) -> Option<T> {
        let mut permits = self.permits.load(Ordering::SeqCst);
        loop {
            if waiting(permits) == 0 {
                match self.swap_permits(permits, permits + PERMIT) {
                    Ok(()) => return None,
                    Err(present) => permits = present,
                }
            } else if let Some(thing) = self.take() {
                return Some(thing);
            } else {
                permits = self.permits.load(Ordering::SeqCst);
            }
        }
    }

    /// Takes the most urgent item of the backlog, to be processed with a permit of another worker
    /// set.
    pub fn take(&self) -> Option<T> {
        if waiting(self.permits.load(Ordering::SeqCst)) == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let thing = queue.backlog.pop()?;
        self.permits.fetch_sub(WAITING, Ordering::SeqCst);
        Some(thing)
    }

    /// Puts an item for which there was no permit into the backlog. `on_wait` changes an item that
    /// is about to wait, before another thread can take it.
    pub fn offer(
        &self,
        rank: Rank,
        octets: usize,
        mut thing: T,
        on_wait: impl FnOnce(&mut T),
    ) -> OfferOutcome<T> {
        let mut queue = self.queue.lock();
        let mut evicted = if queue.closed {
            None
        } else {
            queue.backlog.make_room(rank, octets)
        };
        loop {
            let permits = self.permits.load(Ordering::SeqCst);
            if free(permits) > 0 {
                // Nothing waits in this case, so nothing was evicted.
                if self.swap_permits(permits, permits - PERMIT).is_ok() {
                    return OfferOutcome::Permit(thing);
                }
                continue;
            }
            let Some(less_urgent) = &evicted else {
                return OfferOutcome::Refused(thing);
            };
            let out = less_urgent.len() as u64 * WAITING;
            if self.swap_permits(permits, permits + WAITING - out).is_ok() {
                on_wait(&mut thing);
                queue.backlog.push(rank, octets, thing);
                return OfferOutcome::Waits(evicted.take().unwrap_or_default());
            }
        }
    }

    /// Whether an item of the backlog is more urgent than this rank.
    #[inline]
    pub fn is_preceded(&self, rank: Rank) -> bool {
        self.has_backlog() && self.queue.lock().backlog.precedes(rank)
    }

    /// Exchanges an item that has a permit for the most urgent one of the backlog, if that is more
    /// urgent; it then has the permit. The item waits before its equals, whatever the bounds are.
    pub fn exchange(&self, rank: Rank, octets: usize, thing: T) -> T {
        if !self.has_backlog() {
            return thing;
        }
        let mut queue = self.queue.lock();
        if queue.closed {
            return thing;
        }
        // One goes in where one comes out, so the permits do not change.
        queue.backlog.exchange(rank, octets, thing)
    }

    /// Adds a permit, which the caller then holds, unless the greatest number is reached. The
    /// caller must start its thread, and report the result by [`settle`](Self::settle).
    pub fn grow(&self) -> bool {
        if self.size.load(Ordering::Relaxed) >= self.greatest {
            return false;
        }
        let mut queue = self.queue.lock();
        if self.size.load(Ordering::Relaxed) >= self.greatest {
            return false;
        }
        self.size.fetch_add(1, Ordering::SeqCst);
        queue.starting += 1;
        true
    }

    /// Reports whether the thread for a new permit was started. If it was not, the permit is
    /// removed again.
    pub fn settle(&self, started: bool) {
        let mut queue = self.queue.lock();
        queue.starting -= 1;
        if !started {
            self.size.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Removes a free permit, if there are more than the least number: the calling thread may then
    /// leave.
    pub fn retire(&self) -> bool {
        if !self.has_grown() {
            return false;
        }
        // The lock keeps the worker set from growing meanwhile. Threads that have not started yet
        // may never start, so no thread leaves on their account.
        let queue = self.queue.lock();
        let size = self.size.load(Ordering::Relaxed);
        let may = size - queue.starting > self.least && self.try_begin();
        if may {
            self.size.fetch_sub(1, Ordering::SeqCst);
        }
        may
    }

    /// Whether there are more permits than the least.
    #[inline]
    pub fn has_grown(&self) -> bool {
        self.size.load(Ordering::Relaxed) > self.least
    }

    /// Returns the number of permits, of free permits, and of waiting items.
    pub fn counts(&self) -> (u32, u32, u32) {
        let permits = self.permits.load(Ordering::SeqCst);
        let size = self.size.load(Ordering::Relaxed);
        (size, free(permits), waiting(permits))
    }

    /// Whether the backlog has items.
    #[inline]
    pub fn has_backlog(&self) -> bool {
        waiting(self.permits.load(Ordering::SeqCst)) > 0
    }

    /// Closes the worker set. Returns the items of the backlog and the assigned ones.
    pub fn close(&self) -> Vec<T> {
        let mut queue = self.queue.lock();
        queue.closed = true;
        let mut things = queue.backlog.clear();
        let out = things.len() as u64 * WAITING;
        self.permits.fetch_sub(out, Ordering::SeqCst);
        let assigned = queue.assigned.len() as u32;
        self.assigned.fetch_sub(assigned, Ordering::SeqCst);
        things.extend(queue.assigned.drain(..).map(|(_, thing)| thing));
        things
    }

    /// Assigns an item, for which the caller holds a permit, to the members. A resting member is
    /// then to be [called](Self::call).
    ///
    /// # Errors
    /// The item, if the worker set is closed.
    pub fn assign(&self, rank: Rank, thing: T) -> Result<(), T> {
        let mut queue = self.queue.lock();
        if queue.closed {
            return Err(thing);
        }
        queue.assigned.push_back((rank.urgency, thing));
        self.assigned.fetch_add(1, Ordering::Release);
        drop(queue);
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Whether there are assigned items that no member has taken.
    #[inline]
    pub fn has_assigned(&self) -> bool {
        self.assigned.load(Ordering::SeqCst) > 0
    }

    /// Takes the most urgent assigned item, together with its permit. So the member that was raised
    /// for it receives it, even if another member was meant to have another item.
    #[inline]
    pub fn take_assigned(&self) -> Option<T> {
        if self.assigned.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let all = queue
            .assigned
            .iter()
            .map(|(urgency, _)| *urgency)
            .enumerate();
        let (first, _) = all.min_by_key(|(_, urgency)| Reverse(*urgency))?;
        let (_, thing) = queue.assigned.remove(first)?;
        self.assigned.fetch_sub(1, Ordering::SeqCst);
        Some(thing)
    }

    /// Makes the calling thread a member; `None` where there is no room.
    pub fn enlist(&self, thread: u32) -> Option<usize> {
        let place = self.members.iter().position(|member| {
            let (vacant, order) = (VACANT, Ordering::SeqCst);
            member
                .state
                .compare_exchange(vacant, BUSY, order, order)
                .is_ok()
        })?;
        self.members[place].thread.store(thread, Ordering::SeqCst);
        Some(place)
    }

    /// The member leaves. It must not rest.
    pub fn leave(&self, member: usize) {
        self.members[member].state.store(VACANT, Ordering::SeqCst);
    }

    /// The member has nothing to do. Returns whether it may wait; otherwise something is assigned.
    /// It [rises](Self::rise) in either case, since it may have been called already.
    #[inline]
    pub fn rest(&self, member: usize) -> bool {
        self.members[member].state.store(IDLE, Ordering::Release);
        // Either this thread sees the assignment, or the assigning thread sees that this one rests
        // (Dekker).
        fence(Ordering::SeqCst);
        self.assigned.load(Ordering::SeqCst) == 0
    }

    /// Ends the rest of the member. Returns whether it was called meanwhile.
    #[inline]
    pub fn rise(&self, member: usize) -> WakeReason {
        let state = &self.members[member].state;
        let mut backoff = Backoff::new();
        loop {
            let risen = state.compare_exchange(IDLE, BUSY, Ordering::SeqCst, Ordering::SeqCst);
            match risen {
                Ok(_) | Err(BUSY) => return WakeReason::ByItself,
                Err(how @ (CALLED | RAISED)) => {
                    state.store(BUSY, Ordering::SeqCst);
                    return match how {
                        RAISED => WakeReason::Raised,
                        _ => WakeReason::Called,
                    };
                }
                // The caller is between choosing and calling, and may be less urgent.
                Err(_) => backoff.wait(),
            }
        }
    }

    /// Whether the resting member was chosen.
    #[inline]
    pub fn is_called(&self, member: usize) -> bool {
        self.members[member].state.load(Ordering::SeqCst) != IDLE
    }

    /// Chooses a resting member. No other thread can choose it, and it does not continue before the
    /// returned call is [made](Call::make). Returns `None` if no member rests.
    pub fn call(&self) -> Option<Call<'_>> {
        self.members.iter().enumerate().find_map(|(place, member)| {
            let (idle, order) = (IDLE, Ordering::SeqCst);
            let chosen = member.state.compare_exchange(idle, CALLING, order, order);
            chosen.is_ok().then_some(Call { member, place })
        })
    }
}

#[cfg(not(loom))]
impl<T> WorkerSet<T> {
    /// Waits while the member rests and is not called, at most until the deadline.
    pub fn park(&self, member: usize, deadline: Deadline) {
        gate::wait_while(&self.members[member].state, IDLE, deadline);
    }

    /// Wakes a parked member.
    pub fn wake(&self, member: usize) {
        gate::wake_all(&self.members[member].state);
    }

    /// Calls and wakes all parked members.
    pub fn wake_all(&self) {
        while let Some(call) = self.call() {
            self.wake(call.make(false));
        }
    }
}

impl<T> fmt::Debug for WorkerSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (permits, free, waiting) = self.counts();
        f.debug_struct("WorkerSet")
            .field("permits", &permits)
            .field("free", &free)
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

/// A member that was chosen to be called, and stays where it is until it is.
#[must_use = "the member waits for it"]
pub struct Call<'c> {
    member: &'c Member,
    place: usize,
}

impl Call<'_> {
    /// The kernel's id of its thread, which cannot end before the call is made.
    #[must_use]
    pub fn thread(&self) -> u32 {
        self.member.thread.load(Ordering::SeqCst)
    }

    /// Calls the member, and records whether its priority was changed. Returns its number. The
    /// caller must then wake it.
    pub fn make(self, raised: bool) -> usize {
        let how = if raised { RAISED } else { CALLED };
        self.member.state.store(how, Ordering::SeqCst);
        self.place
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("member", &self.place).finish()
    }
}

struct Member {
    state: AtomicU32,
    /// The kernel's id of its thread.
    thread: AtomicU32,
}

impl Member {
    fn vacant() -> Self {
        Self {
            state: AtomicU32::new(VACANT),
            thread: AtomicU32::new(0),
        }
    }
}

const VACANT: u32 = 0;
const BUSY: u32 = 1;
const IDLE: u32 = 2;
/// Chosen; it must not go on yet.
const CALLING: u32 = 3;
const CALLED: u32 = 4;
const RAISED: u32 = 5;

/// The queues of items that wait for members, guarded by a lock.
struct RunQueue<T> {
    /// With their urgency, in order; never more than there are permits.
    assigned: VecDeque<(u128, T)>,
    backlog: Backlog<T>,
    /// Permits whose threads are being started.
    starting: u32,
    closed: bool,
}

impl<T> WorkerSet<T> {
    fn swap_permits(&self, present: u64, new: u64) -> Result<(), u64> {
        self.permits
            .compare_exchange_weak(present, new, Ordering::SeqCst, Ordering::SeqCst)
            .map(drop)
    }
}

const PERMIT: u64 = 1;
const WAITING: u64 = 1 << 32;

fn free(permits: u64) -> u32 {
    permits as u32
}

fn waiting(permits: u64) -> u32 {
    (permits >> 32) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::time::Duration;
    use std::sync::Arc;

    use rustix::thread::{CpuSet, sched_getaffinity};

    use super::*;
    use crate::{Gate, Rights, Scheduling, ThreadBuilder};

    const ROOM: Bounds = Bounds {
        things: 2,
        octets: 100,
    };

    fn waits<T: fmt::Debug>(offered: OfferOutcome<T>) -> Vec<T> {
        match offered {
            OfferOutcome::Waits(evicted) => evicted,
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// On one processor, a member may be more urgent than the thread that is about to call it. It
    /// must not keep that thread from its processor.
    #[test]
    fn a_member_lets_a_less_urgent_caller_finish() {
        if Rights::probe().max_fifo < Some(2) {
            eprintln!("NOT TESTED: real-time priorities, for which there is no right.");
            return;
        }
        let allowed = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU)
            .find(|&cpu| allowed.is_set(cpu))
            .unwrap();
        let shared = Arc::new((WorkerSet::<()>::new(1, 1, 1, ROOM), Gate::new(0)));
        let of_member = Arc::clone(&shared);
        let member = ThreadBuilder::new("member")
            .scheduling(Scheduling::fifo(2))
            .affinity(&[cpu])
            .spawn(move || {
                let (workers, gate) = &*of_member;
                let place = workers.enlist(1).unwrap();
                assert!(workers.rest(place));
                gate.set(1);
                gate.wait_while(1, Deadline::after(Duration::from_secs(60)));
                workers.rise(place)
            })
            .unwrap();
        let caller = ThreadBuilder::new("caller")
            .scheduling(Scheduling::fifo(1))
            .affinity(&[cpu])
            .spawn(move || {
                let (workers, gate) = &*shared;
                gate.wait_while(0, Deadline::after(Duration::from_secs(60)));
                let call = workers.call().unwrap();
                // The member preempts this thread here.
                gate.set(2);
                call.make(false)
            })
            .unwrap();
        assert_eq!(caller.join().unwrap(), 0);
        assert_eq!(member.join().unwrap(), WakeReason::Called);
    }

    #[test]
    fn what_waits_gets_the_seat_that_is_given_back_the_most_urgent_first() {
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        assert!(workers.try_begin() && !workers.try_begin());
        assert!(waits(workers.offer(Rank::of(1), 1, "low", |_| ())).is_empty());
        assert!(waits(workers.offer(Rank::of(2), 1, "high", |_| ())).is_empty());
        assert_eq!(workers.finish(), Some("high"));
        assert_eq!(workers.finish(), Some("low"));
        assert_eq!(workers.finish(), None);
        assert!(workers.try_begin());
    }

    #[test]
    fn an_item_with_a_permit_gives_way_to_a_more_urgent_one() {
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        let (low, high) = (Rank::of(1), Rank::of(2));
        assert!(workers.try_begin());
        assert!(!workers.is_preceded(low));
        assert_eq!(workers.exchange(low, 1, "first"), "first");
        waits(workers.offer(low, 1, "second", |_| ()));
        assert!(!workers.is_preceded(low), "equals do not give way");
        waits(workers.offer(high, 1, "urgent", |_| ()));
        assert!(workers.is_preceded(low) && !workers.is_preceded(high));
        assert_eq!(workers.exchange(low, 1, "first"), "urgent");
        assert_eq!(workers.counts(), (1, 0, 2));
        let rest: Vec<_> = core::iter::from_fn(|| workers.finish()).collect();
        assert_eq!(rest, ["first", "second"]);
    }

    #[test]
    fn an_item_of_little_worth_is_evicted_however_urgent_it_is() {
        let rank = |urgency, worth| Rank { urgency, worth };
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        assert!(workers.try_begin());
        waits(workers.offer(rank(9, 0), 1, "urgent", |_| ()));
        waits(workers.offer(rank(1, 5), 1, "critical", |_| ()));
        assert_eq!(
            waits(workers.offer(rank(2, 5), 1, "next", |_| ())),
            ["urgent"]
        );
        assert_eq!(workers.finish(), Some("next"));
        assert_eq!(workers.finish(), Some("critical"));
    }

    #[test]
    fn equals_are_served_in_order() {
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        assert!(workers.try_begin());
        waits(workers.offer(Rank::of(1), 1, "first", |_| ()));
        waits(workers.offer(Rank::of(1), 1, "second", |_| ()));
        assert_eq!(workers.finish(), Some("first"));
    }

    #[test]
    fn things_and_octets_are_bounded() {
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        assert!(workers.try_begin());
        waits(workers.offer(Rank::of(0), 60, 'a', |_| ()));
        assert!(matches!(
            workers.offer(Rank::of(0), 41, 'b', |_| ()),
            OfferOutcome::Refused('b')
        ));
        waits(workers.offer(Rank::of(0), 40, 'c', |_| ()));
        assert!(matches!(
            workers.offer(Rank::of(0), 0, 'd', |_| ()),
            OfferOutcome::Refused('d')
        ));
        assert_eq!(workers.counts(), (1, 0, 2));
    }

    #[test]
    fn what_is_more_urgent_takes_the_room_of_what_is_less() {
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        assert!(workers.try_begin());
        waits(workers.offer(Rank::of(1), 60, "old", |_| ()));
        waits(workers.offer(Rank::of(1), 40, "young", |_| ()));
        assert_eq!(
            waits(workers.offer(Rank::of(2), 30, "urgent", |_| ())),
            ["young"]
        );
        // One eviction would not make enough room here, and two would not either.
        assert!(matches!(
            workers.offer(Rank::of(2), 90, "great", |_| ()),
            OfferOutcome::Refused(_)
        ));
        assert_eq!(workers.finish(), Some("urgent"));
        assert_eq!(workers.finish(), Some("old"));
    }

    #[test]
    fn a_closed_set_gives_back_what_waits_and_takes_nothing() {
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        assert!(workers.try_begin());
        waits(workers.offer(Rank::of(0), 1, 'a', |_| ()));
        assert_eq!(workers.close(), ['a']);
        assert!(matches!(
            workers.offer(Rank::of(0), 1, 'b', |_| ()),
            OfferOutcome::Refused('b')
        ));
        assert_eq!(workers.finish(), None);
    }

    #[test]
    fn a_set_grows_to_its_bound_and_shrinks_to_its_least() {
        let workers: WorkerSet<()> = WorkerSet::new(1, 2, 2, ROOM);
        assert!(!workers.retire());
        assert!(workers.grow() && !workers.grow());
        workers.settle(true);
        assert!(workers.has_grown());
        assert_eq!(workers.finish(), None, "the new permit was the caller's");
        assert!(workers.retire());
        assert_eq!(workers.counts(), (1, 1, 0));
    }

    #[test]
    fn nobody_leaves_for_a_thread_that_does_not_start() {
        let workers: WorkerSet<()> = WorkerSet::new(1, 2, 2, ROOM);
        assert!(workers.grow());
        assert!(!workers.retire());
        workers.settle(false);
        assert_eq!(workers.counts(), (1, 1, 0));
    }

    #[test]
    fn the_most_urgent_assignment_is_taken_first_and_equals_in_order() {
        let workers = WorkerSet::new(4, 4, 4, ROOM);
        for (rank, thing) in [(1, 'a'), (2, 'b'), (2, 'c'), (0, 'd')] {
            assert!(workers.try_begin());
            workers.assign(Rank::of(rank), thing).expect("it is open");
        }
        let taken: String = core::iter::from_fn(|| workers.take_assigned()).collect();
        assert_eq!(taken, "bcad");
    }

    #[test]
    fn a_resting_member_is_called_once() {
        let workers: WorkerSet<()> = WorkerSet::new(1, 1, 2, ROOM);
        let me = workers.enlist(7).expect("there is room");
        assert!(workers.call().is_none(), "it does not rest");
        assert!(workers.rest(me));
        let call = workers.call().expect("it rests");
        assert_eq!(call.thread(), 7);
        assert!(workers.call().is_none());
        assert_eq!(call.make(true), me);
        assert_eq!(workers.rise(me), WakeReason::Raised);
        assert!(workers.rest(me));
        assert_eq!(workers.rise(me), WakeReason::ByItself);
        workers.leave(me);
    }

    #[test]
    fn a_member_does_not_rest_while_something_is_assigned() {
        let workers = WorkerSet::new(1, 1, 1, ROOM);
        let me = workers.enlist(7).expect("there is room");
        assert!(workers.try_begin());
        workers.assign(Rank::of(0), 'a').expect("it is open");
        assert!(!workers.rest(me));
        assert_eq!(workers.rise(me), WakeReason::ByItself);
        assert_eq!(workers.take_assigned(), Some('a'));
        assert!(workers.rest(me));
    }
}
