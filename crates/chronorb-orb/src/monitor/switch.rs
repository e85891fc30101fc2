//! The signal that ends the monitor.

use chronorb_rt::{Gate, Wake};

/// A signal to the thread to end, and from it that it has ended.
pub(super) struct Switch {
    /// [`RUNNING`], [`STOPPING`] or [`ENDED`].
    pub(super) state: Gate,
    pub(super) wake: Wake,
}

pub(super) const RUNNING: u32 = 0;
pub(super) const STOPPING: u32 = 1;
pub(super) const ENDED: u32 = 2;
