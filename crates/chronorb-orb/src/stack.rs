//! The stack limits of threads, for decoders and encoders.

use chronorb_cdr::{StackLimit, set_stack_limits};
use chronorb_rt::stack_bottom;

/// Lets decoders and encoders of the process know the stack of the thread that they run on.
pub(crate) fn announce() {
    set_stack_limits(|| stack_bottom().map(|lowest| StackLimit::at(lowest.get())));
}
