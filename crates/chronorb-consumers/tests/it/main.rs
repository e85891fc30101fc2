//! Tests of remote consumers, with an interface of a single operation.

mod liveness;
mod raw;
mod support;
