//! Values by which an ORB is observed, and the stages of a request for measurements.

mod snapshot;
mod stage;
pub mod stages;

pub use snapshot::{Activity, LaneSnapshot, PoolSnapshot, Snapshot, ThreadSnapshot};
pub use stage::{Stage, StageProbe};
