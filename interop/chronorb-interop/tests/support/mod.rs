//! Programs of both ORBs, and what they need.

pub(crate) mod peers;
mod process;
pub(crate) mod programs;

pub(crate) use process::Process;
