//! Hostile messages: they cost no more than the arena, and cause no panic.

use std::sync::Arc;

use chronorb_cdr::{Arena, Cdr, CdrError, Decoder, Encoder, Endian, Frame, MAX_DEPTH, Reference};

/// `struct Node { sequence<Node> children; };`
#[derive(Clone, Copy)]
struct Node<'a> {
    children: &'a [Self],
}

impl<'a> Cdr<'a> for Node<'a> {
    const MIN_SIZE: usize = 4;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_seq(self.children)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            children: d.read_seq()?,
        })
    }
}

fn decode<T>(bytes: &[u8], arena: &Arena) -> Result<(), CdrError>
where
    T: for<'a> Cdr<'a>,
{
    let mut bytes = bytes.to_vec();
    T::decode(&mut Decoder::new(&mut bytes, 0, Endian::Big, arena)).map(|_| ())
}

#[test]
fn elements_without_octets_may_end_a_message_and_cannot_be_without_number() {
    let arena = Arena::new(64);
    let read = |len: u32| {
        let mut octets = len.to_be_bytes();
        let mut d = Decoder::new(&mut octets, 0, Endian::Big, &arena);
        d.read_seq::<()>().map(<[()]>::len)
    };
    assert_eq!(read(256), Ok(256));
    for len in [257, u32::MAX] {
        assert_eq!(read(len), Err(CdrError::LengthOverflow));
    }
}

#[test]
fn a_length_that_cannot_be_true_reserves_nothing() {
    let arena = Arena::new(1 << 10);
    for len in [2u32, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let mut bytes = len.to_be_bytes().to_vec();
        bytes.push(0);
        let mut read = |read: fn(&mut Decoder<'_>) -> Option<CdrError>| {
            read(&mut Decoder::new(&mut bytes, 0, Endian::Big, &arena))
        };
        assert_eq!(
            read(|d| d.read_seq::<&str>().err()),
            Some(CdrError::LengthOverflow)
        );
        assert_eq!(
            read(|d| d.read_seq::<f64>().err()),
            Some(CdrError::LengthOverflow)
        );
        assert_eq!(read(|d| d.read_str().err()), Some(CdrError::LengthOverflow));
        assert_eq!(
            read(|d| d.read_octet_seq().err()),
            Some(CdrError::LengthOverflow)
        );
        assert_eq!(
            read(|d| d.read_encapsulation().err()),
            Some(CdrError::LengthOverflow)
        );
        assert_eq!(
            read(|d| d.read_seq_with(None, 0, |d| d.read_u8()).err()),
            Some(CdrError::LengthOverflow)
        );
    }
    assert_eq!(arena.used(), 0);
}

#[test]
fn a_type_that_holds_itself_can_be_nested_only_so_deep() {
    let nested = |depth: u8| [vec![[0, 0, 0, 1]; depth.into()].concat(), vec![0; 4]].concat();
    let read = |bytes: &[u8]| {
        let arena = Arena::new(1 << 16);
        let mut bytes = bytes.to_vec();
        Node::decode(&mut Decoder::new(&mut bytes, 0, Endian::Big, &arena)).map(|_| ())
    };
    assert_eq!(read(&nested(MAX_DEPTH - 1)), Ok(()));
    assert_eq!(read(&nested(MAX_DEPTH)), Err(CdrError::TooDeep));
    assert_eq!(read(&nested(255)), Err(CdrError::TooDeep));
}

#[test]
fn encapsulations_can_be_nested_only_so_deep() {
    fn nest(e: &mut Encoder<'_>, depth: u8) -> Result<(), CdrError> {
        match depth {
            0 => Ok(()),
            _ => e.write_encapsulation(|e| nest(e, depth - 1)),
        }
    }
    let mut frame = Frame::new(1024, 1024);
    nest(&mut Encoder::new(&mut frame, Endian::Big), MAX_DEPTH + 1).unwrap();
    let arena = Arena::new(0);
    let mut d = Decoder::new(frame.as_mut_slice(), 0, Endian::Big, &arena);
    for _ in 0..MAX_DEPTH {
        d = d.read_encapsulation().unwrap();
    }
    assert_eq!(d.read_encapsulation().err(), Some(CdrError::TooDeep));
}

#[test]
fn an_encapsulation_without_a_byte_order_is_none() {
    let arena = Arena::new(0);
    let mut d = [0; 4];
    let mut d = Decoder::new(&mut d, 0, Endian::Big, &arena);
    assert_eq!(d.read_encapsulation().err(), Some(CdrError::EndOfData));
}

#[test]
fn a_message_cannot_take_more_than_the_arena() {
    let mut bytes = vec![0; 4 + 4 * 100];
    bytes[3] = 100;
    let mut arena = Arena::new(1000);
    assert_eq!(
        Node::decode(&mut Decoder::new(&mut bytes, 0, Endian::Big, &arena)).err(),
        Some(CdrError::ArenaFull),
        "a hundred slices are 1600 octets"
    );
    arena.reset();
    assert_eq!(arena.used(), 0);
    assert_eq!(decode::<[u32; 2]>(&[0; 8], &arena), Ok(()));
}

#[test]
fn patching_and_truncating_stay_within_the_message() {
    let mut frame = Frame::new(64, 64);
    let mut e = Encoder::new(&mut frame, Endian::Big);
    e.write_u64(0).unwrap();
    e.patch_u32(4, 7).unwrap();
    assert_eq!(e.patch_u32(5, 7), Err(CdrError::EndOfData));
    assert_eq!(e.patch_u32(usize::MAX, 7), Err(CdrError::EndOfData));
    e.truncate(100);
    assert_eq!(e.position(), 8);
    e.truncate(4);
    assert_eq!(frame.as_slice(), [0; 4]);
}

/// A reference that counts how many there are of it.
struct CountedReference(Arc<()>);

impl Reference for CountedReference {
    fn encode_reference(this: Option<&Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_bool(this.is_some())
    }

    fn decode_reference(d: &mut Decoder<'_>) -> Result<Option<Self>, CdrError> {
        let host = d.host().and_then(|host| host.downcast_ref::<Arc<()>>());
        let count = host.ok_or(CdrError::BadReference)?;
        Ok(d.read_bool()?.then(|| Self(Arc::clone(count))))
    }
}

#[test]
fn references_live_in_the_arena_until_it_is_reset() {
    let count = Arc::new(());
    let mut frame = Frame::new(64, 64);
    let some = CountedReference(Arc::clone(&count));
    Encoder::new(&mut frame, Endian::Big)
        .write_seq(&[Some(&some), None, Some(&some)])
        .unwrap();
    drop(some);

    // The references of this little type are shorter than real ones.
    let mut bytes = [frame.as_slice(), &[0; 24]].concat();
    let mut arena = Arena::new(64);
    let mut d = Decoder::new(&mut bytes, 0, Endian::Big, &arena).with_host(Some(&count));
    let references: &[Option<&CountedReference>] = d.read_seq().unwrap();
    assert!(references[1].is_none());
    assert!(Arc::ptr_eq(&references[2].unwrap().0, &count));
    assert_eq!(Arc::strong_count(&count), 3);
    arena.reset();
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn a_reference_without_an_orb_is_an_error() {
    let mut bytes = [1; 8];
    let arena = Arena::new(64);
    let mut d = Decoder::new(&mut bytes, 0, Endian::Big, &arena);
    let read: Result<Option<&CountedReference>, _> = Cdr::decode(&mut d);
    assert_eq!(read.err(), Some(CdrError::BadReference));
}
