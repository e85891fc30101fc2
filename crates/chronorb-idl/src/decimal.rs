//! Decimal numbers of up to 31 digits, and their arithmetic (CORBA 3.3 part 1, 7.10.3).
//!
//! Leading zeros, and trailing zeros behind the point, do not count. Digits of a result beyond 31
//! are cut off behind the point; before it, there is no result.

/// The number of digits of the largest decimal number.
pub(crate) const MAX_DIGITS: u8 = 31;

/// `unscaled` divided by ten to the power of `scale`, in the shortest form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Decimal {
    pub(crate) unscaled: i128,
    pub(crate) scale: u8,
}

impl Decimal {
    /// Parses a number such as `12.50`. Returns `None` if it is invalid, or has more than 31
    /// digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (before, behind) = text.split_once('.').unwrap_or((text, ""));
        let digits = || before.chars().chain(behind.chars());
        if digits().next().is_none() || !digits().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let before = before.trim_start_matches('0');
        let behind = behind.trim_end_matches('0');
        if before.len() + behind.len() > usize::from(MAX_DIGITS) {
            return None;
        }
        let unscaled = format!("0{before}{behind}").parse().ok()?;
        Some(Self {
            unscaled,
            scale: behind.len() as u8,
        })
    }

    /// Returns the number of digits, at least those behind the point, and at least one.
    pub(crate) fn digits(self) -> u8 {
        let significant = self.unscaled.unsigned_abs().checked_ilog10();
        let significant = significant.map_or(1, |log| log as u8 + 1);
        significant.max(self.scale)
    }

    /// Returns the same number without zeros at its end behind the point.
    pub(crate) fn shortened(mut self) -> Self {
        while self.scale > 0 && self.unscaled % 10 == 0 {
            self.unscaled /= 10;
            self.scale -= 1;
        }
        self
    }

    pub(crate) fn negated(self) -> Self {
        Self {
            unscaled: -self.unscaled,
            ..self
        }
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let a = shifted(digits_of(self.unscaled), scale - self.scale);
        let b = shifted(digits_of(other.unscaled), scale - other.scale);
        let negative = self.unscaled < 0;
        if negative == (other.unscaled < 0) {
            return Self::shortest(negative, sum(&a, &b), scale.into());
        }
        let order = a.len().cmp(&b.len());
        let order = order.then(a.iter().rev().cmp(b.iter().rev()));
        if order.is_lt() {
            Self::shortest(!negative, difference(&b, &a), scale.into())
        } else {
            Self::shortest(negative, difference(&a, &b), scale.into())
        }
    }

    pub(crate) fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.negated())
    }

    pub(crate) fn times(self, other: Self) -> Option<Self> {
        let (a, b) = (digits_of(self.unscaled), digits_of(other.unscaled));
        let mut product = vec![0u32; a.len() + b.len()];
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                product[i + j] += u32::from(*a) * u32::from(*b);
            }
        }
        let negative = (self.unscaled < 0) != (other.unscaled < 0);
        let scale = usize::from(self.scale) + usize::from(other.scale);
        Self::shortest(negative, carried(&product), scale)
    }

    /// Returns the quotient; the divisor is not 0.
    pub(crate) fn over(self, other: Self) -> Option<Self> {
        // Enough for 31 digits of the smallest dividend over the largest divisor.
        const FURTHER: u8 = 2 * MAX_DIGITS;
        let dividend = shifted(digits_of(self.unscaled), FURTHER);
        let divisor = other.unscaled.unsigned_abs();
        let mut remainder = 0;
        let mut quotient: Vec<u8> = dividend
            .iter()
            .rev()
            .map(|digit| {
                remainder = remainder * 10 + u128::from(*digit);
                let digit = (remainder / divisor) as u8;
                remainder %= divisor;
                digit
            })
            .collect();
        quotient.reverse();
        let negative = (self.unscaled < 0) != (other.unscaled < 0);
        let scale = self.scale + FURTHER - other.scale;
        Self::shortest(negative, quotient, scale.into())
    }

    /// Returns the unscaled number with `scale` digits behind the point, further ones cut off, and
    /// whether there were such. Returns `None` if it has more than `digits` digits then.
    pub(crate) fn fitted(self, digits: u8, scale: u8) -> Option<(i128, bool)> {
        let (unscaled, cut) = if self.scale > scale {
            let power = 10i128.pow(u32::from(self.scale - scale));
            (self.unscaled / power, self.unscaled % power != 0)
        } else {
            let power = 10i128.checked_pow(u32::from(scale - self.scale))?;
            (self.unscaled.checked_mul(power)?, false)
        };
        let limit = 10u128.pow(u32::from(digits));
        (unscaled.unsigned_abs() < limit).then_some((unscaled, cut))
    }

    /// Normalizes a number: removes insignificant zeros, and cuts off excess digits.
    fn shortest(negative: bool, mut digits: Vec<u8>, mut scale: usize) -> Option<Self> {
        let most = usize::from(MAX_DIGITS);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let too_many = digits.len().saturating_sub(most).min(scale);
        let mut cut = too_many.max(scale.saturating_sub(most));
        while cut < scale && digits.get(cut) == Some(&0) {
            cut += 1;
        }
        digits.drain(..cut.min(digits.len()));
        scale -= cut;
        if digits.is_empty() {
            scale = 0;
        }
        if digits.len() > most {
            return None;
        }
        let unscaled = digits
            .iter()
            .rev()
            .fold(0i128, |number, digit| number * 10 + i128::from(*digit));
        Some(Self {
            unscaled: if negative { -unscaled } else { unscaled },
            scale: scale as u8,
        })
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let scale = usize::from(self.scale);
        let digits = format!("{:0>1$}", self.unscaled.unsigned_abs(), scale + 1);
        let (before, behind) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        write!(f, "{sign}{before}{point}{behind}")
    }
}

/// Returns the decimal digits of the magnitude, the last one first, none for 0.
fn digits_of(number: i128) -> Vec<u8> {
    let mut rest = number.unsigned_abs();
    let mut digits = Vec::new();
    while rest > 0 {
        digits.push((rest % 10) as u8);
        rest /= 10;
    }
    digits
}

/// Returns the number times ten to the power of `places`.
fn shifted(digits: Vec<u8>, places: u8) -> Vec<u8> {
    if digits.is_empty() {
        return digits;
    }
    let mut shifted = vec![0; places.into()];
    shifted.extend(digits);
    shifted
}

fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    let at = |digits: &[u8], i: usize| digits.get(i).copied().map_or(0, u32::from);
    let sums: Vec<u32> = (0..a.len().max(b.len()))
        .map(|i| at(a, i) + at(b, i))
        .collect();
    carried(&sums)
}

/// Returns `a - b`; `a` is not the smaller one.
fn difference(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    a.iter()
        .enumerate()
        .map(|(i, digit)| {
            let taken = b.get(i).copied().unwrap_or(0) + borrow;
            borrow = u8::from(*digit < taken);
            digit + 10 * borrow - taken
        })
        .collect()
}

/// Converts sums of digits to digits by carrying.
fn carried(sums: &[u32]) -> Vec<u8> {
    let mut carry = 0;
    let mut digits: Vec<u8> = sums
        .iter()
        .map(|sum| {
            let sum = sum + carry;
            carry = sum / 10;
            (sum % 10) as u8
        })
        .collect();
    while carry > 0 {
        digits.push((carry % 10) as u8);
        carry /= 10;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        match text.strip_prefix('-') {
            Some(positive) => Decimal::parse(positive).unwrap().negated(),
            None => Decimal::parse(text).unwrap(),
        }
    }

    fn shown(result: Option<Decimal>) -> String {
        result.map_or_else(|| "too large".to_owned(), |number| number.to_string())
    }

    #[test]
    fn zeros_that_say_nothing_do_not_count() {
        let short = number("0010.500");
        assert_eq!(
            short,
            Decimal {
                unscaled: 105,
                scale: 1
            }
        );
        assert_eq!(
            (
                short.digits(),
                number("0.05").digits(),
                number("0").digits()
            ),
            (3, 2, 1)
        );
        assert_eq!(number(".5").to_string(), "0.5");
        assert_eq!(number("5.").to_string(), "5");
        assert_eq!(Decimal::parse("."), None);
        assert_eq!(Decimal::parse(&"9".repeat(32)), None);
        assert_eq!(number(&format!("0{}", "9".repeat(31))).digits(), 31);
    }

    #[test]
    fn sums_align_the_points() {
        assert_eq!(shown(number("1.55").plus(number("0.05"))), "1.6");
        assert_eq!(shown(number("1").minus(number("0.001"))), "0.999");
        assert_eq!(shown(number("0.001").minus(number("1"))), "-0.999");
        assert_eq!(shown(number("-2.5").plus(number("2.5"))), "0");
        let greatest = number(&"9".repeat(31));
        assert_eq!(shown(greatest.plus(number("1"))), "too large");
        assert_eq!(shown(greatest.plus(number("0.9"))), "9".repeat(31));
    }

    #[test]
    fn products_keep_31_digits_or_are_too_large() {
        assert_eq!(shown(number("10.5").times(number("-2"))), "-21");
        let third = number("0.3333333333333333333333333333333");
        assert_eq!(
            shown(third.times(third)),
            "0.111111111111111111111111111111"
        );
        let large = number("1234567890123456.5");
        assert_eq!(shown(large.times(large)), "1524157875323882961438811507392");
        assert_eq!(shown(large.times(number("10000000000000000"))), "too large");
    }

    #[test]
    fn quotients_have_up_to_31_digits() {
        assert_eq!(
            shown(number("1").over(number("3"))),
            "0.3333333333333333333333333333333"
        );
        assert_eq!(shown(number("10").over(number("-4"))), "-2.5");
        assert_eq!(
            shown(number("200").over(number("0.0003"))),
            "666666.6666666666666666666666666"
        );
        assert_eq!(shown(number("0").over(number("7"))), "0");
        assert_eq!(
            shown(number(&"9".repeat(31)).over(number("0.1"))),
            "too large"
        );
    }

    #[test]
    fn what_is_fitted_loses_digits_behind_the_point_only() {
        assert_eq!(number("3.1456").fitted(5, 3), Some((3145, true)));
        assert_eq!(number("3.14").fitted(5, 3), Some((3140, false)));
        assert_eq!(number("123.1456").fitted(5, 3), None);
        assert_eq!(number("1").fitted(31, 31), None);
    }
}
