//! Values to send.

use chronorb::SystemException;
use chronorb::data::Arena;
use chronorb_giop::Ior;

use crate::idl::shapes::{Point, Segment};
use crate::idl::*;

/// Returns the text of a nil reference.
pub(crate) fn nil_text() -> String {
    Ior::nil().to_string()
}

pub(crate) fn point(x: f64, y: f64) -> Point {
    Point { x, y }
}

pub(crate) fn segment(x: f64, ink: Color) -> Segment {
    Segment {
        head: point(x, -x),
        tail: point(x + 0.5, x - 0.5),
        ink,
    }
}

pub(crate) fn entry(key: &str, value: i32) -> EntryBuf {
    EntryBuf {
        key: key.to_owned(),
        value,
    }
}

pub(crate) fn keywords(r#type: i32, class: &str, context: bool) -> KeywordsBuf {
    KeywordsBuf {
        r#type,
        class: class.to_owned(),
        context,
    }
}

/// Returns a document in which every member depends on `n`; the lengths of its parts are at most
/// `n` % 5.
pub(crate) fn document(n: i32) -> DocumentBuf {
    let part = n % 5;
    let text = |prefix: &str, i: i32| format!("{prefix}{}", n * 10 + i);
    let real = f64::from(n);
    DocumentBuf {
        version: n as u8,
        author: text("author", 0),
        first: entry("first", n),
        others: (0..part).map(|i| entry("other", n + i)).collect(),
        frame: segment(real, color(n)),
        outline: (0..part).map(|i| point(real, i.into())).collect(),
        samples: (0..part).map(|i| real / f64::from(i + 1)).collect(),
        remarks: (0..part).map(|i| text("remark", i)).collect(),
        headings: [0, 1, 2].map(|i| text("heading", i)),
        weights: [0, 1, 2].map(|row| [0, 1, 2, 3].map(|column| n * row - column)),
        pair: [n, -n],
        ragged: (0..part).map(|i| (n..n + i).collect()).collect(),
        cover: color(n + 1),
        keys: keywords(n, "class", n % 2 == 0),
    }
}

fn color(n: i32) -> Color {
    [Color::Red, Color::Green, Color::Blue, Color::Violet][n as usize % 4]
}

/// Returns `count` octets, as those of `fill`.
pub(crate) fn filling(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i % 251) as u8).collect()
}

/// Copies the strings into a vector, as members of sequences have them.
pub(crate) fn words<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// Returns views of the strings, or of the sequences, in a sequence.
pub(crate) fn views<T: AsRef<V>, V: ?Sized>(items: &[T]) -> Vec<&V> {
    items.iter().map(AsRef::as_ref).collect()
}

/// Returns views of the documents; the arena provides the room.
pub(crate) fn document_views<'a>(
    documents: &'a [DocumentBuf],
    arena: &'a Arena,
) -> Result<Vec<Document<'a>>, SystemException> {
    let view = |document: &'a DocumentBuf| Ok(document.as_view_in(arena)?);
    documents.iter().map(view).collect()
}
