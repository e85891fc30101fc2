//! Object keys, which references contain and requests return.
//!
//! ```text
//! 0        4              12                 20
//! | C7 52 01 00 | incarnation | POA's slot  | id …                                     by place
//! | C7 52 01 01 | incarnation | POA's slot  | object's slot | id …             with a hint
//! | C7 52 01 02 | incarnation | POA's slot  | hash of path, hash of id  | length | path | id …   by path
//! | C7 52 01 03 | hash of path, hash of id  | length | path | id …               persistent
//! ```
//! If an object has a priority of its own, the fourth octet is 16 more, and the priority follows it
//! in two octets. So references that are older than the object, or than this run, keep it. In a POA
//! with authenticated keys the fourth octet is 32 more, and an authentication code of all other
//! octets follows it in eight ([`super::code`]).
//!
//! All numbers are big-endian, so that a key is the same on every machine; a slot is an index and a
//! generation, 4 octets each. The id that a transient POA makes is the object's slot: finding the
//! object takes two array look-ups, and the generation reveals a stale key. `incarnation`
//! distinguishes keys of this run of the ORB from those of other runs.
//!
//! A persistent key contains nothing that a restart would change: a reference is the same octet for
//! octet whatever was activated before it. Its hashes follow from path and id alone. They are part
//! of the form of keys and not used for look-ups: a peer could choose names with equal hashes, so
//! tables have a random key ([`crate::demux`]).

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_rt::Key;

use crate::key_codes::KeyCodes;
use crate::rtcorba::Priority;

/// A parsed key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ObjectKey<'k> {
    pub(crate) poa: PoaKey<'k>,
    /// The slot of the object when the key was made; a guess.
    pub(crate) hint: Hint,
    /// The object's own, in a POA whose priorities the server declares.
    pub(crate) priority: Option<Priority>,
    pub(crate) id: &'k [u8],
}

/// The POA of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PoaKey<'k> {
    /// The one in this slot, in this run.
    Place { incarnation: u64, key: Key },
    /// The POA of this path; a transient one only while it has this place in this run.
    Path {
        place: Option<(u64, Key)>,
        hash: u32,
        path: &'k [u8],
    },
}

/// The place to look for an object first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Hint {
    /// The slot.
    Slot(Key),
    /// The hash of its id.
    Hash(u32),
    /// The id determines it, or nothing does.
    #[default]
    None,
}

impl PoaKey<'_> {
    /// The run of the ORB that it belongs to; `None` for any.
    pub(crate) fn run(&self) -> Option<u64> {
        match self {
            Self::Place { incarnation, .. } => Some(*incarnation),
            Self::Path { place, .. } => place.map(|(incarnation, _)| incarnation),
        }
    }
}

impl<'k> ObjectKey<'k> {
    /// Parses a key; `None` for a foreign one.
    // Returning a value through memory in parts, and reading it as a whole, costs more than the
    // parsing.
    #[inline(always)]
    pub(crate) fn parse(octets: &'k [u8]) -> Option<Self> {
        let (magic, mut rest) = octets.split_first_chunk::<4>()?;
        let [c, r, version, kind] = *magic;
        let mut priority = None;
        if kind & (WITH_PRIORITY | WITH_CODE) != 0 {
            if kind & WITH_CODE != 0 {
                // Its POA looks at it.
                rest = rest.get(CODE..)?;
            }
            if kind & WITH_PRIORITY != 0 {
                let (value, after) = rest.split_first_chunk()?;
                priority = Some(Priority::new(i16::from_be_bytes(*value))?);
                rest = after;
            }
        }
        let magic = [c, r, version, kind & !(WITH_PRIORITY | WITH_CODE)];
        match magic {
            PLACE | PLACE_WITH_HINT => {
                let (incarnation, rest) = split_u64(rest)?;
                let (key, mut id) = split_slot(rest)?;
                let mut hint = Hint::None;
                if magic == PLACE_WITH_HINT {
                    let (slot, rest) = split_slot(id)?;
                    (hint, id) = (Hint::Slot(slot), rest);
                }
                let poa = PoaKey::Place { incarnation, key };
                Some(Self {
                    poa,
                    hint,
                    priority,
                    id,
                })
            }
            PATH => {
                let (incarnation, rest) = split_u64(rest)?;
                let (key, rest) = split_slot(rest)?;
                Self::by_path(Some((incarnation, key)), priority, rest)
            }
            PERSISTENT => Self::by_path(None, priority, rest),
            _ => None,
        }
    }

    fn by_path(
        place: Option<(u64, Key)>,
        priority: Option<Priority>,
        rest: &'k [u8],
    ) -> Option<Self> {
        let (hash, rest) = split_u32(rest)?;
        let (id_hash, rest) = split_u32(rest)?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (path, id) = rest.split_at_checked(length)?;
        let poa = PoaKey::Path { place, hash, path };
        let hint = Hint::Hash(id_hash);
        Some(Self {
            poa,
            hint,
            priority,
            id,
        })
    }

    /// Writes the key. A path has [`MAX_PATH`] octets at most.
    #[expect(clippy::disallowed_methods, reason = "once for each reference")]
    pub(crate) fn to_vec(self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(40 + self.id.len());
        let begin = |octets: &mut Vec<u8>, [c, r, version, kind]: [u8; 4]| match self.priority {
            None => octets.extend_from_slice(&[c, r, version, kind]),
            Some(priority) => {
                octets.extend_from_slice(&[c, r, version, kind | WITH_PRIORITY]);
                octets.extend_from_slice(&priority.value().to_be_bytes());
            }
        };
        match self.poa {
            PoaKey::Place { incarnation, key } => {
                let hint = match self.hint {
                    Hint::Slot(slot) => Some(slot),
                    Hint::Hash(_) | Hint::None => None,
                };
                let kind = hint.map_or(PLACE, |_| PLACE_WITH_HINT);
                begin(&mut octets, kind);
                octets.extend_from_slice(&incarnation.to_be_bytes());
                octets.extend_from_slice(&slot_octets(key));
                octets.extend(hint.map(slot_octets).into_iter().flatten());
            }
            PoaKey::Path { place, hash, path } => {
                match place {
                    Some((incarnation, key)) => {
                        begin(&mut octets, PATH);
                        octets.extend_from_slice(&incarnation.to_be_bytes());
                        octets.extend_from_slice(&slot_octets(key));
                    }
                    None => begin(&mut octets, PERSISTENT),
                }
                let id_hash = match self.hint {
                    Hint::Hash(hash) => hash,
                    Hint::Slot(_) | Hint::None => 0,
                };
                octets.extend_from_slice(&hash.to_be_bytes());
                octets.extend_from_slice(&id_hash.to_be_bytes());
                let path = &path[..path.len().min(MAX_PATH)];
                octets.extend_from_slice(&(path.len() as u16).to_be_bytes());
                octets.extend_from_slice(path);
            }
        }
        octets.extend_from_slice(self.id);
        octets
    }
}

/// Describes an object key of this ORB for people: its POA, its object, and the object's own
/// priority, which selects the lane. Returns `None` for keys of others, as plain names.
///
/// A transient POA with active demultiplexing is known by its slot only, and an object to which it
/// gave an id by the slot that the id is.
#[expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "for people"
)]
pub fn describe_object_key(octets: &[u8]) -> Option<String> {
    let key = ObjectKey::parse(octets)?;
    let slot = |key: Key| format!("{}.{}", key.index, key.generation);
    let poa = match key.poa {
        PoaKey::Place { incarnation, key } => {
            format!("POA in slot {} of run {incarnation:016x}", slot(key))
        }
        PoaKey::Path { place, path, .. } => {
            let path = match path {
                [] => "/".into(),
                path => String::from_utf8_lossy(path),
            };
            match place {
                Some((run, key)) => {
                    format!("POA {path:?} in slot {} of run {run:016x}", slot(key))
                }
                None => format!("persistent POA {path:?}"),
            }
        }
    };
    let is_text = |octet: &u8| octet.is_ascii_graphic() || *octet == b' ';
    let id = match (key.poa, self::slot(key.id)) {
        _ if !key.id.is_empty() && key.id.iter().all(is_text) => {
            format!("id {:?}", String::from_utf8_lossy(key.id))
        }
        (PoaKey::Place { .. }, Some(id)) => format!("object in slot {}", slot(id)),
        _ => {
            let digits = key.id.iter().map(|octet| format!("{octet:02x}"));
            format!(
                "id of {} octets {}",
                key.id.len(),
                digits.collect::<String>()
            )
        }
    };
    let priority = match key.priority {
        Some(priority) => format!(", lane for priority {}", priority.value()),
        None => String::new(),
    };
    Some(format!("{poa}, {id}{priority}"))
}

/// Adds the code to a key; `None` where there is no secret for it.
pub(super) fn authenticated(key: &[u8], codes: &KeyCodes, is_persistent: bool) -> Option<Vec<u8>> {
    let (first, rest) = key.split_first_chunk::<MAGIC>()?;
    let [c, r, version, kind] = *first;
    let first = [c, r, version, kind | WITH_CODE];
    let code = codes.code(is_persistent, &first, rest)?;
    Some([&first[..], &code.to_be_bytes(), rest].concat())
}

/// Whether a key has the code that belongs to it.
pub(super) fn is_authentic(key: &[u8], codes: &KeyCodes, is_persistent: bool) -> bool {
    let Some((first, rest)) = key.split_first_chunk::<MAGIC>() else {
        return false;
    };
    let Some((code, rest)) = rest.split_first_chunk::<CODE>() else {
        return false;
    };
    // Numbers are compared in one step, whatever octets differ.
    first[MAGIC - 1] & WITH_CODE != 0
        && codes.code(is_persistent, first, rest) == Some(u64::from_be_bytes(*code))
}

/// The octets of a slot's index and generation.
pub(crate) fn slot_octets(key: Key) -> [u8; 8] {
    let packed = (u64::from(key.index) << 32) | u64::from(key.generation);
    packed.to_be_bytes()
}

/// Reads octets that [`slot_octets`] wrote; `None` for any others.
#[inline]
pub(crate) fn slot(octets: &[u8]) -> Option<Key> {
    match split_slot(octets)? {
        (key, []) => Some(key),
        _ => None,
    }
}

fn split_slot(octets: &[u8]) -> Option<(Key, &[u8])> {
    let (packed, rest) = split_u64(octets)?;
    let key = Key {
        index: (packed >> 32) as u32,
        generation: packed as u32,
    };
    Some((key, rest))
}

fn split_u64(octets: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = octets.split_first_chunk()?;
    Some((u64::from_be_bytes(*first), rest))
}

fn split_u32(octets: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = octets.split_first_chunk()?;
    Some((u32::from_be_bytes(*first), rest))
}

/// The longest path of a POA, in octets.
pub(crate) const MAX_PATH: usize = u16::MAX as usize;

const PLACE: [u8; 4] = [0xc7, b'R', 1, 0];
const PLACE_WITH_HINT: [u8; 4] = [0xc7, b'R', 1, 1];
const PATH: [u8; 4] = [0xc7, b'R', 1, 2];
const PERSISTENT: [u8; 4] = [0xc7, b'R', 1, 3];
/// In the fourth octet: the object's priority follows.
const WITH_PRIORITY: u8 = 0x10;
/// In the fourth octet: an authentication code follows, before anything else.
const WITH_CODE: u8 = 0x20;
const MAGIC: usize = 4;
const CODE: usize = 8;

#[cfg(all(test, feature = "access"))]
#[allow(clippy::disallowed_macros, reason = "tests may allocate")]
mod tests {
    use super::*;
    use crate::poa::ObjectKeySecret;
    use proptest::prelude::*;

    fn slots() -> impl Strategy<Value = Key> {
        let slot = (any::<u32>(), any::<u32>());
        slot.prop_map(|(index, generation)| Key { index, generation })
    }

    fn priorities() -> impl Strategy<Value = Option<Priority>> {
        proptest::option::of((0..=i16::MAX).prop_filter_map("not negative", Priority::new))
    }

    proptest! {
        #[test]
        fn keys_by_place_survive_the_way_there_and_back(
            incarnation: u64, key in slots(), hint in proptest::option::of(slots()),
            priority in priorities(), id: Vec<u8>,
        ) {
            let poa = PoaKey::Place { incarnation, key };
            let hint = hint.map_or(Hint::None, Hint::Slot);
            let key = ObjectKey { poa, hint, priority, id: &id };
            let octets = key.to_vec();
            prop_assert_eq!(ObjectKey::parse(&octets), Some(key));
        }

        #[test]
        fn keys_by_path_survive_the_way_there_and_back(
            incarnation: u64, key in slots(), persistent: bool,
            hash: u32, path in ".{0,40}", hint: u32, priority in priorities(), id: Vec<u8>,
        ) {
            let place = (!persistent).then_some((incarnation, key));
            let poa = PoaKey::Path { place, hash, path: path.as_bytes() };
            let key = ObjectKey { poa, hint: Hint::Hash(hint), priority, id: &id };
            let octets = key.to_vec();
            prop_assert_eq!(ObjectKey::parse(&octets), Some(key));
        }

        #[test]
        fn only_the_key_that_was_authenticated_is_authentic(
            incarnation: u64, key in slots(), priority in priorities(), id: Vec<u8>,
            persistent: bool, at: prop::sample::Index, bit in 0..8_u32,
        ) {
            let codes = KeyCodes::new(Some(&ObjectKeySecret::new([7; 16])));
            let poa = PoaKey::Place { incarnation, key };
            let key = ObjectKey { poa, hint: Hint::None, priority, id: &id };
            let plain = key.to_vec();
            prop_assert!(!is_authentic(&plain, &codes, persistent));
            let octets = authenticated(&plain, &codes, persistent);
            let mut octets = octets.expect("there is a secret");
            prop_assert_eq!(ObjectKey::parse(&octets), Some(key));
            prop_assert!(is_authentic(&octets, &codes, persistent));
            prop_assert!(!is_authentic(&octets, &codes, !persistent));
            let others = KeyCodes::new(Some(&ObjectKeySecret::new([8; 16])));
            prop_assert!(!is_authentic(&octets, &others, persistent));
            let at = at.index(octets.len());
            octets[at] ^= 1 << bit;
            prop_assert!(!is_authentic(&octets, &codes, persistent));
        }

        #[test]
        fn no_octets_make_it_panic(octets: Vec<u8>, kind in 0..4_u8, flag in 0..4_u8) {
            let codes = KeyCodes::new(None);
            let _ = is_authentic(&octets, &codes, false);
            let _ = ObjectKey::parse(&octets);
            let ours = [&[0xc7, b'R', 1, kind | flag << 4], &octets[..]].concat();
            let _ = ObjectKey::parse(&ours);
        }
    }

    #[test]
    fn codes_of_persistent_keys_are_the_same_in_every_run() {
        let codes = KeyCodes::new(Some(&ObjectKeySecret::new(*b"0123456789abcdef")));
        let key = authenticated(b"\xc7R\x01\x03key", &codes, true);
        // Computed by another implementation.
        let expected = *b"\xc7R\x01\x23\x27\x2c\x22\xdb\xf5\xcb\x88\xae";
        assert_eq!(
            key.expect("there is a secret"),
            [&expected[..], b"key"].concat()
        );
    }

    #[test]
    fn keys_of_others_are_not_ours() {
        assert_eq!(ObjectKey::parse(b"NameService"), None);
        assert_eq!(ObjectKey::parse(b""), None);
        let negative = [0xc7, b'R', 1, 0x13, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ObjectKey::parse(&negative), None);
    }
}
