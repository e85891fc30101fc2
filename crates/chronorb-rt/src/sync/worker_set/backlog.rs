//! The items of a worker set that wait for a permit: a bounded queue by rank.

use core::cmp::Reverse;

/// The position of an item among those of a worker set. Items of equal rank go in order.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rank {
    /// The order in which items are processed, the greatest first.
    pub urgency: u128,
    /// The order in which items lose their room to one of greater worth, the least first.
    pub worth: u128,
}

impl Rank {
    /// Returns the rank of items that are evicted in the opposite order of their processing.
    pub const fn of(urgency: u128) -> Self {
        let worth = urgency;
        Self { urgency, worth }
    }
}

/// The bounds of a [`WorkerSet`](super::WorkerSet)'s backlog.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// The greatest number of items; 0 for no backlog.
    pub things: u32,
    /// The greatest sum of their sizes.
    pub octets: usize,
}

/// Things without a permit.
///
/// Two heaps of indices order them: by urgency, and by worth. Each operation takes time
/// proportional to the logarithm of their number. The memory for the first [`AT_START`] is
/// allocated at the start.
pub(super) struct Backlog<T> {
    things: Vec<Option<Entry<T>>>,
    /// Free indices of `things`.
    free: Vec<u32>,
    heaps: [Vec<u32>; SIDES],
    octets: usize,
    bounds: Bounds,
    /// The number of the next thing.
    next: i64,
    /// The number of the next thing that goes before its equals.
    next_in_front: i64,
}

/// A thing with its rank and its places.
struct Entry<T> {
    rank: Rank,
    /// The order among equals.
    number: i64,
    octets: usize,
    /// The places in the heaps.
    places: [u32; SIDES],
    thing: T,
}

impl<T> Backlog<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        let capacity = bounds.things.min(AT_START) as usize;
        Self {
            things: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            heaps: [(); SIDES].map(|()| Vec::with_capacity(capacity)),
            octets: 0,
            bounds,
            next: 0,
            next_in_front: i64::MIN,
        }
    }

    pub(super) fn push(&mut self, rank: Rank, octets: usize, thing: T) {
        let number = self.next;
        self.next += 1;
        self.insert(rank, number, octets, thing);
    }

    /// Takes out the most urgent thing.
    pub(super) fn pop(&mut self) -> Option<T> {
        let first = *self.heaps[URGENCY].first()?;
        self.remove(first).map(|waiting| waiting.thing)
    }

    /// Whether a thing is more urgent than this rank.
    pub(super) fn precedes(&self, rank: Rank) -> bool {
        let first = self.heaps[URGENCY].first();
        let first = first.and_then(|index| self.things[*index as usize].as_ref());
        first.is_some_and(|first| first.rank.urgency > rank.urgency)
    }

    /// Exchanges a thing that was taken before for the most urgent one, if that precedes it. The
    /// thing then waits before its equals, whatever the bounds.
    pub(super) fn exchange(&mut self, rank: Rank, octets: usize, thing: T) -> T {
        if !self.precedes(rank) {
            return thing;
        }
        let Some(first) = self.pop() else {
            return thing;
        };
        let number = self.next_in_front;
        self.next_in_front += 1;
        self.insert(rank, number, octets, thing);
        first
    }

    /// Takes all things out, in no order.
    pub(super) fn clear(&mut self) -> Vec<T> {
        self.octets = 0;
        self.free.clear();
        self.heaps.iter_mut().for_each(Vec::clear);
        let all = self.things.drain(..).flatten();
        all.map(|waiting| waiting.thing).collect()
    }

    /// Makes room for one more item by removing those of less worth, the least and youngest
    /// first. Returns `None`, and removes nothing, if that does not suffice.
    pub(super) fn make_room(&mut self, rank: Rank, octets: usize) -> Option<Vec<T>> {
        let mut out = Vec::new();
        while !self.has_room(octets) {
            let least = self.heaps[WORTH].first().copied();
            let is_less = |waiting: &Entry<T>| waiting.rank.worth < rank.worth;
            let is_less = |index: &u32| self.things[*index as usize].as_ref().is_some_and(is_less);
            let Some(waiting) = least.filter(is_less).and_then(|least| self.remove(least)) else {
                for waiting in out {
                    let Entry {
                        rank,
                        number,
                        octets,
                        thing,
                        ..
                    } = waiting;
                    self.insert(rank, number, octets, thing);
                }
                return None;
            };
            out.push(waiting);
        }
        Some(out.into_iter().map(|waiting| waiting.thing).collect())
    }

    fn has_room(&self, octets: usize) -> bool {
        let things = self.heaps[URGENCY].len();
        things < self.bounds.things as usize
            && self.octets.saturating_add(octets) <= self.bounds.octets
    }

    fn insert(&mut self, rank: Rank, number: i64, octets: usize, thing: T) {
        let waiting = Some(Entry {
            rank,
            number,
            octets,
            places: [0; SIDES],
            thing,
        });
        let index = match self.free.pop() {
            Some(free) => {
                self.things[free as usize] = waiting;
                free
            }
            None => {
                self.things.push(waiting);
                (self.things.len() - 1) as u32
            }
        };
        self.octets += octets;
        for side in 0..SIDES {
            self.heaps[side].push(index);
            self.rise(side, self.heaps[side].len() - 1);
        }
    }

    fn remove(&mut self, index: u32) -> Option<Entry<T>> {
        let places = self.things[index as usize].as_ref()?.places;
        for (side, place) in places.into_iter().enumerate() {
            let place = place as usize;
            self.heaps[side].swap_remove(place);
            if place < self.heaps[side].len() {
                self.rise(side, place);
                self.sink(side, place);
            }
        }
        let removed = self.things[index as usize].take()?;
        self.free.push(index);
        self.octets -= removed.octets;
        Some(removed)
    }

    /// Moves the index at a place towards the top as far as it goes before others.
    fn rise(&mut self, side: usize, mut place: usize) {
        while place > 0 {
            let above = (place - 1) / 2;
            if !self.goes_before(side, place, above) {
                break;
            }
            self.heaps[side].swap(place, above);
            self.note_place(side, place);
            place = above;
        }
        self.note_place(side, place);
    }

    /// Moves the index at a place away from the top as far as others go before it.
    fn sink(&mut self, side: usize, mut place: usize) {
        loop {
            let below = 2 * place + 1..(2 * place + 3).min(self.heaps[side].len());
            let first = below.reduce(|first, other| {
                if self.goes_before(side, other, first) {
                    other
                } else {
                    first
                }
            });
            match first {
                Some(first) if self.goes_before(side, first, place) => {
                    self.heaps[side].swap(place, first);
                    self.note_place(side, place);
                    place = first;
                }
                _ => break,
            }
        }
        self.note_place(side, place);
    }

    fn goes_before(&self, side: usize, one: usize, other: usize) -> bool {
        let key = |place: usize| {
            let index = self.heaps[side][place] as usize;
            let waiting = self.things[index].as_ref();
            waiting.map(|waiting| match side {
                URGENCY => (waiting.rank.urgency, Reverse(waiting.number)),
                // The least and youngest first: both by their complement.
                _ => (!waiting.rank.worth, Reverse(!waiting.number)),
            })
        };
        key(one) > key(other)
    }

    fn note_place(&mut self, side: usize, place: usize) {
        let index = self.heaps[side][place] as usize;
        if let Some(waiting) = &mut self.things[index] {
            waiting.places[side] = place as u32;
        }
    }
}

const SIDES: usize = 2;
const URGENCY: usize = 0;
const WORTH: usize = 1;

/// The number of things that wait without an allocation.
pub(super) const AT_START: u32 = 256;

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push { urgency: u8, worth: u8, octets: u8 },
        Pop,
        Exchange { urgency: u8, worth: u8 },
    }

    fn step() -> impl Strategy<Value = Step> {
        let numbers = || (0..4_u8, 0..4_u8, 0..40_u8);
        prop_oneof![
            4 => numbers().prop_map(|(urgency, worth, octets)| {
                Step::Push { urgency, worth, octets }
            }),
            2 => Just(Step::Pop),
            1 => numbers().prop_map(|(urgency, worth, _)| Step::Exchange { urgency, worth }),
        ]
    }

    fn rank(urgency: u8, worth: u8) -> Rank {
        Rank {
            urgency: urgency.into(),
            worth: worth.into(),
        }
    }

    /// The same by looking at all things each time.
    #[derive(Default)]
    struct Model {
        /// Rank, octets and name, in the order of equals.
        things: Vec<(Rank, usize, u32)>,
        /// The number of things that go before their equals.
        in_front: usize,
    }

    impl Model {
        fn most_urgent(&self) -> Option<usize> {
            let all = self.things.iter().enumerate();
            let first = all.min_by_key(|(at, (rank, ..))| (Reverse(rank.urgency), *at));
            first.map(|(at, _)| at)
        }

        fn take(&mut self, at: usize) -> u32 {
            if at < self.in_front {
                self.in_front -= 1;
            }
            self.things.remove(at).2
        }

        fn make_room(&mut self, bounds: Bounds, rank: Rank, octets: usize) -> Option<Vec<u32>> {
            let mut left: Vec<usize> = (0..self.things.len()).collect();
            let mut out = Vec::new();
            let fits = |left: &[usize]| {
                let sum: usize = left.iter().map(|at| self.things[*at].1).sum();
                left.len() < bounds.things as usize && sum + octets <= bounds.octets
            };
            while !fits(&left) {
                let worth = |at: &usize| self.things[*at].0.worth;
                let least = *left.iter().min_by_key(|at| (worth(at), Reverse(**at)))?;
                if worth(&least) >= rank.worth {
                    return None;
                }
                left.retain(|at| *at != least);
                out.push(least);
            }
            let names = out.iter().map(|at| self.things[*at].2).collect();
            out.sort_unstable();
            for at in out.into_iter().rev() {
                self.take(at);
            }
            Some(names)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn heaps_do_what_a_search_of_all_things_does(
            steps in prop::collection::vec(step(), 1..80),
        ) {
            let bounds = Bounds { things: 9, octets: 200 };
            let (mut backlog, mut model) = (Backlog::new(bounds), Model::default());
            for (name, step) in (0_u32..).zip(steps) {
                match step {
                    Step::Push { urgency, worth, octets } => {
                        let (rank, octets) = (rank(urgency, worth), octets.into());
                        let evicted = backlog.make_room(rank, octets);
                        prop_assert_eq!(&evicted, &model.make_room(bounds, rank, octets));
                        if evicted.is_some() {
                            backlog.push(rank, octets, name);
                            model.things.push((rank, octets, name));
                        }
                    }
                    Step::Pop => {
                        let first = model.most_urgent().map(|at| model.take(at));
                        prop_assert_eq!(backlog.pop(), first);
                    }
                    Step::Exchange { urgency, worth } => {
                        let rank = rank(urgency, worth);
                        let first = model.most_urgent();
                        let first = first.filter(|at| {
                            model.things[*at].0.urgency > rank.urgency
                        });
                        prop_assert_eq!(backlog.precedes(rank), first.is_some());
                        let expected = match first {
                            None => name,
                            Some(at) => {
                                let taken = model.take(at);
                                model.things.insert(model.in_front, (rank, 1, name));
                                model.in_front += 1;
                                taken
                            }
                        };
                        prop_assert_eq!(backlog.exchange(rank, 1, name), expected);
                    }
                }
            }
            let mut left = backlog.clear();
            left.sort_unstable();
            let mut expected: Vec<_> = model.things.iter().map(|(.., name)| *name).collect();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
            prop_assert_eq!(backlog.pop(), None);
        }
    }

    #[test]
    fn things_within_the_bounds_are_kept_without_an_allocation() {
        let bounds = Bounds {
            things: 16,
            octets: usize::MAX,
        };
        let mut backlog = Backlog::new(bounds);
        let room = |backlog: &Backlog<u32>| {
            let heaps = backlog.heaps.each_ref().map(Vec::capacity);
            (backlog.things.capacity(), backlog.free.capacity(), heaps)
        };
        let at_start = room(&backlog);
        for round in 0..3 {
            for thing in 0..16 {
                assert_eq!(backlog.make_room(Rank::of(round), 1), Some(Vec::new()));
                backlog.push(Rank::of(u128::from(thing % 5)), 1, thing);
            }
            for _ in 0..16 {
                backlog.exchange(Rank::of(0), 1, 99);
                assert!(backlog.pop().is_some());
            }
        }
        assert_eq!(room(&backlog), at_start);
    }
}
