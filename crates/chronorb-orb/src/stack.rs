//! The stack limits of threads, for decoders and encoders.

use chronorb_cdr::{StackLimit, set_stack_limits};
use chronorb_rt::stack_bottom;

/// Makes the stack limits of the calling thread known to all decoders and encoders of the process.
pub(crate) fn announce() {
    set_stack_limits(|| stack_bottom().map(|lowest| StackLimit::at(lowest.get())));
}
