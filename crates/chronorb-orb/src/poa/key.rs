//! Object keys: what a reference carries, and a request brings back.
//!
//! ```text
//! 0        4              12          16           20
//! | C7 52 01 flags | incarnation | POA index | generation | id …        transient
//! | C7 52 01 flags | length | path …         | id …                     persistent
//! ```
//! All numbers are big-endian, so that a key reads the same everywhere. The id of a transient
//! POA's own making is the object's index and generation, 4 octets each: the way to it is two
//! array look-ups, and a stale key is told by its generation. `incarnation` tells keys of this
//! run of the ORB from those of any other.

use chronorb_rt::Key;

/// A parsed key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ObjectKey<'k> {
    pub(crate) poa: PoaKey<'k>,
    pub(crate) id: &'k [u8],
}

/// Which POA.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PoaKey<'k> {
    Transient { incarnation: u64, key: Key },
    Persistent { path: &'k str },
}

impl<'k> ObjectKey<'k> {
    /// Reads a key; `None` where it is not one of ours.
    pub(crate) fn parse(octets: &'k [u8]) -> Option<Self> {
        let (magic, rest) = octets.split_first_chunk::<4>()?;
        match *magic {
            TRANSIENT => {
                let (incarnation, rest) = rest.split_first_chunk()?;
                let (key, id) = split_slot_key(rest)?;
                let incarnation = u64::from_be_bytes(*incarnation);
                let poa = PoaKey::Transient { incarnation, key };
                Some(Self { poa, id })
            }
            PERSISTENT => {
                let (length, rest) = rest.split_first_chunk()?;
                let length = usize::from(u16::from_be_bytes(*length));
                let (path, id) = rest.split_at_checked(length)?;
                let path = std::str::from_utf8(path).ok()?;
                let poa = PoaKey::Persistent { path };
                Some(Self { poa, id })
            }
            _ => None,
        }
    }

    /// Writes the key.
    pub(crate) fn to_vec(self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(32 + self.id.len());
        match self.poa {
            PoaKey::Transient { incarnation, key } => {
                octets.extend_from_slice(&TRANSIENT);
                octets.extend_from_slice(&incarnation.to_be_bytes());
                octets.extend_from_slice(&slot_key_octets(key));
            }
            PoaKey::Persistent { path } => {
                let path = &path.as_bytes()[..path.len().min(MAX_PATH)];
                octets.extend_from_slice(&PERSISTENT);
                octets.extend_from_slice(&(path.len() as u16).to_be_bytes());
                octets.extend_from_slice(path);
            }
        }
        octets.extend_from_slice(self.id);
        octets
    }
}

/// The octets of a slot's index and generation.
pub(crate) fn slot_key_octets(key: Key) -> [u8; 8] {
    let packed = (u64::from(key.index) << 32) | u64::from(key.generation);
    packed.to_be_bytes()
}

/// Reads what [`slot_key_octets`] wrote; `None` where it is anything else.
pub(crate) fn slot_key(octets: &[u8]) -> Option<Key> {
    match split_slot_key(octets)? {
        (key, []) => Some(key),
        _ => None,
    }
}

fn split_slot_key(octets: &[u8]) -> Option<(Key, &[u8])> {
    let (index, rest) = octets.split_first_chunk()?;
    let (generation, rest) = rest.split_first_chunk()?;
    let key = Key {
        index: u32::from_be_bytes(*index),
        generation: u32::from_be_bytes(*generation),
    };
    Some((key, rest))
}

/// The longest path of a persistent POA, in octets.
pub(crate) const MAX_PATH: usize = u16::MAX as usize;

const TRANSIENT: [u8; 4] = [0xc7, b'R', 1, 0];
const PERSISTENT: [u8; 4] = [0xc7, b'R', 1, 1];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn transient_keys_survive_the_way_there_and_back(
            incarnation: u64, index: u32, generation: u32, id: Vec<u8>,
        ) {
            let poa = PoaKey::Transient { incarnation, key: Key { index, generation } };
            let key = ObjectKey { poa, id: &id };
            let octets = key.to_vec();
            prop_assert_eq!(ObjectKey::parse(&octets), Some(key));
        }

        #[test]
        fn persistent_keys_survive_the_way_there_and_back(path in ".{0,40}", id: Vec<u8>) {
            let key = ObjectKey { poa: PoaKey::Persistent { path: &path }, id: &id };
            let octets = key.to_vec();
            prop_assert_eq!(ObjectKey::parse(&octets), Some(key));
        }

        #[test]
        fn no_octets_make_it_panic(octets: Vec<u8>) {
            let _ = ObjectKey::parse(&octets);
        }
    }

    #[test]
    fn keys_of_others_are_not_ours() {
        assert_eq!(ObjectKey::parse(b"NameService"), None);
        assert_eq!(ObjectKey::parse(b""), None);
    }
}
