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

/// Returns a hint for a word of another language: its counterpart in IDL.
pub(crate) fn foreign(word: &str) -> Option<String> {
    let (_, idl) = FOREIGN.iter().find(|(known, _)| *known == word)?;
    Some(match idl {
        Word(idl) => format!("`{word}` is `{idl}` in IDL"),
        Advice(advice) => (*advice).to_owned(),
    })
}

/// The form that IDL has instead of a word.
enum Counterpart {
    /// A word or a form.
    Word(&'static str),
    /// A sentence.
    Advice(&'static str),
}

use Counterpart::{Advice, Word};

/// Words of C++, Java, C# and Python, and of other languages for interfaces.
const FOREIGN: [(&str, Counterpart); 43] = [
    ("int", Word("long")),
    ("Integer", Word("long")),
    ("integer", Word("long")),
    ("uint", Word("unsigned long")),
    ("ulong", Word("unsigned long")),
    ("ushort", Word("unsigned short")),
    ("size_t", Word("unsigned long long")),
    ("int8_t", Word("int8")),
    ("int16_t", Word("int16")),
    ("int32_t", Word("int32")),
    ("int64_t", Word("int64")),
    ("uint8_t", Word("uint8")),
    ("uint16_t", Word("uint16")),
    ("uint32_t", Word("uint32")),
    ("uint64_t", Word("uint64")),
    ("bool", Word("boolean")),
    ("Boolean", Word("boolean")),
    ("byte", Word("octet")),
    ("Byte", Word("octet")),
    ("ubyte", Word("octet")),
    ("float32", Word("float")),
    ("float64", Word("double")),
    ("str", Word("string")),
    ("String", Word("string")),
    ("wchar_t", Word("wchar")),
    ("list", Word("sequence<T>")),
    ("List", Word("sequence<T>")),
    ("vector", Word("sequence<T>")),
    ("array", Word("sequence<T>")),
    ("dict", Word("map<K, V>")),
    ("extends", Word(": Base")),
    ("implements", Word(": Base")),
    ("inherits", Word(": Base")),
    ("throws", Word("raises (E)")),
    ("throw", Word("raises (E)")),
    (
        "class",
        Advice("write `interface` for operations, and `struct` for data"),
    ),
    ("namespace", Word("module")),
    ("package", Word("module")),
    ("include", Word("#include")),
    (
        "using",
        Advice("IDL has no `using`: write the scoped name, or give it one by `typedef`"),
    ),
    ("static", Advice("IDL has no `static`: remove it")),
    (
        "virtual",
        Advice("all operations can be implemented by servants: remove `virtual`"),
    ),
    ("optional", Word("@optional")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_languages_have_a_counterpart() {
        assert_eq!(foreign("int").unwrap(), "`int` is `long` in IDL");
        assert_eq!(foreign("long"), None);
        // A word of IDL is none of another language.
        for (word, _) in &FOREIGN {
            assert!(!crate::parser::KEYWORDS.contains(word), "{word}");
        }
    }

    #[test]
    fn a_typing_error_is_close_and_another_word_is_not() {
        let names = ["long", "short", "Quote", "octet"];
        assert_eq!(closest("lnog", names.into_iter()), Some("long"));
        assert_eq!(closest("Qoute", names.into_iter()), Some("Quote"));
        assert_eq!(closest("Octets", names.into_iter()), Some("octet"));
        assert_eq!(closest("Level", names.into_iter()), None);
    }
}
