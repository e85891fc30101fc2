//! The name server from its clients' point of view, over connections; its store and its texts.

mod store;
mod text;
