//! The strategies of client connections in this build.

use chronorb_orb::ConnectionStrategy::{self, *};

const COUNT: usize = if cfg!(feature = "baselines") { 4 } else { 3 };

/// All strategies.
pub(crate) const STRATEGIES: [ConnectionStrategy; COUNT] = [
    Exclusive,
    Leader,
    Thread,
    #[cfg(feature = "baselines")]
    Active,
];

/// Those whose connections are shared.
pub(crate) const SHARED: [ConnectionStrategy; COUNT - 1] = [
    Leader,
    Thread,
    #[cfg(feature = "baselines")]
    Active,
];

/// Those whose connections have a thread of their own.
pub(crate) const WITH_THREAD: [ConnectionStrategy; COUNT - 2] = [
    Thread,
    #[cfg(feature = "baselines")]
    Active,
];
