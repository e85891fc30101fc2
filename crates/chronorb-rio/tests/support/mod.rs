//! What tests of networks share.

use chronorb_rio::network::{Layout, Network, NetworkError};

/// A test network; `None`, with a word about it, where this process may not build one.
pub(crate) fn network(layout: &Layout) -> Option<Network> {
    match Network::build(layout) {
        Ok(network) => Some(network),
        Err(error @ NetworkError::Denied { .. }) => {
            println!("NOT RUN: {error}");
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {error}");
            None
        }
        Err(error) => panic!("the network is not built: {error}"),
    }
}
