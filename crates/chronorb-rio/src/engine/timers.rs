//! The times at which the slots of a class are due.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::ops::Range;

use super::sync::{AtomicU64, Ordering};

/// A tree of times, in nanoseconds. A leaf has the time of a slot, an inner node a lower bound of
/// the times below it.
///
/// Any thread sets a time, without a lock; one thread at a time looks for what is due. A slot that
/// is not due costs nothing, unless its neighbours are: a search descends only to nodes whose bound
/// has passed.
///
/// A time that is set anew and later leaves the bounds above it as they are, too early. The next
/// search corrects them.
///
/// No time is lost between the two sides. A thread sets the leaf and then lowers the bounds,
/// upwards. A search takes the bound of a node away before it reads the nodes below, and puts their
/// minimum back afterwards, downwards. Each change of a bound is a read-modify-write, so either the
/// search reads the time, or the thread lowers the bound after the search took it away.
#[derive(Debug)]
pub(super) struct Timers {
    /// The leaves first, the root last.
    levels: Box<[Box<[AtomicU64]>]>,
    /// The number of leaves that searches have read.
    #[cfg(test)]
    read: core::sync::atomic::AtomicUsize,
}

impl Timers {
    /// Creates timers for this many slots. None is due.
    #[allow(clippy::disallowed_methods, reason = "when a class opens")]
    pub(super) fn new(slots: usize) -> Self {
        let level = |len| {
            let times = std::iter::repeat_with(|| AtomicU64::new(NEVER));
            times.take(len).collect::<Box<[_]>>()
        };
        let mut levels = Vec::from([level(slots)]);
        let mut len = slots;
        while len > 1 {
            len = len.div_ceil(CHILDREN);
            levels.push(level(len));
        }
        Self {
            levels: levels.into(),
            #[cfg(test)]
            read: 0.into(),
        }
    }

    /// Sets the time of a slot; [`NEVER`] for none.
    pub(super) fn set(&self, slot: usize, due: u64) {
        let [leaves, bounds @ ..] = &*self.levels else {
            return;
        };
        leaves[slot].store(due, Ordering::Release);
        let mut node = slot;
        for level in bounds {
            node /= CHILDREN;
            level[node].fetch_min(due, Ordering::AcqRel);
        }
    }

    /// Calls `serve` for each slot of a range that is due. Returns a lower bound of all times that
    /// are left.
    ///
    /// `serve` may set times.
    pub(super) fn serve(
        &self,
        slots: &Range<usize>,
        now: u64,
        serve: &mut impl FnMut(usize),
    ) -> u64 {
        let root = self.levels.len() - 1;
        self.search(root, 0, slots, now, serve)
    }

    fn search(
        &self,
        level: usize,
        node: usize,
        slots: &Range<usize>,
        now: u64,
        serve: &mut impl FnMut(usize),
    ) -> u64 {
        let time = &self.levels[level][node];
        let present = time.load(Ordering::Acquire);
        #[cfg(test)]
        if level == 0 {
            self.read.fetch_add(1, Ordering::Relaxed);
        }
        if present > now {
            return present;
        }
        if level == 0 {
            if slots.contains(&node) {
                serve(node);
            }
            return time.load(Ordering::Acquire);
        }
        time.swap(NEVER, Ordering::AcqRel);
        let below = self.levels[level - 1].len();
        let children = node * CHILDREN..below.min((node + 1) * CHILDREN);
        let earliest = children
            .map(|child| self.search(level - 1, child, slots, now, serve))
            .min()
            .unwrap_or(NEVER);
        time.fetch_min(earliest, Ordering::AcqRel);
        earliest
    }

    /// Returns the number of leaves that searches have read.
    #[cfg(test)]
    pub(super) fn read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

/// The time of a slot that is never due.
pub(super) const NEVER: u64 = u64::MAX;
/// The number of nodes below one: a cache line of them.
const CHILDREN: usize = 8;

#[cfg(all(test, not(loom)))]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests may allocate"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A step of a random sequence.
    #[derive(Clone, Debug)]
    enum Step {
        Set(usize, u64),
        Serve(u64, usize),
    }

    fn step(slots: usize) -> impl Strategy<Value = Step> {
        let due = prop_oneof![4 => 0_u64..100, 1 => Just(NEVER)];
        prop_oneof![
            (0..slots, due).prop_map(|(slot, due)| Step::Set(slot, due)),
            (0_u64..100, 0..slots).prop_map(|(now, first)| Step::Serve(now, first)),
        ]
    }

    proptest! {
        #[test]
        fn exactly_the_slots_that_are_due_are_served(
            (slots, steps) in (1_usize..200).prop_flat_map(|slots| {
                (Just(slots), proptest::collection::vec(step(slots), 0..60))
            }),
        ) {
            let timers = Timers::new(slots);
            let mut model = vec![NEVER; slots];
            for step in steps {
                match step {
                    Step::Set(slot, due) => {
                        timers.set(slot, due);
                        model[slot] = due;
                    }
                    Step::Serve(now, first) => {
                        let mut served = Vec::new();
                        let mut left = NEVER;
                        for range in [first..slots, 0..first] {
                            left = timers.serve(&range, now, &mut |slot| {
                                served.push(slot);
                                timers.set(slot, NEVER);
                            });
                        }
                        let due = (first..slots).chain(0..first).filter(|it| model[*it] <= now);
                        prop_assert_eq!(&served, &due.collect::<Vec<_>>());
                        served.iter().for_each(|slot| model[*slot] = NEVER);
                        let earliest = model.iter().min().copied();
                        prop_assert!(now < left && Some(left) <= earliest);
                    }
                }
            }
        }
    }

    #[test]
    fn slots_that_are_not_due_are_not_read() {
        for slots in [64, 4096] {
            let timers = Timers::new(slots);
            (0..slots).for_each(|slot| timers.set(slot, 1_000));
            timers.set(7, 10);
            let mut served = Vec::new();
            timers.serve(&(0..slots), 10, &mut |slot| {
                served.push(slot);
                timers.set(slot, 1_000);
            });
            assert_eq!((served, timers.read()), (vec![7], CHILDREN), "{slots}");
        }
    }
}
