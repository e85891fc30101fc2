//! Transports: what is true of all of them, and what only one has to promise.

#[cfg(feature = "tls")]
mod certificates;
mod conformance;
#[cfg(feature = "faults")]
mod faults;
mod kick;
#[cfg(feature = "multicast")]
mod multicast;
mod published;
mod socket_options;
#[cfg(feature = "tls")]
mod tls_handshakes;
#[cfg(feature = "tls")]
mod tls_misconfiguration;
#[cfg(feature = "tls")]
mod tls_peers;
#[cfg(feature = "tls")]
mod tls_reload;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "udp")]
mod udp;
#[cfg(feature = "uds")]
mod unix;
#[cfg(all(feature = "faults", feature = "trace"))]
mod wrapping;
