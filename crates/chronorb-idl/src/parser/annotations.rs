//! Annotations: applied (`@name(…)`) and declared (`@annotation name { … };`).

use super::{Body, Parser};
use crate::ast::{
    AnnotationDef, AnnotationMemberDef, AnnotationParam, AnnotationUse, Ident, Item, Meta,
    ScopedName,
};
use crate::lexer::TokenKind;
use crate::span::Span;

impl Parser<'_> {
    /// Parses the documentation comment and the annotations before a definition.
    pub(super) fn meta(&mut self) -> Option<Meta> {
        let mut meta = Meta {
            doc: self.stream.docs.get(&self.at).cloned(),
            annotations: Vec::new(),
        };
        while self.peek().is('@') {
            meta.annotations.push(self.annotation()?);
            if let Some(doc) = self.stream.docs.get(&self.at) {
                meta.doc = Some(doc.clone());
            }
        }
        Some(meta)
    }

    fn annotation(&mut self) -> Option<AnnotationUse> {
        let start = self.next().span;
        let name = self.annotation_name()?;
        let mut params = Vec::new();
        if self.eat('(') && !self.eat(')') {
            loop {
                params.push(self.annotation_param()?);
                if !self.eat(',') {
                    break;
                }
            }
            self.expect(')')?;
        }
        Some(AnnotationUse {
            name,
            params,
            span: start.to(self.previous_span()),
        })
    }

    /// Parses the name of an annotation, whose parts may be keywords: `@default`, `@oneway`.
    fn annotation_name(&mut self) -> Option<ScopedName> {
        let start = self.peek().span;
        let absolute = self.peek().kind == TokenKind::Scope;
        self.at += usize::from(absolute);
        let mut parts = Vec::new();
        loop {
            let token = self.peek();
            let Some(word) = token.ident() else {
                self.unexpected("the name of an annotation");
                return None;
            };
            parts.push(Ident::new(word, token.span));
            self.at += 1;
            // In `@key ::M::T x` the type begins with the first `::`.
            if self.peek().kind != TokenKind::Scope || self.peek().space {
                break;
            }
            if parts.len() >= super::MAX_PARTS {
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

    fn annotation_param(&mut self) -> Option<AnnotationParam> {
        let token = self.peek();
        let name = match token.ident() {
            Some(name) if self.peek_at(1).is('=') => {
                self.at += 2;
                Some(Ident::new(name, token.span))
            }
            _ => None,
        };
        Some(AnnotationParam {
            name,
            value: self.expression()?,
        })
    }

    /// Returns whether `@annotation name` follows.
    pub(super) fn is_annotation_declaration(&self) -> bool {
        let is_keyword = |word: &std::rc::Rc<str>| &**word == "annotation";
        self.peek().is('@')
            && self.peek_at(1).ident().is_some_and(is_keyword)
            && self.peek_at(2).ident().is_some()
    }

    /// `@annotation name { … }`
    pub(super) fn annotation_declaration(&mut self) -> Option<AnnotationDef> {
        let doc = self.stream.docs.get(&self.at).cloned();
        self.at += 2;
        let token = self.next();
        // The name may be a keyword: `@annotation default { … };`.
        let name = Ident::new(token.ident()?, token.span);
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let mut declaration = AnnotationDef {
            meta: Meta {
                doc,
                annotations: Vec::new(),
            },
            name,
            items: Vec::new(),
            members: Vec::new(),
        };
        self.annotation_body(open, &mut declaration)?;
        self.depth -= 1;
        Some(declaration)
    }

    fn annotation_body(&mut self, open: Span, declaration: &mut AnnotationDef) -> Option<()> {
        while !self.eat('}') {
            if self.peek().kind == TokenKind::Eof {
                if !self.sink.is_full() {
                    self.unclosed(open);
                }
                return None;
            }
            let (before, depth) = (self.at, self.depth);
            if self.annotation_element(declaration).is_none() {
                self.recover(true);
            }
            self.depth = depth;
            if self.at == before {
                self.at += 1;
            }
        }
        Some(())
    }

    fn annotation_element(&mut self, declaration: &mut AnnotationDef) -> Option<()> {
        if ["enum", "const", "typedef"].iter().any(|w| self.is_word(w)) {
            return self.definition(Body::Module, &mut declaration.items);
        }
        let ty = self.type_spec()?;
        let name = self.name("the name of a parameter")?;
        let default = if self.eat_word("default") {
            Some(self.expression()?)
        } else {
            None
        };
        self.semicolon()?;
        declaration
            .members
            .push(AnnotationMemberDef { ty, name, default });
        Some(())
    }

    /// Parses a declaration of an annotation with its `;`, if one stands here.
    pub(super) fn declared_annotation(&mut self, items: &mut Vec<Item>) -> Option<bool> {
        if !self.is_annotation_declaration() {
            return Some(false);
        }
        let declaration = self.annotation_declaration()?;
        items.push(Item::Annotation(declaration));
        self.semicolon()?;
        Some(true)
    }
}
