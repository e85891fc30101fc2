//! Bounds of the memory and work that clients can cause.

use std::time::Duration;

/// The bounds of a name server.
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
    /// Bindings of one context. Default 1,000,000. More are refused with `NO_RESOURCES`.
    pub bindings: usize,
    /// Components of a name. Default 64. Longer names are refused with `IMP_LIMIT`.
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
    /// not used for the longest time.
    pub iterators: usize,
    /// The time after which an unused iterator ends. Default 10 minutes.
    pub iterator_age: Duration,
    /// The time limit of a call to a context of another server. Default 2 seconds.
    pub federation_timeout: Duration,
    /// Calls to contexts of other servers at the same time. Default 2. Further requests are
    /// answered with `CannotProceed`, so a circle of servers ends.
    pub federated_calls: usize,
    /// The shortest and the longest time to live of a lease, in seconds. Default 1 to 86,400.
    pub time_to_live: (u32, u32),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            contexts: 1_000_000,
            bindings: 1_000_000,
            components: 64,
            component_octets: 1_024,
            reference_octets: 16_384,
            listed: 1_000,
            iterators: 1_000,
            iterator_age: Duration::from_secs(600),
            federation_timeout: Duration::from_secs(2),
            federated_calls: 2,
            time_to_live: (1, 86_400),
        }
    }
}
