//! The transport on test networks, if the process may create them.

mod kernel;
mod kernel_sockets;
mod link_local;
