//! Bounds of the memory and work that clients can cause.

use std::time::Duration;

use chronorb::quota::QuotaLimits;

/// The bounds of a name server.
///
/// Some are shared between clients: one [origin](chronorb::quota::Origin) has at most its share of
/// the total. A share is a part of the total, unless it is given.
///
/// ```
/// use chronorb_naming::Limits;
///
/// let limits = Limits {
///     bindings: 1_000,
///     ..Limits::default()
/// };
/// assert_eq!(limits.contexts, 1_000_000);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Contexts, with the root. Default 1,000,000. More are refused with `NO_RESOURCES`.
    pub contexts: usize,
    /// The contexts that one origin has made since the server was started, bound or not, until they
    /// are destroyed. Default half of [`contexts`](Self::contexts). More are refused with
    /// `NO_RESOURCES`.
    pub contexts_per_origin: Option<usize>,
    /// Bindings of one context. Default 1,000,000. More are refused with `NO_RESOURCES`.
    pub bindings: usize,
    /// The octets of all bindings: those of component and reference, and 256 for each binding.
    /// Default 1 GiB. More are refused with `NO_RESOURCES`.
    pub octets: u64,
    /// The octets of the bindings that one origin has made since the server was started, until they
    /// are removed or replaced by another origin. Default half of [`octets`](Self::octets). More
    /// are refused with `NO_RESOURCES`.
    pub octets_per_origin: Option<u64>,
    /// Components of a name. Default 64. Longer names, and texts that are longer than any name
    /// within the limits, are refused with `IMP_LIMIT`.
    pub components: usize,
    /// Octets of a component: identifier and kind. Default 1,024. Longer ones are refused with
    /// `IMP_LIMIT`.
    pub component_octets: usize,
    /// Octets of a reference as an encapsulation. Default 16,384. Longer ones are refused with
    /// `IMP_LIMIT`.
    pub reference_octets: usize,
    /// Bindings in one reply of `list` or `next_n`. Default 1,000. The client gets no more, even if
    /// it asks for more; an iterator has the others.
    pub listed: u32,
    /// Iterators that exist at the same time. Default 1,000. Another one ends the iterator that was
    /// not used for the longest time, of those of the origin with the most iterators.
    pub iterators: usize,
    /// Iterators of one origin. Default a quarter of [`iterators`](Self::iterators). Another one
    /// ends that iterator of the origin that was not used for the longest time.
    pub iterators_per_origin: Option<usize>,
    /// The time after which an unused iterator ends. Default 10 minutes.
    pub iterator_age: Duration,
    /// The time limit of a call to a context of another server. Default 2 seconds.
    pub federation_timeout: Duration,
    /// Calls to contexts of other servers at the same time. Default 8. Further requests are
    /// answered with `CannotProceed`, so a circle of servers ends.
    pub federated_calls: usize,
    /// Calls to contexts of other servers at the same time that one origin causes. Default a
    /// quarter of [`federated_calls`](Self::federated_calls). Further requests are answered with
    /// `CannotProceed`.
    pub federated_calls_per_origin: Option<usize>,
    /// The shortest and the longest time to live of a lease, in seconds. Default 1 to 86,400.
    pub time_to_live: (u32, u32),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            contexts: 1_000_000,
            contexts_per_origin: None,
            bindings: 1_000_000,
            octets: 1 << 30,
            octets_per_origin: None,
            components: 64,
            component_octets: 1_024,
            reference_octets: 16_384,
            listed: 1_000,
            iterators: 1_000,
            iterators_per_origin: None,
            iterator_age: Duration::from_secs(600),
            federation_timeout: Duration::from_secs(2),
            federated_calls: 8,
            federated_calls_per_origin: None,
            time_to_live: (1, 86_400),
        }
    }
}

impl Limits {
    /// The octets of the longest text of a name within the limits: each octet is escaped, and a dot
    /// and a slash follow.
    pub(crate) fn longest_text(&self) -> usize {
        let component = self.component_octets.saturating_mul(2).saturating_add(2);
        component.saturating_mul(self.components)
    }

    pub(crate) fn shared_contexts(&self) -> QuotaLimits {
        let share = self.contexts_per_origin.map(|share| share as u64);
        quota(self.contexts as u64, share, 2)
    }

    pub(crate) fn shared_octets(&self) -> QuotaLimits {
        quota(self.octets, self.octets_per_origin, 2)
    }

    pub(crate) fn shared_iterators(&self) -> QuotaLimits {
        let share = self.iterators_per_origin.map(|share| share as u64);
        quota(self.iterators.max(1) as u64, share, 4)
    }

    pub(crate) fn shared_federated_calls(&self) -> QuotaLimits {
        let share = self.federated_calls_per_origin.map(|share| share as u64);
        quota(self.federated_calls as u64, share, 4)
    }
}

/// The limits of a quota whose share is at least 1, and by default a part of the total.
fn quota(total: u64, share: Option<u64>, parts: u64) -> QuotaLimits {
    let per_origin = share.unwrap_or(total / parts).max(1);
    QuotaLimits { total, per_origin }
}
