//! Interfaces, operations, attributes.

use std::rc::Rc;

use super::{Body, Parser};
use crate::ast::{
    AttributeDef, InterfaceDef, InterfaceHead, Item, Meta, OperationDef, ParamDef, ScopedName,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{InterfaceOrigin, ParamMode};
use crate::span::Span;

impl Parser<'_> {
    /// `[local | abstract] interface Name …`
    pub(super) fn interface(&mut self, meta: Meta) -> Option<Item> {
        let local = self.eat_word("local");
        let is_abstract = !local && self.eat_word("abstract");
        if !self.eat_word("interface") {
            self.unexpected("`interface`");
            return None;
        }
        let name = self.name("the name of the interface")?;
        let head = InterfaceHead {
            meta,
            name,
            local,
            is_abstract,
            origin: InterfaceOrigin::Interface,
        };
        let mut bases = Vec::new();
        if self.eat(':') {
            bases = self.names("the name of a base interface")?;
        } else if !self.peek().is('{') && (self.peek().is(';') || self.peek().first) {
            return Some(Item::InterfaceForward(head));
        }
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let items = self.items(Body::Interface, Some(open));
        self.depth -= 1;
        Some(Item::Interface(InterfaceDef { head, bases, items }))
    }

    /// Parses an operation or attribute, without its `;`.
    pub(super) fn export(&mut self, meta: Meta, items: &mut Vec<Item>) -> Option<()> {
        let item = if self.is_word("readonly") || self.is_word("attribute") {
            Item::Attribute(self.attribute(meta)?)
        } else {
            Item::Operation(self.operation(meta)?)
        };
        items.push(item);
        Some(())
    }

    fn attribute(&mut self, meta: Meta) -> Option<AttributeDef> {
        let readonly = self.eat_word("readonly");
        if !self.eat_word("attribute") {
            self.unexpected("`attribute`");
            return None;
        }
        let ty = self.type_spec()?;
        let mut names = vec![self.name("the name of the attribute")?];
        while self.eat(',') {
            names.push(self.name("the name of an attribute")?);
        }
        let mut get_raises = Vec::new();
        let mut set_raises = Vec::new();
        let clause = self.peek().span;
        if readonly && self.eat_word("raises") {
            get_raises = self.exception_list()?;
        } else if !readonly {
            if self.is_word("raises") {
                let diagnostic = self
                    .unexpected_here("`getraises`, `setraises` or `;`")
                    .hint(
                        "an attribute that can be written has `getraises (…)` and `setraises (…)`",
                    );
                self.sink.push(diagnostic);
                return None;
            }
            if self.eat_word("getraises") {
                get_raises = self.exception_list()?;
            }
            if self.eat_word("setraises") {
                set_raises = self.exception_list()?;
            }
        }
        if names.len() > 1 && !(get_raises.is_empty() && set_raises.is_empty()) {
            self.sink.push(
                Diagnostic::error(
                    codes::SYNTAX,
                    clause,
                    "several attributes cannot share a list of exceptions",
                    "which attribute is meant?",
                )
                .hint("declare each attribute alone"),
            );
        }
        Some(AttributeDef {
            meta,
            readonly,
            ty,
            names,
            get_raises,
            set_raises,
        })
    }

    fn operation(&mut self, meta: Meta) -> Option<OperationDef> {
        let start = self.peek().span;
        let oneway = self.eat_word("oneway").then_some(start);
        let result = if self.eat_word("void") {
            None
        } else {
            Some(self.type_spec()?)
        };
        let name = self.name("the name of the operation")?;
        if !self.peek().is('(') {
            let diagnostic = self.unexpected_here("`(`").hint(format!(
                "an operation has parentheses: `{0}()`; for an attribute write `attribute` \
                    before its type",
                name.name
            ));
            self.sink.push(diagnostic);
            return None;
        }
        let params = self.params()?;
        let raises = self.raises()?;
        let context = self.context()?;
        Some(OperationDef {
            meta,
            oneway,
            result,
            name,
            params,
            raises,
            context,
        })
    }

    /// `context ("name", …)`, if it stands here.
    fn context(&mut self) -> Option<Vec<(Rc<str>, Span)>> {
        let mut names = Vec::new();
        if !self.eat_word("context") {
            return Some(names);
        }
        self.expect('(')?;
        loop {
            names.push(self.plain_string("the name of a property in quotes")?);
            if !self.eat(',') {
                break;
            }
        }
        self.expect(')')?;
        if self.is_word("raises") {
            let diagnostic = self
                .unexpected_here("`;`")
                .hint("the exceptions stand before the context: `raises (…) context (…)`");
            self.sink.push(diagnostic);
            return None;
        }
        Some(names)
    }

    /// `raises (…)`, if it stands here.
    pub(super) fn raises(&mut self) -> Option<Vec<ScopedName>> {
        if self.eat_word("raises") {
            self.exception_list()
        } else {
            Some(Vec::new())
        }
    }

    pub(super) fn params(&mut self) -> Option<Vec<ParamDef>> {
        self.expect('(')?;
        let mut params = Vec::new();
        if self.eat(')') {
            return Some(params);
        }
        loop {
            params.push(self.param()?);
            if !self.eat(',') {
                break;
            }
        }
        if !self.eat(')') {
            let diagnostic = self.unexpected_here("`,` or `)`");
            let word = self.peek().ident().map(|word| &**word);
            let diagnostic = match word {
                Some("in" | "out" | "inout") => diagnostic.hint("write `,` between two parameters"),
                _ => diagnostic,
            };
            self.sink.push(diagnostic);
            return None;
        }
        self.separate_escaped(params.iter_mut().map(|param| &mut param.name).collect());
        Some(params)
    }

    fn param(&mut self) -> Option<ParamDef> {
        let meta = self.meta()?;
        let token = self.peek();
        let mode = match token.ident().map(|word| &**word) {
            Some("in") => Some(ParamMode::In),
            Some("out") => Some(ParamMode::Out),
            Some("inout") => Some(ParamMode::InOut),
            _ => None,
        };
        if mode.is_some() {
            self.at += 1;
        } else if token.ident().is_some() {
            self.sink.push(
                Diagnostic::error(
                    codes::MISSING_DIRECTION,
                    token.span,
                    "the direction of this parameter is missing",
                    "expected `in`, `out` or `inout`",
                )
                .hint("write `in` for what the client sends to the server"),
            );
        }
        let ty = self.type_spec()?;
        let name = self.name("the name of the parameter")?;
        if self.peek().is('[') {
            let diagnostic = self.unexpected_here("`,` or `)`").hint(
                "a parameter cannot declare an array: give the array type a name with `typedef`",
            );
            self.sink.push(diagnostic);
            return None;
        }
        Some(ParamDef {
            meta,
            mode: mode.unwrap_or(ParamMode::In),
            mode_span: token.span,
            ty,
            name,
        })
    }

    fn exception_list(&mut self) -> Option<Vec<ScopedName>> {
        self.expect('(')?;
        let names = self.names("the name of an exception")?;
        self.expect(')')?;
        Some(names)
    }
}
