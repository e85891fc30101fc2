//! The lexer, which cuts a text into tokens for the preprocessor and the parser.

use std::rc::Rc;
use std::sync::Arc;

use crate::codes;
use crate::diagnostics::{Diagnostic, Sink};
use crate::portable::QUOTE_IN_SKIPPED_TEXT;
use crate::source::SourceFile;
use crate::span::Span;

/// A token. A token from a macro has the place at which the macro was used.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
    /// Whether blanks or a comment precede it.
    pub(crate) space: bool,
    /// Whether it is the first token of its line.
    pub(crate) first: bool,
    /// A macro name that must not be expanded any more.
    pub(crate) frozen: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// An identifier or keyword, with a leading escape `_` if it has one.
    Ident(Rc<str>),
    /// A number in its written form.
    Number(Rc<str>),
    /// The text between the quotes, escapes as written.
    Str { wide: bool, text: Rc<str> },
    /// The text between the quotes, escapes as written.
    Char { wide: bool, text: Rc<str> },
    /// One character of punctuation; `<<` and `>>` are two tokens.
    Punct(char),
    /// `::`
    Scope,
    /// The end of the text.
    Eof,
}

impl Token {
    pub(crate) fn is(&self, punct: char) -> bool {
        self.kind == TokenKind::Punct(punct)
    }

    pub(crate) fn ident(&self) -> Option<&Rc<str>> {
        match &self.kind {
            TokenKind::Ident(name) => Some(name),
            _ => None,
        }
    }
}

/// The label of the quote that ends a literal over several lines. The literal is reported at its
/// beginning.
pub(crate) const END_OF_LITERAL: &str = "the end of a literal";

/// The greatest length of an identifier.
const MAX_NAME: usize = 255;

/// Reads the tokens of one text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer {
    source: Text,
    file: u32,
    at: usize,
    at_line_start: bool,
    doc: Option<Rc<str>>,
    /// Whether the last literal had no closing quote, so that the next quote may be this.
    is_open: bool,
}

#[derive(Clone, Debug)]
struct Text {
    text: Arc<str>,
    lossy: bool,
}

/// The gap between two tokens.
struct Gap {
    space: bool,
    end_of_line: bool,
}

impl Lexer {
    pub(crate) fn new(source: &SourceFile, file: u32) -> Self {
        Self {
            source: Text {
                text: Arc::clone(&source.text),
                lossy: source.lossy,
            },
            file,
            at: if source.text.starts_with('\u{feff}') {
                '\u{feff}'.len_utf8()
            } else {
                0
            },
            at_line_start: true,
            doc: None,
            is_open: false,
        }
    }

    /// Creates a lexer over a text that is no file; the spans of its tokens mean nothing.
    pub(crate) fn over(text: &str) -> Self {
        Self {
            source: Text {
                text: text.into(),
                lossy: false,
            },
            file: 0,
            at: 0,
            at_line_start: true,
            doc: None,
            is_open: false,
        }
    }

    /// Reads the next token, across lines.
    pub(crate) fn next(&mut self, sink: &mut Sink) -> Token {
        loop {
            let gap = self.skip_gap(false, sink);
            let first = std::mem::take(&mut self.at_line_start);
            if let Some(mut token) = self.token(sink) {
                token.space = gap.space;
                token.first = first;
                return token;
            }
            self.at_line_start = first;
        }
    }

    /// Reads the next token of this line; `None` at its end, which is left to [`Self::next`].
    pub(crate) fn next_in_line(&mut self, sink: &mut Sink) -> Option<Token> {
        loop {
            let gap = self.skip_gap(true, sink);
            if gap.end_of_line {
                return None;
            }
            if let Some(mut token) = self.token(sink) {
                token.space = gap.space;
                return Some(token);
            }
        }
    }

    /// Reads the remaining tokens of this line.
    pub(crate) fn rest_of_line(&mut self, sink: &mut Sink) -> Vec<Token> {
        std::iter::from_fn(|| self.next_in_line(sink)).collect()
    }

    /// Reads the remaining text of this line, trimmed and with continued lines joined, and its
    /// place. It need not be made of tokens.
    pub(crate) fn raw_rest_of_line(&mut self, sink: &mut Sink) -> (String, Span) {
        self.skip_gap(true, sink);
        let start = self.at;
        let mut end = start;
        let mut text = String::new();
        while let Some(c) = self.peek()
            && c != '\n'
        {
            let rest = self.rest();
            if rest.starts_with("\\\n") {
                self.at += 2;
            } else if rest.starts_with("\\\r\n") {
                self.at += 3;
            } else if rest.starts_with("/*") {
                self.block_comment(sink);
                text.push(' ');
            } else {
                let start = self.at;
                if rest.starts_with("//") {
                    self.line_comment();
                } else {
                    self.at += c.len_utf8();
                    if c == '"' {
                        self.skip_quoted(c);
                    }
                }
                text.push_str(&self.source.text[start..self.at]);
                if !c.is_whitespace() {
                    end = self.at;
                }
            }
        }
        self.doc = None;
        (text.trim().to_owned(), self.span(start, end))
    }

    /// Reads the name between `<` and `>`, if such a name is next in this line, with the place of
    /// both.
    pub(crate) fn header_name(&mut self, sink: &mut Sink) -> Option<(String, Span)> {
        self.skip_gap(true, sink);
        let rest = self.rest().strip_prefix('<')?;
        let line = rest.lines().next().unwrap_or_default();
        let name = line[..line.find('>')?].to_owned();
        let start = self.at;
        self.at += name.len() + 2;
        Some((name, self.span(start, self.at)))
    }

    /// Reads the word that is next in this line, and its place. What is behind it need not be made
    /// of tokens.
    pub(crate) fn word(&mut self, sink: &mut Sink) -> (String, Span) {
        self.skip_gap(true, sink);
        let rest = self.rest();
        let len = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let word = rest[..len].to_owned();
        let start = self.at;
        self.at += len;
        (word, self.span(start, self.at))
    }

    /// Skips to the position behind the next `#` that begins a directive. Returns the place of the
    /// `#`, or `None` at the end of the text.
    pub(crate) fn skip_to_directive(&mut self, sink: &mut Sink) -> Option<Span> {
        loop {
            self.skip_gap(false, sink);
            self.doc = None;
            let first = std::mem::take(&mut self.at_line_start);
            let c = self.peek()?;
            let start = self.at;
            self.at += c.len_utf8();
            if c == '#' && first {
                return Some(self.span(start, self.at));
            }
            // Text that is not compiled may have lone apostrophes.
            if matches!(c, '"' | '\'') && !self.skip_quoted(c) {
                sink.unportable(&QUOTE_IN_SKIPPED_TEXT, self.span(start, start + 1));
            }
        }
    }

    /// Returns the documentation comment directly before the last token, if there is one.
    pub(crate) fn take_doc(&mut self) -> Option<Rc<str>> {
        self.doc.take()
    }

    fn rest(&self) -> &str {
        &self.source.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.text.as_bytes().get(self.at + ahead).copied()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            file: self.file,
            start: start as u32,
            end: end as u32,
        }
    }

    /// Skips blanks, comments and continued line ends; line ends too, unless `in_line`.
    fn skip_gap(&mut self, in_line: bool, sink: &mut Sink) -> Gap {
        let mut space = false;
        loop {
            match self.byte(0) {
                None => {
                    return Gap {
                        space,
                        end_of_line: true,
                    };
                }
                Some(b'\n') => {
                    if in_line {
                        return Gap {
                            space,
                            end_of_line: true,
                        };
                    }
                    self.at += 1;
                    self.at_line_start = true;
                }
                Some(b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c') => self.at += 1,
                Some(b'\\') if self.rest()[1..].starts_with('\n') => self.at += 2,
                Some(b'\\') if self.rest()[1..].starts_with("\r\n") => self.at += 3,
                Some(b'/') if self.byte(1) == Some(b'*') => self.block_comment(sink),
                Some(b'/') if self.byte(1) == Some(b'/') => self.line_comment(),
                Some(_) => {
                    return Gap {
                        space,
                        end_of_line: false,
                    };
                }
            }
            space = true;
        }
    }

    fn block_comment(&mut self, sink: &mut Sink) {
        let start = self.at;
        let Some(len) = self.rest()[2..].find("*/") else {
            sink.push(
                Diagnostic::error(
                    codes::UNTERMINATED_COMMENT,
                    self.span(start, start + 2),
                    "this comment has no end",
                    "it begins here",
                )
                .hint("end it with `*/`"),
            );
            self.at = self.source.text.len();
            return;
        };
        self.at += 2 + len + 2;
        let body = &self.source.text[start + 2..start + 2 + len];
        // `/**<` describes what stands before it.
        if let Some(body) = body.strip_prefix('*')
            && !body.starts_with(['<', '*'])
        {
            let mut end = body.len().min(MAX_DOC);
            while !body.is_char_boundary(end) {
                end -= 1;
            }
            self.doc = Some(undecorated(&body[..end]));
        }
    }

    fn line_comment(&mut self) {
        let rest = self.rest();
        let mut len = 0;
        for line in rest.split_inclusive('\n') {
            len += line.len();
            let body = line.trim_end_matches(['\n', '\r']);
            if !body.ends_with('\\') {
                len -= line.len() - body.len();
                break;
            }
        }
        let body = &rest[2..len];
        if let Some(body) = body.strip_prefix('/')
            && !body.starts_with(['<', '/'])
        {
            let line = body.strip_prefix(' ').unwrap_or(body).trim_end();
            self.doc = Some(match &self.doc {
                // A documentation comment of many lines is cut off.
                Some(doc) if doc.len() > MAX_DOC => Rc::clone(doc),
                Some(doc) => format!("{doc}\n{line}").into(),
                None => line.into(),
            });
        }
        self.at += len;
    }

    fn token(&mut self, sink: &mut Sink) -> Option<Token> {
        let start = self.at;
        let Some(c) = self.peek() else {
            return Some(self.make(start, TokenKind::Eof));
        };
        let kind = match c {
            'L' if matches!(self.byte(1), Some(b'"' | b'\'')) => {
                self.at += 1;
                self.literal(true, start, sink)
            }
            '"' | '\'' => self.literal(false, start, sink),
            'a'..='z' | 'A'..='Z' | '_' => {
                let len = self
                    .rest()
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or_else(|| self.rest().len());
                self.at += len;
                if len > MAX_NAME {
                    sink.push(Diagnostic::error(
                        codes::NAME_TOO_LONG,
                        self.span(start, start + MAX_NAME),
                        format!("this name is longer than {MAX_NAME} characters"),
                        "too long",
                    ));
                }
                let end = start + len.min(MAX_NAME);
                TokenKind::Ident(self.source.text[start..end].into())
            }
            '0'..='9' => self.number(),
            '.' if self.byte(1).is_some_and(|b| b.is_ascii_digit()) => self.number(),
            ':' if self.byte(1) == Some(b':') => {
                self.at += 2;
                TokenKind::Scope
            }
            '!'..='~' if !matches!(c, '$' | '`' | '\\') => {
                self.at += 1;
                TokenKind::Punct(c)
            }
            _ => {
                self.unknown_character(sink);
                return None;
            }
        };
        Some(self.make(start, kind))
    }

    fn make(&self, start: usize, kind: TokenKind) -> Token {
        Token {
            kind,
            span: self.span(start, self.at),
            space: false,
            first: false,
            frozen: false,
        }
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        let mut previous = b'0';
        while let Some(b) = self.byte(0) {
            let signed = matches!(b, b'+' | b'-')
                && matches!(previous, b'e' | b'E')
                && !self.source.text[start..self.at].starts_with("0x");
            if !(b.is_ascii_alphanumeric() || b == b'.' || b == b'_' || signed) {
                break;
            }
            previous = b;
            self.at += 1;
        }
        TokenKind::Number(self.source.text[start..self.at].into())
    }

    fn literal(&mut self, wide: bool, start: usize, sink: &mut Sink) -> TokenKind {
        let quote = self.peek().unwrap_or('"');
        self.at += 1;
        let body = self.at;
        let closed = self.skip_quoted(quote);
        let end = if closed { self.at - 1 } else { self.at };
        let text: Rc<str> = self.source.text[body..end].into();
        let ends_another = !closed && self.is_open;
        self.is_open = !closed && !ends_another;
        if !closed {
            let label = if ends_another {
                END_OF_LITERAL
            } else {
                "it begins here"
            };
            let what = if quote == '"' { "string" } else { "character" };
            sink.push(
                Diagnostic::error(
                    codes::UNTERMINATED_LITERAL,
                    self.span(start, start + 1),
                    format!("this {what} has no closing quote on its line"),
                    label,
                )
                .hint(format!("end it with `{quote}`")),
            );
        }
        if self.source.lossy
            && let Some(offset) = text.find('\u{fffd}')
        {
            self.not_utf8(body + offset, sink);
        }
        if quote == '"' {
            TokenKind::Str { wide, text }
        } else {
            TokenKind::Char { wide, text }
        }
    }

    /// Skips to the position behind the closing quote, or to the end of the line. Returns whether
    /// there was a quote.
    fn skip_quoted(&mut self, quote: char) -> bool {
        while let Some(b) = self.byte(0) {
            match b {
                b'\n' => return false,
                b'\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\r') if self.byte(1) == Some(b'\n') => self.at += 2,
                        Some(c) => self.at += c.len_utf8(),
                        None => return false,
                    }
                }
                b if char::from(b) == quote => {
                    self.at += 1;
                    return true;
                }
                _ => self.at += self.peek().map_or(1, char::len_utf8),
            }
        }
        false
    }

    fn unknown_character(&mut self, sink: &mut Sink) {
        let start = self.at;
        // One message for a run of such characters.
        while let Some(c) = self.peek()
            && (!c.is_ascii() || matches!(c, '$' | '`' | '\\') || c.is_ascii_control())
            && c != '\n'
            && !(self.at > start && (c.is_ascii_whitespace() || c == '\\'))
        {
            self.at += c.len_utf8();
        }
        let text = &self.source.text[start..self.at];
        if self.source.lossy
            && let Some(offset) = text.find('\u{fffd}')
        {
            self.not_utf8(start + offset, sink);
            return;
        }
        let shown: String = text.chars().take(20).flat_map(char::escape_debug).collect();
        let diagnostic = Diagnostic::error(
            codes::UNKNOWN_CHARACTER,
            self.span(start, self.at),
            format!("`{shown}` has no meaning here"),
            "not a character of IDL",
        );
        sink.push(diagnostic.hint("identifiers are made of the letters a to z, digits and `_`"));
    }

    fn not_utf8(&self, at: usize, sink: &mut Sink) {
        sink.push(
            Diagnostic::error(
                codes::NOT_UTF8,
                self.span(at, at + '\u{fffd}'.len_utf8()),
                "this is not UTF-8",
                "bytes outside of UTF-8 are allowed in comments only",
            )
            .hint("save the file as UTF-8, or write the character as an escape such as `\\xe9`"),
        );
    }
}

/// The length in bytes after which a documentation comment is cut off.
const MAX_DOC: usize = 16 * 1024;

/// Returns the text of a `/** */` comment without the stars in front of its lines.
fn undecorated(body: &str) -> Rc<str> {
    let lines: Vec<&str> = body
        .lines()
        .map(|line| {
            let line = line.trim();
            let line = line.strip_prefix('*').unwrap_or(line);
            line.strip_prefix(' ').unwrap_or(line)
        })
        .collect();
    lines.join("\n").trim().into()
}
