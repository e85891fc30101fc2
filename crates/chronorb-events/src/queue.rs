//! A consumer's queue: bounded, with a stated policy for events that find it full.

use std::collections::VecDeque;

/// The policy for events that find their consumer's queue full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// The oldest event in the queue is lost.
    #[default]
    DropOldest,
    /// The new event is lost.
    DropNewest,
    /// A new event replaces the queued one of its key, full queue or not. If there is none and the
    /// queue is full, the oldest event is lost.
    LatestByKey,
    /// The supplier waits, up to its deadline. Then the new event is lost.
    Block,
    /// The consumer is disconnected. The queued events stay, and later ones are lost.
    Disconnect,
}

/// The result of putting an event into a queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Put<T> {
    /// The event is in the queue.
    Queued,
    /// The event is in the queue, and another event was lost for it.
    Displaced(T),
    /// The event was lost, and counted.
    Lost(T),
    /// The queue is full and the policy is [`Overflow::Block`]. The event is given back. It is put
    /// again when there is room, or counted by [`Queue::give_up`].
    Full(T),
    /// The consumer must be disconnected. The event was lost, and counted. Only the first event
    /// that does not fit says so.
    Disconnect(T),
}

/// The next thing in a queue: an event, or a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<T> {
    /// The next event.
    Event(T),
    /// The number of events that were lost at this place.
    Gap(u64),
}

/// The queue of one consumer.
///
/// Each loss is counted and told to the consumer at its place in the order: what was put in is the
/// sum of the events taken, the gaps taken and the events still queued.
///
/// # Example
/// ```
/// use chronorb_events::{Overflow, Queue, Next};
///
/// let mut queue = Queue::new(2, Overflow::DropOldest);
/// for event in 1..=3 {
///     queue.put(event, 0);
/// }
/// let taken: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
/// assert_eq!(taken, [Next::Gap(1), Next::Event(2), Next::Event(3)]);
/// ```
#[derive(Debug)]
pub struct Queue<T> {
    entries: VecDeque<Entry<T>>,
    capacity: usize,
    overflow: Overflow,
    /// Events lost after the last one in the queue.
    lost_last: u64,
    lost: u64,
    is_disconnected: bool,
}

#[derive(Debug)]
struct Entry<T> {
    item: T,
    key: u64,
    /// Events lost immediately before.
    lost_before: u64,
}

impl<T> Queue<T> {
    /// A queue of a capacity of at least one. It allocates its memory here, and none later.
    pub fn new(capacity: usize, overflow: Overflow) -> Self {
        let capacity = capacity.max(1);
        Self {
            entries: VecDeque::with_capacity(capacity),
            capacity,
            overflow,
            lost_last: 0,
            lost: 0,
            is_disconnected: false,
        }
    }

    /// Puts an event into the queue, by its policy. The key is that of [`Overflow::LatestByKey`].
    pub fn put(&mut self, item: T, key: u64) -> Put<T> {
        if self.is_disconnected {
            self.lose();
            return Put::Lost(item);
        }
        if self.overflow == Overflow::LatestByKey
            && let Some(place) = self.entries.iter().position(|entry| entry.key == key)
        {
            return self.replace(place, item, key);
        }
        if self.entries.len() < self.capacity {
            self.append(item, key);
            return Put::Queued;
        }
        match self.overflow {
            Overflow::DropOldest | Overflow::LatestByKey => self.replace(0, item, key),
            _ => self.refuse(item),
        }
    }

    /// Loses the event that a new one of this key would displace in a full queue, by the policy.
    /// `None` where there is none, or the policy displaces nothing. For bounds besides the
    /// capacity.
    pub fn make_room(&mut self, key: u64) -> Option<T> {
        let of_key = || self.entries.iter().position(|entry| entry.key == key);
        let place = match self.overflow {
            Overflow::DropOldest => 0,
            Overflow::LatestByKey => of_key().unwrap_or(0),
            Overflow::DropNewest | Overflow::Block | Overflow::Disconnect => return None,
        };
        self.displace(place)
    }

    /// Treats a new event by the policy as in a full queue from which nothing can be displaced: it
    /// is lost, given back to wait, or ends the consumer's connection.
    pub fn refuse(&mut self, item: T) -> Put<T> {
        if self.overflow == Overflow::Block {
            return Put::Full(item);
        }
        self.lose();
        if self.overflow == Overflow::Disconnect && !self.is_disconnected {
            self.is_disconnected = true;
            return Put::Disconnect(item);
        }
        Put::Lost(item)
    }

    /// Counts an event as lost whose supplier waited for room in vain.
    pub fn give_up(&mut self) {
        self.lose();
    }

    /// Takes the next event, or the number of those that were lost before it.
    pub fn take(&mut self) -> Option<Next<T>> {
        let gap = match self.entries.front_mut() {
            Some(first) => std::mem::take(&mut first.lost_before),
            None => std::mem::take(&mut self.lost_last),
        };
        if gap > 0 {
            return Some(Next::Gap(gap));
        }
        self.entries
            .pop_front()
            .map(|entry| Next::Event(entry.item))
    }

    /// The number of events in the queue.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether neither events nor gaps are left to take.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.lost_last == 0
    }

    /// The number of events that were lost since the queue was made.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn append(&mut self, item: T, key: u64) {
        let lost_before = std::mem::take(&mut self.lost_last);
        self.entries.push_back(Entry {
            item,
            key,
            lost_before,
        });
    }

    fn lose(&mut self) {
        self.lost += 1;
        self.lost_last += 1;
    }

    /// Loses the event at a place for a new one at the end.
    fn replace(&mut self, place: usize, item: T, key: u64) -> Put<T> {
        let Some(removed) = self.displace(place) else {
            return Put::Lost(item);
        };
        self.append(item, key);
        Put::Displaced(removed)
    }

    /// Loses the event at a place.
    fn displace(&mut self, place: usize) -> Option<T> {
        let removed = self.entries.remove(place)?;
        self.lost += 1;
        let gap = removed.lost_before + 1;
        match self.entries.get_mut(place) {
            Some(next) => next.lost_before += gap,
            None => self.lost_last += gap,
        }
        Some(removed.item)
    }
}
