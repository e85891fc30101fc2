//! This ORB's own protocols.

use std::sync::Arc;

use chronorb_giop::TAG_INTERNET_IOP;
use chronorb_transport::tcp::Tcp;

use super::{AddressForm, PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;

/// All of them, the one first that clients prefer where nothing else is said.
pub(super) fn protocols(_config: &OrbConfig) -> Result<Vec<PluggableProtocol>, ProtocolProblem> {
    Ok(vec![
        #[cfg(feature = "shmiop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::shm::SharedMemory),
            chronorb_giop::TAG_SHMIOP,
            AddressForm::PATH,
        )
        .by_files(),
        // A reference to a group is one, whatever else it says.
        #[cfg(feature = "miop")]
        crate::groups::protocol(_config),
        #[cfg(feature = "uiop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::uds::Unix),
            chronorb_giop::TAG_UIOP,
            AddressForm::PATH,
        )
        .by_files()
        .with_omniorb(),
        PluggableProtocol::new(Arc::new(Tcp), TAG_INTERNET_IOP, AddressForm::HOST_AND_PORT),
        #[cfg(feature = "diop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::udp::Udp),
            chronorb_giop::TAG_DIOP,
            AddressForm::HOST_AND_PORT,
        ),
    ])
}
