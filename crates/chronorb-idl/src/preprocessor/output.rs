//! The stream of tokens as text, for people and other compilers.

use std::path::Path;

use super::Stream;
use super::macros::spelling;
use crate::ast::{Event, ScopedName};
use crate::lexer::{Token, TokenKind};
use crate::source::Sources;
use crate::span::Span;

/// Returns a text with the same meaning as the stream, without macros, conditions and includes.
///
/// Line markers (`# 12 "file.idl"`) give the origin of each line. The number behind the name is 1
/// at the start of an included file, and 2 where the file around it continues. The text includes
/// documentation comments and the pragmas that concern repository identifiers.
pub(crate) fn text(stream: &Stream, sources: &Sources) -> String {
    let mut writer = Writer {
        sources,
        out: String::new(),
        path: Path::new(""),
        outer: Vec::new(),
        line: 1,
        column: 1,
        last: ' ',
    };
    writer.marker(sources.main_path(), 1, "");
    let mut events = stream.events.iter().peekable();
    let mut entries = stream.entries.iter();
    for (i, token) in stream.tokens.iter().enumerate() {
        while let Some((_, event)) = events.next_if(|(before, _)| *before <= i) {
            writer.event(event, &mut entries, token);
        }
        if token.kind == TokenKind::Eof {
            break;
        }
        if let Some(doc) = stream.docs.get(&i) {
            writer.doc(doc, token.span);
        }
        writer.token(token);
    }
    if writer.column > 1 {
        writer.new_line();
    }
    writer.out
}

/// The maximum number of empty lines that are written instead of a marker.
const MAX_EMPTY_LINES: u32 = 8;
/// The widest gap that is written as blanks, so that columns are kept.
const MAX_BLANKS: u32 = 100;

struct Writer<'a> {
    sources: &'a Sources,
    out: String,
    /// The position of the next character in the text of its origin.
    path: &'a Path,
    line: u32,
    column: u32,
    /// The files around this one.
    outer: Vec<&'a Path>,
    /// The last character of the last token.
    last: char,
}

impl<'a> Writer<'a> {
    fn token(&mut self, token: &Token) {
        let path = self.sources.path(token.span);
        let place = self.sources.location(token.span);
        self.go_to(path, place.line);
        let spelling = spelling(token);
        if place.column > self.column && (token.space || self.column == 1) {
            let gap = (place.column - self.column).min(MAX_BLANKS);
            self.push_blanks(gap);
        } else if token.space && self.column > 1 || self.would_join(&spelling) {
            self.push_blanks(1);
        }
        for c in spelling.chars() {
            self.column += 1;
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            }
        }
        self.last = spelling.chars().next_back().unwrap_or(' ');
        self.out += &spelling;
    }

    fn push_blanks(&mut self, count: u32) {
        self.out.extend(std::iter::repeat_n(' ', count as usize));
        self.column += count;
        self.last = ' ';
    }

    /// Returns whether the text, directly behind the last token, would form one token with it.
    fn would_join(&self, next: &str) -> bool {
        let Some(first) = next.chars().next() else {
            return false;
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        match self.last {
            'L' if matches!(first, '"' | '\'') => true,
            'e' | 'E' if matches!(first, '+' | '-') => true,
            ':' | '/' => matches!(first, ':' | '/' | '*'),
            last => is_word(last) && is_word(first),
        }
    }

    /// Goes to the start of a line, unless it is the current one.
    fn go_to(&mut self, path: &'a Path, line: u32) {
        let is_near = (self.line..=self.line.saturating_add(MAX_EMPTY_LINES)).contains(&line);
        if path != self.path || !is_near {
            self.marker(path, line, "");
        }
        while self.line < line {
            self.new_line();
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.line += 1;
        self.column = 1;
        self.last = ' ';
    }

    /// Writes a line marker, and records its position.
    fn marker(&mut self, path: &'a Path, line: u32, flag: &str) {
        if self.column > 1 {
            self.new_line();
        }
        let name = path.display().to_string();
        let name = name.replace(char::is_control, "?");
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        self.out += &format!("# {line} \"{name}\"{flag}\n");
        (self.path, self.line) = (path, line);
    }

    fn doc(&mut self, doc: &str, documented: Span) {
        let lines: Vec<&str> = doc.split('\n').collect();
        let path = self.sources.path(documented);
        let line = self.sources.location(documented).line;
        let first = line.saturating_sub(lines.len() as u32);
        if self.column > 1 || path != self.path || first != self.line {
            self.marker(path, first, "");
        }
        for line in lines {
            self.out += "/// ";
            self.out += line;
            if line.ends_with('\\') {
                // Without a blank, the next line would continue this one.
                self.out.push(' ');
            }
            self.new_line();
        }
    }

    fn event(&mut self, event: &Event, entries: &mut std::slice::Iter<'_, Span>, next: &Token) {
        let text = match event {
            Event::FileEnter => {
                self.outer.push(self.path);
                let entry = entries.next().copied().unwrap_or_default();
                self.marker(self.sources.path(entry), 1, " 1");
                return;
            }
            Event::FileLeave => {
                let path = self.outer.pop().unwrap_or(self.path);
                let goes_on = self.sources.path(next.span) == path;
                let line = if goes_on {
                    self.sources.location(next.span).line
                } else {
                    1
                };
                self.marker(path, line, " 2");
                return;
            }
            Event::Prefix { prefix, span } => (format!("prefix \"{prefix}\""), *span),
            Event::Id { name, id, span } => (format!("ID {} \"{id}\"", written(name)), *span),
            Event::Version {
                name,
                version,
                span,
            } => (format!("version {} {version}", written(name)), *span),
        };
        let (pragma, span) = text;
        self.go_to(self.sources.path(span), self.sources.location(span).line);
        if self.column > 1 {
            self.new_line();
        }
        self.out += &format!("#pragma {pragma}");
        self.new_line();
    }
}

/// Returns the name with its escapes.
fn written(name: &ScopedName) -> String {
    let mut out = String::new();
    for (i, part) in name.parts.iter().enumerate() {
        if i > 0 || name.absolute {
            out += "::";
        }
        if part.escaped {
            out.push('_');
        }
        out += &part.name;
    }
    out
}
