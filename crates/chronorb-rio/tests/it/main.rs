//! The transport on test networks, where the process may build some.

mod kernel;
mod kernel_sockets;
mod link_local;
