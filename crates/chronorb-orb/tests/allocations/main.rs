//! Allocations, lock operations and page faults of calls, counted for the whole process: one test
//! at a time, with a counting allocator.

#[allow(
    dead_code,
    unused_imports,
    reason = "what it has is for the other program as well"
)]
#[path = "../it/support/mod.rs"]
mod support;

mod asynchronous;
mod gioplite;
#[cfg(feature = "miop")]
mod groups;
mod large;
mod policies;
mod refused;
mod scale;
mod scopes;
mod shared;
mod steady_state;
mod within;

use chronorb_rt::{CountingAllocator, PiMutex, PiMutexGuard};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Waits until no other test of this program runs. Each test holds the guard as long as its ORBs
/// live.
fn alone() -> PiMutexGuard<'static, ()> {
    static TURN: PiMutex<()> = PiMutex::new(());
    TURN.lock()
}
