//! Conversions of decimal numbers from and to integers, floating-point numbers and text.

use std::fmt;
use std::str::FromStr;

use super::Fixed;

/// The reason why a number or a text cannot become a fixed-point value.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum FixedError {
    /// The text is not a decimal number such as `-12.50`.
    #[error("not a decimal number")]
    Syntax,
    /// The number has too many digits before the point, or is not finite.
    #[error("the number has too many digits before the point for its type")]
    TooGreat,
    /// The value is outside the range of the integer type.
    #[error("the value does not fit into the integer type")]
    NotInRange,
}

impl<const D: u8, const S: u8> Fixed<D, S> {
    /// Returns the integral part.
    pub const fn to_integer(self) -> i128 {
        self.0 / Self::UNIT as i128
    }

    /// The nearest `f64`, or one of the two nearest.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::UNIT as f64
    }

    /// Converts the shortest decimal form of `number`, cut off behind the last digit of the type:
    /// 0.29 becomes 0.29, although the binary number is a little less.
    ///
    /// # Errors
    /// [`FixedError::TooGreat`]
    pub fn from_f64(number: f64) -> Result<Self, FixedError> {
        if number.abs() < 1e-31 {
            return Ok(Self::ZERO);
        }
        if !number.is_finite() || number.abs() >= 1e31 {
            return Err(FixedError::TooGreat);
        }
        let text = Text::of(format_args!("{number}")).map_err(|_| FixedError::TooGreat)?;
        text.as_str().parse()
    }
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl<const D: u8, const S: u8> TryFrom<$t> for Fixed<D, S> {
            type Error = FixedError;

            fn try_from(value: $t) -> Result<Self, FixedError> {
                i128::try_from(value)
                    .ok()
                    .and_then(|value| value.checked_mul(Self::UNIT as i128))
                    .and_then(Self::from_unscaled)
                    .ok_or(FixedError::TooGreat)
            }
        }

        /// Truncates: digits behind the point are cut off.
        impl<const D: u8, const S: u8> TryFrom<Fixed<D, S>> for $t {
            type Error = FixedError;

            fn try_from(value: Fixed<D, S>) -> Result<Self, FixedError> {
                Self::try_from(value.to_integer()).map_err(|_| FixedError::NotInRange)
            }
        }
    )*};
}

integers! { i8 u8 i16 u16 i32 u32 i64 u64 i128 u128 }

/// Parses a decimal number of IDL, with an optional sign and an optional `d` at its end. Excess
/// digits are cut off.
impl<const D: u8, const S: u8> FromStr for Fixed<D, S> {
    type Err = FixedError;

    fn from_str(text: &str) -> Result<Self, FixedError> {
        let (negative, number) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let number = number.strip_suffix(['d', 'D']).unwrap_or(number);
        let (before, behind) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if before.len() + behind.len() == 0 || !is_number(before) || !is_number(behind) {
            return Err(FixedError::Syntax);
        }
        let behind = behind.bytes().chain(std::iter::repeat(b'0'));
        let mut unscaled: i128 = 0;
        for digit in before.bytes().chain(behind.take(S.into())) {
            unscaled = unscaled * 10 + i128::from(digit - b'0');
            if unscaled > Self::MAX.0 {
                return Err(FixedError::TooGreat);
            }
        }
        Ok(Self(if negative { -unscaled } else { unscaled }))
    }
}

/// Formats all digits behind the point, and at least one before it.
impl<const D: u8, const S: u8> fmt::Display for Fixed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (before, behind) = (magnitude / Self::UNIT, magnitude % Self::UNIT);
        let text = match usize::from(S) {
            0 => Text::of(format_args!("{before}")),
            width => Text::of(format_args!("{before}.{behind:0width$}")),
        }?;
        f.pad_integral(self.0 >= 0, "", text.as_str())
    }
}

impl<const D: u8, const S: u8> fmt::Debug for Fixed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A buffer for a short text, of about 31 digits on each side of the point.
struct Text {
    octets: [u8; 72],
    len: usize,
}

impl Text {
    fn of(parts: fmt::Arguments<'_>) -> Result<Self, fmt::Error> {
        let mut text = Self {
            octets: [0; 72],
            len: 0,
        };
        fmt::write(&mut text, parts)?;
        Ok(text)
    }

    fn as_str(&self) -> &str {
        str::from_utf8(&self.octets[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        let place = self.octets.get_mut(self.len..end).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}
