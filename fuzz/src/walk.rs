//! Values read one after the other, of types that other octets choose.

use std::hint::black_box;

use chronorb_cdr::{Cdr, CdrError, Char, Decoder, Encoder, LongDouble, Reference};
use chronorb_giop::{Ior, SystemException};

/// Reads a value for each octet of `program`, which names its type, until one
/// cannot be read.
pub(crate) fn walk(d: &mut Decoder<'_>, program: &[u8]) -> Result<(), CdrError> {
    for (at, op) in program.iter().enumerate().take(MAX_VALUES) {
        let before = d.position();
        read(d, op % TYPES, &program[at + 1..])?;
        assert!(d.position() >= before, "a decoder went back");
    }
    Ok(())
}

fn read(d: &mut Decoder<'_>, ty: u8, program: &[u8]) -> Result<(), CdrError> {
    match ty {
        0 => one(d.read_bool()?),
        1 => one(d.read_i8()?),
        2 => one(d.read_i16()?),
        3 => one(d.read_i32()?),
        4 => one(d.read_i64()?),
        5 => one(d.read_f32()?),
        6 => one(d.read_f64()?),
        7 => one(d.read_long_double()?.to_f64()),
        8 => one(d.read_char()?),
        9 => one(d.read_wchar()?),
        10 => one(d.read_str()?),
        11 => one(d.read_str_bounded(5)?),
        12 => one(d.read_wstr()?),
        13 => one(d.read_wstr_bounded(5)?),
        14 => one(d.read_octet_seq()?),
        15 => all(d.read_seq::<bool>()?),
        16 => all(d.read_seq::<u16>()?),
        17 => all(d.read_seq::<u32>()?),
        18 => all(d.read_seq::<u64>()?),
        19 => all(d.read_seq::<f64>()?),
        20 => all(d.read_seq::<LongDouble>()?),
        21 => all(d.read_seq::<Char>()?),
        22 => all(d.read_seq::<char>()?),
        23 => all(d.read_seq::<&str>()?),
        24 => all(d.read_seq::<&[u16]>()?),
        25 => all(d.read_seq::<&[&[&str]]>()?),
        26 => all(d.read_seq_bounded::<[u64; 3]>(4)?),
        27 => all(d.read_seq::<Option<&TextReference>>()?),
        28 => all(d.read_seq::<Tree<'_>>()?),
        29 => all(d.read_seq_with(Some(4), 4, |d| d.read_wstr())?),
        30 => all(&d.read_array::<f32, 5>()?),
        31 => all(d.read_array_ref::<u64, 3>()?),
        32 => all(&d.read_array::<&str, 2>()?),
        33 => one(Ior::decode(d)?),
        34 => one(SystemException::decode(d)?.to_string()),
        35 => d.align(8)?,
        _ => {
            let mut inner = d.read_encapsulation()?;
            // What is wrong within an encapsulation does not concern what is behind it.
            let _ = walk(&mut inner, program);
        }
    }
    Ok(())
}

fn one<T>(value: T) {
    black_box(value);
}

/// Looks at each element, which a sanitizer will not like if there is none.
fn all<T: Copy>(items: &[T]) {
    for item in items {
        black_box(*item);
    }
}

/// A reference that lives in an arena, as one of the ORB does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TextReference(pub(crate) Ior);

impl Reference for TextReference {
    fn encode_reference(this: Option<&Self>, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        this.map_or(&Ior::nil(), |this| &this.0).encode(e)
    }

    fn decode_reference(d: &mut Decoder<'_>) -> Result<Option<Self>, CdrError> {
        let ior = Ior::decode(d)?;
        Ok((!ior.is_nil()).then_some(Self(ior)))
    }
}

/// A type that contains itself, written as the IDL compiler writes it.
#[derive(Clone, Copy, Debug)]
struct Tree<'a> {
    label: u16,
    children: &'a [Self],
}

impl<'a> Cdr<'a> for Tree<'a> {
    const MIN_SIZE: usize = 6;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_u16(self.label)?;
        e.write_seq(self.children)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            label: d.read_u16()?,
            children: d.read_seq()?,
        })
    }
}

/// Number of types that [`read`] knows, with one that needs no number.
const TYPES: u8 = 37;

const MAX_VALUES: usize = 64;
