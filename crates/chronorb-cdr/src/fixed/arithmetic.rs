//! Arithmetic of decimal numbers.

use std::ops::Neg;

use super::Fixed;

/// Arithmetic. A result with too many digits before the point is `None`; excess digits behind the
/// point are cut off.
impl<const D: u8, const S: u8> Fixed<D, S> {
    /// The sum.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        Self::from_unscaled(self.0 + other.0)
    }

    /// The difference.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        Self::from_unscaled(self.0 - other.0)
    }

    /// The product.
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        let negative = (self.0 < 0) != (other.0 < 0);
        let (this, other) = (self.0.unsigned_abs(), other.0.unsigned_abs());
        Self::of_magnitude(negative, mul_div(this, other, Self::UNIT)?)
    }

    /// The quotient; `None` also if `other` is zero.
    pub fn checked_div(self, other: Self) -> Option<Self> {
        if other.0 == 0 {
            return None;
        }
        let negative = (self.0 < 0) != (other.0 < 0);
        let (this, other) = (self.0.unsigned_abs(), other.0.unsigned_abs());
        Self::of_magnitude(negative, mul_div(this, Self::UNIT, other)?)
    }

    /// The value without its sign.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }

    /// Converts to another type, and cuts off the digits that it has no room for.
    pub fn truncate_to<const E: u8, const T: u8>(self) -> Option<Fixed<E, T>> {
        Fixed::from_unscaled(if T >= S {
            self.0.checked_mul(10_i128.pow((T - S).into()))?
        } else {
            self.0 / 10_i128.pow((S - T).into())
        })
    }

    /// Converts to another type, and rounds to the digits that it has room for, halves away from
    /// zero.
    pub fn round_to<const E: u8, const T: u8>(self) -> Option<Fixed<E, T>> {
        if T >= S {
            return self.truncate_to();
        }
        let unit = 10_i128.pow((S - T).into());
        let half = unit / 2 * self.0.signum();
        Fixed::from_unscaled((self.0 + half) / unit)
    }

    fn of_magnitude(negative: bool, magnitude: u128) -> Option<Self> {
        let magnitude = i128::try_from(magnitude).ok()?;
        Self::from_unscaled(if negative { -magnitude } else { magnitude })
    }
}

impl<const D: u8, const S: u8> Neg for Fixed<D, S> {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

/// `a * b / c`, cut off, with a product of 256 bits; `None` if the result has more than 128. `c`
/// has at most 127.
fn mul_div(a: u128, b: u128, c: u128) -> Option<u128> {
    if let Some(product) = a.checked_mul(b) {
        return Some(product / c);
    }
    let (high, low) = product(a, b);
    if high >= c {
        return None;
    }
    let (mut rest, mut quotient) = (high, 0);
    for bit in (0..128).rev() {
        rest = rest << 1 | (low >> bit & 1);
        quotient <<= 1;
        if rest >= c {
            rest -= c;
            quotient |= 1;
        }
    }
    Some(quotient)
}

/// The product in two halves, the higher first.
fn product(a: u128, b: u128) -> (u128, u128) {
    const HALF: u128 = u64::MAX as u128;
    let (a1, a0) = (a >> 64, a & HALF);
    let (b1, b0) = (b >> 64, b & HALF);
    let lowest = a0 * b0;
    let middle = a1 * b0 + (lowest >> 64);
    let other = a0 * b1 + (middle & HALF);
    let high = a1 * b1 + (middle >> 64) + (other >> 64);
    (high, other << 64 | (lowest & HALF))
}
