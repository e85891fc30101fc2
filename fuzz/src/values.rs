//! Values of many types that are written, read, and compared.

use arbitrary::{Arbitrary, Unstructured};
use chronorb_cdr::{CdrError, Char, Decoder, Encoder, LongDouble};
use chronorb_giop::{Ior, TaggedProfile};

use crate::walk::TextReference;

#[derive(Debug)]
pub(crate) enum Value {
    Bool(bool),
    Octet(u8),
    Short(i16),
    Long(u32),
    LongLong(i64),
    Float(f32),
    Double(f64),
    LongDouble(u128),
    Char(u8),
    WChar(char),
    String(String),
    WString(String),
    Bools(Vec<bool>),
    Shorts(Vec<u16>),
    Longs(Vec<i32>),
    LongLongs(Vec<u64>),
    Doubles(Vec<f64>),
    LongDoubles(Vec<u128>),
    Chars(Vec<u8>),
    WChars(Vec<char>),
    Strings(Vec<String>),
    Rows(Vec<Vec<u16>>),
    Matrix([[i16; 3]; 2]),
    References(Vec<Option<(String, u32, Vec<u8>)>>),
    Encapsulation(Vec<Self>),
}

impl<'d> Arbitrary<'d> for Value {
    fn arbitrary(u: &mut Unstructured<'d>) -> arbitrary::Result<Self> {
        Ok(match variant(u, 25)? {
            0 => Self::Bool(u.arbitrary()?),
            1 => Self::Octet(u.arbitrary()?),
            2 => Self::Short(u.arbitrary()?),
            3 => Self::Long(u.arbitrary()?),
            4 => Self::LongLong(u.arbitrary()?),
            5 => Self::Float(u.arbitrary()?),
            6 => Self::Double(u.arbitrary()?),
            7 => Self::LongDouble(u.arbitrary()?),
            8 => Self::Char(u.arbitrary()?),
            9 => Self::WChar(u.arbitrary()?),
            10 => Self::String(u.arbitrary()?),
            11 => Self::WString(u.arbitrary()?),
            12 => Self::Bools(u.arbitrary()?),
            13 => Self::Shorts(u.arbitrary()?),
            14 => Self::Longs(u.arbitrary()?),
            15 => Self::LongLongs(u.arbitrary()?),
            16 => Self::Doubles(u.arbitrary()?),
            17 => Self::LongDoubles(u.arbitrary()?),
            18 => Self::Chars(u.arbitrary()?),
            19 => Self::WChars(u.arbitrary()?),
            20 => Self::Strings(u.arbitrary()?),
            21 => Self::Rows(u.arbitrary()?),
            22 => Self::Matrix(u.arbitrary()?),
            23 => Self::References(u.arbitrary()?),
            _ => Self::Encapsulation(u.arbitrary()?),
        })
    }
}

/// Returns the index of the variant of an enum, as the derive macro of `arbitrary` reads it.
pub(crate) fn variant(u: &mut Unstructured<'_>, count: u64) -> arbitrary::Result<u64> {
    Ok((u64::from(u.arbitrary::<u32>()?) * count) >> 32)
}

impl Value {
    /// Writes the value. Sequences are written as a whole, or, if not `fast`,
    /// as their elements one after the other, which must be the same.
    pub(crate) fn write(&self, e: &mut Encoder<'_>, fast: bool, depth: u8) -> Result<(), CdrError> {
        match self {
            Self::Bool(value) => e.write_bool(*value),
            Self::Octet(value) => e.write_u8(*value),
            Self::Short(value) => e.write_i16(*value),
            Self::Long(value) => e.write_u32(*value),
            Self::LongLong(value) => e.write_i64(*value),
            Self::Float(value) => e.write_f32(*value),
            Self::Double(value) => e.write_f64(*value),
            Self::LongDouble(value) => e.write_long_double(LongDouble::from_bits(*value)),
            Self::Char(value) => e.write_char(Char(*value)),
            Self::WChar(value) => e.write_wchar(*value),
            Self::String(value) => e.write_str(value),
            Self::WString(value) => e.write_wstr(value),
            Self::Bools(items) => each(e, items, fast, |e, item| e.write_bool(*item)),
            Self::Shorts(items) => each(e, items, fast, |e, item| e.write_u16(*item)),
            Self::Longs(items) => each(e, items, fast, |e, item| e.write_i32(*item)),
            Self::LongLongs(items) => each(e, items, fast, |e, item| e.write_u64(*item)),
            Self::Doubles(items) => each(e, items, fast, |e, item| e.write_f64(*item)),
            Self::LongDoubles(items) => each(e, &long_doubles(items), fast, |e, item| {
                e.write_long_double(*item)
            }),
            Self::Chars(items) => each(e, &chars(items), fast, |e, item| e.write_char(*item)),
            Self::WChars(items) => each(e, items, fast, |e, item| e.write_wchar(*item)),
            Self::Strings(items) => each(e, &strs(items), fast, |e, item| e.write_str(item)),
            Self::Rows(items) => each(e, &rows(items), fast, |e, item| e.write_seq(item)),
            Self::Matrix(rows) if fast => chronorb_cdr::Cdr::encode(rows, e),
            Self::Matrix(rows) => rows
                .as_flattened()
                .iter()
                .try_for_each(|item| e.write_i16(*item)),
            Self::References(items) => {
                let items = references(items);
                let items: Vec<_> = items.iter().map(Option::as_ref).collect();
                e.write_seq(&items)
            }
            Self::Encapsulation(items) => e.write_encapsulation(|e| {
                within(items, depth)
                    .iter()
                    .try_for_each(|item| item.write(e, fast, depth + 1))
            }),
        }
    }

    /// Reads a value that was written, and compares.
    pub(crate) fn check(&self, d: &mut Decoder<'_>, depth: u8) -> Result<(), CdrError> {
        match self {
            Self::Bool(value) => assert_eq!(d.read_bool()?, *value),
            Self::Octet(value) => assert_eq!(d.read_u8()?, *value),
            Self::Short(value) => assert_eq!(d.read_i16()?, *value),
            Self::Long(value) => assert_eq!(d.read_u32()?, *value),
            Self::LongLong(value) => assert_eq!(d.read_i64()?, *value),
            Self::Float(value) => assert_eq!(d.read_f32()?.to_bits(), value.to_bits()),
            Self::Double(value) => assert_eq!(d.read_f64()?.to_bits(), value.to_bits()),
            Self::LongDouble(value) => assert_eq!(d.read_long_double()?.to_bits(), *value),
            Self::Char(value) => assert_eq!(d.read_char()?, Char(*value)),
            Self::WChar(value) => assert_eq!(d.read_wchar()?, *value),
            Self::String(value) => assert_eq!(d.read_str()?, value),
            Self::WString(value) => assert_eq!(d.read_wstr()?, value),
            Self::Bools(items) => assert_eq!(d.read_seq::<bool>()?, items),
            Self::Shorts(items) => assert_eq!(d.read_seq::<u16>()?, items),
            Self::Longs(items) => assert_eq!(d.read_seq::<i32>()?, items),
            Self::LongLongs(items) => assert_eq!(d.read_seq::<u64>()?, items),
            Self::Doubles(items) => {
                let read = d.read_seq::<f64>()?;
                assert!(
                    read.iter()
                        .map(|x| x.to_bits())
                        .eq(items.iter().map(|x| x.to_bits()))
                );
            }
            Self::LongDoubles(items) => {
                assert_eq!(d.read_seq::<LongDouble>()?, long_doubles(items));
            }
            Self::Chars(items) => assert_eq!(d.read_seq::<Char>()?, chars(items)),
            Self::WChars(items) => assert_eq!(d.read_seq::<char>()?, items),
            Self::Strings(items) => assert_eq!(d.read_seq::<&str>()?, items),
            Self::Rows(items) => assert_eq!(d.read_seq::<&[u16]>()?, items),
            Self::Matrix(rows) => assert_eq!(d.read_array::<[i16; 3], 2>()?, *rows),
            Self::References(items) => {
                let read = d.read_seq::<Option<&TextReference>>()?;
                assert!(
                    read.iter()
                        .copied()
                        .eq(references(items).iter().map(Option::as_ref))
                );
            }
            Self::Encapsulation(items) => {
                let mut inner = d.read_encapsulation()?;
                for item in within(items, depth) {
                    item.check(&mut inner, depth + 1)?;
                }
                assert!(inner.is_empty());
            }
        }
        Ok(())
    }
}

fn each<'a, T: chronorb_cdr::Cdr<'a>>(
    e: &mut Encoder<'_>,
    items: &[T],
    fast: bool,
    mut write: impl FnMut(&mut Encoder<'_>, &T) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    if fast {
        return e.write_seq(items);
    }
    e.write_len(items.len())?;
    items.iter().try_for_each(|item| write(e, item))
}

/// Returns the content of an encapsulation; it is empty if the nesting is too deep to be read.
fn within(items: &[Value], depth: u8) -> &[Value] {
    if depth < MAX_DEPTH { items } else { &[] }
}

fn long_doubles(items: &[u128]) -> Vec<LongDouble> {
    items.iter().copied().map(LongDouble::from_bits).collect()
}

fn chars(items: &[u8]) -> Vec<Char> {
    items.iter().copied().map(Char).collect()
}

fn strs(items: &[String]) -> Vec<&str> {
    items.iter().map(String::as_str).collect()
}

fn rows(items: &[Vec<u16>]) -> Vec<&[u16]> {
    items.iter().map(Vec::as_slice).collect()
}

fn references(items: &[Option<(String, u32, Vec<u8>)>]) -> Vec<Option<TextReference>> {
    items
        .iter()
        .map(|item| {
            let (type_id, tag, data) = item.clone()?;
            let profiles = vec![TaggedProfile { tag, data }];
            Some(TextReference(Ior { type_id, profiles }))
        })
        .collect()
}

/// The greatest nesting of encapsulations that are written.
const MAX_DEPTH: u8 = 16;
