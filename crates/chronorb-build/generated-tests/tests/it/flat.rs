//! Encoding and decoding of many values of one layout at once: the results are those of single
//! values.

use std::fmt::Debug;

use chronorb_cdr::{
    Arena, Cdr, CdrError, CharSet, Decoder, Encoder, Endian, Flat, Frame, TextForm,
};
use chronorb_generated_tests::types::flat::{Close, Loose, Nested, Octets, Side, Small, Wide};
use proptest::collection::vec;
use proptest::prelude::*;

/// A value whose slices are encoded and decoded one by one.
#[derive(Clone, Copy, Debug)]
struct OneByOne<T>(T);

impl<'a, T: Cdr<'a>> Cdr<'a> for OneByOne<T> {
    const MIN_SIZE: usize = T::MIN_SIZE;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.0.encode(e)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        T::decode(d).map(Self)
    }
}

/// The octets before the values, and their encoding.
#[derive(Clone, Copy, Debug)]
struct Way {
    start: usize,
    endian: Endian,
    text: TextForm,
}

fn way() -> impl Strategy<Value = Way> {
    let narrow = prop_oneof![Just(CharSet::Latin1), Just(CharSet::Utf8)];
    (0..8usize, any::<bool>(), narrow).prop_map(|(start, little, narrow)| Way {
        start,
        endian: Endian::from_flag(little),
        text: TextForm {
            narrow,
            ..TextForm::default()
        },
    })
}

/// Octets that are often values of enums, too.
fn octets() -> impl Strategy<Value = Vec<u8>> {
    let octet = prop_oneof![12 => Just(0u8), 2 => 1..3u8, 1 => any::<u8>()];
    vec(octet, 0..260)
}

/// Returns the octets of `items`, or the error.
fn encoded<'a, T: Cdr<'a>>(items: &[T], way: Way, limit: usize) -> Result<Vec<u8>, CdrError> {
    let mut frame = Frame::new(0, limit);
    let mut e = Encoder::new(&mut frame, way.endian).with_text(way.text);
    e.write_octets(&[0xee; 8][..way.start])?;
    T::encode_slice(items, &mut e)?;
    Ok(frame.as_slice().to_vec())
}

/// Decodes `n` values. Returns them as octets, since NaN is not equal to itself, with the position
/// behind them.
fn decoded<'a, T: Cdr<'a> + 'a>(
    d: &mut Decoder<'a>,
    n: usize,
) -> Result<(Vec<u8>, usize), CdrError> {
    let items = T::decode_slice(d, n)?;
    let plain = Way {
        start: 0,
        endian: Endian::Big,
        text: TextForm::default(),
    };
    let items: Vec<_> = items.iter().map(|&item| OneByOne(item)).collect();
    Ok((encoded(&items, plain, usize::MAX)?, d.position()))
}

/// Decodes the octets in both ways, cut short at each length.
fn assert_decoded_alike<T>(octets: &[u8], n: usize, way: Way) -> Result<(), TestCaseError>
where
    T: for<'a> Cdr<'a> + Flat + Debug + 'static,
{
    for len in 0..=octets.len() {
        let (mut first, mut second) = (octets[..len].to_vec(), octets[..len].to_vec());
        let arena = Arena::new(1 << 14);
        let decoder =
            |octets| Decoder::new(octets, way.start, way.endian, &arena).with_text(way.text);
        prop_assert_eq!(
            decoded::<T>(&mut decoder(&mut first), n),
            decoded::<OneByOne<T>>(&mut decoder(&mut second), n),
        );
    }
    Ok(())
}

/// As above for fragments of GIOP 1.1, where alignment begins anew.
fn assert_joined_alike<T>(fragments: &[&[u8]], n: usize, way: Way) -> Result<(), TestCaseError>
where
    T: for<'a> Cdr<'a> + Flat + Debug + 'static,
{
    let arena = Arena::new(1 << 14);
    let mut frames = [Frame::new(0, 1 << 12), Frame::new(0, 1 << 12)];
    for frame in &mut frames {
        frame.extend_from_slice(&[0xee; 8][..way.start])?;
        for fragment in fragments {
            frame.join(fragment)?;
        }
    }
    let [first, second] = &mut frames;
    prop_assert_eq!(
        decoded::<T>(&mut first.decoder(way.start, way.endian, &arena), n),
        decoded::<OneByOne<T>>(&mut second.decoder(way.start, way.endian, &arena), n),
    );
    Ok(())
}

/// Encodes the values in both ways, for each limit of the frame.
fn assert_encoded_alike<T>(octets: &[u8], n: usize, way: Way) -> Result<(), TestCaseError>
where
    T: for<'a> Cdr<'a> + Flat + Debug + 'static,
{
    let arena = Arena::new(1 << 14);
    let mut octets = octets.to_vec();
    let mut d = Decoder::new(&mut octets, 0, Endian::NATIVE, &arena);
    let Ok(items) = T::decode_slice(&mut d, n) else {
        return Ok(());
    };
    let one_by_one: Vec<_> = items.iter().map(|&item| OneByOne(item)).collect();
    for limit in 0..d.position() + 24 {
        prop_assert_eq!(encoded(items, way, limit), encoded(&one_by_one, way, limit));
    }
    Ok(())
}

macro_rules! alike {
    ($($name:ident: $t:ty;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                failure_persistence: None,
                ..ProptestConfig::default()
            })]
            $(
                #[test]
                fn $name(octets in octets(), cut in 0..260usize, n in 0..7usize, way in way()) {
                    assert_decoded_alike::<$t>(&octets, n, way)?;
                    let (first, second) = octets.split_at(cut.min(octets.len()));
                    assert_joined_alike::<$t>(&[first, second], n, way)?;
                    assert_encoded_alike::<$t>(&octets, n, way)?;
                }
            )*
        }
    };
}

alike! {
    enums_are_read_and_written_alike: Side;
    structs_without_padding_are_read_and_written_alike: Close;
    structs_with_padding_are_read_and_written_alike: Loose;
    structs_of_small_alignment_are_read_and_written_alike: Small;
    structs_of_octets_and_characters_are_read_and_written_alike: Octets;
    structs_of_long_doubles_are_read_and_written_alike: Wide;
    nested_structs_are_read_and_written_alike: Nested;
    arrays_of_structs_are_read_and_written_alike: [Loose; 2];
}

#[test]
fn a_sequence_of_structs_has_the_layout_of_the_standard() {
    let items = [1, 2].map(|rank| Loose {
        kind: 7,
        px: 0.5,
        firm: true,
        rank,
    });
    let way = Way {
        start: 4,
        endian: Endian::Big,
        text: TextForm::default(),
    };
    let half = [0x3f, 0xe0, 0, 0, 0, 0, 0, 0];
    let mut expected = vec![0xee, 0xee, 0xee, 0xee, 7, 0, 0, 0];
    expected.extend_from_slice(&half);
    expected.extend_from_slice(&[1, 0, 0, 1, 7, 0, 0, 0]);
    expected.extend_from_slice(&half);
    expected.extend_from_slice(&[1, 0, 0, 2]);
    assert_eq!(encoded(&items, way, 64), Ok(expected));
}
