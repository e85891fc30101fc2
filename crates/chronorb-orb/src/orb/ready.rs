//! Readiness, as service managers such as systemd ask for it: sd_notify(3).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use thiserror::Error;

/// The error of a notification to systemd that the program is ready.
#[derive(Debug, Error)]
#[error("the service manager cannot be told at {socket}: {source}")]
pub struct NotifyError {
    /// The socket that `NOTIFY_SOCKET` names.
    socket: String,
    source: io::Error,
}

/// Sends `READY=1` to the socket that the environment names; `false` where it names none.
pub(super) fn notify() -> Result<bool, NotifyError> {
    let Some(socket) = std::env::var_os(NOTIFY_SOCKET).filter(|socket| !socket.is_empty()) else {
        return Ok(false);
    };
    send(&socket, READY).map_err(|source| NotifyError {
        socket: socket.to_string_lossy().into_owned(),
        source,
    })?;
    Ok(true)
}

/// Sends a message to a socket: a path, or `@` and the name of an abstract one.
fn send(socket: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(socket)?,
        _ => {
            let problem = format!("{NOTIFY_SOCKET} is no absolute path, and does not begin with @");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
    };
    let sender = UnixDatagram::unbound()?;
    // A manager that does not receive does not stop the program.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(message, &address)?;
    Ok(())
}

const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
const READY: &[u8] = b"READY=1\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn received(receiver: &UnixDatagram) -> Vec<u8> {
        let mut message = [0; 64];
        let n = receiver.recv(&mut message).expect("a message");
        message[..n].to_vec()
    }

    #[test]
    fn both_kinds_of_sockets_get_the_message() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("notify");
        let receiver = UnixDatagram::bind(&path).expect("a socket");
        send(path.as_os_str(), READY).expect("it is sent");
        assert_eq!(received(&receiver), READY);

        let name = format!("chronorb-ready-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let receiver = UnixDatagram::bind_addr(&address).expect("a socket");
        send(OsStr::new(&format!("@{name}")), READY).expect("it is sent");
        assert_eq!(received(&receiver), READY);
    }

    #[test]
    fn other_sockets_are_errors() {
        let folder = tempfile::tempdir().expect("a directory");
        let missing = folder.path().join("missing");
        let kind = |socket: &OsStr| send(socket, READY).map_err(|error| error.kind());
        assert_eq!(kind(missing.as_os_str()), Err(io::ErrorKind::NotFound));
        assert_eq!(kind(OsStr::new("x")), Err(io::ErrorKind::InvalidInput));
    }
}
