//! The form of headings.

/// Returns a text with a capital at its beginning.
pub(crate) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}
