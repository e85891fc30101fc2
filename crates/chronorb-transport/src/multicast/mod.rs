//! IP multicast.
mod collections;
mod counts;
mod packet;
pub use counts::Counts;
