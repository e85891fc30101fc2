//! Suppliers in the process of their channel.

use std::fmt;
use std::sync::Arc;

use chronorb::SystemException;
use chronorb::quota::Origin;
use chronorb_consumers::{EndCause, Trail};

use crate::connect::ConnectFailure;
use crate::failure::BAD_PARAM;
use crate::idl::rtec_event_channel_admin::SupplierQOS;
use crate::idl::rtec_event_comm::EventSet;
use crate::state::Channel;
use crate::supplier::Supplier;

/// A supplier in the process of its channel. A push is a call on the calling thread, without a
/// message. Dropping it disconnects the supplier.
///
/// # Example
/// ```
/// use chronorb::prelude::*;
/// use chronorb_rtec::EventServer;
/// use chronorb_rtec::idl::rtec_event_channel_admin::SupplierQOS;
/// use chronorb_rtec::idl::rtec_event_comm::Event;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut args = vec!["p".into(), "-ORBListenEndpoints".into(), "iiop://127.0.0.1:0".into()];
/// let orb = Orb::init(&mut args)?;
/// let service = EventServer::new().serve_in(&orb.root_poa()?)?;
/// let supplier = service.supplier(&SupplierQOS::default())?;
/// let mut event = Event::default();
/// (event.header.source, event.header.r#type) = (1, 20);
/// supplier.push(&[event]);
/// assert_eq!(service.statistics().received, 1);
/// # drop(supplier);
/// # orb.shutdown(true)?;
/// # Ok(())
/// # }
/// ```
pub struct LocalSupplier {
    channel: Arc<Channel>,
    supplier: Arc<Supplier>,
    number: u64,
}

impl LocalSupplier {
    /// Connects a supplier.
    pub(crate) fn connect(
        channel: &Arc<Channel>,
        qos: &SupplierQOS<'_>,
    ) -> Result<Self, SystemException> {
        let added =
            channel.add_supplier(Origin::Process, |number, supplier| Ok((number, supplier)));
        let (number, supplier) = added?;
        // If it is refused, dropping it removes it.
        let this = Self {
            channel: channel.clone(),
            supplier,
            number,
        };
        match channel.connect_supplier(number, None, qos) {
            Ok(()) => Ok(this),
            Err(ConnectFailure::System(exception)) => Err(exception),
            // It was not connected before.
            Err(ConnectFailure::AlreadyConnected) => Err(BAD_PARAM),
        }
    }

    /// Pushes events. When it returns they are pushed to the consumers without a lane, and are in
    /// the queues of the others.
    pub fn push(&self, events: EventSet<'_>) {
        self.channel.push(&self.supplier, events, &Trail::new());
    }
}

impl Drop for LocalSupplier {
    fn drop(&mut self) {
        // The channel may be destroyed.
        let _ = self.channel.end_supplier(self.number, EndCause::Request);
    }
}

impl fmt::Debug for LocalSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSupplier")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
