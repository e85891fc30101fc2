//! Names in the text form of the naming service (Naming Service 1.3, 2.4).

use thiserror::Error;

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

/// A component of a text, with its escapes.
#[derive(Clone, Copy, Debug)]
pub struct TextComponent<'t> {
    /// The id, with its escapes.
    pub id: &'t str,
    /// The kind, with its escapes.
    pub kind: &'t str,
}

impl TextComponent<'_> {
    /// The octets of the component without its escapes.
    pub fn octets(self) -> usize {
        unescaped(self.id).count() + unescaped(self.kind).count()
    }

    /// The id and the kind without their escapes.
    pub fn to_strings(self) -> (String, String) {
        let part = |part| String::from_utf8(unescaped(part).collect()).unwrap_or_default();
        (part(self.id), part(self.kind))
    }
}

/// The octets of a part without its escapes. Only backslashes are left out, so they are UTF-8.
pub fn unescaped(part: &str) -> impl Iterator<Item = u8> {
    let mut octets = part.bytes();
    std::iter::from_fn(move || match octets.next()? {
        b'\\' => octets.next(),
        octet => Some(octet),
    })
}

/// The components of a text, until the first that is malformed.
#[derive(Clone, Debug)]
pub struct TextComponents<'t>(Option<&'t str>);

impl<'t> TextComponents<'t> {
    /// Reads a text that is not empty.
    pub fn new(text: &'t str) -> Self {
        Self(Some(text))
    }
}

impl<'t> Iterator for TextComponents<'t> {
    type Item = Result<TextComponent<'t>, NameTextError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (component, rest) = match first_component(self.0.take()?) {
            Ok(first) => first,
            Err(error) => return Some(Err(error)),
        };
        self.0 = rest;
        Some(Ok(component))
    }
}

/// Reads the first component of a text, and returns it with the text behind its slash.
fn first_component(text: &str) -> Result<(TextComponent<'_>, Option<&str>), NameTextError> {
    let (mut dot, mut rest) = (None, None);
    let mut end = text.len();
    let mut octets = text.bytes().enumerate();
    while let Some((i, octet)) = octets.next() {
        match octet {
            b'/' => {
                end = i;
                rest = Some(&text[i + 1..]);
                break;
            }
            b'.' if dot.is_some() => return Err(NameTextError::SecondDot),
            b'.' => dot = Some(i),
            b'\\' => match octets.next() {
                Some((_, b'/' | b'.' | b'\\')) => {}
                _ => return Err(NameTextError::Escape),
            },
            _ => {}
        }
    }
    let (id, kind) = match dot {
        None if end == 0 => return Err(NameTextError::EmptyComponent),
        None => (&text[..end], ""),
        Some(dot) if dot > 0 && dot + 1 == end => return Err(NameTextError::EmptyKind),
        Some(dot) => (&text[..dot], &text[dot + 1..end]),
    };
    Ok((TextComponent { id, kind }, rest))
}
