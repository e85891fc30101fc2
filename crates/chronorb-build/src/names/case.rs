//! The conversions of case, and the words that Rust keeps for itself.

/// Converts `getQuote`, `GetQuote` and `GET_QUOTE` to `get_quote`: modules, operations, members and
/// parameters.
pub(crate) fn snake(name: &str) -> String {
    let joined = words(name).join("_").to_lowercase();
    usable(joined)
}

/// Converts `quote_list` and `QUOTE_LIST` to `QuoteList`: types and enumerators. A name that is in
/// this form already, like `XMLParser`, is unchanged.
pub(crate) fn pascal(name: &str) -> String {
    let fitting = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.contains(|c: char| c.is_ascii_lowercase())
        && !name.contains('_');
    if fitting {
        return usable(name.to_owned());
    }
    let joined = words(name)
        .iter()
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + &rest.to_lowercase()
        })
        .collect();
    usable(joined)
}

/// Converts the name of a member or parameter. Those that keep their escape, `_x` beside `x`, get
/// an underscore at the end, as Rust names have it.
pub(crate) fn escaped(name: &str, convert: fn(&str) -> String) -> String {
    let suffix = if name.starts_with('_') { "_" } else { "" };
    convert(name) + suffix
}

/// Converts `maxLevels` and `max_levels` to `MAX_LEVELS`: constants.
pub(crate) fn screaming(name: &str) -> String {
    let joined = words(name).join("_").to_uppercase();
    usable(joined)
}

/// Converts `UnknownSymbol` to `unknown symbol`: the text of an error.
pub(crate) fn sentence(name: &str) -> String {
    words(name).join(" ").to_lowercase()
}

/// Splits at underscores, before the capital of a word, and after a run of
/// capitals (`HTTPServer` is `HTTP`, `Server`).
fn words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let bytes = part.as_bytes();
        let mut start = 0;
        for at in 1..bytes.len() {
            let follows_small = !bytes[at - 1].is_ascii_uppercase();
            let starts_word = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if bytes[at].is_ascii_uppercase() && (follows_small || starts_word) {
                words.push(&part[start..at]);
                start = at;
            }
        }
        words.push(&part[start..]);
    }
    words
}

/// Converts the name to one that generated code can use: not empty, without a leading digit, and
/// neither impossible as a raw identifier nor hiding what the code itself uses.
fn usable(name: String) -> String {
    if RESERVED.contains(&name.as_str()) {
        return name + "_";
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        return format!("_{name}");
    }
    name
}

/// The first cannot be raw identifiers; the second would hide primitive types as modules; the third
/// would hide items of the prelude as empty exceptions.
const RESERVED: &[&str] = &[
    "self", "super", "crate", "Self", //
    "bool", "char", "str", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64",
    "usize", "isize", "u128", "i128", //
    "Ok", "Err", "Some", "None",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_become_snake_case() {
        assert_eq!(snake("getQuote"), "get_quote");
        assert_eq!(snake("GetQuote"), "get_quote");
        assert_eq!(snake("GET_QUOTE"), "get_quote");
        assert_eq!(snake("get_quote"), "get_quote");
        assert_eq!(snake("HTTPServer"), "http_server");
        assert_eq!(snake("getURL"), "get_url");
        assert_eq!(snake("level2Quote"), "level2_quote");
        assert_eq!(snake("px"), "px");
    }

    #[test]
    fn types_become_pascal_case_and_keep_their_acronyms() {
        assert_eq!(pascal("quote_list"), "QuoteList");
        assert_eq!(pascal("quote"), "Quote");
        assert_eq!(pascal("RED"), "Red");
        assert_eq!(pascal("DARK_RED"), "DarkRed");
        assert_eq!(pascal("XMLParser"), "XMLParser");
        assert_eq!(pascal("POA"), "Poa");
        assert_eq!(pascal("T_1"), "T1");
        assert_eq!(pascal("Quote_List"), "QuoteList");
    }

    #[test]
    fn constants_become_screaming_snake_case() {
        assert_eq!(screaming("maxLevels"), "MAX_LEVELS");
        assert_eq!(screaming("MAX_LEVELS"), "MAX_LEVELS");
        assert_eq!(screaming("pi"), "PI");
    }

    #[test]
    fn exceptions_read_as_words() {
        assert_eq!(sentence("UnknownSymbol"), "unknown symbol");
        assert_eq!(sentence("NOT_FOUND"), "not found");
    }

    #[test]
    fn names_that_rust_keeps_get_an_underscore() {
        assert_eq!(snake("self"), "self_");
        assert_eq!(snake("Crate"), "crate_");
        assert_eq!(pascal("self"), "Self_");
        assert_eq!(snake("str"), "str_");
        assert_eq!(pascal("none"), "None_");
    }
}
