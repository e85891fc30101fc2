//! This ORB's own protocols.

use std::sync::Arc;

use chronorb_giop::TAG_INTERNET_IOP;
use chronorb_transport::tcp::Tcp;

use super::{AddressForm, PluggableProtocol, ProtocolProblem};
use crate::config::OrbConfig;

/// Returns all of them, in the clients' default order of preference.
#[cfg_attr(
    not(any(feature = "ssliop", feature = "miop", feature = "riop")),
    expect(unused_variables, reason = "others need nothing")
)]
pub(super) fn protocols(config: &OrbConfig) -> Result<Vec<PluggableProtocol>, ProtocolProblem> {
    let all = vec![
        // A reference with a group profile is one to a group, whatever its other profiles.
        #[cfg(feature = "miop")]
        super::group::protocol(config),
        #[cfg(feature = "shmiop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::shm::SharedMemory),
            chronorb_giop::TAG_SHMIOP,
            AddressForm::PATH,
        )
        .by_files(),
        #[cfg(feature = "uiop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::uds::Unix),
            chronorb_giop::TAG_UIOP,
            AddressForm::PATH,
        )
        .by_files()
        .with_omniorb(),
        #[cfg(feature = "riop")]
        super::riop::protocol(config)?,
        PluggableProtocol::new(Arc::new(Tcp), TAG_INTERNET_IOP, AddressForm::HOST_AND_PORT),
        #[cfg(feature = "diop")]
        PluggableProtocol::new(
            Arc::new(chronorb_transport::udp::Udp),
            chronorb_giop::TAG_DIOP,
            AddressForm::HOST_AND_PORT,
        ),
    ];
    #[cfg(feature = "ssliop")]
    let all = {
        let mut all = all;
        let plain = all.iter().position(|p| p.tag() == TAG_INTERNET_IOP);
        let protected = super::ssliop::protocol(config)?;
        if let (Some(plain), Some(protected)) = (plain, protected) {
            all.insert(plain, protected);
        }
        all
    };
    Ok(all)
}
