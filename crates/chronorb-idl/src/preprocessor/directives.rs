//! The directives: lines that begin with `#`.

use std::rc::Rc;

use super::macros::Macro;
use super::{Condition, Preprocessor, expr};
use crate::ast::{Event, Ident, ScopedName};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::parser::MAX_PARTS;
use crate::source::Span;

impl Preprocessor<'_> {
    /// Obeys the directive behind a `#`.
    pub(super) fn directive(&mut self, hash: Span) {
        let Some(file) = self.files.last_mut() else {
            return;
        };
        let active = file.conditions.last().is_none_or(|c| c.active);
        if !active {
            self.directive_in_skipped_text(hash);
            return;
        }
        let before = file.lexer.clone();
        let mut line = file.lexer.rest_of_line(self.sink).into_iter();
        let Some(name) = line.next() else {
            return;
        };
        let at = hash.to(name.span);
        let arguments: Vec<Token> = line.collect();
        let keyword = match &name.kind {
            TokenKind::Ident(keyword) => Rc::clone(keyword),
            // The line markers of C preprocessors: `# 12 "file.idl" 1`.
            TokenKind::Number(_) => {
                let mut tokens = vec![name];
                tokens.extend(arguments.into_iter().take(1));
                self.line(at, tokens);
                return;
            }
            _ => {
                self.unknown_directive(at);
                return;
            }
        };
        match &*keyword {
            "include" => self.include_directive(at, arguments),
            "define" => self.define(at, &arguments),
            "undef" => {
                if let Some(name) = self.macro_name(at, &arguments) {
                    self.macros.remove(&name);
                }
            }
            "ifdef" | "ifndef" => {
                let name = self.macro_name(at, &arguments);
                let defined = name.is_some_and(|name| self.macros.contains_key(&name));
                self.open_condition(at, defined == (&*keyword == "ifdef"));
            }
            "if" => {
                let holds = self.condition(at, arguments);
                self.open_condition(at, holds);
            }
            "elif" | "else" | "endif" => self.next_branch(&keyword, at, arguments),
            "error" | "warning" => {
                let text = self.raw_text(before);
                self.message(&keyword, at, &text);
            }
            "line" => self.line(at, arguments),
            "pragma" => self.pragma(at, &arguments),
            "ident" => {}
            _ => self.unknown_directive(at),
        }
    }

    /// In text that is not compiled only the conditions count.
    fn directive_in_skipped_text(&mut self, hash: Span) {
        let Some(file) = self.files.last_mut() else {
            return;
        };
        let mut ahead = file.lexer.clone();
        let (raw, span) = ahead.raw_rest_of_line();
        let len = raw
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(raw.len());
        let at = Span {
            end: span.start + len as u32,
            ..hash
        };
        match &raw[..len] {
            "if" | "ifdef" | "ifndef" => {
                file.conditions.push(Condition {
                    opened: at,
                    active: false,
                    taken: true,
                    outer: false,
                    seen_else: false,
                });
            }
            keyword @ ("elif" | "else" | "endif") => {
                let mut line = file.lexer.rest_of_line(self.sink).into_iter();
                line.next();
                let arguments = line.collect();
                self.next_branch(keyword, at, arguments);
            }
            _ => {}
        }
    }

    fn unknown_directive(&mut self, at: Span) {
        self.sink.push(
            Diagnostic::error(
                codes::UNKNOWN_DIRECTIVE,
                at,
                "there is no such directive",
                "not a directive",
            )
            .hint("the directives are include, define, undef, if, ifdef, ifndef, elif, else, endif, error, warning, line and pragma"),
        );
    }

    pub(super) fn bad_directive(&mut self, at: Span, message: &str, hint: &str) {
        self.sink.push(
            Diagnostic::error(codes::BAD_DIRECTIVE, at, message, "in this directive").hint(hint),
        );
    }

    fn raw_text(&self, mut lexer: crate::lexer::Lexer) -> String {
        let (text, _) = lexer.raw_rest_of_line();
        let word = text
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(text.len());
        text[word..].trim().chars().take(500).collect()
    }

    fn message(&mut self, keyword: &str, at: Span, text: &str) {
        let text = if text.is_empty() { "(no text)" } else { text };
        self.sink.push(if keyword == "error" {
            Diagnostic::error(codes::ERROR_DIRECTIVE, at, text, "demanded here")
        } else {
            Diagnostic::warning(codes::WARNING_DIRECTIVE, at, text, "demanded here")
        });
    }

    fn include_directive(&mut self, at: Span, mut tokens: Vec<Token>) {
        if !tokens
            .first()
            .is_some_and(|t| t.is('<') || matches!(t.kind, TokenKind::Str { .. }))
        {
            tokens = self.expand_all(tokens);
        }
        let place = tokens
            .iter()
            .fold(None::<Span>, |span, token| {
                Some(span.map_or(token.span, |span| span.to(token.span)))
            })
            .unwrap_or(at);
        match tokens.as_slice() {
            [
                Token {
                    kind: TokenKind::Str { wide: false, text },
                    ..
                },
            ] if !text.is_empty() => {
                let name = Rc::clone(text);
                self.include(&name, true, place);
            }
            [open, middle @ .., close] if open.is('<') && close.is('>') && !middle.is_empty() => {
                // The tokens' places give back the name as it was written, blanks included.
                let (start, end) = (open.span.end as usize, close.span.start as usize);
                let text = &self.sources.get(open.span.file).text;
                let name = match text.get(start..end) {
                    Some(name) if start < end => name.to_owned(),
                    _ => middle.iter().map(super::macros::spelling).collect(),
                };
                self.include(&name, false, place);
            }
            _ => self.bad_directive(
                at,
                "the name of the file is missing",
                "write `#include \"file.idl\"` or `#include <file.idl>`",
            ),
        }
    }

    fn macro_name(&mut self, at: Span, arguments: &[Token]) -> Option<Rc<str>> {
        let name = arguments.first().and_then(Token::ident).cloned();
        if name.is_none() || name.as_deref() == Some("defined") {
            self.bad_directive(at, "the name of a macro is missing", "write an identifier");
            return None;
        }
        name
    }

    fn define(&mut self, at: Span, arguments: &[Token]) {
        let Some(name) = self.macro_name(at, arguments) else {
            return;
        };
        let mut rest = &arguments[1..];
        let mut params = None;
        if let Some(open) = rest.first()
            && open.is('(')
            && !open.space
        {
            let Some(end) = rest.iter().position(|t| t.is(')')) else {
                self.bad_directive(at, "the parameters of the macro have no end", "write `)`");
                return;
            };
            let Some(list) = parameters(&rest[1..end]) else {
                self.bad_directive(
                    at,
                    "these are no parameters of a macro",
                    "write different identifiers with commas between them",
                );
                return;
            };
            params = Some(list);
            rest = &rest[end + 1..];
        }
        let mut body = rest.to_vec();
        if let Some(first) = body.first_mut() {
            first.space = false;
        }
        let defined = arguments[0].span;
        if let Some(old) = self.macros.get(&name)
            && !same(old, params.as_deref(), &body)
        {
            let mut diagnostic = Diagnostic::error(
                codes::MACRO_REDEFINED,
                defined,
                format!("macro `{name}` is defined again, differently"),
                "defined again here",
            );
            if let Some(old) = old.defined {
                diagnostic = diagnostic.label(old, "first defined here");
            }
            let hint = format!("remove the earlier definition first: `#undef {name}`");
            self.sink.push(diagnostic.hint(hint));
        }
        let definition = Macro {
            params,
            body: body.into(),
            defined: Some(defined),
            active: false,
        };
        self.macros.insert(name, definition);
    }

    fn open_condition(&mut self, at: Span, holds: bool) {
        if let Some(file) = self.files.last_mut() {
            file.conditions.push(Condition {
                opened: at,
                active: holds,
                taken: holds,
                outer: true,
                seen_else: false,
            });
        }
    }

    fn next_branch(&mut self, keyword: &str, at: Span, arguments: Vec<Token>) {
        let Some(file) = self.files.last_mut() else {
            return;
        };
        let Some(condition) = file.conditions.last_mut() else {
            self.sink.push(
                Diagnostic::error(
                    codes::STRAY_CONDITIONAL,
                    at,
                    format!("`#{keyword}` without `#if`"),
                    "no condition is open here",
                )
                .hint("remove it, or write the `#if` in the same file"),
            );
            return;
        };
        if keyword == "endif" {
            file.conditions.pop();
            return;
        }
        if condition.seen_else {
            self.sink.push(
                Diagnostic::error(
                    codes::STRAY_CONDITIONAL,
                    at,
                    format!("`#{keyword}` after `#else`"),
                    "not possible here",
                )
                .label(condition.opened, "the condition begins here"),
            );
            return;
        }
        condition.seen_else = keyword == "else";
        let open = condition.outer && !condition.taken;
        condition.active = false;
        if !open {
            return;
        }
        let holds = keyword == "else" || self.condition(at, arguments);
        if let Some(condition) = self
            .files
            .last_mut()
            .and_then(|file| file.conditions.last_mut())
        {
            condition.active = holds;
            condition.taken = holds;
        }
    }

    /// The value of a `#if` expression.
    fn condition(&mut self, at: Span, tokens: Vec<Token>) -> bool {
        let mut plain = Vec::with_capacity(tokens.len());
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if token.ident().is_none_or(|name| &**name != "defined") {
                plain.push(token);
                continue;
            }
            let parenthesised = tokens.next_if(|t| t.is('(')).is_some();
            let name = tokens.next().and_then(|t| t.ident().cloned());
            let closed = !parenthesised || tokens.next_if(|t| t.is(')')).is_some();
            let (Some(name), true) = (name, closed) else {
                self.bad_condition(token.span, "`defined` needs the name of a macro");
                return false;
            };
            let value = if self.macros.contains_key(&name) {
                "1"
            } else {
                "0"
            };
            plain.push(Token {
                kind: TokenKind::Number(value.into()),
                ..token
            });
        }
        let expanded = self.expand_all(plain);
        match expr::value(&expanded) {
            Ok(value) => value != 0,
            Err(error) => {
                self.bad_condition(error.at.unwrap_or(at), error.message);
                false
            }
        }
    }

    fn bad_condition(&mut self, at: Span, message: &str) {
        self.sink.push(
            Diagnostic::error(codes::BAD_CONDITION, at, message, "in this condition")
                .hint("a condition is made of integers, `defined`, operators and parentheses"),
        );
    }

    fn line(&mut self, at: Span, tokens: Vec<Token>) {
        let tokens = self.expand_all(tokens);
        let (number, name) = match tokens.as_slice() {
            [number] => (number, None),
            [
                number,
                Token {
                    kind: TokenKind::Str { wide: false, text },
                    ..
                },
            ] => (number, Some(text.to_string())),
            _ => (
                match tokens.first() {
                    Some(first) => first,
                    None => {
                        self.bad_line(at);
                        return;
                    }
                },
                None,
            ),
        };
        let TokenKind::Number(digits) = &number.kind else {
            self.bad_line(at);
            return;
        };
        match digits.parse() {
            Ok(line) if tokens.len() <= 2 => self.sources.renumber(at, line, name),
            _ => self.bad_line(at),
        }
    }

    fn bad_line(&mut self, at: Span) {
        self.bad_directive(
            at,
            "this is no line number",
            "write `#line 12` or `#line 12 \"file.idl\"`",
        );
    }

    fn pragma(&mut self, at: Span, arguments: &[Token]) {
        let whole = arguments.last().map_or(at, |last| at.to(last.span));
        let name = arguments.first().and_then(Token::ident);
        match name.map(|name| &**name) {
            Some("once") => {
                if let Some(file) = self.files.last() {
                    self.once.insert(file.number);
                }
            }
            Some("prefix") => match &arguments[1..] {
                [
                    Token {
                        kind: TokenKind::Str { wide: false, text },
                        span,
                        ..
                    },
                ] => {
                    self.event(Event::Prefix {
                        prefix: Rc::clone(text),
                        span: *span,
                    });
                }
                _ => self.bad_directive(
                    whole,
                    "the prefix is missing",
                    "write `#pragma prefix \"example.org\"`",
                ),
            },
            Some("ID") => match (scoped_name(&arguments[1..]), arguments.last()) {
                (
                    Some((name, 1)),
                    Some(Token {
                        kind: TokenKind::Str { wide: false, text },
                        span,
                        ..
                    }),
                ) => {
                    self.event(Event::Id {
                        name,
                        id: Rc::clone(text),
                        span: *span,
                    });
                }
                _ => self.bad_directive(
                    whole,
                    "a name and a repository identifier are expected",
                    "write `#pragma ID Name \"IDL:Name:1.0\"`",
                ),
            },
            Some("version") => match (scoped_name(&arguments[1..]), arguments.last()) {
                (
                    Some((name, 1)),
                    Some(Token {
                        kind: TokenKind::Number(version),
                        span,
                        ..
                    }),
                ) => {
                    self.event(Event::Version {
                        name,
                        version: Rc::clone(version),
                        span: *span,
                    });
                }
                _ => self.bad_directive(
                    whole,
                    "a name and a version are expected",
                    "write `#pragma version Name 1.1`",
                ),
            },
            // Included files are often those of others.
            _ if self.files.len() > 1 => {}
            _ => {
                let shown = name.map_or("…", |name| name);
                self.sink.push(Diagnostic::warning(
                    codes::UNKNOWN_PRAGMA,
                    whole,
                    format!("pragma `{shown}` is not known and has no effect"),
                    "ignored",
                ));
            }
        }
    }
}

/// The parameter names between the parentheses of `#define`.
fn parameters(tokens: &[Token]) -> Option<Vec<Rc<str>>> {
    let mut names: Vec<Rc<str>> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (i, token) in tokens.iter().enumerate() {
        if i % 2 == 0 {
            let name = token.ident()?;
            if !seen.insert(name) {
                return None;
            }
            names.push(Rc::clone(name));
        } else if !token.is(',') || i + 1 == tokens.len() {
            return None;
        }
    }
    Some(names)
}

fn same(old: &Macro, params: Option<&[Rc<str>]>, body: &[Token]) -> bool {
    old.params.as_deref() == params
        && old.body.len() == body.len()
        && old
            .body
            .iter()
            .zip(body)
            .all(|(a, b)| a.kind == b.kind && a.space == b.space)
}

/// The scoped name at the start of the tokens, and the number of tokens behind it.
fn scoped_name(tokens: &[Token]) -> Option<(ScopedName, usize)> {
    let mut rest = tokens;
    let absolute = rest.first()?.kind == TokenKind::Scope;
    if absolute {
        rest = &rest[1..];
    }
    let mut parts = Vec::new();
    loop {
        let token = rest.first()?;
        parts.push(Ident::new(token.ident()?, token.span));
        if parts.len() > MAX_PARTS {
            return None;
        }
        rest = &rest[1..];
        if rest.first().is_none_or(|t| t.kind != TokenKind::Scope) {
            let span = tokens[0].span.to(token.span);
            let name = ScopedName {
                absolute,
                parts,
                span,
            };
            return Some((name, rest.len()));
        }
        rest = &rest[1..];
    }
}
