//! Directives, macros and included files: from texts to one stream of tokens.
//!
//! The stream contains the pragmas that concern repository identifiers, and the boundaries of
//! included files, as events between tokens.

mod directives;
mod expr;
mod macros;
mod output;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::ast::Event;
use crate::builtin;
use crate::codes;
use crate::diagnostics::{Diagnostic, Sink};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::options::Options;
use crate::source::Sources;
use crate::span::Span;

use macros::{Expansion, Macro};

pub(crate) use output::text;

/// The input of the parser.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The tokens; the last one is the end of the text.
    pub(crate) tokens: Vec<Token>,
    /// Documentation comments, by the number of the token behind them.
    pub(crate) docs: HashMap<usize, Rc<str>>,
    /// Events, each with the number of the token behind it, in order.
    pub(crate) events: Vec<(usize, Event)>,
    /// The starts of the included files, one for each [`Event::FileEnter`].
    pub(crate) entries: Vec<Span>,
}

impl Stream {
    /// Returns whether there may be an import.
    pub(crate) fn has_imports(&self) -> bool {
        let mut words = self.tokens.iter().filter_map(Token::ident);
        words.any(|word| **word == *"import")
    }
}

/// Preprocesses the main file, number 0 of the sources.
pub(crate) fn run(sources: &mut Sources, sink: &mut Sink, options: &Options) -> Stream {
    run_after(&[], sources, sink, options)
}

/// Preprocesses the main file as if its first lines included these files.
pub(crate) fn run_after(
    implied: &[FoundFile],
    sources: &mut Sources,
    sink: &mut Sink,
    options: &Options,
) -> Stream {
    let mut preprocessor = Preprocessor {
        sources,
        sink,
        options,
        macros: HashMap::new(),
        files: Vec::new(),
        expansions: Vec::new(),
        out: Stream::default(),
        once: HashSet::new(),
        work: 0,
        bytes: 0,
        opened: 0,
        depth: 0,
        stopped: false,
    };
    for (name, text) in &options.defines {
        preprocessor.define_option(name, text);
    }
    preprocessor.open(0, Span::default());
    // The file that is opened last is read first.
    for file in implied.iter().rev() {
        preprocessor.open_found(file.clone(), Span::default());
    }
    preprocessor.run();
    let end = preprocessor.sources.get(0).text.trim_end().len() as u32;
    let mut out = preprocessor.out;
    out.tokens.push(Token {
        kind: TokenKind::Eof,
        span: Span {
            file: 0,
            start: end,
            end,
        },
        space: true,
        first: true,
        frozen: false,
    });
    out
}

/// A file that was found by its name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FoundFile {
    OnDisk(PathBuf),
    /// A built-in file, by its name.
    BuiltIn(&'static str),
}

/// Finds a file beside another one, in the include directories, or among the built-in files. Adds
/// the paths that were searched.
pub(crate) fn find(
    name: &str,
    beside: Option<&Path>,
    options: &Options,
    searched: &mut Vec<PathBuf>,
) -> Option<FoundFile> {
    let directories = options.include_dirs.iter().map(PathBuf::as_path);
    for directory in beside.into_iter().chain(directories) {
        let path = directory.join(name);
        if path.is_file() {
            return Some(FoundFile::OnDisk(path));
        }
        searched.push(path);
    }
    builtin::named(name).map(FoundFile::BuiltIn)
}

/// The maximum nesting of included files.
const MAX_INCLUDE_DEPTH: usize = 100;
/// The total number of bytes that are read; repetitions count.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The total number of files that are opened; repetitions count.
const MAX_OPENED: usize = 10_000;
/// The length in bytes of the name of an included file.
const MAX_PATH: usize = 4096;
/// The number of tokens that the parser is given.
const MAX_TOKENS: usize = 4_000_000;

struct Preprocessor<'a> {
    sources: &'a mut Sources,
    sink: &'a mut Sink,
    options: &'a Options,
    macros: HashMap<Rc<str>, Macro>,
    files: Vec<OpenFile>,
    /// Replacement lists that are being read, the innermost last.
    expansions: Vec<Expansion>,
    out: Stream,
    /// Files with `#pragma once`.
    once: HashSet<u32>,
    /// Tokens that macros have produced.
    work: usize,
    bytes: usize,
    opened: usize,
    /// Nesting of macro arguments.
    depth: usize,
    /// Whether a limit was exceeded; then nothing more is read.
    stopped: bool,
}

/// A file that is being read.
struct OpenFile {
    number: u32,
    lexer: Lexer,
    conditions: Vec<Condition>,
    /// The number of included files that line markers have begun and not ended.
    marked: usize,
}

/// A `#if` that waits for its `#endif`.
struct Condition {
    opened: Span,
    /// Whether its text is compiled.
    active: bool,
    /// Whether one of its branches was compiled.
    taken: bool,
    /// Whether the text around it is compiled.
    outer: bool,
    seen_else: bool,
}

impl Preprocessor<'_> {
    fn run(&mut self) {
        while !self.stopped && !self.sink.is_full() {
            let Some(token) = self.read() else {
                if !self.close() {
                    break;
                }
                continue;
            };
            let doc = match self.files.last_mut() {
                Some(file) if self.expansions.is_empty() => file.lexer.take_doc(),
                _ => None,
            };
            if let Some(doc) = doc {
                self.out.docs.insert(self.out.tokens.len(), doc);
            }
            if let Some(token) = self.expand(token) {
                self.emit(token);
            }
        }
    }

    fn emit(&mut self, token: Token) {
        if self.out.tokens.len() >= MAX_TOKENS {
            self.stop(Diagnostic::error(
                codes::TOO_MANY_TOKENS,
                token.span,
                "more than four million tokens",
                "reading stops here",
            ));
            return;
        }
        self.out.tokens.push(token);
    }

    fn enter(&mut self, at: Span) {
        self.event(Event::FileEnter);
        self.out.entries.push(at);
    }

    fn event(&mut self, event: Event) {
        self.out.events.push((self.out.tokens.len(), event));
    }

    fn stop(&mut self, diagnostic: Diagnostic) {
        self.sink.stop(diagnostic);
        self.stopped = true;
    }

    /// Returns the next token: of the innermost macro, or of the innermost file after executing
    /// directives. Returns `None` at the end of that file.
    fn read(&mut self) -> Option<Token> {
        if let Some(token) = self.read_expansion() {
            return Some(token);
        }
        loop {
            let file = self.files.last_mut()?;
            let token = if file.conditions.last().is_some_and(|c| !c.active) {
                let hash = file.lexer.skip_to_directive(self.sink)?;
                self.directive(hash);
                continue;
            } else {
                file.lexer.next(self.sink)
            };
            match token.kind {
                TokenKind::Eof => return None,
                TokenKind::Punct('#') if token.first => {
                    file.lexer.take_doc();
                    self.directive(token.span);
                    if self.stopped {
                        return None;
                    }
                }
                _ => return Some(token),
            }
        }
    }

    /// Begins to read a file.
    fn open(&mut self, number: u32, at: Span) {
        let source = self.sources.get(number);
        self.bytes += source.text.len();
        self.opened += 1;
        if self.bytes > MAX_BYTES || self.opened > MAX_OPENED {
            self.stop(Diagnostic::error(
                codes::TOO_MUCH_INPUT,
                at,
                "more than 64 MiB or 10000 files are included, counted with repetition",
                "reading stops at this file",
            ).hint(
                "guard files that are included more than once with `#ifndef … #define … #endif` or \
                `#pragma once`",
            ));
            return;
        }
        if self.files.len() > MAX_INCLUDE_DEPTH {
            self.too_deep(number, at);
            return;
        }
        let lexer = Lexer::new(source, number);
        if self.sources.is_replacement(number) {
            self.once.insert(number);
        }
        if !self.files.is_empty() {
            self.enter(Span {
                file: number,
                ..Span::default()
            });
        }
        self.files.push(OpenFile {
            number,
            lexer,
            conditions: Vec::new(),
            marked: 0,
        });
    }

    fn too_deep(&mut self, number: u32, at: Span) {
        let repeated = self.files.iter().rposition(|file| file.number == number);
        let path = self.sources.get(number).path.display().to_string();
        let diagnostic = match repeated {
            Some(index) => {
                let mut diagnostic = Diagnostic::error(
                    codes::INCLUDE_CYCLE,
                    at,
                    format!("`{path}` includes itself without end"),
                    "included again here",
                );
                for file in self.files[index + 1..].iter().take(5) {
                    let name = self.sources.get(file.number).path.display();
                    diagnostic = diagnostic.note(format!("through `{name}`"));
                }
                diagnostic
                    .hint("guard the file with `#ifndef … #define … #endif` or `#pragma once`")
            }
            None => Diagnostic::error(
                codes::INCLUDE_DEPTH,
                at,
                format!("files are included in each other deeper than {MAX_INCLUDE_DEPTH}"),
                "this one is too deep",
            ),
        };
        self.stop(diagnostic);
    }

    /// Ends the innermost file. Returns whether there is another one around it.
    fn close(&mut self) -> bool {
        let Some(file) = self.files.pop() else {
            return false;
        };
        for _ in 0..file.marked {
            self.event(Event::FileLeave);
        }
        for condition in file.conditions {
            self.sink.push(
                Diagnostic::error(
                    codes::UNTERMINATED_IF,
                    condition.opened,
                    "this condition has no end in its file",
                    "it begins here",
                )
                .hint("end it with `#endif`"),
            );
        }
        if self.files.is_empty() {
            return false;
        }
        self.event(Event::FileLeave);
        true
    }

    /// Finds and opens an included file.
    fn include(&mut self, name: &str, quoted: bool, at: Span) {
        if name.len() > MAX_PATH {
            self.bad_directive(at, "the name of the file is too long", "shorten it");
            return;
        }
        let here = self.files.last().filter(|_| quoted);
        let here = here.map(|file| self.sources.get(file.number).path.clone());
        let beside = here.as_deref().and_then(Path::parent);
        let mut searched = Vec::new();
        match find(name, beside, self.options, &mut searched) {
            Some(found) => self.open_found(found, at),
            None => self.not_found(name, at, &searched),
        }
    }

    fn open_found(&mut self, found: FoundFile, at: Span) {
        let read = match found {
            FoundFile::OnDisk(path) => self.sources.read(&path).map_err(|error| (path, error)),
            FoundFile::BuiltIn(name) => {
                let text = builtin::text(name).unwrap_or_default();
                Ok(self.sources.built_in(name, text))
            }
        };
        match read.map(|number| self.sources.replacement(number)) {
            Ok(number) if self.once.contains(&number) => {}
            Ok(number) => self.open(number, at),
            Err((path, error)) => self.sink.push(error.into_diagnostic(&path, Some(at))),
        }
    }

    fn not_found(&mut self, name: &str, at: Span, searched: &[PathBuf]) {
        let mut diagnostic = Diagnostic::error(
            codes::INCLUDE_NOT_FOUND,
            at,
            format!("there is no file `{name}`"),
            "included here",
        );
        for place in searched.iter().take(20) {
            diagnostic = diagnostic.note(format!("searched `{}`", place.display()));
        }
        let diagnostic = match builtin::similar(name) {
            Some(known) => diagnostic.hint(format!(
                "`#include <{known}>` includes the one that is part of this compiler"
            )),
            None => diagnostic.hint("name its directory as an include directory (`-I DIR`)"),
        };
        self.sink.push(diagnostic);
    }
}
