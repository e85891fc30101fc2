//! The octets of the attacks: messages of GIOP 1.2, little-endian, as no ORB would send them.
//!
//! Each function makes one kind of message of a given size. With small sizes nearly all of them are
//! correct messages: what makes an attack of them is how many, how long or how deep.

/// A message, or the beginning of one. Positions and alignment count from its first octet.
#[derive(Debug, Default)]
pub(super) struct MessageOctets(Vec<u8>);

impl MessageOctets {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    /// A number, aligned to its size.
    pub(super) fn number<const N: usize>(&mut self, octets: [u8; N]) {
        self.align(N);
        self.0.extend(octets);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.number(value.to_le_bytes());
    }

    /// An octet or a boolean.
    pub(super) fn octet(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn string(&mut self, text: &str) {
        self.octets(text.as_bytes(), 1);
    }

    /// A sequence of octets with so many zeros at its end.
    pub(super) fn octets(&mut self, octets: &[u8], zeros: usize) {
        self.u32(size(octets.len() + zeros));
        self.0.extend(octets);
        self.0.resize(self.0.len() + zeros, 0);
    }

    /// An encapsulation.
    pub(super) fn capsule(&mut self, content: impl FnOnce(&mut Self)) {
        self.u32(0);
        let start = self.0.len();
        self.0.push(LITTLE_ENDIAN);
        content(self);
        let len = size(self.0.len() - start);
        self.0[start - 4..start].copy_from_slice(&len.to_le_bytes());
    }

    /// A type code with parameters: its kind, an identifier, no name, and the rest.
    fn type_code(&mut self, kind: u32, id: &str, rest: impl FnOnce(&mut Self)) {
        self.u32(kind);
        self.capsule(|c| {
            c.string(id);
            c.string("");
            rest(c);
        });
    }

    /// An indirection to a position.
    fn indirection(&mut self, target: usize) {
        self.u32(u32::MAX);
        let offset = self.0.len() - target;
        self.u32(size(offset).wrapping_neg());
    }

    /// Aligns to four octets, and returns the position.
    fn position(&mut self) -> usize {
        self.align(4);
        self.0.len()
    }

    /// Writes the length of the message into its header.
    fn close(mut self) -> Vec<u8> {
        let len = size(self.0.len() - HEADER);
        self.0[8..HEADER].copy_from_slice(&len.to_le_bytes());
        self.0
    }
}

fn header(flags: u8, message_type: u8) -> MessageOctets {
    let rest = [1, 2, flags | LITTLE_ENDIAN, message_type];
    MessageOctets([*b"GIOP", rest, [0; 4]].concat())
}

fn size(len: usize) -> u32 {
    u32::try_from(len).expect("messages of this module have less than 4 GiB")
}

/// A request to the object with this key; the closure writes its arguments.
pub(super) fn request(
    key: &[u8],
    operation: &str,
    arguments: impl FnOnce(&mut MessageOctets),
) -> Vec<u8> {
    let mut message = request_header(0, RESPONSE_EXPECTED, key, operation);
    message.align(8);
    arguments(&mut message);
    message.close()
}

/// A request without a reply to the object with this key; the closure writes its arguments.
pub(super) fn oneway(
    key: &[u8],
    operation: &str,
    arguments: impl FnOnce(&mut MessageOctets),
) -> Vec<u8> {
    let mut message = request_header(0, 0, key, operation);
    message.align(8);
    arguments(&mut message);
    message.close()
}

/// A reply without an exception, whose result is one octet, 0.
pub(super) fn reply(request_id: u32) -> Vec<u8> {
    let mut message = header(0, REPLY);
    message.u32(request_id);
    // There is no exception, and there are no service contexts.
    message.u32(0);
    message.u32(0);
    message.align(8);
    message.octet(0);
    message.close()
}

/// The answer to a locate request: the object is here.
pub(super) fn locate_reply(request_id: u32) -> Vec<u8> {
    let mut message = header(0, LOCATE_REPLY);
    message.u32(request_id);
    message.u32(OBJECT_HERE);
    message.close()
}

fn request_header(flags: u8, response: u32, key: &[u8], operation: &str) -> MessageOctets {
    let mut message = header(flags, REQUEST);
    message.u32(REQUEST_ID);
    message.u32(response);
    message.number(KEY_ADDRESS.to_le_bytes());
    message.octets(key, 0);
    message.string(operation);
    // There are no service contexts.
    message.u32(0);
    message
}

/// A request that stores so many octets.
pub(super) fn store(key: &[u8], len: usize) -> Vec<u8> {
    request(key, "store", |m| m.octets(&[], len))
}

/// A request for so many octets.
pub(super) fn fetch(key: &[u8], len: u32) -> Vec<u8> {
    request(key, "fetch", |m| m.u32(len))
}

/// A request without its last octet.
pub(super) fn unfinished(key: &[u8], len: usize) -> Vec<u8> {
    let mut message = store(key, len);
    message.pop();
    message
}

/// Half the header of a message.
pub(super) fn half_header() -> Vec<u8> {
    header(0, REQUEST).0[..HEADER / 2].to_vec()
}

/// The first fragment of a request, and one that can follow it any number of times.
pub(super) fn endless(key: &[u8], len: usize) -> (Vec<u8>, Vec<u8>) {
    let mut first = request_header(MORE_FRAGMENTS, RESPONSE_EXPECTED, key, "store");
    first.align(8);
    first.u32(u32::MAX);
    first.align(8);
    let mut next = header(MORE_FRAGMENTS, FRAGMENT);
    next.u32(REQUEST_ID);
    next.0.resize(HEADER + 4 + len.next_multiple_of(8), 0);
    (first.close(), next.close())
}

/// A message that is none: octets of a correct one are changed, and always one of its header.
pub(super) fn malformed(key: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut message = request(key, "ping", |m| m.u32(1));
    for _ in 0..random.usize(0..4) {
        let at = random.usize(HEADER..message.len());
        message[at] = random.u8(..);
    }
    match random.u8(..4) {
        0 => message[random.usize(..4)] ^= 1 << random.u8(..8),
        1 => message[4] = random.u8(2..),
        2 => message[7] = random.u8(8..),
        _ => message[8..HEADER].copy_from_slice(&u32::MAX.to_le_bytes()),
    }
    message
}

/// An any whose type is an alias of itself.
pub(super) fn own_alias(key: &[u8]) -> Vec<u8> {
    request(key, "take_any", |m| {
        let start = m.position();
        m.type_code(ALIAS, ID, |c| c.indirection(start));
    })
}

/// Anys within anys, each behind a chain of aliases.
pub(super) fn nested_anys(key: &[u8], levels: usize, aliases: usize) -> Vec<u8> {
    fn chain(m: &mut MessageOctets, aliases: usize) {
        match aliases {
            0 => m.u32(ANY),
            _ => m.type_code(ALIAS, ID, |c| chain(c, aliases - 1)),
        }
    }
    request(key, "take_any", |m| {
        for _ in 0..levels {
            chain(m, aliases);
        }
        m.u32(NULL);
    })
}

/// Structs within structs, each of them great.
pub(super) fn nested_structs(key: &[u8], levels: usize) -> Vec<u8> {
    request(key, "take_big", |m| {
        for level in 0..levels {
            for _ in 0..CELLS {
                m.number(0_f64.to_le_bytes());
                m.string("");
            }
            m.u32(u32::from(level + 1 < levels));
        }
    })
}

/// Values that share one list of identifiers, all of which but the last are one unknown text.
pub(super) fn value_ids(key: &[u8], ids: usize, len: usize, values: usize) -> Vec<u8> {
    request(key, "take_items", |m| {
        m.u32(size(values));
        let mut list = None;
        for _ in 0..values {
            m.u32(CHUNKED_WITH_LIST);
            match list {
                Some(list) => m.indirection(list),
                None => {
                    list = Some(m.position());
                    m.u32(size(ids + 1));
                    let text = m.position();
                    m.string(&"x".repeat(len));
                    for _ in 1..ids {
                        m.indirection(text);
                    }
                    m.string(ITEM);
                }
            }
            // One chunk, the member, and the end of the value.
            m.u32(4);
            m.u32(0);
            m.u32(1_u32.wrapping_neg());
        }
    })
}

/// A type code that refers again and again to one with a long identifier.
pub(super) fn shared_names(key: &[u8], len: usize, members: usize) -> Vec<u8> {
    request(key, "take_type", |m| {
        m.type_code(STRUCT, ID, |c| {
            c.u32(size(members + 1));
            c.string("");
            let named = c.position();
            c.type_code(ALIAS, &long_id(len), |a| a.u32(LONG));
            for _ in 0..members {
                c.string("");
                c.indirection(named);
            }
        });
    })
}

fn long_id(len: usize) -> String {
    format!("IDL:{}:1.0", "x".repeat(len))
}

/// An any with many unions of one octet, each of which is looked for among many arms.
pub(super) fn unions(key: &[u8], arms: usize, values: usize) -> Vec<u8> {
    request(key, "take_any", |m| {
        m.u32(SEQUENCE);
        m.capsule(|c| {
            c.type_code(UNION, ID, |u| {
                u.u32(BOOLEAN);
                // No arm is the default.
                u.u32(u32::MAX);
                u.u32(size(arms));
                for _ in 0..arms {
                    u.0.push(0);
                    u.string("");
                    u.u32(NULL);
                }
            });
            // It has no bound.
            c.u32(0);
        });
        // All have the discriminator that no arm has.
        m.octets(&vec![1; values], 0);
    })
}

/// A reference with many profiles.
pub(super) fn profiles(key: &[u8], count: usize) -> Vec<u8> {
    request(key, "take_object", |m| reference(m, count))
}

/// Many references with one profile each.
pub(super) fn references(key: &[u8], count: usize) -> Vec<u8> {
    request(key, "take_objects", |m| {
        m.u32(size(count));
        for _ in 0..count {
            reference(m, 1);
        }
    })
}

fn reference(m: &mut MessageOctets, profiles: usize) {
    m.string("");
    m.u32(size(profiles));
    for _ in 0..profiles {
        m.u32(INTERNET_IOP);
        m.capsule(|c| {
            // IIOP 1.0.
            c.0.extend([1, 0]);
            c.string("h");
            c.number(1_u16.to_le_bytes());
            c.octets(b"k", 0);
        });
    }
}

pub(super) const HEADER: usize = 12;
const LITTLE_ENDIAN: u8 = 1;
const MORE_FRAGMENTS: u8 = 2;
const REQUEST: u8 = 0;
const REPLY: u8 = 1;
const LOCATE_REPLY: u8 = 4;
const FRAGMENT: u8 = 7;
const REQUEST_ID: u32 = 7;
/// `SYNC_WITH_TARGET`, and three octets that are reserved.
const RESPONSE_EXPECTED: u32 = 3;
const KEY_ADDRESS: u16 = 0;
const INTERNET_IOP: u32 = 0;
// Kinds of type codes.
const OBJECT_HERE: u32 = 1;
const NULL: u32 = 0;
const LONG: u32 = 3;
const BOOLEAN: u32 = 8;
const ANY: u32 = 11;
const STRUCT: u32 = 15;
const UNION: u32 = 16;
const SEQUENCE: u32 = 19;
const ALIAS: u32 = 21;
/// The tag of a value in chunks with a list of identifiers.
const CHUNKED_WITH_LIST: u32 = 0x7fff_ff0e;
const ID: &str = "IDL:A:1.0";
const ITEM: &str = "IDL:Hostile/Item:1.0";
/// The cells of a `Big` of the IDL.
const CELLS: usize = 100;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chronorb::data::{Any, TypeCode};
    use chronorb_cdr::{Arena, Cdr, CdrError, Decoder, Endian};

    use super::*;
    use crate::idl::hostile::{Big, Item};

    const KEY: &[u8] = b"the key";

    /// Reads the header of a request, looks whether it is one of this operation, and reads its
    /// arguments.
    #[track_caller]
    fn arguments<T>(
        mut message: Vec<u8>,
        operation: &str,
        read: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>,
    ) -> T {
        assert_eq!(message[..HEADER - 4], *b"GIOP\x01\x02\x01\x00");
        let arena = Arena::new(1 << 20);
        let mut d = Decoder::new(&mut message, 0, Endian::Little, &arena);
        d.read_octets(8).unwrap();
        let size = d.read_u32().unwrap();
        assert_eq!(size as usize, d.remaining());
        assert_eq!(d.read_u32().unwrap(), REQUEST_ID);
        assert_eq!(d.read_u32().unwrap(), RESPONSE_EXPECTED);
        assert_eq!(d.read_u16().unwrap(), KEY_ADDRESS);
        assert_eq!(d.read_octet_seq().unwrap(), KEY);
        assert_eq!(d.read_str().unwrap(), operation);
        assert_eq!(d.read_u32().unwrap(), 0, "service contexts");
        d.align(8).unwrap();
        let read = read(&mut d).unwrap();
        assert!(d.is_empty(), "{} octets are left", d.remaining());
        read
    }

    #[test]
    fn requests_are_such() {
        let len = arguments(store(KEY, 77), "store", |d| Ok(d.read_octet_seq()?.len()));
        assert_eq!(len, 77);
        let size = arguments(fetch(KEY, 1 << 20), "fetch", |d| d.read_u32());
        assert_eq!(size, 1 << 20);
    }

    #[test]
    fn what_is_held_back_is_an_octet_or_half_a_header() {
        let mut message = unfinished(KEY, 77);
        message.push(0);
        assert_eq!(message, store(KEY, 77));
        assert_eq!(half_header(), *b"GIOP\x01\x02");
    }

    #[test]
    fn fragments_have_no_end() {
        let (first, next) = endless(KEY, 100);
        for (message, message_type) in [(&first, REQUEST), (&next, FRAGMENT)] {
            assert_eq!(message[6], LITTLE_ENDIAN | MORE_FRAGMENTS);
            assert_eq!(message[7], message_type);
            let size = u32::from_le_bytes(message[8..HEADER].try_into().unwrap());
            assert_eq!(size as usize, message.len() - HEADER);
            assert_eq!(message[HEADER..HEADER + 4], REQUEST_ID.to_le_bytes());
        }
        // All but the last have a multiple of eight octets (CORBA 3.3 part 2, 9.4.9).
        assert!(first.len().is_multiple_of(8) && next.len() % 8 == (HEADER + 4) % 8);
    }

    #[test]
    fn malformed_messages_have_no_header_of_giop() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let message = malformed(KEY, &mut random);
            let size = u32::from_le_bytes(message[8..HEADER].try_into().unwrap());
            let is_whole = size as usize == message.len() - HEADER;
            let is_giop = message[..4] == *b"GIOP" && message[4] < 2 && message[7] < 8;
            assert!(!(is_giop && is_whole), "{message:?}");
        }
    }

    #[test]
    fn an_alias_is_its_own_target() {
        let message = own_alias(KEY);
        assert!(message.len() < 120, "{}", message.len());
        let (kind, target) = arguments(message, "take_any", |d| {
            let kind_at = d.position();
            let kind = d.read_u32()?;
            d.read_u32()?;
            d.read_u8()?;
            d.read_str()?;
            d.read_str()?;
            assert_eq!(d.read_u32()?, u32::MAX);
            let offset_at = d.position() as i64;
            let target = offset_at + i64::from(d.read_i32()?);
            Ok((kind, target - kind_at as i64))
        });
        assert_eq!((kind, target), (ALIAS, 0));
    }

    /// The number of anys within one another.
    fn levels(any: &Any<'_>) -> usize {
        match any.extract::<Any<'_>>() {
            Ok(inner) => 1 + levels(&inner),
            Err(_) => 0,
        }
    }

    #[test]
    fn anys_are_within_anys_behind_aliases() {
        let levels = arguments(nested_anys(KEY, 3, 2), "take_any", |d| {
            Any::decode(d).map(|any| levels(&any))
        });
        assert_eq!(levels, 3);
        let more = nested_anys(KEY, 3, 4).len() - nested_anys(KEY, 3, 2).len();
        assert!(more > 3 * 2 * ID.len(), "aliases take room");
    }

    #[test]
    fn structs_are_within_structs() {
        fn levels(big: &Big<'_>) -> usize {
            1 + big.kids.first().map_or(0, levels)
        }
        let levels = arguments(nested_structs(KEY, 4), "take_big", |d| {
            Big::decode(d).map(|big| levels(&big))
        });
        assert_eq!(levels, 4);
    }

    #[test]
    fn values_share_a_list_of_identifiers() {
        let values = |ids, len, values| value_ids(KEY, ids, len, values);
        let read = |d: &mut Decoder<'_>| {
            let count = d.read_u32()?;
            for _ in 0..count {
                let item: Option<Arc<dyn Item>> = d.read_value()?;
                assert_eq!(item.map(|item| item.item_state().n), Some(0));
            }
            Ok(count)
        };
        assert_eq!(arguments(values(3, 10, 5), "take_items", read), 5);
        // An identifier more takes 8 octets, and a value more takes 24.
        let base = values(3, 10, 5).len();
        assert_eq!(values(103, 10, 5).len() - base, 800);
        assert_eq!(values(3, 10, 105).len() - base, 2400);
    }

    #[test]
    fn a_name_is_shared_by_all_members() {
        let count = arguments(shared_names(KEY, 1000, 5), "take_type", |d| {
            let TypeCode::Struct { members, .. } = TypeCode::decode(d)? else {
                panic!("it is a struct");
            };
            Ok(members.len())
        });
        assert_eq!(count, 6);
        // A member more has no name of its own.
        let more = shared_names(KEY, 1000, 105).len() - shared_names(KEY, 1000, 5).len();
        assert_eq!(more, 1600);
    }

    #[test]
    fn unions_take_an_octet_each() {
        arguments(unions(KEY, 3, 7), "take_any", |d| Any::decode(d).map(drop));
        assert_eq!(unions(KEY, 3, 107).len() - unions(KEY, 3, 7).len(), 100);
        assert!(unions(KEY, 103, 7).len() > unions(KEY, 3, 7).len() + 1000);
    }

    #[test]
    fn references_have_as_many_profiles_as_are_wanted() {
        let read_reference = |d: &mut Decoder<'_>| {
            d.read_str()?;
            let profiles = d.read_u32()?;
            for _ in 0..profiles {
                assert_eq!(d.read_u32()?, INTERNET_IOP);
                d.read_octet_seq()?;
            }
            Ok(profiles)
        };
        let of_one = arguments(profiles(KEY, 5), "take_object", read_reference);
        assert_eq!(of_one, 5);
        let of_all = arguments(references(KEY, 3), "take_objects", |d| {
            let count = d.read_u32()?;
            (0..count)
                .map(|_| read_reference(d))
                .collect::<Result<Vec<_>, _>>()
        });
        assert_eq!(of_all, [1, 1, 1]);
    }
}
