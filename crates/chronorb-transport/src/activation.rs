//! Listening sockets that a service manager has opened for this process: socket activation, as
//! sd_listen_fds(3) describes it.

use std::os::fd::OwnedFd;

use rustix::net::{self, SocketAddrAny, SocketType, sockopt};

/// Takes the listening stream socket with this address, if the service manager has passed one and
/// no endpoint has it.
///
/// Sockets at other addresses are left alone. The variables `LISTEN_PID` and `LISTEN_FDS` stay in
/// the environment, which cannot be changed safely beside other threads. Children of this process
/// ignore them, because `LISTEN_PID` is not theirs.
pub(crate) fn passed_listener<A>(address: &A) -> Option<OwnedFd>
where
    A: TryFrom<SocketAddrAny> + PartialEq,
{
    crate::sys::passed::take(|socket| {
        sockopt::socket_type(socket).is_ok_and(|kind| kind == SocketType::STREAM)
            && sockopt::socket_acceptconn(socket).unwrap_or(false)
            && net::getsockname(socket)
                .ok()
                .and_then(|local| A::try_from(local).ok())
                .is_some_and(|local| local == *address)
    })
}
