//! Packed decimals: CORBA 3.3 part 2, clause 9.3.2.9. Two digits are in an octet, the greatest
//! first; the sign is in the last half of the last octet. An even number of digits has a zero in
//! front.

/// The number of octets of so many digits.
pub(crate) const fn size(digits: u8) -> usize {
    digits as usize / 2 + 1
}

/// The value in 31 digits.
pub(super) fn encode(value: i128) -> [u8; 16] {
    let mut octets = [0; 16];
    let mut rest = value.unsigned_abs();
    let mut low = if value < 0 { NEGATIVE } else { POSITIVE };
    for octet in octets.iter_mut().rev() {
        *octet = (rest % 10) as u8 * 16 + low;
        rest /= 10;
        low = (rest % 10) as u8;
        rest /= 10;
    }
    octets
}

/// Decodes at most 16 octets; `None` if a digit or the sign is invalid.
pub(crate) fn decode(octets: &[u8]) -> Option<i128> {
    let (last, front) = octets.split_last()?;
    if front.len() > 15 {
        return None;
    }
    let digits = front.iter().flat_map(|octet| [octet >> 4, octet & 15]);
    let mut value: i128 = 0;
    for digit in digits.chain([last >> 4]) {
        if digit > 9 {
            return None;
        }
        value = value * 10 + i128::from(digit);
    }
    match last & 15 {
        POSITIVE => Some(value),
        NEGATIVE => Some(-value),
        _ => None,
    }
}

/// Whether `octets` are a value of so many digits.
pub(crate) fn is_valid(octets: &[u8], digits: u8) -> bool {
    let in_front = octets.first().map_or(0, |octet| octet >> 4);
    (digits % 2 == 1 || in_front == 0) && decode(octets).is_some()
}

const POSITIVE: u8 = 0xc;
const NEGATIVE: u8 = 0xd;
