//! Routing: which subscriptions an event may concern, so that its cost follows the matches.

mod guard;
mod index;
mod sequence;

use std::cmp::Ordering;

use crate::event::Header;
use crate::program::{Interest, Program};
use guard::Guard;
use index::{Index, Keep};
use sequence::{Cursor, Sequence};

/// An index from events to subscriptions.
///
/// A subscription is named by an element whose order is the order of dispatch. A look-up costs as
/// much as it finds, and a test of a bounded cost for each subscription to masks. It does not
/// depend on the number of other subscriptions, or of the masks of one. A copy takes one step, and
/// shares its memory with the original. A change of either copies the part that differs, which
/// grows with the logarithm of the number of subscriptions.
///
/// # Example
/// ```
/// use chronorb_events::{Event, Filter, Limits, Program, Routes, Rules};
///
/// let compile = |filter| Program::compile(&filter, Rules::Corrected, &Limits::default());
/// let mut routes = Routes::new();
/// routes.insert(&compile(Filter::event(1, 20))?, "first");
/// let before = routes.clone();
/// routes.insert(&compile(Filter::of_type(21))?, "second");
/// let header = Event::new(7, 21, ()).header;
/// assert_eq!(routes.candidates(&header).collect::<Vec<_>>(), [&"second"]);
/// assert_eq!(before.candidates(&header).next(), None);
/// # Ok::<(), chronorb_events::SubscriptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Routes<T> {
    /// By source and type, of subscriptions to both.
    exact: Index<Sequence<T>>,
    /// By type, of subscriptions to a type of any source.
    by_type: Index<Sequence<T>>,
    /// By source, of subscriptions to any type of a source.
    by_source: Index<Sequence<T>>,
    /// By type alone, for events without a source.
    types: Index<Sequence<T>>,
    /// Subscriptions to whole sources, for events without a source.
    sources: Sequence<T>,
    /// Subscriptions that may react to events of any source and type, or those that pass masks.
    wide: Sequence<WideEntry<T>>,
    /// The number of those with masks.
    guards: usize,
    /// Subscriptions to sources or types, for events without a type.
    any: Sequence<T>,
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self {
            exact: Index::default(),
            by_type: Index::default(),
            by_source: Index::default(),
            types: Index::default(),
            sources: Sequence::default(),
            wide: Sequence::default(),
            guards: 0,
            any: Sequence::default(),
        }
    }
}

impl<T: Clone + Ord> Routes<T> {
    /// An index without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription with this program.
    pub fn insert(&mut self, program: &Program, subscription: T) {
        let interests = program.interests();
        if let Some(guard) = Guard::of(&interests) {
            self.guards += usize::from(guard != Guard::Open);
            let item = subscription.clone();
            self.wide.insert(WideEntry { item, guard });
        }
        self.change(&interests, |sequence| sequence.insert(subscription.clone()));
    }

    /// Removes a subscription, which was added with this program.
    pub fn remove(&mut self, program: &Program, subscription: &T) {
        let interests = program.interests();
        if let Some(guard) = Guard::of(&interests) {
            self.guards -= usize::from(guard != Guard::Open);
            let item = subscription.clone();
            self.wide.remove(&WideEntry { item, guard });
        }
        self.change(&interests, |sequence| sequence.remove(subscription));
    }

    /// Changes the sequences by source and type that a subscription with these interests belongs
    /// to.
    fn change(&mut self, interests: &[Interest], mut change: impl FnMut(&mut Sequence<T>)) {
        let mut change = |sequence: &mut Sequence<T>| {
            change(sequence);
            if sequence.is_empty() {
                Keep::No
            } else {
                Keep::Yes
            }
        };
        // A subscription to all events belongs to the wide ones alone.
        if interests.contains(&Interest::All) || !interests.iter().any(Interest::is_leaf) {
            return;
        }
        change(&mut self.any);
        for interest in interests {
            match *interest {
                Interest::Exact(source, event_type) => {
                    self.exact.change(key(source, event_type), &mut change);
                    self.types.change(key(0, event_type), &mut change);
                }
                Interest::Type(event_type) => {
                    self.by_type.change(key(0, event_type), &mut change);
                    self.types.change(key(0, event_type), &mut change);
                }
                Interest::Source(source) => {
                    self.by_source.change(key(source, 0), &mut change);
                    change(&mut self.sources);
                }
                Interest::Values { .. } | Interest::Bits { .. } | Interest::All => {}
            }
        }
    }

    /// The number of subscriptions whose masks a look-up tests, each at a small cost.
    #[inline]
    pub fn guards(&self) -> usize {
        self.guards
    }

    /// The subscriptions that may react to an event, in order, each once.
    #[inline(always)]
    pub fn candidates(&self, header: &Header) -> Candidates<'_, T> {
        let (source, event_type) = (header.source, header.event_type);
        let none = Cursor::default;
        let sequences = match (source, event_type) {
            (_, 0) => [self.any.cursor(), none(), none()],
            (0, _) => {
                let of_type = cursor(self.types.get(key(0, event_type)));
                [of_type, self.sources.cursor(), none()]
            }
            _ => [
                cursor(self.exact.get(key(source, event_type))),
                cursor(self.by_type.get(key(0, event_type))),
                cursor(self.by_source.get(key(source, 0))),
            ],
        };
        let mut candidates = Candidates {
            sequences,
            wide: self.wide.cursor(),
            header: *header,
        };
        candidates.skip_wide();
        candidates
    }
}

/// Subscriptions in order, each once.
///
/// Merges sequences.
#[derive(Debug)]
pub struct Candidates<'a, T> {
    sequences: [Cursor<'a, T>; 3],
    /// The guard of the next element lets the event pass.
    wide: Cursor<'a, WideEntry<T>>,
    header: Header,
}

impl<T: Ord> Candidates<'_, T> {
    /// Passes the subscriptions whose guards reject the event.
    #[inline(always)]
    fn skip_wide(&mut self) {
        while let Some(next) = self.wide.peek()
            && !next.guard.lets_pass(&self.header)
        {
            self.wide.advance();
        }
    }
}

impl<'a, T: Ord> Iterator for Candidates<'a, T> {
    type Item = &'a T;

    // A push consists of little else, in each function that pushes.
    #[inline(always)]
    fn next(&mut self) -> Option<&'a T> {
        let wide = self.wide.peek().map(|next| &next.item);
        let others = self.sequences.iter().filter_map(Cursor::peek);
        let next = others.chain(wide).min()?;
        for cursor in &mut self.sequences {
            if cursor.peek() == Some(next) {
                cursor.advance();
            }
        }
        if wide == Some(next) {
            self.wide.advance();
            self.skip_wide();
        }
        Some(next)
    }
}

/// A subscription to any event, with the part of its filter that rejects most events.
#[derive(Clone, Debug)]
struct WideEntry<T> {
    item: T,
    guard: Guard,
}

impl<T: PartialEq> PartialEq for WideEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.item == other.item
    }
}

impl<T: Eq> Eq for WideEntry<T> {}

impl<T: Ord> PartialOrd for WideEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for WideEntry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.item.cmp(&other.item)
    }
}

#[inline]
fn cursor<T>(sequence: Option<&Sequence<T>>) -> Cursor<'_, T> {
    sequence.map(Sequence::cursor).unwrap_or_default()
}

fn key(source: i32, event_type: i32) -> u64 {
    (u64::from(source.cast_unsigned()) << 32) | u64::from(event_type.cast_unsigned())
}
