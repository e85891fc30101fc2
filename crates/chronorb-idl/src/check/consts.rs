//! Constant expressions (CORBA 3.3 part 1, 7.10).

use std::ops::RangeInclusive;

use super::Checker;
use super::fixed::{ANY_FIXED, decimal_of, decimal_value};
use super::scope::{EntityKind, ScopeId};
use super::templates::Bound;
use crate::ast::{BinaryOp, Expr, ExprKind, TypeKind, TypeSpec, UnaryOp};
use crate::codes;
use crate::decimal::Decimal;
use crate::diagnostics::Diagnostic;
use crate::model::{ConstValue, DefId, DefKind, Type};
use crate::span::Span;

/// The bytes of all string constants together.
const MAX_STRINGS: usize = 16 * 1024 * 1024;
/// The range of intermediate integers in the evaluation of a constant.
const REACH: RangeInclusive<i128> = i64::MIN as i128..=u64::MAX as i128;

impl Checker<'_> {
    /// Returns the type of a constant, without aliases.
    pub(super) fn const_type(&mut self, scope: ScopeId, spec: &TypeSpec) -> Option<Type> {
        if let TypeKind::Fixed(None) = spec.kind {
            return Some(ANY_FIXED);
        }
        let ty = self.resolve_type(scope, spec, false)?;
        let ty = self.without_aliases(&ty);
        if self.is_const_type(&ty) {
            return Some(ty);
        }
        let name = match &spec.kind {
            TypeKind::Named(name) => format!("`{name}`"),
            _ => "this type".to_owned(),
        };
        self.sink.push(
            Diagnostic::error(
                codes::BAD_CONST_TYPE,
                spec.span,
                format!("a constant cannot have {name} as its type"),
                "not a type of constants",
            )
            .hint("constants are numbers, booleans, characters, strings and enumerators"),
        );
        None
    }

    /// Returns whether a type without aliases has constants.
    pub(super) fn is_const_type(&self, ty: &Type) -> bool {
        match ty {
            Type::Map { .. }
            | Type::Sequence { .. }
            | Type::Array { .. }
            | Type::Object
            | Type::ValueBase
            | Type::AbstractBase
            | Type::Any
            | Type::TypeCode => false,
            Type::Named(def) => {
                matches!(self.definitions[def.0 as usize].kind, DefKind::Enum { .. })
            }
            _ => true,
        }
    }

    /// Evaluates an expression, and converts the value to a type without aliases.
    pub(super) fn evaluate_as(
        &mut self,
        scope: ScopeId,
        expr: &Expr,
        ty: &Type,
    ) -> Option<ConstValue> {
        let value = self.evaluate(scope, expr, Some(ty))?;
        self.converted(value, ty, expr.span)
    }

    /// Evaluates an annotation's parameter. An undefined name stands for itself.
    pub(super) fn annotation_value(&mut self, scope: ScopeId, expr: &Expr) -> Option<ConstValue> {
        if let ExprKind::Name(name) = &expr.kind {
            let known = self.resolve_quietly(scope, name).is_some_and(|entity| {
                matches!(
                    self.scopes.entity(entity).kind,
                    EntityKind::Const(_)
                        | EntityKind::Enumerator(..)
                        | EntityKind::Flag(_)
                        | EntityKind::Bound(_)
                )
            });
            if !known {
                return Some(ConstValue::String(name.to_string()));
            }
        }
        self.evaluate(scope, expr, None)
    }

    /// Evaluates an expression. The type determines the meaning of `~`, and whether integers become
    /// floating.
    pub(super) fn evaluate(
        &mut self,
        scope: ScopeId,
        expr: &Expr,
        ty: Option<&Type>,
    ) -> Option<ConstValue> {
        let value = match &expr.kind {
            ExprKind::Integer(value) if ty.is_some_and(is_floating) => ConstValue::Integer(*value),
            ExprKind::Integer(value) => self.in_reach(Some(*value), expr.span)?,
            ExprKind::Float(value) => ConstValue::Float(*value),
            ExprKind::Fixed(value) => decimal_value(*value),
            ExprKind::Boolean(value) => ConstValue::Boolean(*value),
            ExprKind::Char(value) => ConstValue::Char(*value),
            ExprKind::WChar(value) => ConstValue::WChar(*value),
            ExprKind::String(value) => {
                self.count_string(value, expr.span)?;
                ConstValue::String(value.to_string())
            }
            ExprKind::WString(value) => {
                self.count_string(value, expr.span)?;
                ConstValue::WString(value.to_string())
            }
            ExprKind::Name(name) => {
                let entity = self.resolve(scope, name)?;
                let entity = self.scopes.entity(entity).clone();
                match entity.kind {
                    EntityKind::Bound(index) if matches!(self.bound(index), Bound::Value(_)) => {
                        self.bound_value(index, expr.span)?
                    }
                    EntityKind::Const(def) => self.const_value(def, expr.span)?,
                    EntityKind::Enumerator(def, index) => ConstValue::Enumerator(def, index),
                    EntityKind::Flag(bit) => ConstValue::Integer(1 << bit),
                    EntityKind::Refused => return None,
                    kind => {
                        self.sink.push(
                            Diagnostic::error(
                                codes::NOT_A_CONSTANT,
                                expr.span,
                                format!("`{name}` is {}, not a constant", kind.describe()),
                                "has no value",
                            )
                            .label(entity.span, "defined here")
                            .hint("only constants and enumerators have a value"),
                        );
                        return None;
                    }
                }
            }
            ExprKind::Unary(operator, operand) => {
                let value = self.evaluate(scope, operand, ty)?;
                self.unary(*operator, value, ty, expr.span)?
            }
            ExprKind::Binary(operator, place, left, right) => {
                let left = self.evaluate(scope, left, ty);
                let right = self.evaluate(scope, right, ty);
                self.binary(*operator, *place, left?, right?, expr.span)?
            }
            ExprKind::Bad => return None,
        };
        Some(match value {
            ConstValue::Integer(value) if ty.is_some_and(is_floating) => {
                ConstValue::Float(value as f64)
            }
            value => value,
        })
    }

    /// Warns of a floating-point constant whose value is made of integers alone.
    pub(super) fn check_integral(&mut self, scope: ScopeId, expr: &Expr, ty: &Type) {
        if is_floating(ty) && self.is_integral(scope, expr) {
            self.sink.push(
                Diagnostic::warning(
                    codes::INTEGER_AS_FLOAT,
                    expr.span,
                    "an integer is the value of a floating-point constant",
                    "not a floating-point number",
                )
                .hint("write a number with a point, as `14.0`"),
            );
        }
    }

    fn is_integral(&self, scope: ScopeId, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Integer(_) => true,
            ExprKind::Unary(_, operand) => self.is_integral(scope, operand),
            ExprKind::Binary(_, _, left, right) => {
                self.is_integral(scope, left) && self.is_integral(scope, right)
            }
            ExprKind::Name(name) => {
                let entity = self.resolve_quietly(scope, name);
                match entity.map(|entity| self.scopes.entity(entity).kind) {
                    Some(EntityKind::Const(def)) => matches!(
                        self.definitions[def.0 as usize].kind,
                        DefKind::Const {
                            value: ConstValue::Integer(_),
                            ..
                        }
                    ),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn const_value(&mut self, def: DefId, span: Span) -> Option<ConstValue> {
        let DefKind::Const { value, .. } = &self.definitions[def.0 as usize].kind else {
            return None;
        };
        let value = value.clone();
        self.count_value(value, span)
    }

    fn bound_value(&mut self, index: u32, span: Span) -> Option<ConstValue> {
        let Bound::Value(value) = self.bound(index) else {
            return None;
        };
        let value = value.clone();
        self.count_value(value, span)
    }

    fn count_value(&mut self, value: ConstValue, span: Span) -> Option<ConstValue> {
        if let ConstValue::String(text) | ConstValue::WString(text) = &value {
            self.count_string(text, span)?;
        }
        Some(value)
    }

    fn count_string(&mut self, text: &str, span: Span) -> Option<()> {
        self.string_bytes += text.len();
        if self.string_bytes <= MAX_STRINGS {
            return Some(());
        }
        self.sink.push(Diagnostic::error(
            codes::STRING_TOO_LONG,
            span,
            "the string constants are longer than 16 MiB together",
            "too long with this one",
        ));
        None
    }

    fn unary(
        &mut self,
        operator: UnaryOp,
        value: ConstValue,
        ty: Option<&Type>,
        span: Span,
    ) -> Option<ConstValue> {
        match (operator, value) {
            (
                UnaryOp::Plus,
                value @ (ConstValue::Integer(_) | ConstValue::Float(_) | ConstValue::Fixed { .. }),
            ) => Some(value),
            (UnaryOp::Minus, value @ ConstValue::Fixed { .. }) => {
                Some(decimal_value(decimal_of(&value)?.negated()))
            }
            (UnaryOp::Minus, ConstValue::Float(value)) => Some(ConstValue::Float(-value)),
            (UnaryOp::Minus, ConstValue::Integer(value)) => {
                self.in_reach(value.checked_neg(), span)
            }
            (UnaryOp::Not, ConstValue::Integer(value)) => {
                let greatest = ty.and_then(integer_range).filter(|(least, _)| *least == 0);
                Some(ConstValue::Integer(match greatest {
                    Some((_, greatest)) if (0..=greatest).contains(&value) => greatest - value,
                    _ => !value,
                }))
            }
            (operator, value) => {
                let sign = match operator {
                    UnaryOp::Minus => '-',
                    UnaryOp::Plus => '+',
                    UnaryOp::Not => '~',
                };
                self.wrong_operand(&sign.to_string(), describe(&value), span)
            }
        }
    }

    fn binary(
        &mut self,
        operator: BinaryOp,
        place: Span,
        left: ConstValue,
        right: ConstValue,
        span: Span,
    ) -> Option<ConstValue> {
        match (left, right) {
            (ConstValue::Integer(a), ConstValue::Integer(b)) => {
                self.integers(operator, place, a, b, span)
            }
            (ConstValue::Float(a), ConstValue::Float(b)) => {
                let value = match operator {
                    BinaryOp::Add => a + b,
                    BinaryOp::Subtract => a - b,
                    BinaryOp::Multiply => a * b,
                    BinaryOp::Divide if b == 0.0 => return self.division_by_zero(place),
                    BinaryOp::Divide => a / b,
                    _ => {
                        return self.wrong_operand(
                            symbol(operator),
                            "a floating-point number",
                            place,
                        );
                    }
                };
                Some(ConstValue::Float(value))
            }
            (a @ ConstValue::Fixed { .. }, b @ ConstValue::Fixed { .. }) => {
                self.decimals(operator, place, decimal_of(&a)?, decimal_of(&b)?, span)
            }
            (
                ConstValue::Integer(_) | ConstValue::Float(_) | ConstValue::Fixed { .. },
                other @ (ConstValue::Integer(_) | ConstValue::Float(_) | ConstValue::Fixed { .. }),
            ) => {
                self.sink.push(
                    Diagnostic::error(
                        codes::WRONG_TYPE,
                        place,
                        "numbers of different kinds cannot be mixed in this constant",
                        format!("{} on the right", describe(&other)),
                    )
                    .hint("write all as integers, with a point, or with the suffix `d`"),
                );
                None
            }
            (ConstValue::Integer(_) | ConstValue::Float(_) | ConstValue::Fixed { .. }, other)
            | (other, _) => self.wrong_operand(symbol(operator), describe(&other), place),
        }
    }

    fn integers(
        &mut self,
        operator: BinaryOp,
        place: Span,
        a: i128,
        b: i128,
        span: Span,
    ) -> Option<ConstValue> {
        let value = match operator {
            BinaryOp::Or => Some(a | b),
            BinaryOp::Xor => Some(a ^ b),
            BinaryOp::And => Some(a & b),
            BinaryOp::Left | BinaryOp::Right => {
                let Some(shift) = u32::try_from(b).ok().filter(|shift| *shift < 64) else {
                    self.sink.push(Diagnostic::error(
                        codes::BAD_SHIFT,
                        place,
                        format!("cannot shift by {b}"),
                        "the right side must be from 0 to 63",
                    ));
                    return None;
                };
                if operator == BinaryOp::Left {
                    a.checked_mul(1 << shift)
                } else {
                    Some(a >> shift)
                }
            }
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Subtract => a.checked_sub(b),
            BinaryOp::Multiply => a.checked_mul(b),
            BinaryOp::Divide | BinaryOp::Remainder if b == 0 => {
                return self.division_by_zero(place);
            }
            BinaryOp::Divide => a.checked_div(b),
            BinaryOp::Remainder => a.checked_rem(b),
        };
        self.in_reach(value, span)
    }

    fn in_reach(&mut self, value: Option<i128>, span: Span) -> Option<ConstValue> {
        let value = value.filter(|value| REACH.contains(value));
        if value.is_none() {
            self.sink.push(
                Diagnostic::error(
                    codes::OUT_OF_RANGE,
                    span,
                    "the value of this expression is too large for every type",
                    "too large",
                )
                .hint("each part of an expression must fit into 64 bits"),
            );
        }
        value.map(ConstValue::Integer)
    }

    pub(super) fn division_by_zero(&mut self, place: Span) -> Option<ConstValue> {
        self.sink.push(
            Diagnostic::error(
                codes::DIVISION_BY_ZERO,
                place,
                "division by zero",
                "the right side is 0",
            )
            .hint("look at the constants on the right side"),
        );
        None
    }

    pub(super) fn wrong_operand(
        &mut self,
        operator: &str,
        what: &str,
        span: Span,
    ) -> Option<ConstValue> {
        self.sink.push(
            Diagnostic::error(
                codes::WRONG_TYPE,
                span,
                format!("`{operator}` cannot be applied to {what}"),
                "wrong operand",
            )
            .hint("integers have | ^ & << >> + - * / % ~, other numbers + - * /"),
        );
        None
    }

    /// Converts the value to the type.
    fn converted(&mut self, value: ConstValue, ty: &Type, span: Span) -> Option<ConstValue> {
        match (&value, ty) {
            (ConstValue::Integer(number), ty) if integer_range(ty).is_some() => {
                let (least, greatest) = integer_range(ty)?;
                if (least..=greatest).contains(number) {
                    return Some(value);
                }
                let shown = number.to_string();
                return self.out_of_range(&shown, &format!("from {least} to {greatest}"), span);
            }
            (ConstValue::Float(number), Type::Float) if (*number as f32).is_infinite() => {
                return self.out_of_range(&number.to_string(), "up to 3.4e38", span);
            }
            (ConstValue::Float(number), Type::Float | Type::Double | Type::LongDouble) => {
                if number.is_finite() {
                    return Some(value);
                }
                return self.out_of_range("this number", "up to 1.7e308", span);
            }
            (ConstValue::Fixed { .. }, Type::Fixed { digits, scale }) => {
                return self.fitted(decimal_of(&value)?, *digits, *scale, span);
            }
            (_, Type::Fixed { digits, scale }) if exact_decimal(&value).is_some() => {
                let number = exact_decimal(&value)?;
                self.sink.push(
                    Diagnostic::warning(
                        codes::DECIMAL_SUFFIX,
                        span,
                        "a number without the suffix `d` is the value of a decimal constant",
                        "not a decimal number",
                    )
                    .hint(format!("write `{number}d`")),
                );
                return self.fitted(number, *digits, *scale, span);
            }
            (ConstValue::Boolean(_), Type::Boolean)
            | (ConstValue::Char(_), Type::Char)
            | (ConstValue::WChar(_), Type::WChar) => return Some(value),
            (ConstValue::String(text), Type::String { bound })
            | (ConstValue::WString(text), Type::WString { bound }) => {
                let length = text.chars().count();
                match bound {
                    Some(bound) if length > *bound as usize => {
                        return self.out_of_range(
                            &format!("a string of {length} characters"),
                            &format!("up to {bound} characters"),
                            span,
                        );
                    }
                    _ => return Some(value),
                }
            }
            (ConstValue::Enumerator(of, _), Type::Named(def)) if of == def => return Some(value),
            _ => {}
        }
        let wanted = self.describe_type(ty);
        let mut diagnostic = Diagnostic::error(
            codes::WRONG_TYPE,
            span,
            format!("expected {wanted}, found {}", describe(&value)),
            "wrong type",
        );
        diagnostic = match (&value, ty) {
            (ConstValue::Char(_), Type::WChar) | (ConstValue::String(_), Type::WString { .. }) => {
                diagnostic.hint("write `L` before the opening quote")
            }
            (ConstValue::WChar(_), Type::Char) | (ConstValue::WString(_), Type::String { .. }) => {
                diagnostic.hint("remove the `L` before the opening quote")
            }
            (ConstValue::Integer(_), Type::Boolean) => diagnostic.hint("write `TRUE` or `FALSE`"),
            (ConstValue::Float(_), ty) if integer_range(ty).is_some() => {
                diagnostic.hint("write an integer, or make the constant a `double`")
            }
            (ConstValue::Integer(_) | ConstValue::Float(_), Type::Fixed { .. }) => {
                diagnostic.hint("write the number with the suffix `d`")
            }
            _ => diagnostic.hint("change the type of the constant, or its value"),
        };
        self.sink.push(diagnostic);
        None
    }

    pub(super) fn out_of_range(
        &mut self,
        value: &str,
        range: &str,
        span: Span,
    ) -> Option<ConstValue> {
        self.sink.push(
            Diagnostic::error(
                codes::OUT_OF_RANGE,
                span,
                format!("{value} is out of range"),
                format!("the range of the type is {range}"),
            )
            .hint("choose a larger type, or another value"),
        );
        None
    }

    fn describe_type(&self, ty: &Type) -> String {
        match ty {
            Type::Boolean => "a boolean".to_owned(),
            Type::Char => "a character".to_owned(),
            Type::WChar => "a wide character".to_owned(),
            Type::String { .. } => "a string".to_owned(),
            Type::WString { .. } => "a wide string".to_owned(),
            Type::Named(def) => {
                let name = &self.definitions[def.0 as usize].name;
                format!("an enumerator of `{name}`")
            }
            Type::Fixed { .. } => "a decimal number".to_owned(),
            ty if is_floating(ty) => "a floating-point number".to_owned(),
            _ => "an integer".to_owned(),
        }
    }
}

fn describe(value: &ConstValue) -> &'static str {
    match value {
        ConstValue::Integer(_) => "an integer",
        ConstValue::Float(_) => "a floating-point number",
        ConstValue::Fixed { .. } => "a decimal number",
        ConstValue::Boolean(_) => "a boolean",
        ConstValue::Char(_) => "a character",
        ConstValue::WChar(_) => "a wide character",
        ConstValue::String(_) => "a string",
        ConstValue::WString(_) => "a wide string",
        ConstValue::Enumerator(..) => "an enumerator",
    }
}

pub(super) fn symbol(operator: BinaryOp) -> &'static str {
    match operator {
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::And => "&",
        BinaryOp::Left => "<<",
        BinaryOp::Right => ">>",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Remainder => "%",
    }
}

fn is_floating(ty: &Type) -> bool {
    matches!(ty, Type::Float | Type::Double | Type::LongDouble)
}

/// Returns the least and the greatest value of an integer type.
pub(super) fn integer_range(ty: &Type) -> Option<(i128, i128)> {
    Some(match ty {
        Type::Octet | Type::UInt8 => (0, u8::MAX.into()),
        Type::Int8 => (i8::MIN.into(), i8::MAX.into()),
        Type::Short => (i16::MIN.into(), i16::MAX.into()),
        Type::UShort => (0, u16::MAX.into()),
        Type::Long => (i32::MIN.into(), i32::MAX.into()),
        Type::ULong => (0, u32::MAX.into()),
        Type::LongLong => (i64::MIN.into(), i64::MAX.into()),
        Type::ULongLong => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Returns an integer, or a floating-point number of up to 15 digits, as the decimal number that
/// was written. A longer one has lost digits.
fn exact_decimal(value: &ConstValue) -> Option<Decimal> {
    let (is_negative, digits) = match value {
        ConstValue::Integer(number) => (*number < 0, number.unsigned_abs().to_string()),
        ConstValue::Float(number) if number.is_finite() => {
            (*number < 0.0, number.abs().to_string())
        }
        _ => return None,
    };
    let number = Decimal::parse(&digits)?;
    if matches!(value, ConstValue::Float(_)) && u32::from(number.digits()) > f64::DIGITS {
        return None;
    }
    Some(if is_negative {
        number.negated()
    } else {
        number
    })
}
