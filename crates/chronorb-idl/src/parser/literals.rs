//! Literals: numbers, characters, strings.

use std::iter::Peekable;
use std::rc::Rc;
use std::str::Chars;

use super::Parser;
use crate::ast::ExprKind;
use crate::codes;
use crate::decimal::Decimal;
use crate::diagnostics::Diagnostic;
use crate::lexer::TokenKind;
use crate::span::Span;

/// The longest string constant in bytes.
const MAX_STRING: usize = 1024 * 1024;
/// The total length of string literals in bytes; those from macros count each time.
const MAX_STRINGS: usize = 16 * 1024 * 1024;

impl Parser<'_> {
    /// Parses the literal at the current token; strings that stand side by side are one.
    pub(super) fn literal(&mut self) -> ExprKind {
        let token = self.next();
        match &token.kind {
            TokenKind::Number(text) => self.number(text, token.span),
            TokenKind::Char { wide, text } => self.character(*wide, text, token.span),
            TokenKind::Str { wide, text } => self.string(*wide, text, token.span),
            _ => ExprKind::Bad,
        }
    }

    fn bad(&mut self, span: Span, message: &str, hint: &str) -> ExprKind {
        self.sink.push(
            Diagnostic::error(codes::BAD_LITERAL, span, message, "in this literal").hint(hint),
        );
        ExprKind::Bad
    }

    fn number(&mut self, text: &str, span: Span) -> ExprKind {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        if hex.is_none() && text.ends_with(['d', 'D']) {
            return match Decimal::parse(&text[..text.len() - 1]) {
                Some(number) => ExprKind::Fixed(number),
                None => self.bad(
                    span,
                    "this is no decimal number of up to 31 digits",
                    "write for example `12.50d`",
                ),
            };
        }
        if hex.is_none() && text.contains(['.', 'e', 'E']) {
            return match text.parse::<f64>() {
                Ok(value) => ExprKind::Float(value),
                Err(_) => self.bad(span, "this is no number", "write a number such as `1.5e-3`"),
            };
        }
        let (digits, radix) = match hex {
            Some(digits) => (digits, 16),
            None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
            None => (text, 10),
        };
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            let hint = match radix {
                8 => "a number that begins with 0 is octal, with the digits 0 to 7",
                16 => "a hexadecimal number has the digits 0 to 9 and a to f",
                _ => "integers have no suffix; their type is that of the constant",
            };
            return self.bad(span, "this is no number", hint);
        }
        match i128::from_str_radix(digits, radix) {
            Ok(value) => ExprKind::Integer(value),
            Err(_) => {
                self.sink.push(Diagnostic::error(
                    codes::OUT_OF_RANGE,
                    span,
                    "this number is too large for every type",
                    "the greatest is 18446744073709551615",
                ));
                ExprKind::Bad
            }
        }
    }

    fn character(&mut self, wide: bool, text: &str, span: Span) -> ExprKind {
        let decoded = match decoded(text, wide) {
            Ok(decoded) => decoded,
            Err(message) => return self.bad_escape(span, &message),
        };
        let mut chars = decoded.chars();
        let (Some(c), None) = (chars.next(), chars.next()) else {
            return self.bad(
                span,
                "a character literal holds exactly one character",
                "write a string in double quotes",
            );
        };
        if wide {
            return ExprKind::WChar(c);
        }
        match u8::try_from(u32::from(c)) {
            Ok(byte) => ExprKind::Char(byte),
            Err(_) => self.bad(
                span,
                "this character is not in ISO 8859-1",
                "use a `wchar` and write `L'…'`",
            ),
        }
    }

    fn string(&mut self, wide: bool, text: &Rc<str>, span: Span) -> ExprKind {
        let mut value = String::new();
        let mut part = (Rc::clone(text), wide, span);
        let mut bad = false;
        loop {
            let (text, part_wide, part_span) = part;
            if part_wide != wide {
                self.bad(
                    part_span,
                    "wide and other strings cannot be joined",
                    "write `L` before each part, or before none",
                );
                bad = true;
            }
            match decoded(&text, part_wide) {
                Ok(decoded) if decoded.contains('\0') => {
                    self.bad(
                        part_span,
                        "a string cannot contain the character 0",
                        "remove the `\\0`",
                    );
                    bad = true;
                }
                Ok(decoded) => value.push_str(&decoded),
                Err(message) => {
                    self.bad_escape(part_span, &message);
                    bad = true;
                }
            }
            self.string_bytes += text.len();
            if self.string_bytes > MAX_STRINGS {
                self.sink.stop(Diagnostic::error(
                    codes::STRING_TOO_LONG,
                    part_span,
                    "the strings are longer than 16 MiB together",
                    "too long with this one",
                ));
            }
            if value.len() > MAX_STRING {
                self.sink.push(Diagnostic::error(
                    codes::STRING_TOO_LONG,
                    span,
                    "this string is longer than 1 MiB",
                    "too long",
                ));
                bad = true;
                value.clear();
            }
            let token = self.peek();
            let TokenKind::Str { wide, text } = &token.kind else {
                break;
            };
            part = (Rc::clone(text), *wide, token.span);
            self.at += 1;
        }
        match (bad, wide) {
            (true, _) => ExprKind::Bad,
            (false, true) => ExprKind::WString(value.into()),
            (false, false) => ExprKind::String(value.into()),
        }
    }

    fn bad_escape(&mut self, span: Span, message: &str) -> ExprKind {
        self.bad(
            span,
            message,
            "the escapes are \\n \\t \\v \\b \\r \\f \\a \\\\ \\? \\' \\\" \\ooo \\xhh, and \
            \\uhhhh in wide literals",
        )
    }
}

/// Returns the text of a literal with its escapes replaced.
pub(crate) fn decoded(text: &str, wide: bool) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let escape = chars.next().unwrap_or('\\');
        out.push(match escape {
            'n' => '\n',
            't' => '\t',
            'v' => '\x0b',
            'b' => '\x08',
            'r' => '\r',
            'f' => '\x0c',
            'a' => '\x07',
            '\\' | '?' | '\'' | '"' => escape,
            '0'..='7' => {
                let value = digits(&mut chars, 8, 2, escape.to_digit(8)).unwrap_or(0);
                u8::try_from(value)
                    .map(char::from)
                    .map_err(|_| format!("`\\{value:o}` is greater than `\\377`"))?
            }
            'x' => {
                let value = digits(&mut chars, 16, 2, None)
                    .ok_or("`\\x` needs one or two hexadecimal digits")?;
                char::from_u32(value).unwrap_or('\0')
            }
            'u' if wide => {
                let value = digits(&mut chars, 16, 4, None)
                    .ok_or("`\\u` needs one to four hexadecimal digits")?;
                char::from_u32(value).ok_or_else(|| format!("`\\u{value:04x}` is no character"))?
            }
            // The line is continued.
            '\n' => continue,
            '\r' if chars.next_if_eq(&'\n').is_some() => continue,
            other => return Err(format!("there is no escape `\\{}`", other.escape_debug())),
        });
    }
    Ok(out)
}

/// Returns the value of at most `most` digits behind those already read.
fn digits(
    chars: &mut Peekable<Chars<'_>>,
    radix: u32,
    most: usize,
    read: Option<u32>,
) -> Option<u32> {
    let mut value = read;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        chars.next();
        value = Some(value.unwrap_or(0) * radix + digit);
    }
    value
}
