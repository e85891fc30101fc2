//! Types in their written form.

use super::Parser;
use crate::ast::{Meta, TypeKind, TypeSpec};
use crate::lexer::TokenKind;
use crate::model::Type;

impl Parser<'_> {
    /// Parses any type, defined here or named.
    pub(super) fn type_spec(&mut self) -> Option<TypeSpec> {
        self.deeper()?;
        let mut annotations = self.meta()?.annotations;
        let start = self.peek().span;
        let mut kind = self.type_kind()?;
        // Annotations before a definition apply to it.
        let defined = match &mut kind {
            TypeKind::Struct(definition) => Some(&mut definition.meta),
            TypeKind::Union(definition) => Some(&mut definition.meta),
            TypeKind::Enum(definition) => Some(&mut definition.meta),
            _ => None,
        };
        if let Some(meta) = defined {
            meta.annotations = std::mem::take(&mut annotations);
        }
        self.depth -= 1;
        Some(TypeSpec {
            annotations,
            kind,
            span: start.to(self.previous_span()),
        })
    }

    fn type_kind(&mut self) -> Option<TypeKind> {
        let token = self.peek();
        let word = match &token.kind {
            TokenKind::Ident(word) => &**word,
            TokenKind::Scope => "",
            _ => {
                self.unexpected("a type");
                return None;
            }
        };
        let basic = match word {
            "boolean" => Type::Boolean,
            "octet" => Type::Octet,
            "char" => Type::Char,
            "wchar" => Type::WChar,
            "short" => Type::Short,
            "float" => Type::Float,
            "double" => Type::Double,
            "any" => Type::Any,
            "Object" => Type::Object,
            "ValueBase" => Type::ValueBase,
            "long" => {
                self.at += 1;
                return Some(TypeKind::Basic(if self.eat_word("long") {
                    Type::LongLong
                } else if self.eat_word("double") {
                    Type::LongDouble
                } else {
                    Type::Long
                }));
            }
            "unsigned" => {
                self.at += 1;
                if self.eat_word("short") {
                    return Some(TypeKind::Basic(Type::UShort));
                }
                if !self.eat_word("long") {
                    self.unexpected("`short` or `long`");
                    return None;
                }
                return Some(TypeKind::Basic(if self.eat_word("long") {
                    Type::ULongLong
                } else {
                    Type::ULong
                }));
            }
            "void" => {
                self.at += 1;
                return Some(TypeKind::Void);
            }
            "string" | "wstring" => {
                self.at += 1;
                let bound = if self.eat('<') {
                    let bound = self.bound()?;
                    self.expect('>')?;
                    Some(bound)
                } else {
                    None
                };
                let wide = word == "wstring";
                return Some(TypeKind::String { wide, bound });
            }
            "fixed" => {
                self.at += 1;
                return self.fixed();
            }
            "sequence" => {
                self.at += 1;
                return self.sequence();
            }
            "map" if self.peek_at(1).is('<') => {
                self.at += 1;
                return self.map();
            }
            "struct" => return Some(TypeKind::Struct(Box::new(self.structure(Meta::default())?))),
            "union" => return Some(TypeKind::Union(Box::new(self.union(Meta::default())?))),
            "enum" => return Some(TypeKind::Enum(Box::new(self.enumeration(Meta::default())?))),
            word if !word.is_empty() && super::is_keyword(word) => {
                self.unexpected("a type");
                return None;
            }
            _ => return Some(TypeKind::Named(self.scoped_name("a type")?)),
        };
        self.at += 1;
        Some(TypeKind::Basic(basic))
    }

    fn fixed(&mut self) -> Option<TypeKind> {
        if !self.eat('<') {
            return Some(TypeKind::Fixed(None));
        }
        let digits = self.bound()?;
        self.expect(',')?;
        let scale = self.bound()?;
        self.expect('>')?;
        Some(TypeKind::Fixed(Some(Box::new((digits, scale)))))
    }

    fn map(&mut self) -> Option<TypeKind> {
        self.expect('<')?;
        let key = Box::new(self.type_spec()?);
        self.expect(',')?;
        let value = Box::new(self.type_spec()?);
        let bound = if self.eat(',') {
            Some(self.bound()?)
        } else {
            None
        };
        self.expect('>')?;
        Some(TypeKind::Map { key, value, bound })
    }

    fn sequence(&mut self) -> Option<TypeKind> {
        self.expect('<')?;
        let element = Box::new(self.type_spec()?);
        let bound = if self.eat(',') {
            Some(self.bound()?)
        } else {
            None
        };
        if !self.eat('>') {
            self.unexpected("`,` or `>`");
            return None;
        }
        Some(TypeKind::Sequence { element, bound })
    }
}
