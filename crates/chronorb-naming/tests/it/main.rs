//! The name server from its clients' point of view, over connections; its store and its texts.

mod bounds;
mod conformance;
mod federation;
mod store;
mod strangers;
mod support;
mod text;
