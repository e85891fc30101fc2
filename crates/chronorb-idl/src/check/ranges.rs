//! The check that `@min`, `@max`, `@range` and `@default` of one construct are consistent.

use std::cmp::Ordering;

use super::Checker;
use super::fixed::decimal_of;
use crate::ast;
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::model::{Annotation, ConstValue};
use crate::span::Span;

/// The value of an annotation, and its place.
type ValueAndSpan<'a> = Option<(&'a ConstValue, Span)>;

impl Checker<'_> {
    pub(super) fn check_range(&mut self, written: &[ast::AnnotationUse], applied: &[Annotation]) {
        let (mut least, mut greatest, mut default): (
            ValueAndSpan<'_>,
            ValueAndSpan<'_>,
            ValueAndSpan<'_>,
        ) = (None, None, None);
        for (written, annotation) in written.iter().zip(applied) {
            let param = |name: &str| {
                let mut params = annotation.params.iter();
                let found = params.find(|(key, _)| key == name);
                found.map(|(_, value)| (value, written.span))
            };
            match annotation.name.as_str() {
                "min" => least = param("value"),
                "max" => greatest = param("value"),
                "range" => (least, greatest) = (param("min"), param("max")),
                "default" => default = param("value"),
                _ => {}
            }
        }
        self.check_order(least, greatest, "the least value is above the greatest");
        self.check_order(least, default, "the default is below the least value");
        self.check_order(default, greatest, "the default is above the greatest value");
    }

    fn check_order(&mut self, low: ValueAndSpan<'_>, high: ValueAndSpan<'_>, message: &str) {
        let (Some((low, low_at)), Some((high, high_at))) = (low, high) else {
            return;
        };
        if compared(low, high) != Some(Ordering::Greater) {
            return;
        }
        let mut diagnostic =
            Diagnostic::error(codes::BAD_ANNOTATION, high_at, message, "contradicts");
        if low_at != high_at {
            diagnostic = diagnostic.label(low_at, "the other one");
        }
        self.sink.push(diagnostic.hint("change one of the values"));
    }
}

/// Compares two values of the same kind.
fn compared(a: &ConstValue, b: &ConstValue) -> Option<Ordering> {
    match (a, b) {
        (ConstValue::Integer(a), ConstValue::Integer(b)) => Some(a.cmp(b)),
        (ConstValue::Float(a), ConstValue::Float(b)) => a.partial_cmp(b),
        (ConstValue::Char(a), ConstValue::Char(b)) => Some(a.cmp(b)),
        (ConstValue::WChar(a), ConstValue::WChar(b)) => Some(a.cmp(b)),
        (ConstValue::Enumerator(_, a), ConstValue::Enumerator(_, b)) => Some(a.cmp(b)),
        (ConstValue::Fixed { .. }, ConstValue::Fixed { .. }) => {
            let difference = decimal_of(a)?.minus(decimal_of(b)?)?;
            Some(difference.unscaled.cmp(&0))
        }
        _ => None,
    }
}
