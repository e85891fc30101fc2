//! The octets of the events that a subscription keeps.

use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::event::Event;

/// A bound of the octets of kept events, which several subscriptions may share.
///
/// A subscription is locked during its calls, so an implementation neither waits nor calls a
/// channel.
pub trait Allowance: Send + Sync + 'static {
    /// Takes octets. Returns whether they were granted.
    fn take(&self, octets: usize) -> bool;

    /// Gives octets back that were taken.
    fn give_back(&self, octets: usize);
}

/// The octets of the events that a queue or the groups of a subscription keep, out of an
/// [`Allowance`].
///
/// The account takes octets in blocks of 16 KiB, has at most one block to spare, and asks for the
/// missing octets where a block is refused. So most events make no call of the allowance. What is
/// taken is given back when it is dropped.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use chronorb_events::{Allowance, Event, OctetAccount};
///
/// struct Rest(AtomicUsize);
///
/// impl Allowance for Rest {
///     fn take(&self, octets: usize) -> bool {
///         self.0.fetch_update(Relaxed, Relaxed, |rest| rest.checked_sub(octets)).is_ok()
///     }
///
///     fn give_back(&self, octets: usize) {
///         self.0.fetch_add(octets, Relaxed);
///     }
/// }
///
/// let rest = Arc::new(Rest(AtomicUsize::new(1000)));
/// let mut account = OctetAccount::new(rest.clone(), |body: &Vec<u8>| body.len());
/// let octets = account.octets(&Event::new(1, 20, vec![0; 700]));
/// assert!(account.take(octets));
/// assert!(!account.take(octets));
/// account.give_back(octets);
/// assert!(account.take(octets));
/// drop(account);
/// assert_eq!(rest.0.load(Relaxed), 1000);
/// ```
pub struct OctetAccount<B> {
    /// The octets of a body. `None` where nothing is counted.
    octets_of: Option<fn(&B) -> usize>,
    allowance: Option<Arc<dyn Allowance>>,
    /// The octets that the allowance has granted.
    granted: usize,
    /// Those among them that no event uses.
    free: usize,
    /// The most octets that stay without use.
    most_free: usize,
}

/// The octets that are taken at once, and the most that are not used.
const BLOCK: usize = 16 << 10;

impl<B> OctetAccount<B> {
    /// An account without a bound, which counts nothing.
    pub fn unlimited() -> Self {
        Self {
            octets_of: None,
            allowance: None,
            granted: 0,
            free: 0,
            most_free: usize::MAX,
        }
    }

    /// An account of events whose bodies have so many octets.
    pub fn new(allowance: Arc<dyn Allowance>, octets_of: fn(&B) -> usize) -> Self {
        Self {
            octets_of: Some(octets_of),
            allowance: Some(allowance),
            granted: 0,
            free: 0,
            most_free: BLOCK,
        }
    }

    /// The octets for which an event counts: its size in memory and the octets of its body. Zero
    /// without a bound.
    #[inline]
    pub fn octets(&self, event: &Event<B>) -> usize {
        self.octets_of.map_or(0, |octets_of| {
            octets_of(&event.body).saturating_add(size_of::<Event<B>>())
        })
    }

    /// Takes octets for an event. Returns whether they were granted.
    #[inline]
    pub fn take(&mut self, octets: usize) -> bool {
        match self.free.checked_sub(octets) {
            Some(free) => {
                self.free = free;
                true
            }
            None => self.take_more(octets),
        }
    }

    /// Gives the octets of an event back.
    #[inline]
    pub fn give_back(&mut self, octets: usize) {
        self.free = self.free.saturating_add(octets);
        if self.free > self.most_free {
            self.give_spare_back();
        }
    }

    /// Gives everything back. No event is granted from now on.
    pub fn close(&mut self) {
        self.return_granted();
        self.allowance = None;
        // Every event counts for its size at least, so that each is refused.
        self.octets_of = Some(|_| 0);
        self.free = 0;
        self.most_free = 0;
    }

    /// Whether it is [closed](Self::close).
    pub(crate) fn is_closed(&self) -> bool {
        self.octets_of.is_some() && self.allowance.is_none()
    }

    #[cold]
    fn take_more(&mut self, octets: usize) -> bool {
        let Some(allowance) = &self.allowance else {
            return false;
        };
        let missing = octets - self.free;
        let granted = if missing < BLOCK && allowance.take(BLOCK) {
            BLOCK
        } else if allowance.take(missing) {
            missing
        } else {
            return false;
        };
        self.granted += granted;
        self.free = self.free + granted - octets;
        true
    }

    /// Gives back all but half a block, so that the next octets make no call either way.
    #[cold]
    fn give_spare_back(&mut self) {
        if self.is_closed() {
            self.free = 0;
            return;
        }
        let spare = self.free - BLOCK / 2;
        self.free -= spare;
        self.granted -= spare;
        if let Some(allowance) = &self.allowance {
            allowance.give_back(spare);
        }
    }

    fn return_granted(&mut self) {
        let granted = mem::take(&mut self.granted);
        if let Some(allowance) = &self.allowance
            && granted > 0
        {
            allowance.give_back(granted);
        }
    }
}

impl<B> Drop for OctetAccount<B> {
    fn drop(&mut self) {
        self.return_granted();
    }
}

impl<B> fmt::Debug for OctetAccount<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OctetAccount")
            .field("is_limited", &self.octets_of.is_some())
            .field("granted", &self.granted)
            .field("free", &self.free)
            .finish_non_exhaustive()
    }
}
