//! Macro definitions and their expansion.
//!
//! The rules are those of C (ISO/IEC 9899, 6.10.3): arguments are expanded before
//! they are inserted, except beside `#` and `##`, and a macro is not expanded again
//! inside its own expansion.

use std::rc::Rc;

use super::Preprocessor;
use crate::codes;
use crate::diagnostics::{Diagnostic, Sink};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::span::Span;

/// A macro.
#[derive(Debug)]
pub(super) struct Macro {
    /// The parameters of a function-like macro.
    pub(super) params: Option<Vec<Rc<str>>>,
    /// Whether the last parameter takes all remaining arguments, possibly none.
    pub(super) variadic: bool,
    pub(super) body: Rc<[Token]>,
    /// The place of its definition; `None` for options.
    pub(super) defined: Option<Span>,
    /// Whether it is being expanded.
    pub(super) active: bool,
}

/// A replacement list that is being read.
pub(super) struct Expansion {
    tokens: Rc<[Token]>,
    at: usize,
    /// The macro that it replaces.
    name: Option<Rc<str>>,
    /// The place that is assigned to its tokens.
    used: Option<Span>,
    /// Whether blanks precede its first token, because they preceded the macro.
    space: bool,
}

/// The number of tokens that macros may produce.
const MAX_WORK: usize = 1_000_000;
/// The maximum nesting of macro calls in arguments of macro calls.
const MAX_DEPTH: usize = 100;
/// The greatest length in bytes of a token that macros make.
const MAX_MADE: usize = 255;

impl Preprocessor<'_> {
    /// Defines a macro of the options.
    pub(super) fn define_option(&mut self, name: &str, text: &str) {
        let mut trouble = Sink::default();
        let mut body = Lexer::over(text).rest_of_line(&mut trouble);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if trouble.has_errors() || !is_name || text.contains('\n') {
            self.sink.push(Diagnostic::without_place(
                codes::BAD_DIRECTIVE,
                format!("the option cannot define `{name}` as `{text}`"),
            ));
            return;
        }
        for token in &mut body {
            token.span = Span::default();
        }
        let definition = Macro {
            params: None,
            variadic: false,
            body: body.into(),
            defined: None,
            active: false,
        };
        self.macros.insert(name.into(), definition);
    }

    /// Returns the next token of the innermost replacement list, if one is being read.
    pub(super) fn read_expansion(&mut self) -> Option<Token> {
        while let Some(top) = self.expansions.last_mut() {
            if let Some(token) = top.tokens.get(top.at) {
                top.at += 1;
                let mut token = token.clone();
                if let Some(used) = top.used {
                    token.span = used;
                    if top.at == 1 {
                        token.space = top.space;
                    }
                }
                self.work += 1;
                return Some(token);
            }
            let name = top.name.take();
            self.expansions.pop();
            if let Some(definition) = name.and_then(|name| self.macros.get_mut(&name)) {
                definition.active = false;
            }
        }
        None
    }

    /// Begins the expansion of a token that names a macro. Returns any other token unchanged.
    pub(super) fn expand(&mut self, mut token: Token) -> Option<Token> {
        let TokenKind::Ident(name) = &token.kind else {
            return Some(token);
        };
        if token.frozen {
            return Some(token);
        }
        let name = Rc::clone(name);
        let Some(definition) = self.macros.get(&name) else {
            return Some(self.built_in(token, &name));
        };
        if definition.active {
            token.frozen = true;
            return Some(token);
        }
        if self.work > MAX_WORK {
            self.stop(Diagnostic::error(
                codes::MACRO_LIMIT,
                token.span,
                format!("macros expand to more than {MAX_WORK} tokens"),
                format!("while expanding `{name}`"),
            ));
            return None;
        }
        let body = Rc::clone(&definition.body);
        let variadic = definition.variadic;
        let Some(params) = definition.params.clone() else {
            self.push_expansion(body, Some(name), Some(&token));
            return None;
        };
        if !self.call_follows() {
            return Some(token);
        }
        let arguments = self.arguments(&name, params.len(), variadic, token.span)?;
        let tokens = self.substitute(&body, &params, variadic, &arguments, token.span)?;
        self.work += tokens.len();
        self.push_expansion(tokens.into(), Some(name), Some(&token));
        None
    }

    /// Returns the tokens with all macros in them expanded.
    pub(super) fn expand_all(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        if self.depth >= MAX_DEPTH {
            if let Some(first) = tokens.first() {
                self.stop(Diagnostic::error(
                    codes::MACRO_LIMIT,
                    first.span,
                    format!("macro calls are nested deeper than {MAX_DEPTH}"),
                    "too deep here",
                ));
            }
            return Vec::new();
        }
        self.depth += 1;
        let outer = std::mem::take(&mut self.expansions);
        let files = std::mem::take(&mut self.files);
        self.push_expansion(tokens.into(), None, None);
        let mut out = Vec::new();
        while !self.stopped
            && let Some(token) = self.read_expansion()
        {
            out.extend(self.expand(token));
        }
        self.abandon_expansions();
        self.expansions = outer;
        self.files = files;
        self.depth -= 1;
        out
    }

    fn abandon_expansions(&mut self) {
        for name in self.expansions.drain(..).filter_map(|e| e.name) {
            if let Some(definition) = self.macros.get_mut(&name) {
                definition.active = false;
            }
        }
    }

    fn push_expansion(&mut self, tokens: Rc<[Token]>, name: Option<Rc<str>>, used: Option<&Token>) {
        if let Some(definition) = name.as_ref().and_then(|name| self.macros.get_mut(name)) {
            definition.active = true;
        }
        self.work += 1;
        self.expansions.push(Expansion {
            tokens,
            at: 0,
            name,
            used: used.map(|token| token.span),
            space: used.is_some_and(|token| token.space),
        });
    }

    fn built_in(&self, mut token: Token, name: &str) -> Token {
        match name {
            "__LINE__" => {
                let line = self.sources.location(token.span).line;
                token.kind = TokenKind::Number(line.to_string().into());
            }
            "__FILE__" => {
                let path = self.sources.path(token.span);
                let text = path.display().to_string();
                token.kind = TokenKind::Str {
                    wide: false,
                    text: text.replace('\\', "\\\\").replace('"', "\\\"").into(),
                };
            }
            "__CHRONORB_IDL__" => token.kind = TokenKind::Number("1".into()),
            _ => {}
        }
        token
    }

    /// Returns whether the next token is `(`, without consuming it.
    fn call_follows(&mut self) -> bool {
        for expansion in self.expansions.iter().rev() {
            if let Some(token) = expansion.tokens.get(expansion.at) {
                return token.is('(');
            }
        }
        let Some(file) = self.files.last_mut() else {
            return false;
        };
        let mut ahead = file.lexer.clone();
        ahead.next(self.sink).is('(')
    }

    /// Reads the parenthesised arguments of a macro call.
    fn arguments(
        &mut self,
        name: &str,
        params: usize,
        variadic: bool,
        at: Span,
    ) -> Option<Vec<Vec<Token>>> {
        self.argument_token();
        let mut arguments = vec![Vec::new()];
        let mut nesting = 0usize;
        loop {
            let Some(token) = self.argument_token() else {
                self.stop(
                    Diagnostic::error(
                        codes::BAD_MACRO_CALL,
                        at,
                        format!("the call of macro `{name}` has no end"),
                        "it begins here",
                    )
                    .hint("end it with `)`, before any directive"),
                );
                return None;
            };
            match token.kind {
                TokenKind::Punct(')') if nesting == 0 => break,
                TokenKind::Punct(',')
                    if nesting == 0 && !(variadic && arguments.len() == params) =>
                {
                    arguments.push(Vec::new());
                    continue;
                }
                TokenKind::Punct('(') => nesting += 1,
                TokenKind::Punct(')') => nesting -= 1,
                _ => {}
            }
            if let Some(last) = arguments.last_mut() {
                last.push(token);
            }
        }
        if params == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if variadic && arguments.len() + 1 == params {
            arguments.push(Vec::new());
        }
        if arguments.len() != params {
            self.sink.push(Diagnostic::error(
                codes::BAD_MACRO_CALL,
                at,
                format!(
                    "macro `{name}` takes {}{} arguments, not {}",
                    if variadic { "at least " } else { "" },
                    params - usize::from(variadic),
                    arguments.len()
                ),
                "called here",
            ));
            return None;
        }
        Some(arguments)
    }

    /// Returns the next token of an argument; `None` at a directive and at the end of the file.
    fn argument_token(&mut self) -> Option<Token> {
        if let Some(mut token) = self.read_expansion() {
            // A macro name from its own expansion is not expanded again, in arguments too.
            if let Some(name) = token.ident()
                && self.macros.get(name).is_some_and(|m| m.active)
            {
                token.frozen = true;
            }
            return Some(token);
        }
        let file = self.files.last_mut()?;
        let before = file.lexer.clone();
        let token = file.lexer.next(self.sink);
        if token.kind == TokenKind::Eof || (token.first && token.is('#')) {
            file.lexer = before;
            return None;
        }
        Some(token)
    }

    /// Returns the body with its parameters replaced.
    fn substitute(
        &mut self,
        body: &[Token],
        params: &[Rc<str>],
        variadic: bool,
        arguments: &[Vec<Token>],
        at: Span,
    ) -> Option<Vec<Token>> {
        let param = |token: &Token| {
            let name = token.ident()?;
            params.iter().position(|param| param == name)
        };
        let is_hash = |i: usize| body.get(i).is_some_and(|token| token.is('#'));
        let is_paste = |i: usize| is_hash(i) && is_hash(i + 1) && !body[i + 1].space;
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; arguments.len()];
        let mut out: Vec<Token> = Vec::new();
        let mut paste_at = None;
        let mut i = 0;
        while let Some(token) = body.get(i) {
            if is_paste(i)
                && variadic
                && body.get(i + 2).and_then(param) == Some(params.len() - 1)
                && out.last().is_some_and(|token| token.is(','))
            {
                // As in other compilers, `, ## __VA_ARGS__` is empty if there are no arguments.
                if arguments[params.len() - 1].is_empty() {
                    out.pop();
                    i += 3;
                } else {
                    i += 2;
                }
                continue;
            }
            if is_paste(i) {
                paste_at = Some(out.len());
                i += 2;
                continue;
            }
            if token.is('#')
                && let Some(number) = body.get(i + 1).and_then(param)
            {
                out.push(self.stringized(&arguments[number], token, at)?);
                i += 2;
            } else if let Some(number) = param(token) {
                let first = out.len();
                let raw = paste_at == Some(first) || is_paste(i + 1);
                if raw {
                    out.extend_from_slice(&arguments[number]);
                } else {
                    if expanded[number].is_none() {
                        expanded[number] = Some(self.expand_all(arguments[number].clone()));
                    }
                    let tokens = expanded[number].as_deref().unwrap_or_default();
                    out.extend_from_slice(tokens);
                }
                if let Some(first) = out.get_mut(first) {
                    first.space = token.space;
                }
                i += 1;
            } else {
                out.push(token.clone());
                i += 1;
            }
            if self.stopped || self.work + out.len() > MAX_WORK {
                self.stop(Diagnostic::error(
                    codes::MACRO_LIMIT,
                    at,
                    format!("macros expand to more than {MAX_WORK} tokens"),
                    "while expanding this",
                ));
                return None;
            }
            if let Some(position) = paste_at.take()
                && position > 0
                && position < out.len()
            {
                let right = out.remove(position);
                let left = &out[position - 1];
                out[position - 1] = self.pasted(left, &right, at)?;
            }
        }
        Some(out)
    }

    fn stringized(&mut self, argument: &[Token], hash: &Token, at: Span) -> Option<Token> {
        let mut text = String::new();
        for (i, token) in argument.iter().enumerate() {
            if i > 0 && token.space {
                text.push(' ');
            }
            let literal = matches!(token.kind, TokenKind::Str { .. } | TokenKind::Char { .. });
            let spelling = spelling(token);
            if literal {
                text.push_str(&spelling.replace('\\', "\\\\").replace('"', "\\\""));
            } else {
                text.push_str(&spelling);
            }
            self.check_made(text.len(), at)?;
        }
        Some(Token {
            kind: TokenKind::Str {
                wide: false,
                text: text.into(),
            },
            ..hash.clone()
        })
    }

    fn pasted(&mut self, left: &Token, right: &Token, at: Span) -> Option<Token> {
        let text = spelling(left) + &spelling(right);
        self.check_made(text.len(), at)?;
        let mut trouble = Sink::default();
        let mut tokens = Lexer::over(&text).rest_of_line(&mut trouble);
        if trouble.has_errors() || tokens.len() != 1 {
            self.sink.push(Diagnostic::error(
                codes::BAD_MACRO_CALL,
                at,
                format!("`##` makes `{text}`, which is not one token"),
                "in the expansion of this macro",
            ));
            return None;
        }
        let made = tokens.pop()?;
        Some(Token {
            kind: made.kind,
            ..left.clone()
        })
    }

    fn check_made(&mut self, len: usize, at: Span) -> Option<()> {
        if len <= MAX_MADE {
            return Some(());
        }
        self.stop(Diagnostic::error(
            codes::MACRO_LIMIT,
            at,
            format!("a macro makes a token of more than {MAX_MADE} characters"),
            "in the expansion of this macro",
        ));
        None
    }
}

/// Returns whether a macro of this name exists without a definition.
pub(super) fn is_built_in(name: &str) -> bool {
    matches!(name, "__CHRONORB_IDL__" | "__FILE__" | "__LINE__")
}

/// Returns the token as it was written.
pub(super) fn spelling(token: &Token) -> String {
    let quoted = |wide: bool, quote: char, text: &str| {
        let wide = if wide { "L" } else { "" };
        format!("{wide}{quote}{text}{quote}")
    };
    match &token.kind {
        TokenKind::Ident(text) | TokenKind::Number(text) => text.to_string(),
        TokenKind::Str { wide, text } => quoted(*wide, '"', text),
        TokenKind::Char { wide, text } => quoted(*wide, '\'', text),
        TokenKind::Punct(c) => c.to_string(),
        TokenKind::Scope => "::".to_owned(),
        TokenKind::Eof => String::new(),
    }
}
