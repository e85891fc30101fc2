//! The name server from its clients' point of view, over connections.

mod bounds;
mod conformance;
mod federation;
mod support;
