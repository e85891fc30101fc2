//! Child processes, and the lines of JSON by which they and their parent talk.
//!
//! An experiment calls this very program again, with the hidden command [`CHILD_COMMAND`](crate::CHILD_COMMAND), the name
//! of a part and its order as JSON. Parent and children then exchange lines over the children's standard input
//! and output. A child whose input ends, because the parent died, ends too. The parent waits for
//! nothing without a deadline; when it gives up, it kills its children and shows what the failing
//! one wrote to standard error.

mod child;
mod error;
mod parent;

pub(crate) use child::Child;
pub use error::ProcessError;
pub(crate) use parent::{Begin, Parent, Ready, order, tell};
