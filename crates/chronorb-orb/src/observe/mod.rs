//! Values by which an ORB is observed.

mod operation;
mod snapshot;
mod times;

pub use crate::stage::{Stage, StageProbe};
pub use operation::OperationSnapshot;
pub use snapshot::{Activity, LaneSnapshot, PoolSnapshot, Snapshot, ThreadSnapshot};
pub(crate) use times::TimeHistogram;
