//! Routing: which subscriptions an event may concern, so that its cost follows the matches.

use std::hash::{BuildHasher, RandomState};

use crate::event::Header;
use crate::program::{Interest, Program};

/// An immutable index from events to subscriptions, made whenever subscriptions change.
///
/// A subscription is named by its rank: its place in the order of dispatch. A look-up costs as much
/// as it finds, and does not depend on the number of subscriptions.
///
/// # Example
/// ```
/// use chronorb_events::{Event, Filter, Limits, Program, Routes, Rules};
///
/// let compile = |filter| Program::compile(&filter, Rules::Corrected, &Limits::default());
/// let programs = [compile(Filter::event(1, 20))?, compile(Filter::of_type(21))?];
/// let routes = Routes::new(programs.iter());
/// let header = Event::new(7, 21, ()).header;
/// assert_eq!(routes.candidates(&header).collect::<Vec<_>>(), [1]);
/// # Ok::<(), chronorb_events::SubscriptionError>(())
/// ```
#[derive(Debug, Default)]
pub struct Routes {
    /// By source and type; of wildcards, with zero for any.
    exact: Table,
    /// By type alone, for events without a source.
    types: Table,
    /// Subscriptions to whole sources, for events without a source.
    sources: Box<[u32]>,
    /// Subscriptions that may react to any event.
    wide: Box<[u32]>,
    /// Subscriptions that react to any event at all.
    any: Box<[u32]>,
}

impl Routes {
    /// The index of programs in order of dispatch.
    pub fn new<'a>(programs: impl Iterator<Item = &'a Program>) -> Self {
        let mut exact = Vec::new();
        let mut types = Vec::new();
        let mut sources = Vec::new();
        let mut wide = Vec::new();
        let mut any = Vec::new();
        for (rank, program) in (0..).zip(programs) {
            let interests = program.interests();
            if !interests.is_empty() {
                any.push(rank);
            }
            if interests.contains(&Interest::All) {
                wide.push(rank);
                continue;
            }
            for interest in interests {
                match interest {
                    Interest::Exact(source, event_type) => {
                        exact.push((key(source, event_type), rank));
                        types.push((key(0, event_type), rank));
                    }
                    Interest::Type(event_type) => {
                        exact.push((key(0, event_type), rank));
                        types.push((key(0, event_type), rank));
                    }
                    Interest::Source(source) => {
                        exact.push((key(source, 0), rank));
                        sources.push(rank);
                    }
                    Interest::All => {}
                }
            }
        }
        sources.dedup();
        Self {
            exact: Table::new(exact),
            types: Table::new(types),
            sources: sources.into(),
            wide: wide.into(),
            any: any.into(),
        }
    }

    /// The ranks of subscriptions that may react to an event, in ascending order.
    pub fn candidates(&self, header: &Header) -> Candidates<'_> {
        let (source, event_type) = (header.source, header.event_type);
        Candidates(match (source, event_type) {
            (_, 0) => [&self.any, &[], &[], &[]],
            (0, _) => {
                let of_type = self.types.get(key(0, event_type));
                [of_type, &self.sources, &self.wide, &[]]
            }
            _ => [
                self.exact.get(key(source, event_type)),
                self.exact.get(key(0, event_type)),
                self.exact.get(key(source, 0)),
                &self.wide,
            ],
        })
    }
}

/// The ranks of subscriptions in ascending order, each once.
///
/// Merges lists of ranks, each ascending.
#[derive(Debug)]
pub struct Candidates<'a>([&'a [u32]; 4]);

impl Iterator for Candidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let heads = self.0.iter().filter_map(|list| list.first());
        let next = *heads.min()?;
        for list in &mut self.0 {
            if list.first() == Some(&next) {
                *list = &list[1..];
            }
        }
        Some(next)
    }
}

fn key(source: i32, event_type: i32) -> u64 {
    (u64::from(source.cast_unsigned()) << 32) | u64::from(event_type.cast_unsigned())
}

/// The most places that a look-up reads.
const MOST_PROBES: usize = 8;

/// A table from keys to lists, with a bound of what a look-up reads. Keys are never zero.
#[derive(Debug, Default)]
struct Table {
    seed: u64,
    places: Box<[(u64, u32, u32)]>,
    lists: Box<[u32]>,
}

impl Table {
    /// Makes a table of pairs of a key and an element of its list.
    fn new(mut pairs: Vec<(u64, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let lists = pairs.iter().map(|(_, element)| *element).collect();
        let mut entries = Vec::new();
        let mut start = 0;
        for group in pairs.chunk_by(|a, b| a.0 == b.0) {
            let length = group.len() as u32;
            entries.push((group[0].0, start, length));
            start += length;
        }
        let seeds = RandomState::new();
        // A seed that needs longer probes is replaced, and after some of them the table grows. So
        // keys that a peer chooses cannot make look-ups long.
        let mut size = (entries.len() * 2).next_power_of_two().max(MOST_PROBES);
        for attempt in 0_u64.. {
            let seed = seeds.hash_one(attempt);
            if let Some(places) = place(&entries, size, seed) {
                return Self {
                    seed,
                    places,
                    lists,
                };
            }
            if attempt % 8 == 7 {
                size *= 2;
            }
        }
        unreachable!("a table that is large enough has a place for each key")
    }

    fn get(&self, key: u64) -> &[u32] {
        if self.places.is_empty() {
            return &[];
        }
        let mut at = first_place(key, self.seed, self.places.len());
        for _ in 0..MOST_PROBES {
            let (present, start, length) = self.places[at];
            if present == key {
                let (start, length) = (start as usize, length as usize);
                return &self.lists[start..start + length];
            }
            if present == 0 {
                return &[];
            }
            at = (at + 1) % self.places.len();
        }
        &[]
    }
}

/// The places of all entries, if none needs more probes than the bound.
fn place(entries: &[(u64, u32, u32)], size: usize, seed: u64) -> Option<Box<[(u64, u32, u32)]>> {
    let mut places = vec![(0, 0, 0); size];
    for entry in entries {
        let first = first_place(entry.0, seed, size);
        let probes = (first..first + MOST_PROBES).map(|at| at % size);
        let free = probes.into_iter().find(|at| places[*at].0 == 0)?;
        places[free] = *entry;
    }
    Some(places.into())
}

/// The first place of a key in a table whose size is a power of two.
fn first_place(key: u64, seed: u64, size: usize) -> usize {
    let mixed = (key ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as usize & (size - 1)
}
