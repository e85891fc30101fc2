//! Threads with as little stack as an endsystem has, so that recursion without a bound is found.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::{env, fs, thread};

use chronorb_cdr::{StackLimit, set_stack_limits};
use chronorb_rt::stack_bottom;

/// Runs `work` on a thread of this name with a small stack.
///
/// A stack that overflows ends the process, and libFuzzer does not see it on a thread. So the input
/// is kept before, where `CHRONORB_FUZZ_INPUT` says.
pub(crate) fn run(name: &str, data: &[u8], work: impl FnOnce() + Send) {
    if let Some(path) = INPUT.get_or_init(|| env::var_os("CHRONORB_FUZZ_INPUT").map(PathBuf::from))
    {
        fs::write(path, data).expect("the input can be kept");
    }
    set_stack_limits(|| stack_bottom().map(|lowest| StackLimit::at(lowest.get())));
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.stack_size(STACK).spawn_scoped(scope, work);
        if let Err(panic) = thread.expect("a thread is there").join() {
            resume_unwind(panic);
        }
    });
}

static INPUT: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Octets of the stack. Without optimisation the frames of functions are several times as large.
const STACK: usize = if cfg!(unoptimised) {
    256 << 10
} else {
    64 << 10
};
