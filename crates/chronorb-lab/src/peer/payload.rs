//! What a call carries, as people write it.

use crate::bench::Operation;

/// Reads `octets:1MiB`, `doubles:64KiB` or `structs:65536`: what kind of data, and how many octets of
/// it, 24 octets to 8 MiB.
///
/// # Errors
///
/// What is expected instead.
pub fn payload(text: &str) -> Result<Operation, String> {
    let expected =
        || format!("{text:?} is not octets:SIZE, doubles:SIZE or structs:SIZE, with SIZE as 64KiB");
    let (kind, size) = text.split_once(':').ok_or_else(expected)?;
    let operation = match kind {
        "octets" => Operation::Octets,
        "doubles" => Operation::Doubles,
        "structs" => Operation::Structs,
        _ => return Err(expected()),
    };
    let (digits, unit) = match size {
        size if size.ends_with("KiB") => (size.trim_end_matches("KiB"), 1 << 10),
        size if size.ends_with("MiB") => (size.trim_end_matches("MiB"), 1 << 20),
        size => (size, 1),
    };
    let octets: u32 = digits.parse().map_err(|_| expected())?;
    match octets.checked_mul(unit) {
        Some(octets) if (LEAST..=MOST).contains(&octets) => Ok(operation(octets)),
        _ => Err(format!(
            "{size} is not from {LEAST} octets to {} MiB",
            MOST >> 20
        )),
    }
}

/// One small struct.
const LEAST: u32 = 24;
/// It has to fit a message of the greatest size, and structs the arena.
const MOST: u32 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_may_have_units() {
        assert_eq!(payload("octets:1MiB"), Ok(Operation::Octets(1 << 20)));
        assert_eq!(payload("doubles:64KiB"), Ok(Operation::Doubles(1 << 16)));
        assert_eq!(payload("structs:2400"), Ok(Operation::Structs(2400)));
    }

    #[test]
    fn anything_else_is_told_what_is_expected() {
        for text in [
            "",
            "octets",
            "octets:",
            "words:1KiB",
            "octets:one",
            "octets:-1",
        ] {
            assert!(payload(text).unwrap_err().contains("octets:SIZE"), "{text}");
        }
        for text in ["octets:1", "octets:1000MiB", "octets:4294967295KiB"] {
            assert!(payload(text).unwrap_err().contains("is not from"), "{text}");
        }
    }
}
