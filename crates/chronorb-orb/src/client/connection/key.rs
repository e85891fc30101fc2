//! The key of a connection.

use chronorb_transport::SocketOptions;

use crate::client::route::Carries;
use crate::protocol::Way;

/// The key of a connection: requests that differ in any part of it do not share one.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::client) struct ConnectionKey {
    /// The ORB's number.
    pub(in crate::client) orb: u64,
    pub(in crate::client) way: Way,
    pub(in crate::client) carries: Carries,
    /// The reference that it belongs to alone.
    pub(in crate::client) owner: Option<u64>,
    pub(in crate::client) options: SocketOptions,
    /// Whether threads share it although they share no others.
    pub(in crate::client) shares: bool,
}
