//! The address of a Unix-domain socket.

use rustix::net::SocketAddrUnix;

/// A path, or a name of the kernel's that is no file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Name<'t> {
    Path(&'t str),
    Abstract(&'t str),
}

impl<'t> Name<'t> {
    /// The name as people write it.
    pub(super) fn of(text: &'t str) -> Self {
        match text.strip_prefix('@') {
            Some(name) => Self::Abstract(name),
            None => Self::Path(text),
        }
    }

    /// # Errors
    /// The reason why no socket can have the name.
    pub(super) fn socket_address(self) -> Result<SocketAddrUnix, String> {
        let text = match self {
            Self::Path(text) | Self::Abstract(text) => text,
        };
        if text.is_empty() {
            return Err("the name of the socket is empty".to_owned());
        }
        if text.len() > MAX_NAME {
            return Err(format!(
                "the path has {} octets, and that of a socket has at most {MAX_NAME}",
                text.len()
            ));
        }
        let address = match self {
            Self::Path(path) => SocketAddrUnix::new(path),
            Self::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        };
        address.map_err(|_| "no path contains a NUL".to_owned())
    }
}

/// The longest name that fits into `sun_path` with the NUL that many programs need (unix(7)).
const MAX_NAME: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_up_to_the_kernels_limit_are_possible() {
        let longest = "/".repeat(MAX_NAME);
        assert!(Name::of(&longest).socket_address().is_ok());
        assert!(Name::of(&format!("@{longest}")).socket_address().is_ok());
        let error = Name::of(&format!("{longest}/")).socket_address();
        assert!(error.expect_err("too long").contains("108 octets"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "@", "/a\0b"] {
            assert!(Name::of(text).socket_address().is_err(), "{text:?}");
        }
    }
}
