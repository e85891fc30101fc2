//! Decimal types and constants (CORBA 3.3 part 1, 7.11.3.3 and 7.10.3).

use super::Checker;
use super::consts::symbol;
use super::scope::ScopeId;
use crate::ast::{BinaryOp, Expr};
use crate::codes;
use crate::decimal::{Decimal, MAX_DIGITS};
use crate::diagnostics::Diagnostic;
use crate::model::{ConstValue, Type};
use crate::span::Span;

/// The type of a constant whose type is `fixed` alone: its digits and scale are those of the value.
pub(super) const ANY_FIXED: Type = Type::Fixed {
    digits: 0,
    scale: 0,
};

impl Checker<'_> {
    /// Resolves `fixed<digits, scale>`.
    pub(super) fn fixed_type(
        &mut self,
        scope: ScopeId,
        size: Option<&(Expr, Expr)>,
        span: Span,
    ) -> Option<Type> {
        let Some((digits, scale)) = size else {
            self.sink.push(
                Diagnostic::error(
                    codes::BAD_FIXED,
                    span,
                    "this decimal type has no digits",
                    "how many digits?",
                )
                .hint("write `fixed<9, 2>`: only constants may be `fixed` alone"),
            );
            return None;
        };
        let what = "the number of digits";
        let digits_value = self.small(scope, digits, 1..=MAX_DIGITS, what);
        let most = digits_value.unwrap_or(MAX_DIGITS);
        let what = "the number of digits behind the point";
        let scale = self.small(scope, scale, 0..=most, what)?;
        Some(Type::Fixed {
            digits: digits_value?,
            scale,
        })
    }

    fn small(
        &mut self,
        scope: ScopeId,
        expr: &Expr,
        range: std::ops::RangeInclusive<u8>,
        what: &str,
    ) -> Option<u8> {
        let value = self.evaluate(scope, expr, Some(&Type::Long))?;
        let message = match value {
            ConstValue::Integer(value) => match u8::try_from(value) {
                Ok(value) if range.contains(&value) => return Some(value),
                _ => format!("{what} cannot be {value}"),
            },
            _ => format!("{what} must be an integer"),
        };
        let label = format!("must be from {} to {}", range.start(), range.end());
        self.sink.push(
            Diagnostic::error(codes::BAD_FIXED, expr.span, message, label)
                .hint("a decimal number has up to 31 digits, of which some stand behind the point"),
        );
        None
    }

    pub(super) fn decimals(
        &mut self,
        operator: BinaryOp,
        place: Span,
        a: Decimal,
        b: Decimal,
        span: Span,
    ) -> Option<ConstValue> {
        let value = match operator {
            BinaryOp::Add => a.plus(b),
            BinaryOp::Subtract => a.minus(b),
            BinaryOp::Multiply => a.times(b),
            BinaryOp::Divide if b.unscaled == 0 => return self.division_by_zero(place),
            BinaryOp::Divide => a.over(b),
            _ => return self.wrong_operand(symbol(operator), "a decimal number", place),
        };
        if value.is_none() {
            self.sink.push(
                Diagnostic::error(
                    codes::OUT_OF_RANGE,
                    span,
                    "the value of this expression has more than 31 digits before the point",
                    "too large",
                )
                .hint("decimal numbers have up to 31 digits"),
            );
        }
        value.map(decimal_value)
    }

    /// Converts the number to a constant of a decimal type.
    pub(super) fn fitted(
        &mut self,
        number: Decimal,
        digits: u8,
        scale: u8,
        span: Span,
    ) -> Option<ConstValue> {
        if digits == 0 {
            return Some(decimal_value(number.shortened()));
        }
        let Some((unscaled, cut)) = number.fitted(digits, scale) else {
            let most = format!("up to {} digits before the point", digits - scale);
            return self.out_of_range(&number.to_string(), &most, span);
        };
        if cut {
            self.sink.push(
                Diagnostic::warning(
                    codes::DIGITS_LOST,
                    span,
                    format!("`{number}` loses digits in `fixed<{digits}, {scale}>`"),
                    format!("digits kept behind the point: {scale}"),
                )
                .hint("leave the further digits out, or give the type more"),
            );
        }
        let fitted = Decimal { unscaled, scale };
        Some(ConstValue::Fixed {
            unscaled,
            digits: fitted.digits(),
            scale,
        })
    }
}

pub(super) fn decimal_value(number: Decimal) -> ConstValue {
    ConstValue::Fixed {
        unscaled: number.unscaled,
        digits: number.digits(),
        scale: number.scale,
    }
}

pub(super) fn decimal_of(value: &ConstValue) -> Option<Decimal> {
    match *value {
        ConstValue::Fixed {
            unscaled, scale, ..
        } => Some(Decimal { unscaled, scale }),
        _ => None,
    }
}
