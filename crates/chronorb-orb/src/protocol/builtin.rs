//! This ORB's own protocols.

use std::sync::Arc;

use chronorb_giop::TAG_INTERNET_IOP;
use chronorb_transport::tcp::Tcp;

use super::{AddressForm, PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;

/// All of them, the one first that clients prefer where nothing else is said.
#[cfg_attr(
    not(feature = "ssliop"),
    expect(unused_mut, unused_variables, reason = "others need nothing")
)]
pub(super) fn protocols(config: &OrbConfig) -> Result<Vec<PluggableProtocol>, ProtocolProblem> {
    let mut all = vec![PluggableProtocol::new(
        Arc::new(Tcp),
        TAG_INTERNET_IOP,
        AddressForm::HOST_AND_PORT,
    )];
    #[cfg(feature = "ssliop")]
    if let Some(protected) = super::ssliop::protocol(config)? {
        all.insert(0, protected);
    }
    Ok(all)
}
