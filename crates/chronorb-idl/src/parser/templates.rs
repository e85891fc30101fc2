//! Template modules and their instances (IDL 4.2, 7.4.12).

use std::rc::Rc;

use super::{Body, Parser, is_keyword};
use crate::ast::{
    Instance, Item, Meta, ScopedName, TemplateArg, TemplateModule, TemplateParam, TemplateParamKind,
};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Returns whether `module Name<` or `module A::Name<` follows.
    pub(super) fn is_template(&self) -> bool {
        if !self.is_word("module") {
            return false;
        }
        let mut ahead = 1;
        while self.peek_at(ahead).ident().is_some() || self.peek_at(ahead).kind == TokenKind::Scope
        {
            ahead += 1;
        }
        self.peek_at(ahead).is('<')
    }

    /// Parses a template module, or an instance of one, without its `;`.
    pub(super) fn template(&mut self, meta: Meta) -> Option<Item> {
        let mut ahead = 0;
        let defines = loop {
            match self.peek_at(ahead).kind {
                TokenKind::Punct('{') => break true,
                TokenKind::Punct(';' | '}') | TokenKind::Eof => break false,
                _ => ahead += 1,
            }
        };
        self.at += 1;
        if !defines {
            let template = self.scoped_name("the name of a template module")?;
            return Some(Item::Instance(self.instance(meta, template)?));
        }
        let name = self.name("the name of the module")?;
        self.expect('<')?;
        let mut params = vec![self.template_param()?];
        while self.eat(',') {
            params.push(self.template_param()?);
        }
        self.expect('>')?;
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let items = self.items(Body::Module, Some(open));
        self.depth -= 1;
        Some(Item::Template(Rc::new(TemplateModule {
            meta,
            name,
            params,
            items,
        })))
    }

    /// `alias M<A, B> Name`, without its `;`.
    pub(super) fn template_alias(&mut self, meta: Meta) -> Option<Item> {
        self.at += 1;
        let template = self.scoped_name("the name of a template module")?;
        Some(Item::Alias(self.instance(meta, template)?))
    }

    /// `<A, B> Name`
    fn instance(&mut self, meta: Meta, template: ScopedName) -> Option<Instance> {
        self.expect('<')?;
        let mut args = vec![self.template_arg()?];
        while self.eat(',') {
            args.push(self.template_arg()?);
        }
        self.expect('>')?;
        let name = self.name("the name of the instance")?;
        let span = template.span.to(name.span);
        Some(Instance {
            meta,
            template,
            args,
            name,
            span,
        })
    }

    fn template_param(&mut self) -> Option<TemplateParam> {
        let token = self.peek();
        let word = token.ident().map_or("", |word| word);
        let kind = match word {
            "typename" => TemplateParamKind::Typename,
            "interface" => TemplateParamKind::Interface,
            "valuetype" => TemplateParamKind::Value,
            "eventtype" => TemplateParamKind::Event,
            "struct" => TemplateParamKind::Struct,
            "union" => TemplateParamKind::Union,
            "exception" => TemplateParamKind::Exception,
            "enum" => TemplateParamKind::Enum,
            "sequence" => TemplateParamKind::Sequence,
            "const" => {
                self.at += 1;
                let ty = self.type_spec()?;
                let name = self.name("the name of the parameter")?;
                let kind = TemplateParamKind::Const(ty);
                return Some(TemplateParam { kind, name });
            }
            _ => {
                let diagnostic = self.unexpected_here("a parameter of the template module").hint(
                    "a parameter begins with typename, interface, valuetype, eventtype, struct, \
                    union, exception, enum, sequence or const",
                );
                self.sink.push(diagnostic);
                return None;
            }
        };
        self.at += 1;
        let kind = if word == "sequence" && self.eat('<') {
            let element = self.scoped_name("the name of an earlier parameter")?;
            self.expect('>')?;
            TemplateParamKind::SequenceOf(element)
        } else {
            kind
        };
        let name = self.name("the name of the parameter")?;
        Some(TemplateParam { kind, name })
    }

    fn template_arg(&mut self) -> Option<TemplateArg> {
        let start = self.at;
        let is_name = match &self.peek().kind {
            TokenKind::Scope => true,
            TokenKind::Ident(word) if !is_keyword(word) => {
                !(&**word == "map" && self.peek_at(1).is('<'))
            }
            TokenKind::Ident(word) if matches!(&**word, "TRUE" | "FALSE") => {
                return self.bound().map(TemplateArg::Value);
            }
            TokenKind::Ident(_) => return self.type_spec().map(TemplateArg::Type),
            _ => return self.bound().map(TemplateArg::Value),
        };
        if !is_name {
            return self.type_spec().map(TemplateArg::Type);
        }
        let name = self.scoped_name("a type or a constant")?;
        if self.peek().is(',') || self.peek().is('>') {
            return Some(TemplateArg::Name(name));
        }
        self.at = start;
        self.bound().map(TemplateArg::Value)
    }
}
