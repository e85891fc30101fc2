//! The properties of a TCP socket, set and read back.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt;

use crate::SocketOptions;
use crate::ip_options::{self, refused};

/// Sets the options before connecting or listening, so that the window is scaled to the buffers and
/// the first packet has its code point.
///
/// # Errors
/// Names the first option that the kernel refuses.
pub(super) fn set(socket: &OwnedFd, options: SocketOptions) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, options.no_delay).or_else(refused("TCP_NODELAY"))?;
    sockopt::set_socket_keepalive(socket, options.keep_alive).or_else(refused("SO_KEEPALIVE"))?;
    if let Some(time) = options.peer_timeout {
        set_peer_timeout(socket, time, options.keep_alive)?;
    }
    ip_options::set(socket, options)
}

/// Sets the time without a sign of life of the peer after which the connection ends. Probes begin
/// after half of it, so that some may be lost.
#[cold]
fn set_peer_timeout(socket: &OwnedFd, time: Duration, probes: bool) -> io::Result<()> {
    // The kernel takes an `int`.
    let millis = time.as_millis().clamp(1, LONGEST_MILLIS) as u32;
    sockopt::set_tcp_user_timeout(socket, millis).or_else(refused("TCP_USER_TIMEOUT"))?;
    if probes {
        let seconds = |part: u32| {
            let seconds = (millis / 1000 / part).clamp(1, 32_767);
            Duration::from_secs(seconds.into())
        };
        sockopt::set_tcp_keepidle(socket, seconds(2)).or_else(refused("TCP_KEEPIDLE"))?;
        sockopt::set_tcp_keepintvl(socket, seconds(8)).or_else(refused("TCP_KEEPINTVL"))?;
    }
    Ok(())
}

/// Returns the present values.
pub(super) fn get(socket: &OwnedFd) -> io::Result<SocketOptions> {
    Ok(SocketOptions {
        no_delay: sockopt::tcp_nodelay(socket)?,
        keep_alive: sockopt::socket_keepalive(socket)?,
        peer_timeout: match sockopt::tcp_user_timeout(socket)? {
            0 => None,
            millis => Some(Duration::from_millis(millis.into())),
        },
        ..ip_options::get(socket)?
    })
}

/// The longest time of `TCP_USER_TIMEOUT`, in milliseconds: 24 days.
const LONGEST_MILLIS: u128 = i32::MAX as u128;
