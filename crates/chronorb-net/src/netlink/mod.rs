//! The kernel's network of a namespace, asked and changed by rtnetlink(7).
//!
//! [`Netlink`] is a socket to it. It stays in the network namespace of the thread that opened it,
//! wherever that thread goes. Interfaces are known by their number, `index`.

mod address;
mod filter;
mod link;
mod message;
mod neighbour;
mod qdisc;
mod route;
mod socket;
#[cfg(test)]
mod tests;
mod watch;

pub use link::{LinkInfo, VethEnd};
pub use neighbour::{Neighbour, ResolveError, resolve};
pub use qdisc::{AROUND_FRAME, Discipline, Handle, QueueInfo, Rates, Share, TrafficCounts};
pub use route::Route;
pub use socket::{Netlink, NetlinkError};
pub use watch::Watch;
