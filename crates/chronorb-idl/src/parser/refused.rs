//! What the language has beyond what this version compiles: recognised, reported, skipped.

use super::{Parser, is_keyword};
use crate::ast::{Ident, Item, TypeKind};
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
        if self.is_word("import") {
            self.refuse(
                codes::NO_IMPORT,
                token.span,
                "imports",
                "include the file that defines the name with `#include`",
            );
            self.skip_definition();
            return Some(true);
        }
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
            "native" => (
                codes::NO_NATIVE,
                "native types",
                "use an interface, or an `Object`",
                1,
            ),
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

    /// Types of refused kinds.
    pub(super) fn refused_type(&mut self) -> Option<Option<TypeKind>> {
        let token = self.peek();
        let Some(word) = token.ident() else {
            return Some(None);
        };
        let followed_by_angle = self.peek_at(1).is('<');
        match &**word {
            "map" if followed_by_angle => {
                self.refuse(
                    codes::NO_MAP,
                    token.span,
                    "maps",
                    "use a sequence of structs with a key and a value",
                );
                self.at += 1;
                self.skip_angles();
            }
            _ => return Some(None),
        }
        Some(Some(TypeKind::Refused(None)))
    }

    /// `: Base` behind the name of a struct.
    pub(super) fn refuse_struct_inheritance(&mut self) -> Option<()> {
        let span = self.next().span;
        self.refuse(
            codes::NO_STRUCT_INHERITANCE,
            span,
            "structs with a base",
            "make the base the first member",
        );
        self.scoped_name("the name of a struct").map(|_| ())
    }

    /// `context ("…")` behind an operation.
    pub(super) fn refuse_context(&mut self) -> Option<()> {
        let span = self.next().span;
        self.refuse(
            codes::NO_CONTEXT,
            span,
            "context clauses",
            "pass the values as parameters",
        );
        self.expect('(')?;
        while !self.peek().is(')') && !self.peek().is(';') && self.peek().kind != TokenKind::Eof {
            self.at += 1;
        }
        self.expect(')')
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

    /// Skips `<…>` if it stands here.
    fn skip_angles(&mut self) {
        let mut open = 0usize;
        loop {
            match self.peek().kind {
                TokenKind::Punct('<') => open += 1,
                TokenKind::Punct('>') => open = open.saturating_sub(1),
                TokenKind::Eof | TokenKind::Punct(';' | '{' | '}') => return,
                _ => {}
            }
            if open == 0 && !self.peek().is('>') {
                return;
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }
}

type Refusal = (&'static str, &'static str, &'static str, usize);

const COMPONENT: Refusal = (codes::NO_COMPONENT, "components", "use interfaces", 1);
