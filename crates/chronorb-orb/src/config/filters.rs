//! The filters of an application, which decide how requests are served.

use std::fmt;
use std::sync::Arc;

use chronorb_giop::SystemException;

use super::{ConfigError, ThreadpoolStrategy};
use crate::rtcorba::Priority;

/// An application's decision about requests before they are served.
///
/// The one thread that reads for a pool calls the filter, at the priority of the most urgent lane,
/// while all other requests wait. It must be fast, and never block. If it panics, the connection of
/// the request ends.
///
/// Functions of a [`FilteredRequest`] are filters.
pub trait RequestFilter: Send + Sync {
    /// Decides about a request.
    fn filter(&self, request: &FilteredRequest<'_>) -> FilterDecision;
}

impl<F> RequestFilter for F
where
    F: Fn(&FilteredRequest<'_>) -> FilterDecision + Send + Sync,
{
    fn filter(&self, request: &FilteredRequest<'_>) -> FilterDecision {
        self(request)
    }
}

/// The decision of a filter about a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FilterDecision {
    /// The next filter decides; after the last one the target's priority counts.
    PassOn,
    /// The request is served at this priority, in the lane of the priority, whatever the model of
    /// its POA. If no lane has the priority, the least urgent lane serves it, at this priority too.
    /// For a POA of the main-thread model the priority of its own model applies.
    ServeAt(Priority),
    /// The request is refused: the client gets this exception, unless it waits for nothing.
    Refuse(SystemException),
}

/// A request as filters see it: the content of its header, without its arguments.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilteredRequest<'r> {
    /// The operation.
    pub operation: &'r [u8],
    /// The object's id in its POA; `None` for a target that this ORB did not name.
    pub object_id: Option<&'r [u8]>,
    /// The priority by the model of the target's POA; `None` if the POA does not exist (yet), or
    /// has no model.
    pub priority: Option<Priority>,
    /// The priority that the client propagated.
    pub propagated: Option<Priority>,
    /// Whether the client waits for an answer.
    pub response_expected: bool,
    /// The length, header included.
    pub octets: usize,
}

/// The filters of an application, in the order in which they are asked.
///
/// ```
/// use chronorb_orb::rtcorba::Priority;
/// use chronorb_orb::{Architecture, FilterDecision, FilteredRequest, OrbConfig};
///
/// let urgent = Priority::new(30_000).expect("not negative");
/// let mut config = OrbConfig::default();
/// config.set_architecture(Architecture::FilterChain);
/// config.request_filters.add(move |request: &FilteredRequest<'_>| match request.operation {
///     b"emergency_stop" => FilterDecision::ServeAt(urgent),
///     _ => FilterDecision::PassOn,
/// });
/// ```
#[derive(Clone, Default)]
pub struct RequestFilters(Vec<Arc<dyn RequestFilter>>);

impl RequestFilters {
    /// Adds one that is asked after those before it.
    pub fn add(&mut self, filter: impl RequestFilter + 'static) {
        self.0.push(Arc::new(filter));
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that requests pass through the filters, if there are any.
    pub(super) fn check(&self, strategy: ThreadpoolStrategy) -> Result<(), ConfigError> {
        if self.is_empty() || strategy == ThreadpoolStrategy::FilterChain {
            return Ok(());
        }
        let problem = "they would never be called: they need -ORBThreadpoolStrategy filter-chain";
        let name = "request_filters";
        Err(ConfigError::bad_value("program", name, problem.to_owned()))
    }

    /// Returns the decision of the first filter that does not pass the request on.
    pub(crate) fn filter(&self, request: &FilteredRequest<'_>) -> FilterDecision {
        let said = self.0.iter().map(|filter| filter.filter(request));
        let mut decided = said.filter(|said| *said != FilterDecision::PassOn);
        decided.next().unwrap_or(FilterDecision::PassOn)
    }
}

impl fmt::Debug for RequestFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestFilters({})", self.0.len())
    }
}
