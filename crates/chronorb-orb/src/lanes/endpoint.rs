//! Published endpoints.

use chronorb_giop::Version;
use chronorb_transport::Endpoint;

use crate::protocol::Way;

/// An endpoint as references name it.
pub(crate) struct PublishedEndpoint {
    pub(crate) way: Way,
    /// The endpoint that the configuration asked for.
    pub(crate) endpoint: Endpoint,
    /// The greatest GIOP version of the endpoint, where it is less than the ORB's.
    pub(crate) version: Option<Version>,
}
