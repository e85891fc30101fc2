//! The integer expressions of `#if` and `#elif`.

use crate::lexer::{Token, TokenKind};
use crate::parser::decoded;
use crate::span::Span;

/// The error of an expression without a value.
#[derive(Debug)]
pub(super) struct ExprError {
    /// The place; `None` for the whole directive.
    pub(super) at: Option<Span>,
    pub(super) message: &'static str,
}

/// Evaluates an expression in which macros are expanded. Names that are left count as 0.
pub(super) fn value(tokens: &[Token]) -> Result<i64, ExprError> {
    let mut evaluator = Evaluator {
        tokens,
        at: 0,
        depth: 0,
    };
    let value = evaluator.conditional(true)?;
    if evaluator.at < tokens.len() {
        return Err(evaluator.error("an operator is expected"));
    }
    Ok(value)
}

/// The deepest nesting of parentheses and operators.
const MAX_DEPTH: usize = 200;

struct Evaluator<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Evaluator<'_> {
    /// Evaluates `a ? b : c`. Parts that are not `live` are parsed, but may divide by zero.
    fn conditional(&mut self, live: bool) -> Result<i64, ExprError> {
        self.deeper()?;
        let condition = self.binary(0, live)?;
        let value = if self.eat('?') {
            let yes = self.conditional(live && condition != 0)?;
            if !self.eat(':') {
                return Err(self.error("`:` is expected"));
            }
            let no = self.conditional(live && condition == 0)?;
            if condition != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, least: u8, live: bool) -> Result<i64, ExprError> {
        self.deeper()?;
        let mut left = self.unary(live)?;
        while let Some((operator, precedence, len)) = self.operator() {
            if precedence < least {
                break;
            }
            let place = self.at;
            self.at += len;
            let right_live = match operator {
                Operator::Or => live && left == 0,
                Operator::And => live && left != 0,
                _ => live,
            };
            let right = self.binary(precedence + 1, right_live)?;
            left = apply(operator, left, right, right_live).map_err(|message| ExprError {
                at: self.tokens.get(place).map(|token| token.span),
                message,
            })?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Result<i64, ExprError> {
        let Some(token) = self.tokens.get(self.at) else {
            return Err(self.error("a value is missing"));
        };
        self.at += 1;
        match &token.kind {
            TokenKind::Number(digits) => number(digits).ok_or(ExprError {
                at: Some(token.span),
                message: "this is no integer",
            }),
            TokenKind::Char { text, wide } => character(text, *wide).ok_or(ExprError {
                at: Some(token.span),
                message: "this is no character",
            }),
            TokenKind::Ident(_) => Ok(0),
            TokenKind::Punct('(') => {
                let value = self.conditional(live)?;
                if !self.eat(')') {
                    return Err(self.error("`)` is expected"));
                }
                Ok(value)
            }
            TokenKind::Punct(c @ ('!' | '~' | '-' | '+')) => {
                let c = *c;
                self.deeper()?;
                let value = self.unary(live)?;
                self.depth -= 1;
                Ok(match c {
                    '!' => i64::from(value == 0),
                    '~' => !value,
                    '-' => value.wrapping_neg(),
                    _ => value,
                })
            }
            _ => {
                self.at -= 1;
                Err(self.error("a value is expected"))
            }
        }
    }

    /// Returns the binary operator here, with its precedence and number of tokens.
    fn operator(&self) -> Option<(Operator, u8, usize)> {
        let TokenKind::Punct(first) = self.tokens.get(self.at)?.kind else {
            return None;
        };
        let second = match self.tokens.get(self.at + 1) {
            Some(Token {
                kind: TokenKind::Punct(c),
                space: false,
                ..
            }) => *c,
            _ => ' ',
        };
        Some(match (first, second) {
            ('|', '|') => (Operator::Or, 0, 2),
            ('&', '&') => (Operator::And, 1, 2),
            ('|', _) => (Operator::BitOr, 2, 1),
            ('^', _) => (Operator::BitXor, 3, 1),
            ('&', _) => (Operator::BitAnd, 4, 1),
            ('=', '=') => (Operator::Equal, 5, 2),
            ('!', '=') => (Operator::NotEqual, 5, 2),
            ('<', '=') => (Operator::LessEqual, 6, 2),
            ('>', '=') => (Operator::GreaterEqual, 6, 2),
            ('<', '<') => (Operator::Left, 7, 2),
            ('>', '>') => (Operator::Right, 7, 2),
            ('<', _) => (Operator::Less, 6, 1),
            ('>', _) => (Operator::Greater, 6, 1),
            ('+', _) => (Operator::Add, 8, 1),
            ('-', _) => (Operator::Subtract, 8, 1),
            ('*', _) => (Operator::Multiply, 9, 1),
            ('/', _) => (Operator::Divide, 9, 1),
            ('%', _) => (Operator::Remainder, 9, 1),
            _ => return None,
        })
    }

    fn eat(&mut self, punct: char) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|t| t.is(punct));
        self.at += usize::from(found);
        found
    }

    fn deeper(&mut self) -> Result<(), ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("the condition is nested too deeply"));
        }
        Ok(())
    }

    fn error(&self, message: &'static str) -> ExprError {
        let near = self.tokens.get(self.at).or_else(|| self.tokens.last());
        ExprError {
            at: near.map(|token| token.span),
            message,
        }
    }
}

fn apply(operator: Operator, a: i64, b: i64, live: bool) -> Result<i64, &'static str> {
    let shift = |b: i64| u32::try_from(b).unwrap_or(u32::MAX);
    Ok(match operator {
        Operator::Or => i64::from(a != 0 || b != 0),
        Operator::And => i64::from(a != 0 && b != 0),
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
        Operator::BitAnd => a & b,
        Operator::Equal => i64::from(a == b),
        Operator::NotEqual => i64::from(a != b),
        Operator::Less => i64::from(a < b),
        Operator::Greater => i64::from(a > b),
        Operator::LessEqual => i64::from(a <= b),
        Operator::GreaterEqual => i64::from(a >= b),
        Operator::Left => a.checked_shl(shift(b)).unwrap_or(0),
        Operator::Right => a
            .checked_shr(shift(b))
            .unwrap_or(if a < 0 { -1 } else { 0 }),
        Operator::Add => a.wrapping_add(b),
        Operator::Subtract => a.wrapping_sub(b),
        Operator::Multiply => a.wrapping_mul(b),
        Operator::Divide | Operator::Remainder if b == 0 => {
            if live {
                return Err("division by zero");
            }
            0
        }
        Operator::Divide => a.wrapping_div(b),
        Operator::Remainder => a.wrapping_rem(b),
    })
}

fn character(text: &str, wide: bool) -> Option<i64> {
    let decoded = decoded(text, wide).ok()?;
    let mut chars = decoded.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Some(i64::from(u32::from(c))),
        _ => None,
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = if let Some(hex) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        u64::from_str_radix(hex, 16)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(&digits[1..], 8)
    } else {
        digits.parse()
    };
    // Values above the greatest signed one wrap, as in C with unsigned arithmetic.
    value.ok().map(|value| value as i64)
}
