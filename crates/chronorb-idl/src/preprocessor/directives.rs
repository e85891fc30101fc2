//! The directives: lines that begin with `#`.

use std::rc::Rc;

use super::macros::Macro;
use super::{Condition, Preprocessor, expr};
use crate::ast::{Event, Ident, ScopedName};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::parser::MAX_PARTS;
use crate::portable::{
    CHARACTER_IN_CONDITION, CONDITION, DIRECTIVE, DIRECTIVE_IDENT, INCLUDE_BY_MACRO,
    LINE_DIRECTIVE, MACRO, VARIADIC_MACRO,
};
use crate::span::Span;

impl Preprocessor<'_> {
    /// Executes the directive behind a `#`.
    pub(super) fn directive(&mut self, hash: Span) {
        let Some(file) = self.files.last_mut() else {
            return;
        };
        let active = file.conditions.last().is_none_or(|c| c.active);
        if !active {
            self.directive_in_skipped_text(hash);
            return;
        }
        let Some(name) = file.lexer.next_in_line(self.sink) else {
            return;
        };
        let at = hash.to(name.span);
        let keyword = match &name.kind {
            TokenKind::Ident(keyword) => Rc::clone(keyword),
            // The line markers of C preprocessors: `# 12 "file.idl" 1`.
            TokenKind::Number(_) => {
                self.sink.unportable(&LINE_DIRECTIVE, at);
                let arguments = self.rest_of_line();
                self.line_marker(at, name, arguments);
                return;
            }
            _ => {
                self.rest_of_line();
                self.unknown_directive(at);
                return;
            }
        };
        match &*keyword {
            "warning" => self.sink.unportable(&DIRECTIVE, at),
            "ident" | "sccs" => self.sink.unportable(&DIRECTIVE_IDENT, at),
            "line" => self.sink.unportable(&LINE_DIRECTIVE, at),
            _ => {}
        }
        match &*keyword {
            "include" => self.include_directive(at),
            "define" => {
                let arguments = self.rest_of_line();
                self.define(at, &arguments);
            }
            "undef" => {
                let arguments = self.rest_of_line();
                if let Some(name) = self.macro_name(at, &arguments) {
                    self.macros.remove(&name);
                }
            }
            "ifdef" | "ifndef" => {
                let arguments = self.rest_of_line();
                let defined = self.macro_name(at, &arguments);
                let defined = defined.is_some_and(|name| self.is_defined(&name));
                self.open_condition(at, defined == (&*keyword == "ifdef"));
            }
            "if" => {
                let arguments = self.rest_of_line();
                let holds = self.condition(at, arguments);
                self.open_condition(at, holds);
            }
            "elif" | "elifdef" | "elifndef" | "else" | "endif" => self.next_branch(&keyword, at),
            "error" | "warning" => {
                let (text, _) = self.raw_rest_of_line(at);
                self.message(&keyword, at, &text);
            }
            "line" => {
                let arguments = self.rest_of_line();
                self.line(at, arguments);
            }
            "pragma" => self.pragma(at),
            "ident" | "sccs" => {
                self.raw_rest_of_line(at);
            }
            _ => {
                self.raw_rest_of_line(at);
                self.unknown_directive(at);
            }
        }
    }

    /// Executes a directive in skipped text, where only conditions count.
    fn directive_in_skipped_text(&mut self, hash: Span) {
        let Some(file) = self.files.last_mut() else {
            return;
        };
        let (keyword, span) = file.lexer.word(self.sink);
        let at = hash.to(span);
        match &*keyword {
            "if" | "ifdef" | "ifndef" => {
                file.conditions.push(Condition {
                    opened: at,
                    active: false,
                    taken: true,
                    outer: false,
                    seen_else: false,
                });
            }
            "elif" | "elifdef" | "elifndef" | "else" | "endif" => self.next_branch(&keyword, at),
            _ => {}
        }
    }

    fn rest_of_line(&mut self) -> Vec<Token> {
        match self.files.last_mut() {
            Some(file) => file.lexer.rest_of_line(self.sink),
            None => Vec::new(),
        }
    }

    /// Returns the rest of the line as it was written, and the place of the whole directive.
    fn raw_rest_of_line(&mut self, at: Span) -> (String, Span) {
        match self.files.last_mut() {
            Some(file) => {
                let (text, span) = file.lexer.raw_rest_of_line(self.sink);
                (text, at.to(span))
            }
            None => (String::new(), at),
        }
    }

    fn is_defined(&self, name: &str) -> bool {
        self.macros.contains_key(name) || super::macros::is_built_in(name)
    }

    fn unknown_directive(&mut self, at: Span) {
        self.sink.push(
            Diagnostic::error(
                codes::UNKNOWN_DIRECTIVE,
                at,
                "there is no such directive",
                "not a directive",
            )
            .hint(
                "the directives are include, define, undef, if, ifdef, ifndef, elif, elifdef, \
                elifndef, else, endif, error, warning, line and pragma",
            ),
        );
    }

    pub(super) fn bad_directive(&mut self, at: Span, message: &str, hint: &str) {
        self.sink.push(
            Diagnostic::error(codes::BAD_DIRECTIVE, at, message, "in this directive").hint(hint),
        );
    }

    fn message(&mut self, keyword: &str, at: Span, text: &str) {
        let text: String = match text {
            "" => "(no text)".to_owned(),
            text => text.chars().take(500).collect(),
        };
        self.sink.push(if keyword == "error" {
            Diagnostic::error(codes::ERROR_DIRECTIVE, at, text, "demanded here")
        } else {
            Diagnostic::warning(codes::WARNING_DIRECTIVE, at, text, "demanded here")
        });
    }

    fn include_directive(&mut self, at: Span) {
        if let Some(file) = self.files.last_mut()
            && let Some((name, place)) = file.lexer.header_name(self.sink)
            && !name.is_empty()
        {
            file.lexer.raw_rest_of_line(self.sink);
            self.include(&name, false, place);
            return;
        }
        let mut tokens = self.rest_of_line();
        if !matches!(tokens.first(), Some(t) if matches!(t.kind, TokenKind::Str { .. })) {
            self.sink.unportable(&INCLUDE_BY_MACRO, at);
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
                let name: String = middle.iter().map(super::macros::spelling).collect();
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
        let mut variadic = false;
        if let Some(open) = rest.first()
            && open.is('(')
            && !open.space
        {
            let Some(end) = rest.iter().position(|t| t.is(')')) else {
                self.bad_directive(at, "the parameters of the macro have no end", "write `)`");
                return;
            };
            let Some((list, rest_of_arguments)) = parameters(&rest[1..end]) else {
                self.bad_directive(
                    at,
                    "these are no parameters of a macro",
                    "write different identifiers with commas between them",
                );
                return;
            };
            params = Some(list);
            variadic = rest_of_arguments;
            self.sink
                .unportable(if variadic { &VARIADIC_MACRO } else { &MACRO }, at);
            rest = &rest[end + 1..];
        }
        let mut body = rest.to_vec();
        if let Some(first) = body.first_mut() {
            first.space = false;
        }
        let defined = arguments[0].span;
        if let Some(old) = self.macros.get(&name)
            && !same(old, params.as_deref(), variadic, &body)
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
            variadic,
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

    fn next_branch(&mut self, keyword: &str, at: Span) {
        if matches!(keyword, "elifdef" | "elifndef") {
            self.sink.unportable(&DIRECTIVE, at);
        }
        let Some(file) = self.files.last_mut() else {
            return;
        };
        let mut line = file.lexer.clone();
        file.lexer.raw_rest_of_line(self.sink);
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
        let holds = match keyword {
            "else" => true,
            "elif" => {
                let arguments = line.rest_of_line(self.sink);
                self.condition(at, arguments)
            }
            _ => {
                let arguments = line.rest_of_line(self.sink);
                let name = self.macro_name(at, &arguments);
                let defined = name.is_some_and(|name| self.is_defined(&name));
                defined == (keyword == "elifdef")
            }
        };
        if let Some(condition) = self
            .files
            .last_mut()
            .and_then(|file| file.conditions.last_mut())
        {
            condition.active = holds;
            condition.taken = holds;
        }
    }

    /// Evaluates a `#if` expression.
    fn condition(&mut self, at: Span, tokens: Vec<Token>) -> bool {
        let is_simple = |token: &Token| match &token.kind {
            TokenKind::Ident(_) | TokenKind::Number(_) => true,
            TokenKind::Punct(c) => "!&|()".contains(*c),
            _ => false,
        };
        if !tokens.iter().all(is_simple) {
            self.sink.unportable(&CONDITION, at);
        }
        if tokens
            .iter()
            .any(|token| matches!(token.kind, TokenKind::Char { .. }))
        {
            self.sink.unportable(&CHARACTER_IN_CONDITION, at);
        }
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
            let value = if self.is_defined(&name) { "1" } else { "0" };
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

    /// `#line 12 "file.idl"`
    fn line(&mut self, at: Span, tokens: Vec<Token>) {
        let tokens = self.expand_all(tokens);
        match line_and_name(&tokens) {
            Some((line, name, [])) => {
                self.sources.renumber(at, line, name.as_deref());
            }
            _ => self.bad_line(at),
        }
    }

    /// Executes a line marker `# 12 "file.idl" 1`. With 1 an included file begins; with 2 this file
    /// continues after one.
    fn line_marker(&mut self, at: Span, number: Token, mut tokens: Vec<Token>) {
        tokens.insert(0, number);
        let Some((line, name, flags)) = line_and_name(&tokens) else {
            self.bad_line(at);
            return;
        };
        let next = self.sources.renumber(at, line, name.as_deref());
        let has = |flag: &str| {
            let flag = TokenKind::Number(flag.into());
            flags.iter().any(|token| token.kind == flag)
        };
        let Some(file) = self.files.last_mut() else {
            return;
        };
        if has("1") {
            file.marked += 1;
            self.enter(next);
        } else if has("2") && file.marked > 0 {
            file.marked -= 1;
            self.event(Event::FileLeave);
        }
    }

    fn bad_line(&mut self, at: Span) {
        self.bad_directive(
            at,
            "this is no line number",
            "write `#line 12` or `#line 12 \"file.idl\"`",
        );
    }

    fn pragma(&mut self, at: Span) {
        let Some(file) = self.files.last_mut() else {
            return;
        };
        let mut line = file.lexer.clone();
        let (name, _) = file.lexer.word(self.sink);
        // The rest of the line of an unknown pragma may not consist of tokens.
        let (_, whole) = self.raw_rest_of_line(at);
        let arguments = match &*name {
            "prefix" | "ID" | "version" => line.rest_of_line(self.sink),
            _ => Vec::new(),
        };
        match &*name {
            "once" => {
                if let Some(file) = self.files.last() {
                    self.once.insert(file.number);
                }
            }
            "prefix" => match &arguments[1..] {
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
            "ID" => match (scoped_name(&arguments[1..]), arguments.last()) {
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
            "version" => match (scoped_name(&arguments[1..]), arguments.last()) {
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
            // Warnings are limited to the main file, because included files often belong to others.
            _ if self.files.len() > 1 => {}
            _ => {
                let shown = if name.is_empty() { "…" } else { &name };
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

/// Returns the line and the file name of a line marker, and what is behind them.
fn line_and_name(tokens: &[Token]) -> Option<(u32, Option<String>, &[Token])> {
    let (number, rest) = tokens.split_first()?;
    let TokenKind::Number(digits) = &number.kind else {
        return None;
    };
    let line = digits.parse().ok()?;
    match rest {
        [] => Some((line, None, rest)),
        [
            Token {
                kind: TokenKind::Str { wide: false, text },
                ..
            },
            rest @ ..,
        ] => Some((line, Some(unquoted(text)), rest)),
        _ => None,
    }
}

/// Returns the file name that stands between the quotes of a line marker.
fn unquoted(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.as_str().chars().next() {
                Some(escaped @ ('\\' | '"')) => {
                    chars.next();
                    name.push(escaped);
                }
                _ => name.push(c),
            },
            c => name.push(c),
        }
    }
    name
}

/// Parses the parameter names between the parentheses of `#define`. Returns whether the last of
/// them, then `__VA_ARGS__`, takes all remaining arguments.
fn parameters(tokens: &[Token]) -> Option<(Vec<Rc<str>>, bool)> {
    let (tokens, variadic) = match tokens {
        [rest @ .., a, b, c] if a.is('.') && b.is('.') && c.is('.') => match rest {
            [] => (rest, true),
            [rest @ .., comma] if comma.is(',') && !rest.is_empty() => (rest, true),
            _ => return None,
        },
        _ => (tokens, false),
    };
    let mut names: Vec<Rc<str>> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (i, token) in tokens.iter().enumerate() {
        if i % 2 == 0 {
            let name = token.ident()?;
            if !seen.insert(name) || &**name == VARIABLE_ARGUMENTS {
                return None;
            }
            names.push(Rc::clone(name));
        } else if !token.is(',') || i + 1 == tokens.len() {
            return None;
        }
    }
    if variadic {
        names.push(VARIABLE_ARGUMENTS.into());
    }
    Some((names, variadic))
}

/// The name of the remaining arguments in the body of a macro with `...`.
const VARIABLE_ARGUMENTS: &str = "__VA_ARGS__";

fn same(old: &Macro, params: Option<&[Rc<str>]>, variadic: bool, body: &[Token]) -> bool {
    old.params.as_deref() == params
        && old.variadic == variadic
        && old.body.len() == body.len()
        && old
            .body
            .iter()
            .zip(body)
            .all(|(a, b)| a.kind == b.kind && a.space == b.space)
}

/// Returns the scoped name at the start of the tokens, and the number of tokens behind it.
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
