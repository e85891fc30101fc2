//! Bit masks as text.

use std::fmt;

/// Formats the names of the flags that are set in `bits`, and the remaining bits as a number.
/// `flags` are names with their positions. Generated code calls it.
///
/// # Errors
/// Those of the formatter.
#[doc(hidden)]
pub fn display_flags(f: &mut fmt::Formatter<'_>, bits: u64, flags: &[(&str, u8)]) -> fmt::Result {
    let mut rest = bits;
    let mut separator = "";
    for (name, position) in flags {
        let bit = 1_u64.checked_shl((*position).into()).unwrap_or(0);
        if bits & bit != 0 {
            write!(f, "{separator}{name}")?;
            separator = " | ";
            rest &= !bit;
        }
    }
    if rest != 0 || bits == 0 {
        write!(f, "{separator}{rest:#x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Flags(u64);

    impl fmt::Display for Flags {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            display_flags(f, self.0, &[("READ", 0), ("WRITE", 1), ("LAST", 63)])
        }
    }

    #[test]
    fn flags_are_shown_by_name_and_other_bits_by_number() {
        assert_eq!(Flags(0).to_string(), "0x0");
        assert_eq!(Flags(3).to_string(), "READ | WRITE");
        assert_eq!(Flags(1 << 63 | 2).to_string(), "WRITE | LAST");
        assert_eq!(Flags(0b1101).to_string(), "READ | 0xc");
    }
}
