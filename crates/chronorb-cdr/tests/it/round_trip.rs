//! Round trips: for every type, in both byte orders, and at every position in the message.

use chronorb_cdr::{
    Arena, Cdr, CdrError, Char, CharSet, Decoder, Encoder, Endian, Frame, Gather, LongDouble,
    TextForm, WideForm,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// One value of each type of IDL that has a CDR form of its own.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bool(bool),
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(u32),
    F64(u64),
    LongDouble([u8; 16]),
    Char(u8),
    WChar(char),
    Str(String),
    WStr(String),
    Octets(Vec<u8>),
    Bools(Vec<bool>),
    Chars(Vec<u8>),
    Shorts(Vec<i16>),
    Doubles(Vec<u64>),
    LongDoubles(Vec<[u8; 16]>),
    Strs(Vec<String>),
    Matrix([[i32; 3]; 2]),
    Ragged(Vec<Vec<u16>>),
    Encapsulated(Box<Self>),
}

impl Value {
    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        match self {
            Self::Bool(v) => e.write_bool(*v),
            Self::U8(v) => e.write_u8(*v),
            Self::I8(v) => e.write_i8(*v),
            Self::U16(v) => e.write_u16(*v),
            Self::I16(v) => e.write_i16(*v),
            Self::U32(v) => e.write_u32(*v),
            Self::I32(v) => e.write_i32(*v),
            Self::U64(v) => e.write_u64(*v),
            Self::I64(v) => e.write_i64(*v),
            Self::F32(v) => e.write_f32(f32::from_bits(*v)),
            Self::F64(v) => e.write_f64(f64::from_bits(*v)),
            Self::LongDouble(v) => e.write_long_double(LongDouble(*v)),
            Self::Char(v) => e.write_char(Char(*v)),
            Self::WChar(v) => e.write_wchar(*v),
            Self::Str(v) => e.write_str(v),
            Self::WStr(v) => e.write_wstr(v),
            Self::Octets(v) => e.write_octet_seq(v),
            Self::Bools(v) => e.write_seq(v),
            Self::Chars(v) => e.write_seq(&v.iter().map(|&c| Char(c)).collect::<Vec<_>>()),
            Self::Shorts(v) => e.write_seq(v),
            Self::Doubles(v) => {
                e.write_seq(&v.iter().map(|&v| f64::from_bits(v)).collect::<Vec<_>>())
            }
            Self::LongDoubles(v) => {
                e.write_seq(&v.iter().map(|&v| LongDouble(v)).collect::<Vec<_>>())
            }
            Self::Strs(v) => e.write_seq(&v.iter().map(String::as_str).collect::<Vec<_>>()),
            Self::Matrix(v) => v.encode(e),
            Self::Ragged(v) => e.write_seq(&v.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            Self::Encapsulated(v) => e.write_encapsulation(|e| v.encode(e)),
        }
    }

    /// Reads a value of the same type.
    fn decode_alike(&self, d: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(match self {
            Self::Bool(_) => Self::Bool(d.read_bool()?),
            Self::U8(_) => Self::U8(d.read_u8()?),
            Self::I8(_) => Self::I8(d.read_i8()?),
            Self::U16(_) => Self::U16(d.read_u16()?),
            Self::I16(_) => Self::I16(d.read_i16()?),
            Self::U32(_) => Self::U32(d.read_u32()?),
            Self::I32(_) => Self::I32(d.read_i32()?),
            Self::U64(_) => Self::U64(d.read_u64()?),
            Self::I64(_) => Self::I64(d.read_i64()?),
            Self::F32(_) => Self::F32(d.read_f32()?.to_bits()),
            Self::F64(_) => Self::F64(d.read_f64()?.to_bits()),
            Self::LongDouble(_) => Self::LongDouble(d.read_long_double()?.0),
            Self::Char(_) => Self::Char(d.read_char()?.0),
            Self::WChar(_) => Self::WChar(d.read_wchar()?),
            Self::Str(_) => Self::Str(d.read_str()?.to_owned()),
            Self::WStr(_) => Self::WStr(d.read_wstr()?.to_owned()),
            Self::Octets(_) => Self::Octets(d.read_octet_seq()?.to_vec()),
            Self::Bools(_) => Self::Bools(d.read_seq()?.to_vec()),
            Self::Chars(_) => Self::Chars(d.read_seq::<Char>()?.iter().map(|c| c.0).collect()),
            Self::Shorts(_) => Self::Shorts(d.read_seq()?.to_vec()),
            Self::Doubles(_) => {
                Self::Doubles(d.read_seq::<f64>()?.iter().map(|v| v.to_bits()).collect())
            }
            Self::LongDoubles(_) => {
                Self::LongDoubles(d.read_seq::<LongDouble>()?.iter().map(|v| v.0).collect())
            }
            Self::Strs(_) => Self::Strs(
                d.read_seq::<&str>()?
                    .iter()
                    .map(|&v| v.to_owned())
                    .collect(),
            ),
            Self::Matrix(_) => Self::Matrix(Cdr::decode(d)?),
            Self::Ragged(_) => {
                Self::Ragged(d.read_seq::<&[u16]>()?.iter().map(|v| v.to_vec()).collect())
            }
            Self::Encapsulated(v) => {
                let mut inner = d.read_encapsulation()?;
                Self::Encapsulated(Box::new(v.decode_alike(&mut inner)?))
            }
        })
    }
}

fn value() -> impl Strategy<Value = Value> {
    // Text of a few characters, ASCII, Latin-1 and beyond, within what UTF-8 and UTF-16 can carry.
    let narrow = "[ -~\u{a0}-\u{ff}]{0,12}";
    let wide = "[ -~\u{a0}-\u{ff}\u{4e00}-\u{4eff}\u{1f600}-\u{1f64f}]{0,12}";
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        any::<u32>().prop_map(Value::F32),
        any::<u64>().prop_map(Value::F64),
        any::<[u8; 16]>().prop_map(Value::LongDouble),
        (0..0x80u8).prop_map(Value::Char),
        prop::char::range('\u{1}', '\u{d7ff}').prop_map(Value::WChar),
        narrow.prop_map(Value::Str),
        wide.prop_map(Value::WStr),
        vec(any::<u8>(), 0..9).prop_map(Value::Octets),
        vec(any::<bool>(), 0..9).prop_map(Value::Bools),
        vec(0..0x80u8, 0..9).prop_map(Value::Chars),
        vec(any::<i16>(), 0..9).prop_map(Value::Shorts),
        vec(any::<u64>(), 0..9).prop_map(Value::Doubles),
        vec(any::<[u8; 16]>(), 0..3).prop_map(Value::LongDoubles),
        vec(narrow.prop_map(String::from), 0..4).prop_map(Value::Strs),
        any::<[[i32; 3]; 2]>().prop_map(Value::Matrix),
        vec(vec(any::<u16>(), 0..4), 0..4).prop_map(Value::Ragged),
    ];
    leaf.prop_recursive(3, 6, 1, |inner| {
        inner.prop_map(|value| Value::Encapsulated(Box::new(value)))
    })
}

fn endian() -> impl Strategy<Value = Endian> {
    any::<bool>().prop_map(Endian::from_flag)
}

fn text() -> impl Strategy<Value = TextForm> {
    (
        prop_oneof![Just(CharSet::Latin1), Just(CharSet::Utf8)],
        prop_oneof![Just(WideForm::Ucs2), Just(WideForm::Utf16)],
    )
        .prop_map(|(narrow, wide)| TextForm { narrow, wide })
}

/// The octets of `values`, after `offset` octets that are something else.
fn encode(values: &[Value], offset: usize, endian: Endian, text: TextForm) -> Frame {
    let mut frame = Frame::new(64, 1 << 20);
    let mut e = Encoder::new(&mut frame, endian).with_text(text);
    e.write_octets(&[0xee; 8][..offset]).unwrap();
    for value in values {
        value.encode(&mut e).unwrap();
    }
    frame
}

/// A message as it goes out in pieces.
#[derive(Default)]
struct Pieces {
    octets: Vec<u8>,
    of_frame: usize,
    taken: usize,
}

impl Gather for Pieces {
    fn take(&mut self, frame: &Frame, octets: &[u8]) -> Result<bool, CdrError> {
        self.octets
            .extend_from_slice(&frame.as_slice()[self.of_frame..]);
        self.octets.extend_from_slice(octets);
        self.of_frame = frame.len();
        self.taken += octets.len();
        Ok(true)
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_value_comes_back(
        values in vec(value(), 1..12),
        offset in 0..8usize,
        endian in endian(),
        text in text(),
    ) {
        let mut frame = encode(&values, offset, endian, text);
        let arena = Arena::new(1 << 16);
        let bytes = &mut frame.as_mut_slice()[offset..];
        let mut d = Decoder::new(bytes, offset, endian, &arena).with_text(text);
        for value in &values {
            prop_assert_eq!(&value.decode_alike(&mut d).unwrap(), value);
        }
        prop_assert!(d.is_empty());
    }

    /// Slices that are left out of the frame are in the message at their place.
    #[test]
    fn a_message_in_pieces_is_the_same_message(
        values in vec(value(), 1..12),
        offset in 0..8usize,
        great in 0..12usize,
        endian in endian(),
        text in text(),
    ) {
        let whole = encode(&values, offset, endian, text);
        let mut frame = Frame::new(64, 1 << 20);
        let mut e = Encoder::new(&mut frame, endian).with_text(text);
        e.write_octets(&[0xee; 8][..offset]).unwrap();
        let mut pieces = Pieces::default();
        let mut gathering = e.gathering(great, &mut pieces);
        for value in &values {
            value.encode(&mut gathering).unwrap();
        }
        prop_assert_eq!(gathering.position(), whole.len());
        prop_assert_eq!(frame.len() + pieces.taken, whole.len());
        pieces.octets.extend_from_slice(&frame.as_slice()[pieces.of_frame..]);
        prop_assert_eq!(pieces.octets, whole.as_slice());
    }

    /// Memory need not be aligned as the message is; the values are the same.
    #[test]
    fn alignment_is_that_of_the_message_not_of_memory(
        values in vec(value(), 1..6),
        shift in 0..8usize,
        endian in endian(),
    ) {
        let text = TextForm::default();
        let frame = encode(&values, 0, endian, text);
        let mut memory = vec![0; shift];
        memory.extend_from_slice(frame.as_slice());
        let arena = Arena::new(1 << 16);
        let mut d = Decoder::new(&mut memory[shift..], 0, endian, &arena);
        for value in &values {
            prop_assert_eq!(&value.decode_alike(&mut d).unwrap(), value);
        }
    }

    /// A message that is cut short is an error, or ends before the cut.
    #[test]
    fn a_message_may_end_anywhere(
        values in vec(value(), 1..6),
        endian in endian(),
        text in text(),
    ) {
        let frame = encode(&values, 0, endian, text);
        for cut in 0..frame.len() {
            let mut bytes = frame.as_slice()[..cut].to_vec();
            let arena = Arena::new(1 << 16);
            let mut d = Decoder::new(&mut bytes, 0, endian, &arena).with_text(text);
            let whole = values.iter().all(|value| value.decode_alike(&mut d).is_ok());
            prop_assert!(!whole);
        }
    }

    /// Octets that mean nothing, or something else, are read or refused.
    #[test]
    fn any_octets_can_be_read(
        values in vec(value(), 1..6),
        mut bytes in vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(0xff), any::<u8>()], 0..200),
        endian in endian(),
        text in text(),
    ) {
        let arena = Arena::new(512);
        let mut d = Decoder::new(&mut bytes, 0, endian, &arena).with_text(text);
        for value in &values {
            if value.decode_alike(&mut d).is_err() {
                break;
            }
        }
        prop_assert!(arena.used() <= arena.capacity());
    }

    /// The same, in fragments of GIOP 1.1.
    #[test]
    fn any_fragments_can_be_read(
        values in vec(value(), 1..6),
        fragments in vec(vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..12), 0..20),
        endian in endian(),
    ) {
        let mut frame = Frame::new(0, 1 << 10);
        for fragment in &fragments {
            frame.join(fragment).unwrap();
        }
        let arena = Arena::new(512);
        let mut d = frame.decoder(0, endian, &arena);
        let len = d.remaining();
        for value in &values {
            if value.decode_alike(&mut d).is_err() {
                break;
            }
        }
        prop_assert_eq!(d.position() + d.remaining(), len);
    }

    #[test]
    fn a_frame_that_is_too_small_is_an_error(values in vec(value(), 1..6), limit in 0..64usize) {
        let mut frame = Frame::new(0, limit);
        let mut e = Encoder::new(&mut frame, Endian::Big);
        for value in &values {
            if let Err(error) = value.encode(&mut e) {
                prop_assert_eq!(error, CdrError::FrameFull);
                break;
            }
        }
        prop_assert!(frame.len() <= limit);
    }

    #[test]
    fn a_double_survives_as_long_double(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let back = LongDouble::from_f64(value).to_f64();
        prop_assert!(back.to_bits() == bits || value.is_nan() && back.is_nan());
    }
}

#[test]
fn only_what_is_great_and_in_native_order_is_left_out() {
    let taken = |endian, write: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>| {
        let mut frame = Frame::new(256, 256);
        let mut pieces = Pieces::default();
        let mut e = Encoder::new(&mut frame, endian);
        write(&mut e.gathering(16, &mut pieces)).unwrap();
        pieces.taken
    };
    let foreign = Endian::from_flag(!Endian::NATIVE.is_little());
    assert_eq!(taken(foreign, &|e| e.write_octet_seq(&[1; 16])), 16);
    assert_eq!(taken(foreign, &|e| e.write_seq(&[1.5f64; 2])), 0);
    assert_eq!(taken(Endian::NATIVE, &|e| e.write_seq(&[1.5f64; 2])), 16);
    assert_eq!(taken(Endian::NATIVE, &|e| e.write_seq(&[1u32; 3])), 0);
    assert_eq!(taken(Endian::NATIVE, &|e| [7u32; 4].encode(e)), 16);
    let encapsulated = |e: &mut Encoder<'_>| e.write_encapsulation(|e| e.write_octets(&[1; 16]));
    assert_eq!(taken(Endian::NATIVE, &encapsulated), 0);
}

#[test]
fn what_stands_before_a_slice_that_was_left_out_stays_as_it_is() {
    let mut frame = Frame::new(64, 64);
    let mut pieces = Pieces::default();
    let mut e = Encoder::new(&mut frame, Endian::Big);
    let mut e = e.gathering(16, &mut pieces);
    e.write_u32(1).unwrap();
    e.write_octets(&[2; 20]).unwrap();
    e.write_u32(3).unwrap();
    assert_eq!(e.patch_u32(0, 9), Err(CdrError::EndOfData));
    assert_eq!(e.patch_u32(20, 9), Err(CdrError::EndOfData));
    assert_eq!(e.patch_u32(24, 4), Ok(()));
    e.write_u64(5).unwrap();
    e.truncate(28);
    assert_eq!(e.position(), 28);
    e.truncate(10);
    assert_eq!((e.position(), e.frame().len()), (10, 4));
    e.align(8).unwrap();
    assert_eq!(frame.as_slice(), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn numbers_are_read_where_they_lie_in_both_byte_orders() {
    for endian in [Endian::Big, Endian::Little] {
        let mut frame = Frame::new(256, 256);
        let mut e = Encoder::new(&mut frame, endian);
        e.write_seq(&[1.5f64, -2.5]).unwrap();
        e.write_seq(&[1i32, -2, 3]).unwrap();
        [7u64, 8].encode(&mut e).unwrap();
        let arena = Arena::new(0);
        let range = frame.as_slice().as_ptr_range();
        let mut d = Decoder::new(frame.as_mut_slice(), 0, endian, &arena);
        let doubles: &[f64] = d.read_seq().unwrap();
        assert!(range.contains(&doubles.as_ptr().cast()));
        assert_eq!(doubles, [1.5, -2.5]);
        assert_eq!(d.read_seq::<i32>().unwrap(), [1, -2, 3]);
        assert_eq!(d.read_array_ref::<u64, 2>().unwrap(), &[7, 8]);
    }
}

#[test]
fn the_layout_is_that_of_the_standard() {
    let mut frame = Frame::new(64, 64);
    let mut e = Encoder::new(&mut frame, Endian::Big);
    e.write_bool(true).unwrap();
    e.write_u16(0x0102).unwrap();
    e.write_str("hi").unwrap();
    e.write_u64(0x0304_0506_0708_090a).unwrap();
    assert_eq!(
        frame.as_slice(),
        [
            1, 0, 1, 2, 0, 0, 0, 3, b'h', b'i', 0, 0, 0, 0, 0, 0, 3, 4, 5, 6, 7, 8, 9, 10
        ]
    );
    frame.clear();
    let mut e = Encoder::new(&mut frame, Endian::Little);
    e.write_u8(9).unwrap();
    e.write_encapsulation(|e| e.write_u32(5)).unwrap();
    assert_eq!(
        frame.as_slice(),
        [9, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0]
    );
}

#[test]
fn no_padding_stands_before_elements_that_are_not_there() {
    let mut frame = Frame::new(64, 64);
    let mut e = Encoder::new(&mut frame, Endian::Big);
    e.write_seq::<f64>(&[]).unwrap();
    assert_eq!(frame.len(), 4);
    let arena = Arena::new(0);
    let mut d = Decoder::new(frame.as_mut_slice(), 0, Endian::Big, &arena);
    assert!(d.read_seq::<f64>().unwrap().is_empty());
    assert!(d.is_empty());
}

#[test]
fn octets_are_taken_ahead_up_to_the_end_and_never_over_a_joint() {
    let arena = Arena::new(0);
    let mut frame = Frame::new(16, 16);
    frame.extend_from_slice(&[1, 2, 3]).unwrap();
    let mut d = frame.decoder(0, Endian::NATIVE, &arena);
    assert_eq!(d.lookahead(0), Some(&[1, 2, 3][..]));
    assert_eq!(d.take_ahead(4), None);
    assert_eq!(d.take_ahead(2), Some(&[1, 2][..]));
    assert_eq!((d.position(), d.read_u8()), (2, Ok(3)));
    frame.join(&[4]).unwrap();
    let mut d = frame.decoder(0, Endian::NATIVE, &arena);
    assert_eq!((d.take_ahead(1), d.read_u8()), (None, Ok(1)));
}

#[test]
fn in_fragments_of_giop_1_1_alignment_is_relative_to_their_header() {
    let mut frame = Frame::new(64, 64);
    frame.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 2]).unwrap();
    // The header is 12 octets long, so that 4 of padding stand before a double.
    frame
        .join(&[0, 0, 0, 0, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 3])
        .unwrap();
    frame.join(&[0, 0, 0, 4, 5, 0, 0, 6]).unwrap();
    let arena = Arena::new(0);
    let mut copy = frame.fitting_copy().unwrap();
    for frame in [&mut copy, &mut frame] {
        let mut d = frame.decoder(0, Endian::Big, &arena);
        assert_eq!((d.read_u8(), d.read_u32()), (Ok(1), Ok(2)));
        assert_eq!((d.read_f64(), d.read_u8()), (Ok(1.5), Ok(3)));
        assert_eq!(
            (d.read_u32(), d.read_u8(), d.read_u16()),
            (Ok(4), Ok(5), Ok(6))
        );
        assert!(d.is_empty());
    }

    frame.truncate(8);
    frame
        .extend_from_slice(&[0x3f, 0xf8, 0, 0, 0, 0, 0, 0])
        .unwrap();
    let mut d = frame.decoder(8, Endian::Big, &arena);
    assert_eq!(
        d.read_f64(),
        Ok(1.5),
        "a joint goes with what was behind it"
    );
}

#[test]
fn long_doubles_round_to_the_nearest_double() {
    let one = LongDouble::from_f64(1.0);
    assert_eq!(one.to_bits(), 0x3fff << 112);
    let half_up = LongDouble::from_bits(one.to_bits() | 1 << 59);
    assert_eq!(half_up.to_f64(), 1.0, "a tie goes to even");
    let above = LongDouble::from_bits(half_up.to_bits() | 1);
    assert_eq!(above.to_f64(), 1.0 + f64::EPSILON);
    let huge = LongDouble::from_bits(0x7ffe << 112);
    assert_eq!(huge.to_f64(), f64::INFINITY);
    let tiny = LongDouble::from_bits(1);
    assert_eq!(tiny.to_f64(), 0.0);
}
