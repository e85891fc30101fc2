//! Values of command-line arguments.

use std::str::FromStr;

use chronorb_orb::{Endpoint, parse_endpoints};

use crate::bench::Operation;

/// A transport of the ORB.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerTransport {
    /// GIOP over TCP.
    #[default]
    Iiop,
}

impl PeerTransport {
    /// Returns a free endpoint that only this machine can reach.
    pub(super) fn endpoints(self) -> Vec<Endpoint> {
        let text = match self {
            Self::Iiop => "iiop://127.0.0.1:0",
        };
        parse_endpoints(text).expect("it is an endpoint")
    }
}

impl FromStr for PeerTransport {
    type Err = String;

    fn from_str(scheme: &str) -> Result<Self, String> {
        match scheme {
            "iiop" => Ok(Self::Iiop),
            _ => Err(format!(
                "there is no transport {scheme:?}; the transports are: iiop"
            )),
        }
    }
}

/// Parses `octets:1MiB`, `doubles:64KiB` or `anys:65536`: a kind of data, and its size of 152
/// octets to 8 MiB.
///
/// # Errors
/// A message with the expected form.
pub fn payload(text: &str) -> Result<Operation, String> {
    let expected = || {
        let kinds = "octets, doubles, structs, strings, unions, anys or values";
        format!("{text:?} is not KIND:SIZE, as octets:64KiB, with KIND of {kinds}")
    };
    let (kind, size) = text.split_once(':').ok_or_else(expected)?;
    let operation = match kind {
        "octets" => Operation::Octets,
        "doubles" => Operation::Doubles,
        "structs" => Operation::Structs,
        "strings" => Operation::Strings,
        "unions" => Operation::Unions,
        "anys" => Operation::Anys,
        "values" => Operation::Values,
        _ => return Err(expected()),
    };
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("", 1)].into_iter();
    let mut sizes = units.filter_map(|(unit, factor)| Some((size.strip_suffix(unit)?, factor)));
    let (digits, factor) = sizes.next().ok_or_else(expected)?;
    let number: u32 = digits.parse().map_err(|_| expected())?;
    let octets = number.checked_mul(factor);
    let octets = octets.filter(|octets| (LEAST..=MOST).contains(octets));
    octets.map(operation).ok_or_else(|| {
        let most = MOST >> 20;
        format!("{size} is not from {LEAST} octets to {most} MiB")
    })
}

/// The size of a struct in an any.
const LEAST: u32 = 152;
/// The bound that keeps a message within the greatest size, and its values within the arena.
const MOST: u32 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_may_have_units() {
        assert_eq!(payload("octets:1MiB"), Ok(Operation::Octets(1 << 20)));
        assert_eq!(payload("doubles:64KiB"), Ok(Operation::Doubles(1 << 16)));
        assert_eq!(payload("structs:2400"), Ok(Operation::Structs(2400)));
        assert_eq!(payload("strings:1KiB"), Ok(Operation::Strings(1 << 10)));
        assert_eq!(payload("unions:1KiB"), Ok(Operation::Unions(1 << 10)));
        assert_eq!(payload("anys:152"), Ok(Operation::Anys(152)));
        assert_eq!(payload("values:1KiB"), Ok(Operation::Values(1 << 10)));
    }

    #[test]
    fn other_words_get_the_expected_form() {
        for text in [
            "",
            "octets",
            "octets:",
            "words:1KiB",
            "octets:one",
            "octets:-1",
        ] {
            assert!(payload(text).unwrap_err().contains("KIND:SIZE"), "{text}");
        }
        for text in ["octets:1", "octets:1000MiB", "octets:4294967295KiB"] {
            assert!(payload(text).unwrap_err().contains("is not from"), "{text}");
        }
    }

    #[test]
    fn a_transport_has_the_name_of_its_scheme() {
        assert_eq!("iiop".parse(), Ok(PeerTransport::Iiop));
        assert_eq!(PeerTransport::Iiop.endpoints().len(), 1);
        let error = "carrier-pigeon".parse::<PeerTransport>().unwrap_err();
        assert!(error.contains("\"carrier-pigeon\"") && error.contains("iiop"));
    }
}
