//! What tests of networks share.

pub(crate) mod frames;
pub(crate) mod rig;

use chronorb_testnet::{Layout, Network, NetworkError};

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

/// The name of a test, by which this program runs it alone (`--exact`) when it starts itself.
pub(crate) fn name_of<T>(_test: T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").expect("it is in a module").1
}
