//! "Did you mean": the closest of the names that could have been meant.

/// The candidate with the least edit distance to the name, if it is close.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let limit = (name.len() / 3).max(1);
    candidates
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= limit)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// The number of letters to insert, remove, replace or swap; case does not count.
fn distance(a: &str, b: &str) -> usize {
    let a = a.to_ascii_lowercase().into_bytes();
    let b = b.to_ascii_lowercase().into_bytes();
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
