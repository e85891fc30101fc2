//! The conditions for GIOPlite, for both ends of a connection.

#[cfg(feature = "gioplite")]
use chronorb_giop::GiopLite;
#[cfg(feature = "gioplite")]
use chronorb_transport::Carriage;
use chronorb_transport::Connection;

use crate::config::OrbConfig;

impl OrbConfig {
    /// Whether this end may use GIOPlite on a connection: its messages are short enough, and the
    /// transport keeps their order.
    #[cfg(feature = "gioplite")]
    pub(crate) fn speaks_lite_on(&self, transport: &dyn Connection) -> bool {
        self.giop_lite
            && self.max_message_size <= GiopLite::MAX_MESSAGE
            && matches!(transport.carriage(), Carriage::Stream)
    }

    /// Always false without the feature.
    #[cfg(not(feature = "gioplite"))]
    pub(crate) fn speaks_lite_on(&self, _: &dyn Connection) -> bool {
        false
    }
}
