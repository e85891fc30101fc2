//! Constant expressions.

use super::{MAX_DEPTH, Parser};
use crate::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::lexer::TokenKind;
use crate::span::Span;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Option<Expr> {
        self.binary(0, true)
    }

    /// Parses an expression between angle brackets, where `>>` closes two of them.
    pub(super) fn bound(&mut self) -> Option<Expr> {
        self.binary(0, false)
    }

    fn binary(&mut self, least: u8, shift_right: bool) -> Option<Expr> {
        self.deeper()?;
        let mut left = self.unary()?;
        while let Some((operator, precedence, len)) = self.operator(shift_right) {
            if precedence < least {
                break;
            }
            let place = self.peek().span.to(self.peek_at(len - 1).span);
            self.at += len;
            let right = self.binary(precedence + 1, shift_right)?;
            let span = left.span.to(right.span);
            let depth = left.depth.max(right.depth) + 1;
            let kind = ExprKind::Binary(operator, place, Box::new(left), Box::new(right));
            left = self.expr(kind, span, depth)?;
        }
        self.depth -= 1;
        Some(left)
    }

    fn expr(&mut self, kind: ExprKind, span: Span, depth: u16) -> Option<Expr> {
        if depth > MAX_DEPTH {
            self.too_deep(span);
            return None;
        }
        Some(Expr { kind, span, depth })
    }

    fn operator(&self, shift_right: bool) -> Option<(BinaryOp, u8, usize)> {
        let TokenKind::Punct(c) = self.peek().kind else {
            return None;
        };
        let second = self.peek_at(1);
        let doubled = second.is(c) && !second.space;
        Some(match c {
            '|' => (BinaryOp::Or, 0, 1),
            '^' => (BinaryOp::Xor, 1, 1),
            '&' => (BinaryOp::And, 2, 1),
            '<' if doubled => (BinaryOp::Left, 3, 2),
            '>' if doubled && shift_right => (BinaryOp::Right, 3, 2),
            '+' => (BinaryOp::Add, 4, 1),
            '-' => (BinaryOp::Subtract, 4, 1),
            '*' => (BinaryOp::Multiply, 5, 1),
            '/' => (BinaryOp::Divide, 5, 1),
            '%' => (BinaryOp::Remainder, 5, 1),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Option<Expr> {
        let token = self.peek();
        let start = token.span;
        match &token.kind {
            TokenKind::Punct(c @ ('-' | '+' | '~')) => {
                let operator = match c {
                    '-' => UnaryOp::Minus,
                    '+' => UnaryOp::Plus,
                    _ => UnaryOp::Not,
                };
                self.at += 1;
                self.deeper()?;
                let operand = self.unary()?;
                self.depth -= 1;
                let (span, depth) = (start.to(operand.span), operand.depth + 1);
                self.expr(ExprKind::Unary(operator, Box::new(operand)), span, depth)
            }
            TokenKind::Punct('(') => {
                self.at += 1;
                let mut inner = self.binary(0, true)?;
                self.expect(')')?;
                inner.span = start.to(self.previous_span());
                Some(inner)
            }
            TokenKind::Ident(word) if matches!(&**word, "TRUE" | "FALSE") => {
                self.at += 1;
                self.expr(ExprKind::Boolean(&**word == "TRUE"), start, 1)
            }
            TokenKind::Ident(_) | TokenKind::Scope => {
                let name = self.scoped_name("a value")?;
                let span = name.span;
                self.expr(ExprKind::Name(name), span, 1)
            }
            TokenKind::Number(_) | TokenKind::Str { .. } | TokenKind::Char { .. } => {
                let kind = self.literal();
                let span = start.to(self.previous_span());
                self.expr(kind, span, 1)
            }
            _ => {
                self.unexpected("a value");
                None
            }
        }
    }
}
