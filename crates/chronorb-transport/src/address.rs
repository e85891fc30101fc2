//! Addresses of peers.

use std::fmt;

/// The address of a peer, in the form that its transport writes.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Address {
    /// A host and a port: TCP, UDP, TLS, multicast groups.
    Host {
        /// A host name, or an IPv4 or IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a socket file, or any other text.
    Path(String),
}

impl Address {
    /// A host and a port.
    pub fn host(host: impl Into<String>, port: u16) -> Self {
        Self::Host {
            host: host.into(),
            port,
        }
    }

    /// Returns the host and the port, if it has them.
    pub fn as_host(&self) -> Option<(&str, u16)> {
        match self {
            Self::Host { host, port } => Some((host, *port)),
            Self::Path(_) => None,
        }
    }

    /// Returns the path, if it has one.
    pub fn as_path(&self) -> Option<&str> {
        match self {
            Self::Path(path) => Some(path),
            Self::Host { .. } => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Host { host, port } => write!(f, "{host}:{port}"),
            Self::Path(path) => f.write_str(path),
        }
    }
}
