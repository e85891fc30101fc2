//! What the language has beyond what this version compiles: recognised, reported, skipped.

use super::{Parser, is_keyword};
use crate::ast::{Ident, Item};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::lexer::TokenKind;
use crate::source::Span;

impl Parser<'_> {
    /// Reports a part of the language that this version does not compile.
    fn refuse(&mut self, code: &'static str, span: Span, what: &str, hint: &str) {
        self.sink.push(
            Diagnostic::error(
                code,
                span,
                format!("{what} are not compiled by this version"),
                "not supported",
            )
            .hint(hint),
        );
    }

    /// What begins with a word or mark of its own and takes no annotations.
    /// Says whether there was such a thing.
    pub(super) fn refused_declaration(&mut self) -> Option<bool> {
        let token = self.peek();
        let next = self.peek_at(1);
        if token.is('@')
            && next.ident().is_some_and(|word| &**word == "annotation")
            && self.peek_at(2).ident().is_some()
        {
            self.at += 1;
            self.refuse(
                codes::NO_ANNOTATION_DECLARATION,
                token.span.to(next.span),
                "declarations of annotations",
                "remove it; annotations can be applied without a declaration",
            );
            self.skip_definition();
            return Some(true);
        }
        Some(false)
    }

    /// Definitions of refused kinds. Says whether there was one.
    pub(super) fn refused_definition(&mut self, items: &mut Vec<Item>) -> Option<bool> {
        let token = self.peek();
        let Some(word) = token.ident() else {
            return Some(false);
        };
        let next_is_name = |ahead: usize| {
            self.peek_at(ahead)
                .ident()
                .is_some_and(|word| !is_keyword(word))
        };
        let opens = |ahead: usize| self.peek_at(ahead).is('{') || self.peek_at(ahead).is(':');
        let (code, what, hint, words) = match &**word {
            "component" | "home" => COMPONENT,
            "porttype" | "connector" if next_is_name(1) && opens(2) => COMPONENT,
            "bitset" | "bitmask" if next_is_name(1) && opens(2) => (
                codes::NO_BITS,
                "bit sets and bit masks",
                "use an `unsigned long` and constants",
                1,
            ),
            "module" if self.peek_at(2).is('<') => (
                codes::NO_TEMPLATE,
                "template modules",
                "write the module out for each type",
                1,
            ),
            _ => return Some(false),
        };
        let name = self.peek_at(words);
        let name = name.ident().map(|word| Ident::new(word, name.span));
        self.refuse(code, token.span, what, hint);
        items.extend(name.map(Item::Refused));
        self.skip_definition();
        Some(true)
    }

    /// Skips behind the `;` of a definition, over everything in braces.
    fn skip_definition(&mut self) {
        let mut braces = 0usize;
        loop {
            match self.peek().kind {
                TokenKind::Eof => return,
                TokenKind::Punct('{') => braces += 1,
                TokenKind::Punct('}') if braces == 0 => return,
                TokenKind::Punct('}') => {
                    braces -= 1;
                    if braces == 0 {
                        self.at += 1;
                        self.eat(';');
                        return;
                    }
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
}

type Refusal = (&'static str, &'static str, &'static str, usize);

const COMPONENT: Refusal = (codes::NO_COMPONENT, "components", "use interfaces", 1);
