//! This ORB's own protocols.

use std::sync::Arc;

use chronorb_giop::TAG_INTERNET_IOP;
use chronorb_transport::tcp::Tcp;

use super::{AddressForm, PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;

/// All of them, the one first that clients prefer where nothing else is said.
pub(super) fn protocols(_config: &OrbConfig) -> Result<Vec<PluggableProtocol>, ProtocolProblem> {
    Ok(vec![PluggableProtocol::new(
        Arc::new(Tcp),
        TAG_INTERNET_IOP,
        AddressForm::HOST_AND_PORT,
    )])
}
