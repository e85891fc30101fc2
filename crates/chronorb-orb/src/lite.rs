//! Where GIOPlite may be spoken, by either end.

#[cfg(feature = "gioplite")]
use chronorb_giop::GiopLite;
#[cfg(feature = "gioplite")]
use chronorb_transport::Carriage;
use chronorb_transport::Connection;

use crate::config::OrbConfig;

impl OrbConfig {
    /// Whether this end is for GIOPlite on a connection: its messages are not too great for that, and
    /// come in the order in which they went.
    #[cfg(feature = "gioplite")]
    pub(crate) fn speaks_lite_on(&self, transport: &dyn Connection) -> bool {
        self.giop_lite
            && self.max_message_size <= GiopLite::MAX_MESSAGE
            && matches!(transport.carriage(), Carriage::Stream)
    }

    /// Without the feature, no connection has GIOPlite.
    #[cfg(not(feature = "gioplite"))]
    pub(crate) fn speaks_lite_on(&self, _: &dyn Connection) -> bool {
        false
    }
}
