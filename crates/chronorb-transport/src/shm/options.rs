//! The options of endpoints, and their published form.

use std::io;

use super::{DEFAULT_RING, MAX_RING, MIN_RING, is_ring};
use crate::{Address, Endpoint, EndpointError, uds};

/// The path of a peer, and the size of its rings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    /// `None` is the usual size.
    pub(super) ring: Option<usize>,
}

impl<'a> Place<'a> {
    /// Reads a published address.
    pub(super) fn of(address: &'a Address) -> io::Result<Self> {
        let text = address.as_path().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let Some((path, ring)) = text.rsplit_once(SEPARATOR) else {
            return Ok(Self {
                path: text,
                ring: None,
            });
        };
        let ring = ring.parse().ok().filter(|ring| is_ring(*ring));
        let ring = ring
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no ring has that size"))?;
        Ok(Self {
            path,
            ring: Some(ring),
        })
    }

    /// Returns the address to publish. Rings of the default size are omitted, so that it is just
    /// the path then.
    pub(super) fn address(self) -> Address {
        Address::Path(match self.ring {
            None | Some(DEFAULT_RING) => self.path.to_owned(),
            Some(ring) => format!("{}{SEPARATOR}{ring}", self.path),
        })
    }
}

/// Checks whether an endpoint is valid, as far as it can be seen without opening it.
pub(super) fn check(endpoint: &Endpoint) -> Result<(), EndpointError> {
    ring(endpoint)?;
    uds::check(&without_ring(endpoint)).map_err(|error| endpoint.error(error.problem))
}

/// Returns the size of the rings that the endpoint gives; `None` for the default.
pub(super) fn ring(endpoint: &Endpoint) -> Result<Option<usize>, EndpointError> {
    let Some(text) = endpoint.option(RING) else {
        return Ok(None);
    };
    match text.parse().ok().filter(|ring| is_ring(*ring)) {
        Some(ring) => Ok(Some(ring)),
        None => Err(endpoint.error(format!(
            "the ring size {text:?} is not a power of two from {MIN_RING} to {MAX_RING}"
        ))),
    }
}

/// The endpoint of the socket where peers meet.
pub(super) fn without_ring(endpoint: &Endpoint) -> Endpoint {
    let mut endpoint = endpoint.clone();
    endpoint.options.retain(|(name, _)| name != RING);
    endpoint
}

/// The option that gives the size of the rings.
const RING: &str = "ring";
/// The same as in endpoints.
const SEPARATOR: &str = "|ring=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_addresses_are_read_as_they_are_written() {
        for ring in [MIN_RING, DEFAULT_RING * 2, MAX_RING] {
            let place = Place {
                path: "/run/a|b",
                ring: Some(ring),
            };
            assert_eq!(Place::of(&place.address()).expect("it was written"), place);
        }
        let usual = Place {
            path: "/run/radar",
            ring: Some(DEFAULT_RING),
        }
        .address();
        assert_eq!(usual, Address::Path("/run/radar".to_owned()));
        assert_eq!(Place::of(&usual).expect("it was written").ring, None);
    }

    #[test]
    fn sizes_that_no_ring_has_are_refused() {
        for size in ["", "0", "2048", "5000", "33554432", "-4096", "many"] {
            let address = Address::Path(format!("/run/radar|ring={size}"));
            assert!(Place::of(&address).is_err(), "{size}");
        }
    }
}
