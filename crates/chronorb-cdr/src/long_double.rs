//! The IDL type `long double`: 16 octets in the format binary128.

use std::fmt;

/// An IDL `long double`: IEEE 754 binary128.
///
/// The octets are kept in big-endian order on every machine. Equality is
/// equality of the bits: NaN equals itself, and the zeros differ.
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
#[repr(transparent)]
pub struct LongDouble(pub [u8; 16]);

impl LongDouble {
    /// The value with these bits: sign, 15 bits of exponent, 112 of fraction.
    #[inline]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }

    /// The bits of the value.
    #[inline]
    pub const fn to_bits(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Converts exactly.
    pub fn from_f64(value: f64) -> Self {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let exponent = ((bits >> 52) & 0x7ff) as u32;
        let fraction = bits & F64_FRACTION;
        let magnitude = match (exponent, fraction) {
            (0, 0) => 0,
            // A subnormal: its first set bit becomes the implicit one.
            (0, _) => {
                let shift = fraction.leading_zeros() - 11;
                let exponent = EXPONENT_OFFSET + 1 - shift;
                join(exponent, (fraction << shift) & F64_FRACTION)
            }
            (0x7ff, _) => join(0x7fff, fraction),
            _ => join(exponent + EXPONENT_OFFSET, fraction),
        };
        Self::from_bits(sign | magnitude)
    }

    /// Converts to the nearest `f64`, ties to even. A value that is too great becomes infinite.
    pub fn to_f64(self) -> f64 {
        let bits = self.to_bits();
        let sign = ((bits >> 127) as u64) << 63;
        let exponent = ((bits >> 112) & 0x7fff) as i32;
        let fraction = bits & ((1 << 112) - 1);
        let magnitude = if exponent == 0x7fff {
            let quiet = if fraction == 0 { 0 } else { 1 << 51 };
            0x7ff << 52 | (fraction >> 60) as u64 | quiet
        } else {
            let exponent = exponent - EXPONENT_OFFSET as i32;
            if exponent >= 0x7ff {
                0x7ff << 52
            } else if exponent >= 1 {
                // A carry out of the fraction correctly increments the exponent.
                ((exponent as u64) << 52) + round(fraction, 60)
            } else {
                let significand = fraction | 1 << 112;
                round(significand, (61 - exponent).min(127) as u32)
            }
        };
        f64::from_bits(sign | magnitude)
    }
}

impl From<f64> for LongDouble {
    fn from(value: f64) -> Self {
        Self::from_f64(value)
    }
}

impl fmt::Debug for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongDouble({:?})", self.to_f64())
    }
}

fn join(exponent: u32, f64_fraction: u64) -> u128 {
    u128::from(exponent) << 112 | u128::from(f64_fraction) << 60
}

/// `value` without its last `bits` bits, rounded to nearest, ties to even.
fn round(value: u128, bits: u32) -> u64 {
    let kept = value >> bits;
    let rest = value & ((1 << bits) - 1);
    let half = 1 << (bits - 1);
    let up = rest > half || (rest == half && kept & 1 == 1);
    kept as u64 + u64::from(up)
}

const F64_FRACTION: u64 = (1 << 52) - 1;

/// Difference of the exponent biases of binary128 and binary64.
const EXPONENT_OFFSET: u32 = 16383 - 1023;
