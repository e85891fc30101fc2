//! Subscriptions as they stand in `ConsumerQOS::dependencies`: entries in prefix notation.

use std::time::Duration;

use crate::error::{Limits, SubscriptionError};
use crate::event::{DEADLINE_TIMEOUT, INTERVAL_TIMEOUT, TIMEOUT};
use crate::filter::{Filter, TimerKind};
use crate::program::Rules;

const GLOBAL: i32 = 7;
const CONJUNCTION: i32 = 8;
const DISJUNCTION: i32 = 9;
const NEGATION: i32 = 10;
const LOGICAL_AND: i32 = 11;
const BITMASK: i32 = 12;
const MASKED_TYPE: i32 = 13;
const NULL: i32 = 14;

/// The unit of times on the wire.
const TIME_UNIT_NS: u64 = 100;

/// An entry of a subscription: of a `Dependency`, the parts of its header that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// A source, a mask or value of sources, or the number of children of a group.
    pub source: i32,
    /// A type, a mask or value of types, or the designator of a group, mask or timer.
    pub event_type: i32,
    /// The time of a timer, in units of 100 ns.
    pub time: u64,
}

/// The two notations of entries in TAO's event channel (`-ECFiltering basic|prefix`).
///
/// Most subscriptions read the same in both. Of the others the notation is recognised where the
/// numbers of children that groups state tell it:
///
/// | entries | notation |
/// |---|---|
/// | one filter in prefix notation, in which groups nest and state their children | prefix |
/// | a group that states 0 children, and entries behind it, unless all entries are one filter in prefix notation | basic |
///
/// The value that is stated decides on the rest: groups that state another number than what follows
/// are refused in prefix notation, and are read in the basic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notation {
    /// A group states its number of children, and groups nest.
    #[default]
    Prefix,
    /// A group ends where the next begins. A negation or mask applies to one leaf.
    Basic,
}

/// Reads entries into a filter.
///
/// Several filters beside each other are a disjunction, with [`Rules::Corrected`]. With
/// [`Rules::Tao`] the first one counts, and the rest is ignored. A group without children is a
/// filter that accepts nothing. Both notations skip the designator 7, which begins the entries of
/// older clients.
///
/// # Errors
/// See [`SubscriptionError`]. The work is bounded by the number of entries and by the limits.
pub fn read_entries(
    entries: &[Entry],
    notation: Notation,
    rules: Rules,
    limits: &Limits,
) -> Result<Filter, SubscriptionError> {
    if entries.len() > limits.nodes.saturating_mul(3) {
        let limit = limits.nodes;
        return Err(SubscriptionError::TooLarge { limit });
    }
    let prefix = read_list(entries, Notation::Prefix, rules, limits);
    let is_basic = match notation {
        Notation::Prefix => prefix.has_zero && !prefix.is_one_filter(),
        Notation::Basic => prefix.has_zero || !prefix.nests || !prefix.is_one_filter(),
    };
    let list = if is_basic {
        drop(prefix);
        read_list(entries, Notation::Basic, rules, limits)
    } else {
        prefix
    };
    let mut roots = list.roots?;
    match roots.len() {
        0 => Err(SubscriptionError::Empty),
        1 => Ok(roots.remove(0)),
        _ if rules == Rules::Tao => Ok(roots.remove(0)),
        _ => Ok(Filter::Any(roots)),
    }
}

/// Whether a channel that reads the basic notation alone understands a filter as it is written:
/// one group at most, of leaves that may be negated and have a mask.
pub fn fits_basic(filter: &Filter) -> bool {
    let limits = Limits {
        nodes: usize::MAX,
        ..Limits::default()
    };
    let entries = write_entries(filter);
    let list = read_list(&entries, Notation::Basic, Rules::Corrected, &limits);
    list.roots.is_ok_and(|roots| roots == [filter.clone()])
}

/// Filters beside each other, as entries state them in one notation.
struct FilterList {
    roots: Result<Vec<Filter>, SubscriptionError>,
    /// Whether something is left behind the filters, which is ignored.
    has_rest: bool,
    /// Whether a group states 0 children, and entries follow it.
    has_zero: bool,
    /// Whether a group is a part of another filter.
    nests: bool,
}

impl FilterList {
    fn is_one_filter(&self) -> bool {
        let is_one = self.roots.as_ref().is_ok_and(|roots| roots.len() == 1);
        is_one && !self.has_rest
    }
}

fn read_list(entries: &[Entry], notation: Notation, rules: Rules, limits: &Limits) -> FilterList {
    let mut reader = Reader {
        entries,
        at: 0,
        limits,
        has_zero: false,
        nests: false,
    };
    let (mut roots, mut error) = (Vec::new(), None);
    loop {
        reader.skip_global();
        if reader.at == entries.len() {
            break;
        }
        let root = match notation {
            Notation::Prefix => reader.filter(1),
            Notation::Basic => reader.basic_group(),
        };
        match root {
            Ok(root) => roots.push(root),
            Err(reason) => {
                error = Some(reason);
                break;
            }
        }
    }
    let has_rest = error.is_some() && rules == Rules::Tao && !roots.is_empty();
    FilterList {
        roots: match error.filter(|_| !has_rest) {
            Some(error) => Err(error),
            None => Ok(roots),
        },
        has_rest,
        has_zero: reader.has_zero,
        nests: reader.nests,
    }
}

struct Reader<'a> {
    entries: &'a [Entry],
    at: usize,
    limits: &'a Limits,
    /// See [`FilterList`].
    has_zero: bool,
    nests: bool,
}

impl Reader<'_> {
    fn skip_global(&mut self) {
        while self.peek().is_some_and(|entry| entry.event_type == GLOBAL) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<Entry> {
        self.entries.get(self.at).copied()
    }

    /// The next entry, which the entry at `owner` needs.
    fn next(&mut self, owner: usize) -> Result<Entry, SubscriptionError> {
        let entry = self.peek();
        let entry = entry.ok_or(SubscriptionError::Truncated { at: owner })?;
        self.at += 1;
        Ok(entry)
    }

    /// A filter in prefix notation.
    fn filter(&mut self, depth: usize) -> Result<Filter, SubscriptionError> {
        if depth > self.limits.depth {
            let limit = self.limits.depth;
            return Err(SubscriptionError::TooDeep { limit });
        }
        let at = self.at;
        let entry = self.next(at)?;
        match entry.event_type {
            CONJUNCTION => Ok(Filter::Conjunction(self.children(at, entry, depth)?)),
            DISJUNCTION => Ok(Filter::Any(self.children(at, entry, depth)?)),
            LOGICAL_AND => Ok(Filter::All(self.children(at, entry, depth)?)),
            NEGATION => {
                self.require_more(at)?;
                Ok(!self.filter(depth + 1)?)
            }
            BITMASK => {
                let masks = self.next(at)?;
                self.require_more(at)?;
                Ok(Filter::Bits {
                    source_mask: masks.source,
                    type_mask: masks.event_type,
                    then: Box::new(self.filter(depth + 1)?),
                })
            }
            _ => self.leaf(at, entry),
        }
    }

    fn require_more(&self, owner: usize) -> Result<(), SubscriptionError> {
        let more = self.peek().map(drop);
        more.ok_or(SubscriptionError::Truncated { at: owner })
    }

    fn children(
        &mut self,
        at: usize,
        group: Entry,
        depth: usize,
    ) -> Result<Vec<Filter>, SubscriptionError> {
        // On the wire the number is unsigned.
        let count = group.source.cast_unsigned() as usize;
        self.nests |= depth > 1;
        self.has_zero |= count == 0 && self.at < self.entries.len();
        if count > self.entries.len() - self.at {
            return Err(SubscriptionError::Truncated { at });
        }
        (0..count).map(|_| self.filter(depth + 1)).collect()
    }

    /// A group of the basic notation, or one filter outside of groups.
    fn basic_group(&mut self) -> Result<Filter, SubscriptionError> {
        let at = self.at;
        let designator = self.entries[at].event_type;
        if !matches!(designator, CONJUNCTION | DISJUNCTION | LOGICAL_AND) {
            return self.basic_filter();
        }
        self.at += 1;
        let mut children = Vec::new();
        while let Some(entry) = self.peek() {
            if matches!(
                entry.event_type,
                GLOBAL | CONJUNCTION | DISJUNCTION | LOGICAL_AND
            ) {
                break;
            }
            children.push(self.basic_filter()?);
        }
        Ok(match designator {
            CONJUNCTION => Filter::Conjunction(children),
            DISJUNCTION => Filter::Any(children),
            _ => Filter::All(children),
        })
    }

    fn basic_filter(&mut self) -> Result<Filter, SubscriptionError> {
        let at = self.at;
        let entry = self.next(at)?;
        match entry.event_type {
            NEGATION => {
                self.require_more(at)?;
                Ok(!self.basic_operand()?)
            }
            BITMASK => {
                let masks = self.next(at)?;
                Ok(Filter::Bits {
                    source_mask: masks.source,
                    type_mask: masks.event_type,
                    then: Box::new(self.basic_operand()?),
                })
            }
            _ => self.leaf(at, entry),
        }
    }

    /// The one filter that a negation or mask of the basic notation applies to.
    fn basic_operand(&mut self) -> Result<Filter, SubscriptionError> {
        let at = self.at;
        let entry = self.next(at.saturating_sub(1))?;
        match entry.event_type {
            GLOBAL | CONJUNCTION | DISJUNCTION | LOGICAL_AND | NEGATION => {
                Err(SubscriptionError::BadDesignator { at })
            }
            BITMASK => {
                let masks = self.next(at)?;
                let leaf = self.next(at)?;
                Ok(Filter::Bits {
                    source_mask: masks.source,
                    type_mask: masks.event_type,
                    then: Box::new(self.leaf(at, leaf)?),
                })
            }
            _ => self.leaf(at, entry),
        }
    }

    fn leaf(&mut self, at: usize, entry: Entry) -> Result<Filter, SubscriptionError> {
        let timer = |kind| {
            let time = entry.time.checked_mul(TIME_UNIT_NS);
            let time = Duration::from_nanos(time.unwrap_or(u64::MAX));
            Ok(Filter::Timer { kind, time })
        };
        match entry.event_type {
            MASKED_TYPE => {
                let (masks, values) = (self.next(at)?, self.next(at)?);
                Ok(Filter::Masked {
                    source_mask: masks.source,
                    type_mask: masks.event_type,
                    source_value: values.source,
                    type_value: values.event_type,
                })
            }
            NULL => Ok(Filter::Everything),
            TIMEOUT => timer(TimerKind::Once),
            INTERVAL_TIMEOUT => timer(TimerKind::Interval),
            DEADLINE_TIMEOUT => timer(TimerKind::Deadline),
            GLOBAL | CONJUNCTION | DISJUNCTION | LOGICAL_AND | NEGATION | BITMASK => {
                Err(SubscriptionError::BadDesignator { at })
            }
            event_type => Ok(Filter::event(entry.source, event_type)),
        }
    }
}

/// Writes a filter as entries in prefix notation.
pub fn write_entries(filter: &Filter) -> Vec<Entry> {
    let mut entries = Vec::new();
    write_filter(filter, &mut entries);
    entries
}

fn write_filter(filter: &Filter, entries: &mut Vec<Entry>) {
    let entry = |source: i32, event_type: i32| Entry {
        source,
        event_type,
        time: 0,
    };
    let count = |children: &[Filter]| i32::try_from(children.len()).unwrap_or(i32::MAX);
    let (designator, children) = match filter {
        Filter::Leaf { source, event_type } => return entries.push(entry(*source, *event_type)),
        Filter::Everything => return entries.push(entry(0, NULL)),
        Filter::Masked {
            source_mask,
            type_mask,
            source_value,
            type_value,
        } => {
            entries.push(entry(0, MASKED_TYPE));
            entries.push(entry(*source_mask, *type_mask));
            return entries.push(entry(*source_value, *type_value));
        }
        Filter::Bits {
            source_mask,
            type_mask,
            then,
        } => {
            entries.push(entry(0, BITMASK));
            entries.push(entry(*source_mask, *type_mask));
            return write_filter(then, entries);
        }
        Filter::Negation(inner) => {
            entries.push(entry(0, NEGATION));
            return write_filter(inner, entries);
        }
        Filter::Timer { kind, time } => {
            let event_type = match kind {
                TimerKind::Once => TIMEOUT,
                TimerKind::Interval => INTERVAL_TIMEOUT,
                TimerKind::Deadline => DEADLINE_TIMEOUT,
            };
            let time = time.as_nanos() / u128::from(TIME_UNIT_NS);
            let time = u64::try_from(time).unwrap_or(u64::MAX);
            return entries.push(Entry {
                source: 0,
                event_type,
                time,
            });
        }
        Filter::Conjunction(children) => (CONJUNCTION, children),
        Filter::Any(children) => (DISJUNCTION, children),
        Filter::All(children) => (LOGICAL_AND, children),
    };
    entries.push(entry(count(children), designator));
    for child in children {
        write_filter(child, entries);
    }
}
