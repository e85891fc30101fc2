//! The pieces of a file: documentation, comments, strings and code.

/// A part of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// The number of its line, from 0.
    pub(super) line: usize,
    pub(super) kind: PieceKind,
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// A line of a doc comment, without its marker.
    Doc,
    /// A comment, or a line of one.
    Comment,
    /// A string literal, or a line of one.
    Text,
    /// A line of a raw string literal, except the first.
    Listing,
    Code,
}

/// Consecutive lines of one doc comment, or of one other comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block<'a> {
    /// The number of its first line, from 0.
    pub(super) line: usize,
    pub(super) kind: PieceKind,
    pub(super) lines: Vec<&'a str>,
}

/// The construct that the end of a line leaves open.
enum Open {
    Nothing,
    Comment,
    /// A string literal; a raw one with its number of `#`.
    Text(Option<usize>),
}

/// Splits a Rust file into its pieces. The code of a line up to the next string or comment is one
/// piece.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut open = Open::Nothing;
    for (line, text) in text.lines().enumerate() {
        open = pieces_of_line(line, text, open, &mut pieces);
    }
    pieces
}

fn pieces_of_line<'a>(
    line: usize,
    mut rest: &'a str,
    mut open: Open,
    pieces: &mut Vec<Piece<'a>>,
) -> Open {
    let mut push = |kind, text| pieces.push(Piece { line, kind, text });
    let mut text_kind = match open {
        Open::Text(Some(_)) => PieceKind::Listing,
        _ => PieceKind::Text,
    };
    loop {
        match open {
            Open::Comment => {
                let Some((comment, after)) = rest.split_once("*/") else {
                    push(PieceKind::Comment, rest);
                    return Open::Comment;
                };
                push(PieceKind::Comment, comment);
                rest = after;
            }
            Open::Text(hashes) => {
                let Some(end) = end_of_text(rest, hashes) else {
                    push(text_kind, rest);
                    return Open::Text(hashes);
                };
                push(text_kind, &rest[..end]);
                text_kind = PieceKind::Text;
                rest = &rest[end + 1 + hashes.unwrap_or_default()..];
            }
            Open::Nothing => {}
        }
        let (code, next) = code_until_literal(rest);
        if !code.trim().is_empty() {
            push(PieceKind::Code, code);
        }
        rest = &rest[code.len()..];
        open = match next {
            Next::End => return Open::Nothing,
            Next::LineComment => {
                let comment = &rest[2..];
                let is_doc = comment.starts_with(['/', '!']) && !comment.starts_with("//");
                if is_doc {
                    push(PieceKind::Doc, comment[1..].trim());
                } else {
                    push(PieceKind::Comment, comment.trim());
                }
                return Open::Nothing;
            }
            Next::Comment => Open::Comment,
            Next::Text(hashes) => Open::Text(hashes),
        };
        rest = match next {
            Next::Comment => &rest[2..],
            _ => &rest[1..],
        };
    }
}

enum Next {
    End,
    LineComment,
    Comment,
    Text(Option<usize>),
}

/// Returns the code before the next string or comment, and the construct that follows it.
fn code_until_literal(text: &str) -> (&str, Next) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = text[at..].find(['"', '/', '\'']) {
        at += found;
        match bytes[at] {
            b'"' => return (&text[..at], Next::Text(raw_hashes(&text[..at]))),
            b'/' if bytes.get(at + 1) == Some(&b'/') => return (&text[..at], Next::LineComment),
            b'/' if bytes.get(at + 1) == Some(&b'*') => return (&text[..at], Next::Comment),
            b'/' => at += 1,
            _ => at += length_of_character(&text[at..]),
        }
    }
    (text, Next::End)
}

/// Returns the length of a character literal, or 1 for the apostrophe of a lifetime.
fn length_of_character(text: &str) -> usize {
    let mut rest = text.char_indices().skip(1);
    match rest.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(1, |end| end + 4),
        Some(_) => match rest.next() {
            Some((end, '\'')) => end + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// Returns the number of `#` of a raw string that begins after `code`; `None` for other strings.
fn raw_hashes(code: &str) -> Option<usize> {
    let without_hashes = code.trim_end_matches('#');
    let before = without_hashes.strip_suffix('r')?;
    let before = before.strip_suffix(['b', 'c']).unwrap_or(before);
    let in_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    (!in_name).then_some(code.len() - without_hashes.len())
}

/// Returns the index of the quotation mark that ends a string literal.
fn end_of_text(text: &str, hashes: Option<usize>) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = text[at..].find(['"', '\\']) {
        at += found;
        match (bytes[at], hashes) {
            (b'"', None) => return Some(at),
            (b'"', Some(n)) if bytes[at + 1..].iter().take_while(|b| **b == b'#').count() >= n => {
                return Some(at);
            }
            (b'\\', None) => {
                let escaped = text[at + 1..].chars().next();
                at += 1 + escaped.map_or(0, char::len_utf8);
            }
            _ => at += 1,
        }
    }
    None
}

/// Joins the lines of comments. A comment behind code stands alone.
pub(super) fn blocks<'a>(pieces: &[Piece<'a>]) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let mut line_of_code = None;
    for piece in pieces {
        if !matches!(piece.kind, PieceKind::Doc | PieceKind::Comment) {
            line_of_code = Some(piece.line);
            continue;
        }
        let alone = line_of_code == Some(piece.line);
        match blocks.last_mut() {
            Some(last)
                if !alone
                    && last.kind == piece.kind
                    && last.line + last.lines.len() == piece.line =>
            {
                last.lines.push(piece.text);
            }
            _ => blocks.push(Block {
                line: piece.line,
                kind: piece.kind,
                lines: vec![piece.text],
            }),
        }
    }
    blocks
}
