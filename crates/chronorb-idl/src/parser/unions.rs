//! Unions.

use super::Parser;
use crate::ast::{CaseDef, CaseLabel, Item, MemberDef, Meta, UnionDef};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `union Name;` or `union Name switch (T) { … }`, without its `;`.
    pub(super) fn union_definition(&mut self, meta: Meta, items: &mut Vec<Item>) -> Option<()> {
        if self.is_forward() {
            self.at += 1;
            let name = self.name("the name of the union")?;
            items.push(Item::UnionForward(meta, name));
            return Some(());
        }
        let definition = self.union(meta)?;
        items.push(Item::Union(definition));
        Some(())
    }

    /// `union Name switch (T) { … }`
    pub(super) fn union(&mut self, meta: Meta) -> Option<UnionDef> {
        self.at += 1;
        let name = self.name("the name of the union")?;
        if !self.eat_word("switch") {
            let diagnostic = self
                .unexpected_here("`switch`")
                .hint("a union names the type that selects its member: `switch (long)`");
            self.sink.push(diagnostic);
            return None;
        }
        self.expect('(')?;
        let discriminator_annotations = self.meta()?.annotations;
        let discriminator = self.type_spec()?;
        self.expect(')')?;
        let open = self.peek().span;
        self.expect('{')?;
        self.deeper()?;
        let mut cases = Vec::new();
        while !self.eat('}') {
            if self.peek().kind == TokenKind::Eof {
                if !self.sink.is_full() {
                    self.unclosed(open);
                }
                return None;
            }
            let (before, depth) = (self.at, self.depth);
            match self.case() {
                Some(case) => cases.push(case),
                None => self.recover(true),
            }
            self.depth = depth;
            if self.at == before {
                self.at += 1;
            }
        }
        self.depth -= 1;
        let members = cases
            .iter_mut()
            .flat_map(|case| &mut case.member.declarators);
        self.separate_escaped(members.map(|declarator| &mut declarator.name).collect());
        if cases.is_empty() && !self.sink.has_errors() {
            self.sink.push(
                Diagnostic::error(
                    codes::SYNTAX,
                    name.span,
                    format!("union `{}` has no cases", name.name),
                    "needs at least one",
                )
                .hint("write for example `case 1: long value;`"),
            );
        }
        Some(UnionDef {
            meta,
            name,
            discriminator,
            discriminator_annotations,
            cases,
        })
    }

    /// Parses labels and the member that they select, with its `;`.
    fn case(&mut self) -> Option<CaseDef> {
        let mut meta = self.meta()?;
        let mut labels = Vec::new();
        loop {
            let span = self.peek().span;
            if self.eat_word("default") {
                labels.push(CaseLabel::Default(span));
            } else if self.eat_word("case") {
                labels.push(CaseLabel::Value(self.expression()?));
            } else if labels.is_empty() {
                let diagnostic = self
                    .unexpected_here("`case` or `default`")
                    .hint("each member of a union stands behind its labels: `case 1: long value;`");
                self.sink.push(diagnostic);
                return None;
            } else {
                break;
            }
            self.expect(':')?;
        }
        let own = self.meta()?;
        meta.doc = own.doc.or(meta.doc);
        meta.annotations.extend(own.annotations);
        let ty = self.type_spec()?;
        let declarator = self.declarator("the name of the member")?;
        if self.peek().is(',') {
            let diagnostic = self
                .unexpected_here("`;`")
                .hint("labels select one member: give the other one labels of its own");
            self.sink.push(diagnostic);
            return None;
        }
        self.semicolon()?;
        Some(CaseDef {
            labels,
            member: MemberDef {
                meta,
                ty,
                declarators: vec![declarator],
            },
        })
    }
}
