//! The real-time part of an ORB.

use std::sync::Arc;

use super::mutex::NamedMutexes;
use super::policies::OrbPolicies;
use super::real_time::RealTime;
use super::transform::Transform;
use crate::config::OrbConfig;
use crate::incident::Incidents;

/// The priorities, named mutexes and policies of an ORB.
pub(crate) struct RtState {
    pub(crate) real_time: RealTime,
    pub(crate) transform: Transform,
    pub(super) mutexes: NamedMutexes,
    pub(crate) policies: OrbPolicies,
}

impl RtState {
    pub(crate) fn new(config: &OrbConfig, incidents: Arc<Incidents>) -> Self {
        Self {
            real_time: RealTime::new(config, incidents),
            transform: Transform::default(),
            mutexes: NamedMutexes::default(),
            policies: OrbPolicies::default(),
        }
    }
}
