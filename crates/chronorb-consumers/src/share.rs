//! The octets of events that a consumer makes the service keep.

use chronorb::quota::{Charge, Origin};
use chronorb_channel::Allowance;
use chronorb_rt::PiMutex;

/// The octets that wait for one consumer. They count for the consumer, for its origin, and for all
/// consumers of the service.
#[derive(Debug)]
pub struct OctetShare {
    charge: PiMutex<Charge>,
    /// The most of the consumer.
    most: u64,
}

impl OctetShare {
    /// The octets of a consumer, none of which are used.
    pub(crate) fn new(charge: Charge, most: u64) -> Self {
        Self {
            charge: PiMutex::new(charge),
            most,
        }
    }

    /// The origin of the consumer.
    pub fn origin(&self) -> Origin {
        self.charge.lock().origin()
    }
}

impl Allowance for OctetShare {
    fn take(&self, octets: usize) -> bool {
        let octets = octets as u64;
        let mut charge = self.charge.lock();
        let fits = octets <= self.most.saturating_sub(charge.amount());
        fits && charge.add(octets).is_ok()
    }

    fn give_back(&self, octets: usize) {
        self.charge.lock().give_back(octets as u64);
    }
}
