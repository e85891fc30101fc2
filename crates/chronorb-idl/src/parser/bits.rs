//! Bit masks and bit sets (IDL 4.2, 7.4.13.4.3). Their keywords may be names elsewhere.

use super::{Parser, is_keyword};
use crate::ast::{BitFieldDef, BitmaskDef, BitsetDef, Meta};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Returns whether a name and a body follow the current word.
    pub(super) fn begins_bits(&self) -> bool {
        let is_name = |word: &std::rc::Rc<str>| !is_keyword(word);
        self.peek_at(1).ident().is_some_and(is_name)
            && (self.peek_at(2).is('{') || self.peek_at(2).is(':'))
    }

    /// `bitmask Name { A, B }`
    pub(super) fn bitmask(&mut self, meta: Meta) -> Option<BitmaskDef> {
        self.at += 1;
        let name = self.name("the name of the bit mask")?;
        self.expect('{')?;
        let Some(flags) = self.enumerators() else {
            self.close_list();
            return None;
        };
        self.at += 1;
        Some(BitmaskDef { meta, name, flags })
    }

    /// `bitset Name : Base { bitfield<3> a; … }`
    pub(super) fn bitset(&mut self, meta: Meta) -> Option<BitsetDef> {
        self.at += 1;
        let name = self.name("the name of the bit set")?;
        let base = if self.eat(':') {
            Some(self.scoped_name("the name of a bit set")?)
        } else {
            None
        };
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let mut fields = Vec::new();
        while !self.eat('}') {
            if self.peek().kind == TokenKind::Eof {
                if !self.sink.is_full() {
                    self.unclosed(open);
                }
                return None;
            }
            let (before, depth) = (self.at, self.depth);
            match self.bit_field() {
                Some(field) => fields.push(field),
                None => self.recover(true),
            }
            self.depth = depth;
            if self.at == before {
                self.at += 1;
            }
        }
        self.depth -= 1;
        Some(BitsetDef {
            meta,
            name,
            base,
            fields,
        })
    }

    /// `bitfield<bits, type> name;`
    fn bit_field(&mut self) -> Option<BitFieldDef> {
        let meta = self.meta()?;
        let start = self.peek().span;
        if !self.eat_word("bitfield") {
            let diagnostic = self
                .unexpected_here("`bitfield`")
                .hint("a bit set has fields such as `bitfield<3> level;`");
            self.sink.push(diagnostic);
            return None;
        }
        self.expect('<')?;
        let bits = self.bound()?;
        let ty = if self.eat(',') {
            Some(self.type_spec()?)
        } else {
            None
        };
        self.expect('>')?;
        let span = start.to(self.previous_span());
        let mut names = Vec::new();
        // The grammar has no comma between the names.
        while self.peek().ident().is_some() {
            names.push(self.name("the name of the field")?);
            self.eat(',');
        }
        self.semicolon()?;
        Some(BitFieldDef {
            meta,
            span,
            bits,
            ty,
            names,
        })
    }
}
