//! What the tests of drivers share.
#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod frames;
