//! Suppliers: their records, and their publications.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronorb::quota::Charge;
use chronorb_events::{Filter, Header};
use chronorb_rt::PiMutex;

use crate::admission::AdmissionPlace;
use crate::idl::rtec_event_comm::PushSupplier;

/// A supplier's proxy, connected or not.
pub(crate) struct SupplierRecord {
    /// The place among the suppliers, charged to the client that obtained it.
    pub(crate) place: Charge,
    /// The time at which it was made, in nanoseconds of the channel's clock.
    pub(crate) made: u64,
    pub(crate) supplier: Arc<Supplier>,
    pub(crate) connection: Option<SupplierConnection>,
    /// The checks in a row that failed.
    pub(crate) failures: u32,
    /// Whether a thread has, or is to get, the task of asking it.
    pub(crate) is_being_asked: bool,
}

/// A connected supplier.
pub(crate) struct SupplierConnection {
    /// The reference with the time limit of checks and callbacks. A supplier may have none.
    pub(crate) reference: Option<PushSupplier>,
    pub(crate) is_gateway: bool,
    /// The place of its publications with periods in the analysis.
    pub(crate) admitted: Option<AdmissionPlace>,
    /// The charge for its publications.
    pub(crate) _uses: Charge,
}

/// Sources and types, where zero is any.
pub(crate) type Leaves = Arc<[(i32, i32)]>;

/// The part of a supplier's proxy that its pushes use.
#[derive(Default)]
pub(crate) struct Supplier {
    /// The sources and types that it published. `None` before it connects.
    publications: PiMutex<Option<Leaves>>,
    pub(crate) events: AtomicU64,
    pub(crate) unpublished: AtomicU64,
}

impl Supplier {
    /// Returns the sources and types that the supplier published. `None` before it connects.
    pub(crate) fn publications(&self) -> Option<Leaves> {
        self.publications.lock().clone()
    }

    /// Replaces the publications.
    pub(crate) fn publish(&self, publications: Vec<(i32, i32)>) {
        *self.publications.lock() = Some(publications.into());
    }

    pub(crate) fn count(&self, events: usize, unpublished: usize) {
        self.events.fetch_add(events as u64, Ordering::Relaxed);
        if unpublished > 0 {
            self.unpublished
                .fetch_add(unpublished as u64, Ordering::Relaxed);
        }
    }
}

/// Returns whether an event is one of these publications. Zero is any source or type, on either
/// side.
pub(crate) fn is_published(publications: &[(i32, i32)], header: &Header) -> bool {
    let mut each = publications.iter();
    each.any(|&(source, event_type)| Filter::event(source, event_type).passes(header))
}
