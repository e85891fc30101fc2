//! The IDL type `fixed`: decimal numbers with a fixed number of digits.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
mod arithmetic;
pub(crate) mod bcd;
mod convert;

pub use convert::FixedError;

use crate::{Cdr, CdrError, Decoder, Encoder, TypeCode, Typed};

/// An IDL `fixed<D, S>`: a decimal number of `D` digits, `S` of them behind the point.
///
/// `D` is at most 31, and `S` at most `D`; other types do not compile. Excess decimals are cut off,
/// as CORBA requires; only [`round_to`](Self::round_to) rounds. A value that is too great is an
/// error and never wraps.
///
/// ```
/// use chronorb_cdr::Fixed;
///
/// # fn main() -> Result<(), chronorb_cdr::FixedError> {
/// type Price = Fixed<9, 2>;
///
/// let price: Price = "19.99".parse()?;
/// let three = price.checked_mul(Price::try_from(3)?);
/// assert_eq!(three, Price::from_unscaled(5997));
/// assert_eq!(price.checked_div(Price::try_from(3)?).unwrap().to_string(), "6.66");
/// assert!(Price::try_from(10_000_000).is_err(), "it has 7 digits before the point");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fixed<const D: u8, const S: u8>(i128);

impl<const D: u8, const S: u8> Fixed<D, S> {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// The greatest value: `D` nines.
    pub const MAX: Self = {
        assert!(
            1 <= D && D <= 31 && S <= D,
            "a fixed has 1 to 31 digits, and no more behind the point"
        );
        Self(10_i128.pow(D as u32) - 1)
    };

    /// The least value.
    pub const MIN: Self = Self(-Self::MAX.0);

    /// One, times the scale.
    const UNIT: u128 = 10_u128.pow(S as u32);

    /// The value `unscaled` / 10<sup>S</sup>; `None` if it has too many digits.
    pub const fn from_unscaled(unscaled: i128) -> Option<Self> {
        if unscaled > Self::MAX.0 || unscaled < Self::MIN.0 {
            return None;
        }
        Some(Self(unscaled))
    }

    /// The value times 10<sup>S</sup>.
    pub const fn unscaled(self) -> i128 {
        self.0
    }

    /// Returns the number of digits, and the number of digits behind the point.
    pub const fn digits_and_scale(self) -> (u8, u8) {
        (D, S)
    }
}

impl<'a, const D: u8, const S: u8> Cdr<'a> for Fixed<D, S> {
    const MIN_SIZE: usize = bcd::size(D);

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        let octets = bcd::encode(self.0);
        // All octets before these are zero.
        e.write_octets(&octets[octets.len() - bcd::size(D)..])
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        let unscaled = bcd::decode(d.read_octets(bcd::size(D))?);
        unscaled
            .and_then(Self::from_unscaled)
            .ok_or(CdrError::InvalidFixed)
    }
}

impl<const D: u8, const S: u8> Typed for Fixed<D, S> {
    const TYPE_CODE: TypeCode<'static> = TypeCode::Fixed {
        digits: D as u16,
        scale: S as i16,
    };
}
