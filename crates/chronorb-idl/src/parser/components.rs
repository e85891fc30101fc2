//! Components, homes, port types and connectors.

use std::rc::Rc;

use super::{Body, Parser};
use crate::ast::{
    ComponentDef, HomeDef, InterfaceHead, InterfaceRef, Item, Meta, Port, PortKind, PortTypeDef,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::InterfaceOrigin;

impl Parser<'_> {
    /// Parses a definition that begins with `component`, `home`, `porttype` or `connector`, without
    /// its `;`. Returns whether there was one.
    pub(super) fn component_definition(
        &mut self,
        meta: &mut Meta,
        items: &mut Vec<Item>,
    ) -> Option<bool> {
        let named = self.peek_at(1).ident().is_some();
        let item = if self.is_word("component") {
            self.component(std::mem::take(meta), InterfaceOrigin::Component)?
        } else if self.is_word("connector") && named {
            self.connector(std::mem::take(meta))?
        } else if self.is_word("porttype") && named {
            self.port_type()?
        } else if self.is_word("home") {
            self.home(std::mem::take(meta))?
        } else {
            return Some(false);
        };
        items.push(item);
        Some(true)
    }

    fn component(&mut self, meta: Meta, origin: InterfaceOrigin) -> Option<Item> {
        self.at += 1;
        let name = self.name("the name of the component")?;
        let head = InterfaceHead {
            meta,
            name,
            local: false,
            is_abstract: false,
            origin,
        };
        let next = self.peek();
        let opens = next.is('{') || next.is(':') || self.is_word("supports");
        if !opens && (next.is(';') || next.first) {
            return Some(Item::InterfaceForward(head));
        }
        let base = if self.eat(':') {
            Some(self.scoped_name("the name of a component")?)
        } else {
            None
        };
        let supports = self.supports()?;
        let items = self.body(Body::Component)?;
        Some(Item::Component(ComponentDef {
            head,
            connector: false,
            base,
            supports,
            items,
        }))
    }

    fn connector(&mut self, meta: Meta) -> Option<Item> {
        self.at += 1;
        let name = self.name("the name of the connector")?;
        let base = if self.eat(':') {
            Some(self.scoped_name("the name of a connector")?)
        } else {
            None
        };
        let items = self.body(Body::Ports)?;
        Some(Item::Component(ComponentDef {
            head: InterfaceHead {
                meta,
                name,
                local: false,
                is_abstract: false,
                origin: InterfaceOrigin::Component,
            },
            connector: true,
            base,
            supports: Vec::new(),
            items,
        }))
    }

    fn port_type(&mut self) -> Option<Item> {
        self.at += 1;
        let name = self.name("the name of the port type")?;
        let next = self.peek();
        if !next.is('{') && (next.is(';') || next.first) {
            return Some(Item::PortTypeForward(name));
        }
        let items = self.body(Body::Ports)?;
        Some(Item::PortType(Rc::new(PortTypeDef { name, items })))
    }

    fn home(&mut self, meta: Meta) -> Option<Item> {
        self.at += 1;
        let name = self.name("the name of the home")?;
        let base = if self.eat(':') {
            Some(self.scoped_name("the name of a home")?)
        } else {
            None
        };
        let supports = self.supports()?;
        if !self.eat_word("manages") {
            let diagnostic = self.unexpected_here("`manages`").hint(format!(
                "a home says which components it makes: `home {} manages COMPONENT`",
                name.name
            ));
            self.sink.push(diagnostic);
            return None;
        }
        let manages = self.scoped_name("the name of a component")?;
        let primary_key = if self.eat_word("primarykey") {
            Some(self.scoped_name("the name of a value type")?)
        } else {
            None
        };
        let items = self.body(Body::Home)?;
        Some(Item::Home(HomeDef {
            meta,
            name,
            base,
            supports,
            manages,
            primary_key,
            items,
        }))
    }

    /// Parses `factory …` or `finder …`. Returns whether there was one.
    pub(super) fn home_element(&mut self, meta: &mut Meta, items: &mut Vec<Item>) -> Option<bool> {
        let keyword = self.peek().span;
        if self.eat_word("factory") {
            let factory = self.factory(std::mem::take(meta), keyword)?;
            items.push(Item::Factory(factory));
        } else if self.eat_word("finder") {
            let finder = self.factory(std::mem::take(meta), keyword)?;
            items.push(Item::Finder(finder));
        } else {
            return Some(false);
        }
        Some(true)
    }

    /// `supports A, B`, if it stands here.
    pub(super) fn supports(&mut self) -> Option<Vec<crate::ast::ScopedName>> {
        if self.eat_word("supports") {
            self.names("the name of an interface")
        } else {
            Some(Vec::new())
        }
    }

    /// `{ … }`
    fn body(&mut self, body: Body) -> Option<Vec<Item>> {
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let items = self.items(body, Some(open));
        self.depth -= 1;
        Some(items)
    }

    /// Parses a port or attribute, without its `;`.
    pub(super) fn port(&mut self, body: Body, meta: Meta, items: &mut Vec<Item>) -> Option<()> {
        let token = self.peek();
        let kind = match token.ident().map(|word| &**word) {
            Some("attribute" | "readonly") => return self.export(meta, items),
            Some("provides") => PortKind::Provides,
            Some("uses") if self.peek_at(1).ident().is_some_and(|w| &**w == "multiple") => {
                self.at += 1;
                PortKind::UsesMultiple
            }
            Some("uses") => PortKind::Uses,
            Some("port") => PortKind::Port,
            Some("mirrorport") => PortKind::MirrorPort,
            Some("emits") => PortKind::Emits,
            Some("publishes") => PortKind::Publishes,
            Some("consumes") => PortKind::Consumes,
            _ => {
                let diagnostic = self.unexpected_here("a port or an attribute").hint(
                    "a port begins with provides, uses, emits, publishes, consumes, port or \
                    mirrorport",
                );
                self.sink.push(diagnostic);
                return None;
            }
        };
        let is_event = matches!(
            kind,
            PortKind::Emits | PortKind::Publishes | PortKind::Consumes
        );
        if body == Body::Ports && is_event {
            self.sink.push(
                Diagnostic::error(
                    codes::PORT_TYPE,
                    token.span,
                    "port types and connectors have no ports for events",
                    "not possible here",
                )
                .hint("use a component, or an interface that takes the events"),
            );
            return None;
        }
        self.at += 1;
        let ty = if matches!(
            kind,
            PortKind::Provides | PortKind::Uses | PortKind::UsesMultiple
        ) && self.is_word("Object")
        {
            self.at += 1;
            InterfaceRef::Object
        } else {
            InterfaceRef::Named(self.scoped_name("the type of the port")?)
        };
        let name = self.name("the name of the port")?;
        items.push(Item::Port(Port {
            meta,
            kind,
            ty,
            name,
        }));
        Some(())
    }
}
