//! The works of jobs.

/// A work of a job.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Work {
    /// The execution of an operation.
    Execution {
        /// The index of the operation.
        operation: usize,
    },
    /// The message of a request to an operation.
    Request {
        /// The index of the operation.
        operation: usize,
    },
    /// The message of a reply of an operation.
    Reply {
        /// The index of the operation.
        operation: usize,
    },
    /// A message that a transaction declares.
    Message {
        /// The index of its step.
        step: usize,
    },
}
