//! Authentication codes of object keys, of POAs that ask for them.
//!
//! Keys follow from numbers that every reference contains, so a client with one reference can guess
//! those of other objects. A code can be made only with a secret: a random one of the ORB's run for
//! transient POAs, and the application's for persistent ones, whose references outlive the run.
//!
//! A code is SipHash-1-3 of the rest of the key, a pseudorandom function of 64 bits by a key of
//! 128. It is the one of the crate `siphasher`, since the standard library promises no algorithm,
//! and references of persistent objects are to be right with the next compiler too. A guess is
//! right once in 2⁶⁴, and takes a request.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
#[cfg(feature = "access")]
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    path::Path,
};

#[cfg(feature = "access")]
use chronorb_rt::read_file;
#[cfg(feature = "access")]
use siphasher::sip::SipHasher13;

/// The secret by which keys of persistent POAs are authenticated (`-ORBObjectKeySecret`).
///
/// It is not shown by `Debug`.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct ObjectKeySecret([u8; 16]);

impl ObjectKeySecret {
    /// A secret of these octets, which have to be random.
    #[must_use]
    pub const fn new(octets: [u8; 16]) -> Self {
        Self(octets)
    }

    /// Reads the secret of a regular file that has 16 octets.
    #[cfg(feature = "access")]
    #[allow(clippy::disallowed_methods, reason = "when the ORB is configured")]
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let (octets, _) = read_file(path).map_err(|error| error.to_string())?;
        let octets = octets.try_into().map_err(|_| WRONG_SIZE);
        Ok(Self(octets?))
    }
}

impl fmt::Debug for ObjectKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectKeySecret")
    }
}

/// The secrets from which an ORB makes codes.
#[cfg(feature = "access")]
pub(crate) struct KeyCodes {
    transient: SipHasher13,
    persistent: Option<SipHasher13>,
}

#[cfg(feature = "access")]
impl KeyCodes {
    pub(crate) fn new(secret: Option<&ObjectKeySecret>) -> Self {
        // Each is a hash of nothing by random keys, which stay secret.
        let random = RandomState::new();
        Self {
            transient: SipHasher13::new_with_keys(random.hash_one(0), random.hash_one(1)),
            persistent: secret.map(|secret| SipHasher13::new_with_key(&secret.0)),
        }
    }

    /// Whether keys of a kind of POA can have codes.
    pub(crate) fn exist_for(&self, is_persistent: bool) -> bool {
        !is_persistent || self.persistent.is_some()
    }

    /// The code of a key that is `first`, the code, and `rest`; `None` where there is no secret.
    pub(crate) fn code(&self, is_persistent: bool, first: &[u8], rest: &[u8]) -> Option<u64> {
        let mut hasher = if is_persistent {
            self.persistent?
        } else {
            self.transient
        };
        hasher.write(first);
        hasher.write(rest);
        Some(hasher.finish())
    }
}

/// No codes: the feature is not there.
#[cfg(not(feature = "access"))]
pub(crate) struct KeyCodes;

#[cfg(not(feature = "access"))]
impl KeyCodes {
    pub(crate) fn new(_: Option<&ObjectKeySecret>) -> Self {
        Self
    }

    pub(crate) fn exist_for(&self, _: bool) -> bool {
        false
    }

    pub(crate) fn code(&self, _: bool, _: &[u8], _: &[u8]) -> Option<u64> {
        None
    }
}

#[cfg(feature = "access")]
const WRONG_SIZE: &str =
    "a secret has 16 octets, which have to be random: head -c 16 /dev/urandom > FILE";
