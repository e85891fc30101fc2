//! Values by which an ORB is observed, and the stages of a request for measurements.

mod operation;
mod snapshot;
mod stage;
pub mod stages;
mod times;

pub use operation::OperationSnapshot;
pub use snapshot::{Activity, LaneSnapshot, PoolSnapshot, Snapshot, ThreadSnapshot};
pub use stage::{Stage, StageProbe};
pub(crate) use times::TimeHistogram;
