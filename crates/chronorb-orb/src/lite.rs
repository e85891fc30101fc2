//! Where GIOPlite may be spoken, by either end.

use chronorb_giop::GiopLite;
use chronorb_transport::{Carriage, Connection};

use crate::config::OrbConfig;

impl OrbConfig {
    /// Whether this end is for GIOPlite on a connection: its messages are not too great for that, and
    /// come in the order in which they went.
    pub(crate) fn speaks_lite_on(&self, transport: &dyn Connection) -> bool {
        self.giop_lite
            && self.max_message_size <= GiopLite::MAX_MESSAGE
            && matches!(transport.carriage(), Carriage::Stream)
    }
}
