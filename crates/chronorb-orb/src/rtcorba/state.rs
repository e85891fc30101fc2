//! The real-time part of an ORB.

use std::sync::Arc;

use super::mutex::NamedMutexes;
use super::policies::OrbPolicies;
use super::real_time::RealTime;
use super::transform::Transform;

/// The priorities, named mutexes and policies of an ORB.
pub(crate) struct RtState {
    pub(crate) real_time: RealTime,
    pub(crate) transform: Transform,
    pub(crate) mutexes: NamedMutexes,
    pub(crate) policies: Arc<OrbPolicies>,
}
