//! Texts of peers for people.
//!
//! A terminal obeys control characters, and shows nothing for others, or the text behind them in
//! another order. A peer that chooses a name could so change what a person believes to read. All
//! text of peers that reaches a terminal, a log or JSON passes one of these functions.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character is not shown, or changes how others are: control characters (C0, C1),
/// separators of lines, and characters that have no width or change the direction of a text.
#[must_use]
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f'
        | '\x7f'..='\u{9f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Returns a text with its hidden characters as `\u{1b}`, so that it has one line.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden, |c, shown| shown.extend(c.escape_unicode()))
}

/// Returns a finished JSON text with its hidden characters as `\u001b`, which changes no value.
#[must_use]
pub fn visible_json(text: &str) -> Cow<'_, str> {
    // Those of ASCII stand between values, or are escaped.
    let is_raw = |c: char| !c.is_ascii() && is_hidden(c);
    replaced(text, is_raw, |c, shown| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // A string takes every text.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    })
}

fn replaced(
    text: &str,
    is_replaced: impl Fn(char) -> bool,
    write: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_replaced(c) {
            write(c, &mut shown);
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_and_others_stay() {
        assert_eq!(visible("Börse 7, 東京 🚀"), "Börse 7, 東京 🚀");
        let text = "a\x1b[2Jb\n\u{9b}\u{202e}\u{200b}\u{2066}\u{feff}\u{e0041}";
        let shown = "a\\u{1b}[2Jb\\u{a}\\u{9b}\\u{202e}\\u{200b}\\u{2066}\\u{feff}\\u{e0041}";
        assert_eq!(visible(text), shown);
        assert!(!visible(text).contains(is_hidden));
    }

    #[test]
    fn json_keeps_its_lines_and_values() {
        let text = "{\n\"a\": \"\\u001b\u{9b}\u{202e}\u{e0041}ö\"}";
        let shown = "{\n\"a\": \"\\u001b\\u009b\\u202e\\udb40\\udc41ö\"}";
        assert_eq!(visible_json(text), shown);
    }
}
