//! This ORB's own protocols.

use std::sync::Arc;

use chronorb_giop::TAG_INTERNET_IOP;
#[cfg(feature = "shmiop")]
use chronorb_giop::TAG_SHMIOP;
#[cfg(feature = "shmiop")]
use chronorb_transport::shm::SharedMemory;
use chronorb_transport::tcp::Tcp;

use super::{AddressForm, PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;

/// All of them, the one first that clients prefer where nothing else is said.
pub(super) fn protocols(_config: &OrbConfig) -> Result<Vec<PluggableProtocol>, ProtocolProblem> {
    Ok(vec![
        #[cfg(feature = "shmiop")]
        PluggableProtocol::new(Arc::new(SharedMemory), TAG_SHMIOP, AddressForm::PATH),
        PluggableProtocol::new(Arc::new(Tcp), TAG_INTERNET_IOP, AddressForm::HOST_AND_PORT),
    ])
}
