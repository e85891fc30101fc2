//! Modules, structs, exceptions, enums, typedefs, constants.

use super::{Body, Parser};
use crate::ast::{
    ConstDef, Declarator, EnumDef, Ident, Import, Item, MemberDef, Meta, Module, StructDef,
    TypeKind, Typedef,
};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::lexer::TokenKind;
use crate::suggest::foreign;

impl Parser<'_> {
    /// Parses one definition with its `;`.
    pub(super) fn definition(&mut self, body: Body, items: &mut Vec<Item>) -> Option<()> {
        if self.declared_annotation(items)? {
            return Some(());
        }
        let meta = self.meta()?;
        // Modules nest: this branch uses little stack.
        let outside = matches!(body, Body::File | Body::Module);
        if outside && self.is_word("module") && !self.is_template() {
            items.push(Item::Module(self.module(meta)?));
            return self.semicolon();
        }
        self.definition_without_modules(body, meta, items)
    }

    #[inline(never)]
    fn definition_without_modules(
        &mut self,
        body: Body,
        mut meta: Meta,
        items: &mut Vec<Item>,
    ) -> Option<()> {
        if self.element(body, &mut meta, items)? {
            return self.semicolon();
        }
        let word = self.peek().ident().map_or("", |word| word);
        let in_interface = !matches!(body, Body::File | Body::Module);
        match word {
            "module" if !in_interface => items.push(self.template(meta)?),
            "alias"
                if body == Body::Module
                    && (self.peek_at(1).ident().is_some()
                        || self.peek_at(1).kind == TokenKind::Scope) =>
            {
                items.push(self.template_alias(meta)?);
            }
            "module" | "interface" | "local" | "abstract" | "valuetype" | "eventtype"
            | "custom" | "component" | "home"
                if in_interface =>
            {
                let diagnostic = self
                    .unexpected_here(
                        "an operation, an attribute, a type, a constant or an exception",
                    )
                    .hint(
                        "modules, interfaces and value types stand outside of interfaces and value \
                        types",
                    );
                self.sink.push(diagnostic);
                return None;
            }
            _ if self.is_value() => items.push(self.value(meta)?),
            "interface" | "local" | "abstract" => items.push(self.interface(meta)?),
            "struct" => self.struct_definition(meta, items)?,
            "union" => self.union_definition(meta, items)?,
            "exception" => {
                self.at += 1;
                let name = self.name("the name of the exception")?;
                let mut members = self.members()?;
                self.separate_members(&mut members);
                items.push(Item::Exception(StructDef {
                    meta,
                    name,
                    base: None,
                    members,
                }));
            }
            "enum" => items.push(Item::Enum(self.enumeration(meta)?)),
            "bitmask" if self.begins_bits() => items.push(Item::Bitmask(self.bitmask(meta)?)),
            "bitset" if self.begins_bits() => items.push(Item::Bitset(self.bitset(meta)?)),
            "native" => {
                self.at += 1;
                let name = self.name("the name of the native type")?;
                items.push(Item::Native(meta, name));
            }
            "typedef" => {
                self.at += 1;
                let ty = self.type_spec()?;
                let declarators = self.declarators("the name of the type")?;
                items.push(Item::Typedef(Typedef {
                    meta,
                    ty,
                    declarators,
                }));
            }
            "import" if body == Body::File => items.push(Item::Import(self.import()?)),
            "const" => items.push(Item::Const(self.constant(meta)?)),
            "typeid" => {
                self.at += 1;
                let name = self.scoped_name("a name")?;
                let (id, span) = self.plain_string("a repository identifier in quotes")?;
                items.push(Item::TypeId { name, id, span });
            }
            "typeprefix" => {
                self.at += 1;
                let name = self.scoped_name("the name of a module or interface")?;
                let (prefix, span) = self.plain_string("a prefix in quotes")?;
                items.push(Item::TypePrefix { name, prefix, span });
            }
            _ if in_interface => self.export(meta, items)?,
            _ => {
                let foreign = foreign(word);
                let hint = if matches!(word, "oneway" | "attribute" | "readonly" | "void") {
                    "operations and attributes stand inside of an interface"
                } else if let Some(hint) = &foreign {
                    hint
                } else {
                    "a definition begins with module, interface, struct, union, enum, exception, \
                    typedef or const"
                };
                let diagnostic = self.unexpected_here("a definition").hint(hint);
                self.sink.push(diagnostic);
                return None;
            }
        }
        self.semicolon()
    }

    /// Parses an element that only this kind of body can have, without its `;`. Returns whether
    /// there was one.
    fn element(&mut self, body: Body, meta: &mut Meta, items: &mut Vec<Item>) -> Option<bool> {
        match body {
            Body::File | Body::Module => self.component_definition(meta, items),
            Body::Interface => Some(false),
            Body::Value => self.value_element(meta, items),
            Body::Home => self.home_element(meta, items),
            Body::Component | Body::Ports => {
                self.port(body, std::mem::take(meta), items)?;
                Some(true)
            }
        }
    }

    /// `import ::M` or `import "IDL:M:1.0"`
    fn import(&mut self) -> Option<Import> {
        let start = self.next().span;
        let what = if matches!(self.peek().kind, TokenKind::Str { .. }) {
            Err(self.plain_string("a repository identifier in quotes")?.0)
        } else {
            Ok(self.scoped_name("the name of what is imported")?)
        };
        Some(Import {
            what,
            span: start.to(self.previous_span()),
        })
    }

    fn module(&mut self, meta: Meta) -> Option<Module> {
        self.at += 1;
        let name = self.name("the name of the module")?;
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let items = self.items(Body::Module, Some(open));
        self.depth -= 1;
        if items.is_empty() && !self.sink.has_errors() {
            self.sink.push(
                Diagnostic::warning(
                    codes::EMPTY_MODULE,
                    name.span,
                    format!("module `{}` is empty", name.name),
                    "defines nothing",
                )
                .hint("define something in it, or remove it"),
            );
        }
        Some(Module { meta, name, items })
    }

    fn struct_definition(&mut self, meta: Meta, items: &mut Vec<Item>) -> Option<()> {
        if self.is_forward() {
            self.at += 1;
            let name = self.name("the name of the struct")?;
            items.push(Item::StructForward(meta, name));
            return Some(());
        }
        let definition = self.structure(meta)?;
        items.push(Item::Struct(definition));
        Some(())
    }

    /// Returns whether only a name follows the keyword, and no body.
    pub(super) fn is_forward(&self) -> bool {
        let ends = self.peek_at(2);
        let goes_on =
            ends.is('{') || ends.is(':') || ends.ident().is_some_and(|w| &**w == "switch");
        ends.is(';') || (!goes_on && ends.first)
    }

    /// `struct Name { … }`
    pub(super) fn structure(&mut self, meta: Meta) -> Option<StructDef> {
        self.at += 1;
        let name = self.name("the name of the struct")?;
        let base = if self.eat(':') {
            Some(self.scoped_name("the name of a struct")?)
        } else {
            None
        };
        let mut members = self.members()?;
        self.separate_members(&mut members);
        Some(StructDef {
            meta,
            name,
            base,
            members,
        })
    }

    fn separate_members(&mut self, members: &mut [MemberDef]) {
        let declarators = members
            .iter_mut()
            .flat_map(|member| &mut member.declarators);
        self.separate_escaped(declarators.map(|declarator| &mut declarator.name).collect());
    }

    fn members(&mut self) -> Option<Vec<MemberDef>> {
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let mut members = Vec::new();
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::Punct('}') => {
                    self.at += 1;
                    self.depth -= 1;
                    return Some(members);
                }
                TokenKind::Eof => {
                    if !self.sink.is_full() {
                        self.unclosed(open);
                    }
                    return None;
                }
                _ => {
                    let (before, depth) = (self.at, self.depth);
                    match self.member() {
                        Some(member) => members.push(member),
                        None => self.recover(true),
                    }
                    self.depth = depth;
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
        }
    }

    fn member(&mut self) -> Option<MemberDef> {
        let meta = self.meta()?;
        let ty = self.type_spec()?;
        let declarators = self.declarators("the name of the member")?;
        self.semicolon()?;
        Some(MemberDef {
            meta,
            ty,
            declarators,
        })
    }

    pub(super) fn declarators(&mut self, what: &str) -> Option<Vec<Declarator>> {
        let mut declarators = Vec::new();
        loop {
            declarators.push(self.declarator(what)?);
            if !self.eat(',') {
                return Some(declarators);
            }
        }
    }

    /// `name` or `name[3][4]`
    pub(super) fn declarator(&mut self, what: &str) -> Option<Declarator> {
        let name = self.name(what)?;
        let mut dimensions = Vec::new();
        while self.eat('[') {
            dimensions.push(self.expression()?);
            self.expect(']')?;
            if dimensions.len() > usize::from(super::MAX_DEPTH) {
                self.too_deep(name.span);
                return None;
            }
        }
        Some(Declarator { name, dimensions })
    }

    /// `enum Name { A, B }`
    pub(super) fn enumeration(&mut self, meta: Meta) -> Option<EnumDef> {
        self.at += 1;
        let name = self.name("the name of the enum")?;
        self.expect('{')?;
        let Some(enumerators) = self.enumerators() else {
            self.close_list();
            return None;
        };
        self.at += 1;
        Some(EnumDef {
            meta,
            name,
            enumerators,
        })
    }

    /// Parses the enumerators up to the closing brace.
    pub(super) fn enumerators(&mut self) -> Option<Vec<(Meta, Ident)>> {
        let mut enumerators: Vec<(Meta, Ident)> = Vec::new();
        loop {
            let meta = self.meta()?;
            if self.peek().is('}') && !enumerators.is_empty() {
                let diagnostic = self
                    .unexpected_here("an enumerator")
                    .hint("remove the `,` behind the last enumerator");
                self.sink.push(diagnostic);
                return Some(enumerators);
            }
            enumerators.push((meta, self.name("an enumerator")?));
            if !self.eat(',') {
                break;
            }
        }
        if !self.peek().is('}') {
            let diagnostic = self.unexpected_here("`,` or `}`").hint(
                "enumerators are names with commas between them; a value stands before its \
                    name, `@value(3)`",
            );
            self.sink.push(diagnostic);
            return None;
        }
        Some(enumerators)
    }

    fn constant(&mut self, meta: Meta) -> Option<ConstDef> {
        self.at += 1;
        let ty = self.type_spec()?;
        if let TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::Enum(_) = ty.kind {
            self.sink.push(Diagnostic::error(
                codes::BAD_CONST_TYPE,
                ty.span,
                "a constant cannot define its own type",
                "define the type before the constant",
            ));
            return None;
        }
        let name = self.name("the name of the constant")?;
        self.expect('=')?;
        let value = self.expression()?;
        Some(ConstDef {
            meta,
            ty,
            name,
            value,
        })
    }
}
