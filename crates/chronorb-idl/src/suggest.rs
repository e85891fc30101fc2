//! Suggestions ("did you mean"): the closest of the possible names.

use strsim::osa_distance;

/// Returns the candidate with the least edit distance to the name, if it is close. Case is ignored,
/// and two swapped letters are one error.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let limit = (name.len() / 3).max(1);
    let name = name.to_ascii_lowercase();
    candidates
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= limit)
        .map(|candidate| {
            (
                osa_distance(&name, &candidate.to_ascii_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_close_and_another_word_is_not() {
        let names = ["long", "short", "Quote", "octet"];
        assert_eq!(closest("lnog", names.into_iter()), Some("long"));
        assert_eq!(closest("Qoute", names.into_iter()), Some("Quote"));
        assert_eq!(closest("Octets", names.into_iter()), Some("octet"));
        assert_eq!(closest("Level", names.into_iter()), None);
    }
}
