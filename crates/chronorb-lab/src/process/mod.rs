//! Child processes, and the lines of JSON that they exchange with their parent.
//!
//! An experiment calls this very program again, with the hidden command
//! [`CHILD_COMMAND`](crate::CHILD_COMMAND), the name of a part and its order as JSON. Parent and
//! children then exchange lines over the children's standard input and output. A child ends when
//! its input ends, also because the parent died. The parent always waits with a deadline. When the
//! deadline passes, it kills its children and shows the standard error of the one that failed.
//!
//! Children are reaped here alone, and never at a real-time priority.

mod child;
mod error;
mod parent;

pub(crate) use child::{Child, output};
pub use error::ProcessError;
pub(crate) use parent::{Begin, Parent, Ready, order, tell};
