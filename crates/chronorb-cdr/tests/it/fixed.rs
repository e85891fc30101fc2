//! Fixed-point values: their arithmetic against one digit at a time, their text, and their octets.

use chronorb_cdr::{
    Arena, Cdr, CdrError, Decoder, Encoder, Endian, Fixed, FixedError, Frame, TypeCode, Typed,
};
use proptest::collection::vec;
use proptest::prelude::*;

type Money = Fixed<9, 2>;
type Long = Fixed<31, 10>;

fn octets<const D: u8, const S: u8>(value: Fixed<D, S>) -> Vec<u8> {
    let mut frame = Frame::new(32, 32);
    value
        .encode(&mut Encoder::new(&mut frame, Endian::Big))
        .unwrap();
    frame.as_slice().to_vec()
}

fn read<const D: u8, const S: u8>(octets: &[u8]) -> Result<Fixed<D, S>, CdrError> {
    let mut octets = octets.to_vec();
    let arena = Arena::new(0);
    Fixed::decode(&mut Decoder::new(&mut octets, 0, Endian::Big, &arena))
}

fn money(text: &str) -> Money {
    text.parse().unwrap()
}

#[test]
fn digits_are_packed_two_to_an_octet_with_the_sign_last() {
    let value: Fixed<5, 2> = "123.45".parse().unwrap();
    assert_eq!(octets(value), [0x12, 0x34, 0x5c]);
    assert_eq!(octets(-value), [0x12, 0x34, 0x5d]);
    let even: Fixed<6, 2> = "-1234.56".parse().unwrap();
    assert_eq!(
        octets(even),
        [0x01, 0x23, 0x45, 0x6d],
        "with a zero in front"
    );
    assert_eq!(octets(Fixed::<31, 0>::MAX).len(), 16);
    assert_eq!(octets(Fixed::<1, 0>::ZERO), [0x0c]);
}

#[test]
fn octets_that_are_no_digits_are_refused() {
    assert_eq!(
        read::<5, 2>(&[0x12, 0x34, 0x5c]),
        Ok("123.45".parse().unwrap())
    );
    assert_eq!(
        read::<5, 2>(&[0x00, 0x00, 0x0d]),
        Ok(Fixed::ZERO),
        "minus nothing"
    );
    for wrong in [
        [0x12, 0x3a, 0x5c],
        [0x12, 0x34, 0x5f],
        [0x12, 0x34, 0x50],
        [0xff; 3],
    ] {
        assert_eq!(read::<5, 2>(&wrong), Err(CdrError::InvalidFixed));
    }
    assert_eq!(
        read::<4, 0>(&[0x12, 0x34, 0x5c]),
        Err(CdrError::InvalidFixed),
        "five digits"
    );
    assert_eq!(read::<5, 2>(&[0x12, 0x34]), Err(CdrError::EndOfData));
}

#[test]
fn what_is_more_exact_than_the_type_is_cut_off() {
    assert_eq!(money("19.999"), money("19.99"));
    assert_eq!(money("-19.999"), money("-19.99"));
    assert_eq!(money("2").checked_div(money("3")), Some(money("0.66")));
    assert_eq!(
        money("0.15").checked_mul(money("0.15")),
        Some(money("0.02"))
    );
    assert_eq!(money("-1.99").to_integer(), -1);
    assert_eq!(i64::try_from(money("7.99")), Ok(7));
    assert_eq!(
        money("7.99").truncate_to::<9, 1>(),
        Some("7.9".parse().unwrap())
    );
    assert_eq!(
        money("7.95").round_to::<9, 1>(),
        Some("8.0".parse().unwrap())
    );
    assert_eq!(
        money("-7.95").round_to::<9, 1>(),
        Some("-8.0".parse().unwrap())
    );
}

#[test]
fn what_is_too_great_is_an_error() {
    assert_eq!("10000000".parse::<Money>(), Err(FixedError::TooGreat));
    assert_eq!(Money::try_from(10_000_000_u64), Err(FixedError::TooGreat));
    assert_eq!(Money::try_from(i128::MIN), Err(FixedError::TooGreat));
    assert_eq!(Money::MAX.checked_add(money("0.01")), None);
    assert_eq!(Money::MIN.checked_sub(money("0.01")), None);
    assert_eq!(Long::MAX.checked_mul(Long::MAX), None);
    assert_eq!(Money::MAX.checked_div(Money::ZERO), None);
    assert_eq!(Money::MAX.checked_div(money("0.01")), None);
    assert_eq!(Long::MAX.truncate_to::<31, 31>(), None);
    assert_eq!(Fixed::<20, 0>::MAX.truncate_to::<31, 31>(), None);
    assert_eq!(i8::try_from(money("128")), Err(FixedError::NotInRange));
    assert_eq!(u32::try_from(money("-1")), Err(FixedError::NotInRange));
    assert_eq!(Money::from_f64(f64::NAN), Err(FixedError::TooGreat));
    assert_eq!(Money::from_f64(1e7), Err(FixedError::TooGreat));
    assert_eq!(Money::from_f64(-1e40), Err(FixedError::TooGreat));
}

#[test]
fn the_product_of_the_greatest_numbers_is_exact() {
    type Part = Fixed<31, 31>;
    let nearly_one = Part::MAX.checked_mul(Part::MAX).unwrap();
    assert_eq!(nearly_one.unscaled(), Part::MAX.unscaled() - 1);
    assert_eq!(
        Part::MAX.checked_div(Part::MAX),
        None,
        "one has a digit before the point"
    );
    assert_eq!(Long::MAX.checked_div(Long::MAX), Some("1".parse().unwrap()));
}

#[test]
fn text_is_a_decimal_number_as_idl_has_it() {
    for (text, same) in [
        ("1.5", "1.50"),
        ("-0.05", "-0.05"),
        (".5d", "0.50"),
        ("3.D", "3.00"),
        ("+12", "12.00"),
        ("0000000000000000000000000000000000000001", "1.00"),
    ] {
        assert_eq!(money(text).to_string(), same);
    }
    for wrong in ["", "-", ".", "d", "1e5", "1.2.3", "1 ", "--1", "0x1", "١"] {
        assert_eq!(wrong.parse::<Money>(), Err(FixedError::Syntax), "{wrong:?}");
    }
    assert_eq!(
        format!("{:>8}|{:+}", money("1.5"), money("1.5")),
        "    1.50|+1.50"
    );
    assert_eq!(Fixed::<31, 31>::MIN.to_string().len(), 34);
}

#[test]
fn a_number_is_what_it_is_written_as() {
    assert_eq!(Money::from_f64(0.29), Ok(money("0.29")));
    assert_eq!(Money::from_f64(-1234567.891), Ok(money("-1234567.89")));
    assert_eq!(Money::from_f64(1e-300), Ok(Money::ZERO));
    assert_eq!(
        Fixed::<31, 0>::from_f64(1e30),
        Ok(Fixed::from_unscaled(10_i128.pow(30)).unwrap())
    );
    assert_eq!(money("0.25").to_f64(), 0.25);
}

#[test]
fn its_type_code_has_its_digits() {
    assert_eq!(
        Money::TYPE_CODE,
        TypeCode::Fixed {
            digits: 9,
            scale: 2
        }
    );
}

/// A decimal number, its digits from the last to the first: slow and easy to believe.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Digits(Vec<u8>);

impl Digits {
    fn of(value: i128) -> Self {
        let mut rest = value.unsigned_abs();
        let mut digits = Vec::new();
        while rest != 0 {
            digits.push((rest % 10) as u8);
            rest /= 10;
        }
        Self(digits)
    }

    fn times(&self, other: &Self) -> Self {
        let mut columns = vec![0_u32; self.0.len() + other.0.len() + 1];
        for (i, a) in self.0.iter().enumerate() {
            for (j, b) in other.0.iter().enumerate() {
                columns[i + j] += u32::from(a * b);
            }
        }
        let mut carry = 0;
        let digits = columns.iter().map(|column| {
            let sum = column + carry;
            carry = sum / 10;
            (sum % 10) as u8
        });
        Self(digits.collect()).trimmed()
    }

    /// Long division, one digit of the quotient after the other.
    fn divided_by(&self, divisor: i128) -> Self {
        let mut rest: i128 = 0;
        let mut quotient = Vec::new();
        for digit in self.0.iter().rev() {
            // The divisor has 31 digits at most, so there is room for one more.
            rest = rest * 10 + i128::from(*digit);
            quotient.push((rest / divisor) as u8);
            rest %= divisor;
        }
        quotient.reverse();
        Self(quotient).trimmed()
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn value(&self) -> Option<i128> {
        let mut digits = self.0.iter().rev();
        digits.try_fold(0_i128, |value, digit| {
            value.checked_mul(10)?.checked_add((*digit).into())
        })
    }
}

fn any_long() -> impl Strategy<Value = Long> {
    (vec(0_u8..10, 0..=31), any::<bool>()).prop_map(|(digits, negative)| {
        let value = Digits(digits).value().unwrap();
        Fixed::from_unscaled(if negative { -value } else { value }).unwrap()
    })
}

proptest! {
    #[test]
    fn products_and_quotients_are_those_of_long_multiplication_and_division(
        a in any_long(),
        b in any_long(),
    ) {
        let (x, y) = (a.unscaled(), b.unscaled());
        let unit = 10_i128.pow(10);
        let signed = |digits: Digits| {
            let value = digits.value()?;
            Long::from_unscaled(if (x < 0) == (y < 0) { value } else { -value })
        };
        let product = Digits::of(x).times(&Digits::of(y));
        prop_assert_eq!(a.checked_mul(b), signed(product.divided_by(unit)));
        if y != 0 {
            let quotient = Digits::of(x).times(&Digits::of(unit)).divided_by(y.abs());
            prop_assert_eq!(a.checked_div(b), signed(quotient));
        }
        prop_assert_eq!(a.checked_add(b), Long::from_unscaled(x + y));
        prop_assert_eq!(a.checked_sub(b), Long::from_unscaled(x - y));
    }

    #[test]
    fn what_is_written_is_what_is_read(a in any_long()) {
        prop_assert_eq!(read(&octets(a)), Ok(a));
        prop_assert_eq!(a.to_string().parse(), Ok(a));
    }

    #[test]
    fn arbitrary_octets_are_a_value_or_an_error(octets in vec(any::<u8>(), 16)) {
        if let Ok(value) = read::<31, 4>(&octets) {
            prop_assert!(value <= Fixed::MAX && value >= Fixed::MIN);
        }
    }

    #[test]
    fn arbitrary_text_is_a_value_or_an_error(text in "[-+0-9.dD]{0,40}") {
        if let Ok(value) = text.parse::<Long>() {
            prop_assert!(value <= Fixed::MAX && value >= Fixed::MIN);
        }
    }

    #[test]
    fn numbers_come_near_what_they_were(number in -1e20..1e20_f64) {
        let value = Long::from_f64(number).unwrap().to_f64();
        prop_assert!((value - number).abs() <= number.abs() * 1e-15 + 1e-10);
    }
}
