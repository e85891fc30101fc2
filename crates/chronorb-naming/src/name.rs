//! Names in text form, and the URLs made of them.

use std::fmt::Write;

use chronorb_giop::url::ObjectUrl;
use thiserror::Error;

use crate::idl::cos_naming::{NameComponent, NameComponentBuf};

/// The reason why a text is not a name, or a name has no text.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum NameTextError {
    /// The name has no components.
    #[error("the name is empty")]
    Empty,
    /// A component is empty: a `/` at the beginning or the end, or two in a row.
    #[error("a component is empty (an empty one is written \".\")")]
    EmptyComponent,
    /// A component has two dots that are not escaped.
    #[error("a component has more than one \".\" (a dot in it is written \"\\.\")")]
    SecondDot,
    /// A component ends in a dot.
    #[error("a component ends in \".\" (without a kind it has no dot)")]
    EmptyKind,
    /// A backslash is not followed by `/`, `.` or `\`.
    #[error("a \"\\\" is not followed by \"/\", \".\" or \"\\\"")]
    Escape,
}

/// The address of a URL is empty or malformed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the address is empty, or is none of a corbaloc: URL")]
pub struct AddressError;

/// Returns the text form of a name (Naming Service 1.3, 2.4).
///
/// # Errors
/// [`NameTextError::Empty`] for a name without components.
pub fn name_to_text(name: &[NameComponent<'_>]) -> Result<String, NameTextError> {
    if name.is_empty() {
        return Err(NameTextError::Empty);
    }
    let mut text = String::new();
    for (i, component) in name.iter().enumerate() {
        if i > 0 {
            text.push('/');
        }
        escape(component.id, &mut text);
        if component.id.is_empty() || !component.kind.is_empty() {
            text.push('.');
            escape(component.kind, &mut text);
        }
    }
    Ok(text)
}

/// Reads the text form of a name.
///
/// ```
/// let name = chronorb_naming::name_from_text("plant/mixer.device")?;
/// assert_eq!((&*name[1].id, &*name[1].kind), ("mixer", "device"));
/// # Ok::<(), chronorb_naming::NameTextError>(())
/// ```
///
/// # Errors
/// See [`NameTextError`].
pub fn name_from_text(text: &str) -> Result<Vec<NameComponentBuf>, NameTextError> {
    if text.is_empty() {
        return Err(NameTextError::Empty);
    }
    let mut name = Vec::new();
    let mut component = Component::default();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '/' => name.push(std::mem::take(&mut component).finish()?),
            '.' if component.kind.is_some() => return Err(NameTextError::SecondDot),
            '.' => component.kind = Some(String::new()),
            '\\' => match rest.next() {
                Some(c @ ('/' | '.' | '\\')) => component.push(c),
                _ => return Err(NameTextError::Escape),
            },
            c => component.push(c),
        }
    }
    name.push(component.finish()?);
    Ok(name)
}

/// Returns the `corbaname:` URL of an address, as in a `corbaloc:` URL, and a name in text form.
///
/// # Errors
/// [`AddressError`]. The name is not checked.
pub fn name_to_url(address: &str, name: &str) -> Result<String, AddressError> {
    let is_plain = !address.is_empty() && !address.contains('#');
    let mut url = format!("corbaname:{address}");
    if !is_plain || ObjectUrl::parse(&url).is_err() {
        return Err(AddressError);
    }
    url.push('#');
    for octet in name.bytes() {
        if octet.is_ascii_alphanumeric() || PLAIN.contains(&octet) {
            url.push(octet.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(url, "%{octet:02x}");
        }
    }
    Ok(url)
}

/// A component that is being read.
#[derive(Default)]
struct Component {
    id: String,
    /// The part after the dot, if there was one.
    kind: Option<String>,
}

impl Component {
    fn push(&mut self, c: char) {
        self.kind.as_mut().unwrap_or(&mut self.id).push(c);
    }

    fn finish(self) -> Result<NameComponentBuf, NameTextError> {
        let Self { id, kind } = self;
        match &kind {
            None if id.is_empty() => Err(NameTextError::EmptyComponent),
            Some(kind) if kind.is_empty() && !id.is_empty() => Err(NameTextError::EmptyKind),
            _ => Ok(NameComponentBuf {
                id,
                kind: kind.unwrap_or_default(),
            }),
        }
    }
}

fn escape(part: &str, text: &mut String) {
    for c in part.chars() {
        if matches!(c, '/' | '.' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
}

/// The characters that are not escaped in the name of a URL, beside letters and digits.
const PLAIN: &[u8] = b";/:?@&=+$,-_.!~*'()";

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &[NameComponentBuf]) -> Vec<NameComponent<'_>> {
        name.iter().map(NameComponentBuf::as_view).collect()
    }

    #[test]
    fn texts_and_names_correspond() {
        let table: &[(&str, &[(&str, &str)])] = &[
            ("a", &[("a", "")]),
            ("a.b", &[("a", "b")]),
            (".k", &[("", "k")]),
            (".", &[("", "")]),
            ("a/./c.d", &[("a", ""), ("", ""), ("c", "d")]),
            (r"a\/b\.c\\.d\.e", &[(r"a/b.c\", "d.e")]),
            ("Zürich.ü", &[("Zürich", "ü")]),
        ];
        for (text, components) in table {
            let name = name_from_text(text).unwrap();
            let read: Vec<_> = name.iter().map(|c| (&*c.id, &*c.kind)).collect();
            assert_eq!(&read, components, "{text}");
            assert_eq!(name_to_text(&view(&name)).as_deref(), Ok(*text));
        }
    }

    #[test]
    fn malformed_texts_are_refused_with_their_cause() {
        use NameTextError::{Empty, EmptyComponent, EmptyKind, Escape, SecondDot};
        let table = [
            ("", Empty),
            ("/", EmptyComponent),
            ("/a", EmptyComponent),
            ("a/", EmptyComponent),
            ("a//b", EmptyComponent),
            ("a.", EmptyKind),
            ("a./b", EmptyKind),
            ("a.b.c", SecondDot),
            ("..", SecondDot),
            (r"a\b", Escape),
            (r"a\", Escape),
        ];
        for (text, error) in table {
            assert_eq!(name_from_text(text), Err(error), "{text}");
        }
        assert_eq!(name_to_text(&[]), Err(Empty));
    }

    #[test]
    fn urls_escape_all_other_characters() {
        let url = name_to_url(":host:2809", r"a b/c\.d.e%ü;?");
        let expected = "corbaname::host:2809#a%20b/c%5c.d.e%25%c3%bc;?";
        assert_eq!(url.as_deref(), Ok(expected));
        for address in ["", "host", "host:x:y", ":", ":h#x", ":h:0"] {
            assert_eq!(name_to_url(address, "a"), Err(AddressError), "{address}");
        }
    }
}
