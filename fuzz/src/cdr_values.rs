use arbitrary::{Arbitrary, Result, Unstructured};
use chronorb_cdr::{
    Arena, CdrError, CharSet, Decoder, Encoder, Endian, Frame, LongDouble, TextForm, WideForm,
};

use crate::values::Value;
use crate::walk::walk;

/// Reads values of many types from octets that need not be values at all, and
/// writes and reads values of many types: at any position, in both byte orders
/// and in all forms of text.
pub fn cdr_values(data: &[u8]) {
    // Input that is too short for a plan is of no interest.
    let _ = run(Unstructured::new(data));
}

fn run(mut u: Unstructured<'_>) -> Result<()> {
    let plan = Plan::new(&mut u)?;
    match u.int_in_range(0..=3)? {
        0 => {
            let program = program(&mut u)?;
            plan.read_octets(program, &mut u.take_rest().to_vec());
        }
        1 => {
            let program = program(&mut u)?;
            let cuts = u.arbitrary()?;
            plan.read_fragments(program, cuts, u.take_rest());
        }
        2 => long_double(u.arbitrary()?, u.arbitrary()?),
        _ => plan.write_and_read(&Vec::arbitrary(&mut u)?),
    }
    Ok(())
}

/// The position and the form of values.
struct Plan {
    endian: Endian,
    text: TextForm,
    /// Number of octets before the first value.
    before: usize,
    /// Whether they do not count for alignment.
    own_origin: bool,
    arena: usize,
}

impl Plan {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        Ok(Self {
            endian: Endian::from_flag(u.arbitrary()?),
            text: TextForm {
                narrow: *u.choose(&[CharSet::Latin1, CharSet::Utf8])?,
                wide: *u.choose(&[WideForm::Illegal, WideForm::Ucs2, WideForm::Utf16])?,
            },
            before: u.int_in_range(0..=16)?,
            own_origin: u.arbitrary()?,
            arena: *u.choose(&[0, 64, 1 << 12, 1 << 16])?,
        })
    }

    /// Reads from a slice, of which any octet may be the first of a message.
    fn read_octets(&self, program: &[u8], octets: &mut [u8]) {
        let arena = Arena::new(self.arena);
        let before = self.before.min(octets.len());
        let position = if self.own_origin { 0 } else { before };
        let mut d =
            Decoder::new(&mut octets[before..], position, self.endian, &arena).with_text(self.text);
        let _ = walk(&mut d, program);
    }

    /// Reads from a frame of several fragments, in which alignment begins anew.
    fn read_fragments(&self, program: &[u8], cuts: [u8; 3], octets: &[u8]) {
        let mut frame = Frame::new(0, octets.len());
        let mut rest = octets;
        for cut in cuts {
            let (body, later) = rest.split_at(rest.len().min(usize::from(cut)));
            frame
                .join(body)
                .expect("the frame is as large as its parts");
            rest = later;
        }
        frame
            .join(rest)
            .expect("the frame is as large as its parts");
        assert_eq!(frame.as_slice(), octets);
        let arena = Arena::new(self.arena);
        let d = frame.decoder(self.before, self.endian, &arena);
        let _ = walk(&mut d.with_text(self.text), program);
    }

    fn write_and_read(&self, values: &[Value]) {
        let (Some(mut frame), Some(slow)) =
            (self.written(values, true), self.written(values, false))
        else {
            return;
        };
        assert_eq!(frame.as_slice(), slow.as_slice());
        let arena = Arena::new(64 * frame.len());
        let position = if self.own_origin { 0 } else { self.before };
        let octets = &mut frame.as_mut_slice()[self.before..];
        let mut d = Decoder::new(octets, position, self.endian, &arena).with_text(self.text);
        for value in values {
            if let Err(error) = value.check(&mut d, 0) {
                panic!("{value:?} was written but not read: {error}");
            }
        }
        assert!(d.is_empty());
    }

    /// The values in a frame, unless they have text that cannot be written.
    fn written(&self, values: &[Value], fast: bool) -> Option<Frame> {
        let mut frame = Frame::new(0, 1 << 24);
        frame
            .extend_from_slice(&vec![0xaa; self.before])
            .expect("the frame is large");
        let origin = if self.own_origin { self.before } else { 0 };
        let mut e = Encoder::new(&mut frame, self.endian)
            .with_text(self.text)
            .with_origin(origin);
        match values
            .iter()
            .try_for_each(|value| value.write(&mut e, fast, 0))
        {
            Ok(()) => Some(frame),
            Err(
                CdrError::EmbeddedNul | CdrError::UnmappableChar | CdrError::WideNotAllowedWrite,
            ) => None,
            Err(error) => panic!("{values:?} cannot be written: {error}"),
        }
    }
}

/// The types of the values to read.
fn program<'a>(u: &mut Unstructured<'a>) -> Result<&'a [u8]> {
    let len = u.int_in_range(0..=31)?;
    u.bytes(len)
}

/// Each double is a `long double`, and each of those is near a double.
fn long_double(double: f64, bits: u128) {
    let same = LongDouble::from_f64(double).to_f64();
    assert!(same.to_bits() == double.to_bits() || (same.is_nan() && double.is_nan()));
    let near = LongDouble::from_bits(bits).to_f64();
    let again = LongDouble::from_f64(near).to_f64();
    assert!(again.to_bits() == near.to_bits() || (again.is_nan() && near.is_nan()));
    assert_eq!(near.is_sign_negative(), bits >> 127 == 1);
}
