//! Value types, event types and boxed values.

use super::{Body, Parser};
use crate::ast::{FactoryDef, Item, Meta, ScopedName, StateDef, ValueBox, ValueDef, ValueHead};
use crate::codes;
use crate::diagnostics::Diagnostic;

impl Parser<'_> {
    /// Returns whether a value type begins here: `valuetype`, `eventtype`, or one of them behind
    /// `abstract` or `custom`.
    pub(super) fn is_value(&self) -> bool {
        let is_kind = |ahead: usize| {
            let word = self.peek_at(ahead).ident();
            word.is_some_and(|word| matches!(&**word, "valuetype" | "eventtype"))
        };
        is_kind(0) || self.is_word("custom") || (self.is_word("abstract") && is_kind(1))
    }

    /// `[abstract | custom] valuetype Name …`
    pub(super) fn value(&mut self, meta: Meta) -> Option<Item> {
        let is_abstract = self.eat_word("abstract");
        let start = self.peek().span;
        let custom = (!is_abstract && self.eat_word("custom")).then_some(start);
        let event = self.is_word("eventtype");
        if !event && !self.is_word("valuetype") {
            self.unexpected("`valuetype` or `eventtype`");
            return None;
        }
        self.at += 1;
        let name = self.name("the name of the value type")?;
        let head = ValueHead {
            meta,
            name,
            is_abstract,
            custom,
            event,
        };
        let next = self.peek();
        let opens = next.is('{') || next.is(':') || self.is_word("supports");
        if !opens && (next.is(';') || (next.first && !self.begins_type())) {
            return Some(Item::ValueForward(head));
        }
        if !opens && !event && !is_abstract && custom.is_none() {
            return self.value_box(head);
        }
        let (truncatable, bases) = self.value_bases()?;
        let supports = self.supports()?;
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let items = self.items(Body::Value, Some(open));
        self.depth -= 1;
        Some(Item::Value(ValueDef {
            head,
            truncatable,
            bases,
            supports,
            items,
        }))
    }

    /// `: [truncatable] Base, Base`
    fn value_bases(&mut self) -> Option<(Option<crate::span::Span>, Vec<ScopedName>)> {
        if !self.eat(':') {
            return Some((None, Vec::new()));
        }
        let at = self.peek().span;
        let truncatable = self.eat_word("truncatable").then_some(at);
        Some((truncatable, self.names("the name of a base value type")?))
    }

    fn value_box(&mut self, head: ValueHead) -> Option<Item> {
        let ty = self.type_spec()?;
        Some(Item::ValueBox(ValueBox {
            meta: head.meta,
            name: head.name,
            ty,
        }))
    }

    /// Returns whether the current token can begin a type, so that a missing `;` is unlikely.
    fn begins_type(&self) -> bool {
        const KEYWORDS: [&str; 16] = [
            "Object",
            "ValueBase",
            "any",
            "boolean",
            "char",
            "double",
            "fixed",
            "float",
            "long",
            "octet",
            "sequence",
            "short",
            "string",
            "unsigned",
            "wchar",
            "wstring",
        ];
        let word = self.peek().ident();
        word.is_some_and(|word| KEYWORDS.contains(&&**word) || !super::is_keyword(word))
    }

    /// `A, B::C`
    pub(super) fn names(&mut self, what: &str) -> Option<Vec<ScopedName>> {
        let mut names = vec![self.scoped_name(what)?];
        while self.eat(',') {
            names.push(self.scoped_name(what)?);
        }
        Some(names)
    }

    /// Parses an element that only value types can have, without its `;`. Returns whether there was
    /// one.
    pub(super) fn value_element(&mut self, meta: &mut Meta, items: &mut Vec<Item>) -> Option<bool> {
        let keyword = self.peek().span;
        if self.is_word("public") || self.is_word("private") {
            let public = self.is_word("public");
            self.at += 1;
            let ty = self.type_spec()?;
            let declarators = self.declarators("the name of the state member")?;
            items.push(Item::State(StateDef {
                public,
                keyword,
                member: crate::ast::MemberDef {
                    meta: std::mem::take(meta),
                    ty,
                    declarators,
                },
            }));
            return Some(true);
        }
        if self.eat_word("factory") {
            let factory = self.factory(std::mem::take(meta), keyword)?;
            items.push(Item::Factory(factory));
            return Some(true);
        }
        Some(false)
    }

    /// `Name(in T a, …) raises (…)`, behind `factory` or `finder`.
    pub(super) fn factory(&mut self, meta: Meta, keyword: crate::span::Span) -> Option<FactoryDef> {
        let name = self.name("the name of the initialiser")?;
        let params = self.params()?;
        for param in &params {
            if param.mode != crate::model::ParamMode::In {
                self.sink.push(
                    Diagnostic::error(
                        codes::FACTORY_PARAM,
                        param.mode_span,
                        format!(
                            "parameter `{}` of an initialiser is not `in`",
                            param.name.name
                        ),
                        "must be `in`",
                    )
                    .hint("an initialiser makes a value and returns nothing else"),
                );
            }
        }
        let raises = self.raises()?;
        Some(FactoryDef {
            meta,
            keyword,
            name,
            params,
            raises,
        })
    }
}
