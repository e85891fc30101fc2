//! The endpoints of a lane: opened once, and published in references.

use std::fmt::Display;
use std::sync::Arc;

use chronorb_giop::{SystemException, SystemExceptionKind, Version};
use chronorb_transport::{Acceptor, Endpoint};

use super::lane::setup::LaneSetup;
use crate::core::Core;
use crate::failure::because;
use crate::incident::{Incident, Incidents};
use crate::lanes::PublishedEndpoint;
use crate::rtcorba::Priority;

/// An endpoint that is open.
pub(super) struct OpenEndpoint {
    pub(super) acceptor: Box<dyn Acceptor>,
    /// The most urgent priority that clients may propagate there.
    pub(super) ceiling: Option<Priority>,
}

/// The endpoints by which the clients of a lane connect.
pub(super) struct Endpoints {
    /// Empty where another lane accepts for this one.
    pub(super) acceptors: Vec<OpenEndpoint>,
    pub(super) published: Arc<[PublishedEndpoint]>,
}

impl Endpoints {
    /// Opens the endpoints; connections wait there until they are accepted.
    pub(super) fn open(
        core: &Core,
        setup: &LaneSetup,
        endpoints: &[Endpoint],
    ) -> Result<Self, SystemException> {
        // Names of endpoints are looked up for a limited time.
        chronorb_transport::look_up_aside();
        let mut acceptors = Vec::new();
        let mut published = Vec::new();
        let refused = |why: &dyn Display| no_resources(&core.incidents, setup, "no endpoint", why);
        for endpoint in endpoints {
            let protocol = core.protocols.find(&endpoint.scheme);
            let protocol = protocol.map_err(|e| refused(&e))?;
            let how = core.server_setup(protocol.tag(), setup.priority, setup.scheduling);
            let opened = protocol.transport().listen(endpoint, how);
            let ceiling = endpoint.priority_ceiling().and_then(Priority::new);
            let opened = opened.map_err(|e| refused(&e))?;
            let first = published.len();
            for acceptor in opened {
                // References to objects do not name groups.
                #[cfg(feature = "miop")]
                if protocol.tag() == chronorb_giop::TAG_UIPMC {
                    acceptors.push(OpenEndpoint { acceptor, ceiling });
                    continue;
                }
                let version = endpoint.version;
                for address in acceptor.published() {
                    let endpoint = PublishedEndpoint {
                        way: core.protocols.way(protocol, address.clone()),
                        endpoint: endpoint.clone(),
                        version: version.map(|(major, minor)| Version::new(major, minor)),
                    };
                    // Those of the addresses of one name publish the name.
                    let mut others = published[first..].iter();
                    if !others.any(|other: &PublishedEndpoint| other.way == endpoint.way) {
                        published.push(endpoint);
                    }
                }
                acceptors.push(OpenEndpoint { acceptor, ceiling });
            }
        }
        Ok(Self {
            acceptors,
            published: published.into(),
        })
    }

    /// Returns the same published endpoints for a lane for which this one accepts.
    pub(super) fn shared(&self) -> Self {
        Self {
            acceptors: Vec::new(),
            published: self.published.clone(),
        }
    }
}

/// Reports the reason why a lane cannot be opened.
pub(super) fn no_resources(
    incidents: &Incidents,
    setup: &LaneSetup,
    what: &str,
    why: &dyn Display,
) -> SystemException {
    let lane = format_args!("lane {}", setup.name);
    let detail = format_args!("{what}: {why}");
    incidents.tell(Incident::FailedLane, &lane, 0, &detail);
    let exception = SystemException::no(SystemExceptionKind::NoResources, 0);
    because(exception, format_args!("{lane}: {detail}"))
}
