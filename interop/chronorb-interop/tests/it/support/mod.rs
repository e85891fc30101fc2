//! Programs of both ORBs, and what they need.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod jacorb;
pub(crate) mod peers;
mod process;
pub(crate) mod programs;

pub(crate) use process::Process;
