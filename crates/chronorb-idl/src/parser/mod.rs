//! A recursive descent parser that continues after errors.
//!
//! A function that returns `None` has reported the error. Its caller skips to the end of the
//! definition and continues.

mod annotations;
mod bits;
mod components;
mod definitions;
mod exprs;
mod interfaces;
mod keywords;
mod literals;
mod templates;
mod types;
mod unions;
mod values;

use std::collections::HashMap;

use crate::ast::{Event, Ident, Item, ScopedName};
use crate::codes;
use crate::diagnostics::{Diagnostic, Sink};
use crate::lexer::{Token, TokenKind};
use crate::preprocessor::Stream;
use crate::span::Span;
use crate::suggest::{closest, foreign};

pub(crate) use keywords::{KEYWORDS, keyword_ignoring_case};
pub(crate) use literals::decoded;

use keywords::{is_keyword, is_younger};

/// Parses everything.
pub(crate) fn parse(stream: &Stream, sink: &mut Sink) -> Vec<Item> {
    let mut parser = Parser {
        stream,
        at: 0,
        event: 0,
        depth: 0,
        string_bytes: 0,
        unclosed: false,
        sink,
    };
    parser.items(Body::File, None)
}

/// The maximum nesting of definitions, types and expressions.
const MAX_DEPTH: u16 = 200;
/// The number of parts of a scoped name.
pub(crate) const MAX_PARTS: usize = 200;

/// The context of a list of definitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Body {
    File,
    Module,
    Interface,
    Value,
    Component,
    /// A port type or a connector.
    Ports,
    Home,
}

struct Parser<'a> {
    stream: &'a Stream,
    at: usize,
    /// The first event that was not yet delivered.
    event: usize,
    depth: u16,
    /// Bytes of all string literals.
    string_bytes: usize,
    /// A brace without its counterpart was reported.
    unclosed: bool,
    sink: &'a mut Sink,
}

impl<'a> Parser<'a> {
    /// Parses definitions up to the closing brace, which is consumed, or the end of the text.
    fn items(&mut self, body: Body, open: Option<Span>) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            items.extend(self.events().into_iter().map(Item::Event));
            if self.sink.is_full() {
                self.at = self.stream.tokens.len() - 1;
            }
            let token = self.peek();
            match &token.kind {
                TokenKind::Eof => {
                    if let Some(open) = open
                        && !self.sink.is_full()
                    {
                        self.unclosed(open);
                    }
                    return items;
                }
                TokenKind::Punct('}') => {
                    self.at += 1;
                    if open.is_some() {
                        return items;
                    }
                    self.sink.push(
                        Diagnostic::error(
                            codes::UNCLOSED_BRACE,
                            token.span,
                            "this `}` closes nothing",
                            "no brace is open here",
                        )
                        .hint("remove it, or look for an earlier `}` that stands too early"),
                    );
                    self.eat(';');
                }
                TokenKind::Punct(';') => {
                    self.at += 1;
                    self.sink.push(
                        Diagnostic::error(
                            codes::SYNTAX,
                            token.span,
                            "expected a definition, found `;`",
                            "nothing stands before this",
                        )
                        .hint("remove this `;`"),
                    );
                }
                _ => {
                    let before = self.at;
                    let depth = self.depth;
                    let complete = self.definition(body, &mut items);
                    self.depth = depth;
                    if complete.is_none() {
                        self.recover(open.is_some());
                    }
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
        }
    }

    /// Returns the events that were not yet delivered, up to the current token.
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some((before, event)) = self.stream.events.get(self.event)
            && *before <= self.at
        {
            events.push(event.clone());
            self.event += 1;
        }
        events
    }

    fn peek(&self) -> &'a Token {
        self.peek_at(0)
    }

    /// Returns the token at this distance; behind the end, the end token repeats.
    fn peek_at(&self, ahead: usize) -> &'a Token {
        let tokens = &self.stream.tokens;
        &tokens[(self.at + ahead).min(tokens.len() - 1)]
    }

    /// Returns the current token, which is consumed unless it is the end.
    fn next(&mut self) -> &'a Token {
        let token = self.peek();
        if token.kind != TokenKind::Eof {
            self.at += 1;
        }
        token
    }

    fn previous_span(&self) -> Span {
        match self.at.checked_sub(1) {
            Some(previous) => self.stream.tokens[previous].span,
            None => self.peek().span,
        }
    }

    fn eat(&mut self, punct: char) -> bool {
        let found = self.peek().is(punct);
        self.at += usize::from(found);
        found
    }

    fn is_word(&self, word: &str) -> bool {
        self.peek().ident().is_some_and(|ident| &**ident == word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    /// Consumes a punctuation character, or reports that it is missing.
    fn expect(&mut self, punct: char) -> Option<()> {
        if self.eat(punct) {
            return Some(());
        }
        self.unexpected(&format!("`{punct}`"));
        None
    }

    /// Reports that the current token was not expected.
    fn unexpected(&mut self, expected: &str) {
        let diagnostic = self.unexpected_here(expected);
        self.sink.push(diagnostic);
    }

    fn unexpected_here(&self, expected: &str) -> Diagnostic {
        let token = self.peek();
        let diagnostic = Diagnostic::error(
            codes::SYNTAX,
            token.span,
            format!("expected {expected}, found {}", described(token)),
            format!("expected {expected}"),
        );
        match self.hint_for_habit() {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        }
    }

    /// Returns a hint for what other languages have at the current token, or just before it.
    fn hint_for_habit(&self) -> Option<String> {
        let token = self.peek();
        if let Some(hint) = token.ident().and_then(|word| foreign(word)) {
            return Some(hint);
        }
        let before = |count| Some(&self.stream.tokens[self.at.checked_sub(count)?]);
        let previous = before(1)?;
        let hint = match token.kind {
            TokenKind::Punct('[') => {
                "an array has its length behind the name, as `long name[3]`; for any length write \
                 `sequence<long> name`"
            }
            TokenKind::Punct('=') => "IDL has no default values: remove it",
            TokenKind::Punct('<') => {
                let word = previous.ident()?;
                return foreign(word);
            }
            _ => {
                // A foreign word before was taken for a type: `static int f()`.
                let words = [Some(previous), before(2)].into_iter().flatten();
                let mut words = words.filter(|word| !word.first || token.first);
                return words.find_map(|word| word.ident().and_then(|word| foreign(word)));
            }
        };
        Some(hint.to_owned())
    }

    /// Consumes the `;` at the end of a definition. A missing one is reported behind the
    /// definition.
    fn semicolon(&mut self) -> Option<()> {
        if self.eat(';') {
            return Some(());
        }
        let token = self.peek();
        if token.kind == TokenKind::Eof && self.unclosed {
            return None;
        }
        let begins_another = token.first
            || token.is('}')
            || token.kind == TokenKind::Eof
            || token.ident().is_some_and(|word| is_keyword(word));
        if !begins_another {
            self.unexpected("`;`");
            return None;
        }
        self.sink.push(
            Diagnostic::error(
                codes::MISSING_SEMICOLON,
                self.previous_span().after(),
                format!("`;` is missing before {}", described(token)),
                "expected `;` here",
            )
            .hint(if token.ident().is_some_and(|word| **word == *"const") {
                "IDL has no `const` behind an operation: remove it"
            } else {
                "end the line before with `;`"
            }),
        );
        Some(())
    }

    /// Skips behind the `}` of a list, or up to the `;` or the end if it is missing.
    fn close_list(&mut self) {
        while !matches!(
            self.peek().kind,
            TokenKind::Punct('}' | ';') | TokenKind::Eof
        ) {
            self.at += 1;
        }
        self.eat('}');
    }

    fn unclosed(&mut self, open: Span) {
        self.unclosed = true;
        let diagnostic = Diagnostic::error(
            codes::UNCLOSED_BRACE,
            open,
            "this brace is never closed",
            "opened here",
        )
        .hint("add `};`");
        self.sink.push(diagnostic);
    }

    /// Skips behind the next `;` of this level, or up to the `}` that ends it.
    fn recover(&mut self, inside: bool) {
        let mut braces = 0usize;
        loop {
            match self.peek().kind {
                TokenKind::Eof => return,
                TokenKind::Punct('{') => braces += 1,
                TokenKind::Punct('}') if braces > 0 => {
                    braces -= 1;
                    // A definition behind a forgotten `;` is still a definition.
                    if braces == 0 && !self.peek_at(1).is(';') && self.peek_at(1).first {
                        self.at += 1;
                        return;
                    }
                }
                TokenKind::Punct('}') if inside => return,
                TokenKind::Punct('}') => {
                    self.at += 1;
                    self.eat(';');
                    return;
                }
                TokenKind::Punct(';') if braces == 0 => {
                    self.at += 1;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Enters a nesting level, unless the limit is reached.
    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Some(());
        }
        self.too_deep(self.peek().span);
        None
    }

    fn too_deep(&mut self, span: Span) {
        self.sink.stop(Diagnostic::error(
            codes::NESTING,
            span,
            format!("this is nested deeper than {MAX_DEPTH}"),
            "too deep",
        ));
    }

    /// Parses the identifier that a definition introduces.
    fn name(&mut self, what: &str) -> Option<Ident> {
        let token = self.peek();
        let Some(written) = token.ident() else {
            self.unexpected(what);
            return None;
        };
        let younger = is_younger(written);
        if is_keyword(written) && !younger {
            self.sink.push(
                Diagnostic::error(
                    codes::KEYWORD_AS_NAME,
                    token.span,
                    format!("expected {what}, found the keyword `{written}`"),
                    "a keyword",
                )
                .hint(self.hint_for_keyword(written)),
            );
            return None;
        }
        self.at += 1;
        let ident = Ident::new(written, token.span);
        if younger {
            self.warn_of_younger(&ident);
            return Some(ident);
        }
        if !ident.name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.sink.push(
                Diagnostic::error(
                    codes::BAD_NAME,
                    token.span,
                    format!("`{written}` is no name"),
                    "does not begin with a letter",
                )
                .hint("one `_` may stand before a name, to tell it from a keyword"),
            );
        }
        if !ident.escaped
            && let Some(keyword) = keyword_ignoring_case(&ident.name)
        {
            let message = format!("`{}` collides with the keyword `{keyword}`", ident.name);
            let label = "differs from a keyword in case only";
            let diagnostic = if is_younger(keyword) {
                Diagnostic::warning(codes::YOUNGER_KEYWORD, token.span, message, label)
            } else {
                Diagnostic::warning(codes::KEYWORD_COLLISION, token.span, message, label)
            };
            self.sink
                .push(diagnostic.hint(format!("write `_{}`", ident.name)));
        }
        Some(ident)
    }

    /// Warns of a keyword that CORBA 3 added where a name stands, as files for CORBA 2 have it.
    fn warn_of_younger(&mut self, ident: &Ident) {
        let name = &ident.name;
        self.sink.push(
            Diagnostic::warning(
                codes::YOUNGER_KEYWORD_AS_NAME,
                ident.span,
                format!("`{name}` is a keyword since CORBA 3"),
                "is a name here",
            )
            .hint(format!("to use it as a name, write `_{name}`")),
        );
    }

    /// Gives an escaped name that stands beside the same name without an escape a name of its own,
    /// with the underscore. The names of members and parameters select nothing in a message.
    fn separate_escaped(&mut self, names: Vec<&mut Ident>) {
        if !names.iter().any(|name| name.escaped) {
            return;
        }
        let plain = names.iter().filter(|name| !name.escaped);
        let plain: HashMap<_, _> = plain.map(|name| (name.name.clone(), name.span)).collect();
        for name in names.into_iter().filter(|name| name.escaped) {
            let Some(beside) = plain.get(&name.name) else {
                continue;
            };
            let diagnostic = Diagnostic::warning(
                codes::ESCAPED_BESIDE_PLAIN,
                name.span,
                format!(
                    "`_{0}` is `{0}` with an escape, which stands beside it",
                    name.name
                ),
                "is a name of its own here",
            )
            .label(*beside, "the name without the escape")
            .hint("rename one of them");
            self.sink.push(diagnostic);
            name.name = format!("_{}", name.name).into();
        }
    }

    /// Returns the hint for a keyword in the place of a name. Such a keyword often follows a
    /// misspelled keyword: `attribut long a`.
    fn hint_for_keyword(&self, keyword: &str) -> String {
        let before = self.at.checked_sub(1).map(|at| &self.stream.tokens[at]);
        if before.is_some_and(|token| token.is(',')) && keyword != "in" {
            return "end each member with `;`: behind `,` stands only a further name".to_owned();
        }
        if let Some(hint) = before.and_then(Token::ident).and_then(|word| foreign(word)) {
            return hint;
        }
        let meant = before
            .and_then(Token::ident)
            .filter(|word| !is_keyword(word))
            .and_then(|word| closest(word, KEYWORDS.into_iter()));
        match meant {
            Some(meant) => format!("did you mean `{meant}` before it?"),
            None => format!("to use it as a name, write `_{keyword}`"),
        }
    }

    fn scoped_name(&mut self, what: &str) -> Option<ScopedName> {
        let start = self.peek().span;
        let absolute = self.peek().kind == TokenKind::Scope;
        self.at += usize::from(absolute);
        let mut parts = Vec::new();
        loop {
            let token = self.peek();
            match token.ident() {
                // `CORBA::Object`
                Some(word)
                    if !is_keyword(word)
                        || (matches!(&**word, "Object" | "ValueBase") && !parts.is_empty()) =>
                {
                    parts.push(Ident::new(word, token.span));
                    self.at += 1;
                }
                Some(word) if is_younger(word) => {
                    let ident = Ident::new(word, token.span);
                    self.warn_of_younger(&ident);
                    parts.push(ident);
                    self.at += 1;
                }
                Some(word) => {
                    self.sink.push(
                        Diagnostic::error(
                            codes::KEYWORD_AS_NAME,
                            token.span,
                            format!("expected {what}, found the keyword `{word}`"),
                            "a keyword",
                        )
                        .hint(format!(
                            "a name that was defined as `_{word}` is used as `_{word}`"
                        )),
                    );
                    return None;
                }
                None => {
                    self.unexpected(what);
                    return None;
                }
            }
            if self.peek().kind != TokenKind::Scope {
                break;
            }
            if parts.len() >= MAX_PARTS {
                self.too_deep(token.span);
                return None;
            }
            self.at += 1;
        }
        Some(ScopedName {
            absolute,
            parts,
            span: start.to(self.previous_span()),
        })
    }

    /// Parses a string literal that is no constant expression, as `typeid` has it.
    fn plain_string(&mut self, what: &str) -> Option<(std::rc::Rc<str>, Span)> {
        let token = self.peek();
        let TokenKind::Str { wide: false, text } = &token.kind else {
            self.unexpected(what);
            return None;
        };
        self.at += 1;
        Some((text.clone(), token.span))
    }
}

/// Returns a description of a token for messages.
fn described(token: &Token) -> String {
    let short = |text: &str| -> String {
        let mut shown: String = text.chars().take(40).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        shown
    };
    match &token.kind {
        TokenKind::Ident(word) if is_keyword(word) => format!("the keyword `{word}`"),
        TokenKind::Ident(word) => format!("`{}`", short(word)),
        TokenKind::Number(digits) => format!("`{}`", short(digits)),
        TokenKind::Str { .. } => "a string".to_owned(),
        TokenKind::Char { .. } => "a character".to_owned(),
        TokenKind::Punct(c) => format!("`{c}`"),
        TokenKind::Scope => "`::`".to_owned(),
        TokenKind::Eof => "the end of the file".to_owned(),
    }
}
