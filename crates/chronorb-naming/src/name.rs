//! Names in text form, and the URLs made of them.

use std::fmt::Write;

use chronorb_cdr::{Arena, CdrError};
pub use chronorb_giop::name_text::NameTextError;
use chronorb_giop::name_text::{TextComponent, TextComponents, unescaped};
use chronorb_giop::url::ObjectUrl;
use thiserror::Error;

use crate::idl::cos_naming::{NameComponent, NameComponentBuf};

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
    let mut text = String::with_capacity(text_octets(name));
    write_text(name, &mut text);
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
    let components = TextComponents::new(text);
    components
        .map(|component| component.map(into_buf))
        .collect()
}

/// Returns the `corbaname:` URL of an address, as in a `corbaloc:` URL, and a name in text form.
///
/// # Errors
/// [`AddressError`]. The name is not checked.
pub fn name_to_url(address: &str, name: &str) -> Result<String, AddressError> {
    let mut url = String::with_capacity(url_octets(address, name));
    write_url(address, name, &mut url)?;
    Ok(url)
}

/// Returns a component without its escapes. It borrows from the text, and what has escapes is
/// copied into the arena.
pub(crate) fn in_arena<'a>(
    component: TextComponent<'a>,
    arena: &'a Arena,
) -> Result<NameComponent<'a>, CdrError> {
    Ok(NameComponent {
        id: part_in(arena, component.id)?,
        kind: part_in(arena, component.kind)?,
    })
}

fn into_buf(component: TextComponent<'_>) -> NameComponentBuf {
    let (id, kind) = component.to_strings();
    NameComponentBuf { id, kind }
}

fn part_in<'a>(arena: &'a Arena, part: &'a str) -> Result<&'a str, CdrError> {
    if !part.contains('\\') {
        return Ok(part);
    }
    let mut octets = unescaped(part);
    let plain = arena.fill(unescaped(part).count(), |_| {
        Ok(octets.next().unwrap_or_default())
    })?;
    str::from_utf8(plain).map_err(|_| CdrError::InvalidUtf8)
}

/// The octets of the text of a name.
pub(crate) fn text_octets(name: &[NameComponent<'_>]) -> usize {
    let octets_of = |part: &str| {
        let escaped = part.bytes().filter(|octet| SPECIAL.contains(octet));
        part.len() + escaped.count()
    };
    let components = name.iter();
    components
        .map(|component| octets_of(component.id) + octets_of(component.kind) + 2)
        .sum()
}

/// Appends the text of a name that is not empty.
pub(crate) fn write_text(name: &[NameComponent<'_>], text: &mut String) {
    for (i, component) in name.iter().enumerate() {
        if i > 0 {
            text.push('/');
        }
        escape(component.id, text);
        if component.id.is_empty() || !component.kind.is_empty() {
            text.push('.');
            escape(component.kind, text);
        }
    }
}

/// The octets of the URL of an address and a name.
pub(crate) fn url_octets(address: &str, name: &str) -> usize {
    let escaped = name.bytes().filter(|octet| !is_plain(*octet)).count();
    SCHEME.len() + address.len() + 1 + name.len() + 2 * escaped
}

/// Appends the URL of an address and a name.
pub(crate) fn write_url(address: &str, name: &str, url: &mut String) -> Result<(), AddressError> {
    url.push_str(SCHEME);
    url.push_str(address);
    if address.is_empty() || address.contains('#') || ObjectUrl::parse(url).is_err() {
        return Err(AddressError);
    }
    url.push('#');
    for octet in name.bytes() {
        if is_plain(octet) {
            url.push(octet.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(url, "%{octet:02x}");
        }
    }
    Ok(())
}

fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || PLAIN.contains(&octet)
}

fn escape(part: &str, text: &mut String) {
    for c in part.chars() {
        if u8::try_from(c).is_ok_and(|octet| SPECIAL.contains(&octet)) {
            text.push('\\');
        }
        text.push(c);
    }
}

const SCHEME: &str = "corbaname:";
/// The characters that are escaped in the text of a name.
const SPECIAL: &[u8] = b"/.\\";
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
    fn a_name_takes_little_more_memory_than_its_text() {
        let random = &mut fastrand::Rng::with_seed(1);
        let mut part = || -> String {
            let n = random.usize(..9);
            let chars = (0..n).map(|_| ['a', 'b', '/', '.', '\\', 'ü'][random.usize(..6)]);
            chars.collect()
        };
        for _ in 0..500 {
            let parts: Vec<_> = (0..9).map(|_| (part(), part())).collect();
            let components = parts.iter();
            let name: Vec<_> = components
                .map(|(id, kind)| NameComponent { id, kind })
                .collect();
            let text = name_to_text(&name).unwrap();
            assert!(text.len() <= text_octets(&name));
            let arena = Arena::new(4 * text.len());
            let read: Vec<_> = TextComponents::new(&text)
                .map(|component| in_arena(component.unwrap(), &arena).unwrap())
                .collect();
            assert_eq!(read, name);
            assert!(arena.used() <= text.len());
            let octets = TextComponents::new(&text).map(|component| component.unwrap().octets());
            let expected = name.iter().map(|it| it.id.len() + it.kind.len());
            assert!(octets.eq(expected));
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
