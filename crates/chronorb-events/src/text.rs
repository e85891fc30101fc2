//! Filters as text, for command lines and reports.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::event::{ANY_SOURCE, ANY_TYPE};
use crate::filter::{Filter, TimerKind};

/// An error in the text of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the filter has no {expected} at character {at}")]
pub struct FilterTextError {
    /// The position in the text, in characters from 1 on.
    pub at: usize,
    /// A noun for what may stand there.
    pub expected: &'static str,
}

/// The greatest depth of a filter that is read from text.
const DEPTH: usize = 64;

/// The weakest operator first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Any,
    All,
    Conjunction,
    Operand,
}

/// Writes the filter as [`FromStr`] reads it.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_filter(self, Strength::Any, f)
    }
}

fn write_filter(filter: &Filter, least: Strength, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (children, operator, strength) = match filter {
        Filter::Any(children) => (children, " | ", Strength::Any),
        Filter::All(children) => (children, " & ", Strength::All),
        Filter::Conjunction(children) => (children, " + ", Strength::Conjunction),
        _ => return write_operand(filter, f),
    };
    let is_in_parentheses = strength < least || children.len() < 2;
    if is_in_parentheses {
        f.write_str("(")?;
    }
    for (index, child) in children.iter().enumerate() {
        if index > 0 {
            f.write_str(operator)?;
        }
        // A group within one of its own kind keeps its parentheses, because it is another group.
        let stronger = match strength {
            Strength::Any => Strength::All,
            Strength::All => Strength::Conjunction,
            Strength::Conjunction | Strength::Operand => Strength::Operand,
        };
        write_filter(child, stronger, f)?;
    }
    if is_in_parentheses {
        f.write_str(")")?;
    }
    Ok(())
}

fn write_operand(filter: &Filter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match filter {
        Filter::Leaf { source, event_type } => match (*source, *event_type) {
            (ANY_SOURCE, ANY_TYPE) => f.write_str("*:*"),
            (ANY_SOURCE, event_type) => write!(f, "{event_type}"),
            (source, ANY_TYPE) => write!(f, "{source}:*"),
            (source, event_type) => write!(f, "{source}:{event_type}"),
        },
        Filter::Everything => f.write_str("*"),
        Filter::Masked {
            source_mask,
            type_mask,
            source_value,
            type_value,
        } => write!(
            f,
            "mask({source_mask:#x}:{type_mask:#x}={source_value:#x}:{type_value:#x})"
        ),
        Filter::Bits {
            source_mask,
            type_mask,
            then,
        } => {
            write!(f, "bits({source_mask:#x}:{type_mask:#x}) ")?;
            write_filter(then, Strength::Operand, f)
        }
        Filter::Negation(inner) => {
            f.write_str("!")?;
            write_filter(inner, Strength::Operand, f)
        }
        Filter::Timer { kind, time } => {
            let word = match kind {
                TimerKind::Once => "after",
                TimerKind::Interval => "every",
                TimerKind::Deadline => "silence",
            };
            write!(f, "{word} {time:?}")
        }
        Filter::Any(_) | Filter::All(_) | Filter::Conjunction(_) => {
            write_filter(filter, Strength::Operand, f)
        }
    }
}

/// Reads a filter.
///
/// | text | filter |
/// |---|---|
/// | `20` | events of type 20 |
/// | `()` | no event |
/// | `10:20`, `10:*` | events of source 10 and type 20, or any type |
/// | `*` | every event |
/// | `A \| B`, `A & B`, `!A` | disjunction, logical and, negation |
/// | `A + B` | a conjunction: one set when both were there |
/// | `every 100ms`, `after 2s`, `silence 80ms` | timers |
/// | `bits(0x3:0xf0) A` | events with a bit of each mask (source, type) that pass A |
/// | `mask(0xf:0=0x1:0)` | events whose masked source and type are equal to these |
///
/// `+` binds closer than `&`, and `&` closer than `|`. Parentheses group.
///
/// # Example
/// ```
/// use chronorb_events::Filter;
///
/// let filter: Filter = "10:20 + 21 | silence 80ms".parse()?;
/// assert_eq!(filter.to_string(), "10:20 + 21 | silence 80ms");
/// # Ok::<(), chronorb_events::FilterTextError>(())
/// ```
impl FromStr for Filter {
    type Err = FilterTextError;

    fn from_str(text: &str) -> Result<Self, FilterTextError> {
        let mut reader = Reader {
            text: text.as_bytes(),
            at: 0,
        };
        let filter = reader.group(Strength::Any, 0)?;
        reader.skip_blanks();
        if reader.at < reader.text.len() {
            return Err(reader.error("operator"));
        }
        Ok(filter)
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn error(&self, expected: &'static str) -> FilterTextError {
        let at = self.at + 1;
        FilterTextError { at, expected }
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Skips a token, if it is the next one.
    fn eat(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let is_next = self.text[self.at..].starts_with(token.as_bytes());
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), FilterTextError> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.error(expected))
        }
    }

    fn group(&mut self, strength: Strength, depth: usize) -> Result<Filter, FilterTextError> {
        type MakeGroup = fn(Vec<Filter>) -> Filter;
        let (operator, stronger, group): (_, _, MakeGroup) = match strength {
            Strength::Any => ("|", Strength::All, Filter::Any),
            Strength::All => ("&", Strength::Conjunction, Filter::All),
            Strength::Conjunction => ("+", Strength::Operand, Filter::Conjunction),
            Strength::Operand => return self.operand(depth),
        };
        let mut children = vec![self.group(stronger, depth)?];
        while self.eat(operator) {
            children.push(self.group(stronger, depth)?);
        }
        match children.len() {
            1 => Ok(children.remove(0)),
            _ => Ok(group(children)),
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Filter, FilterTextError> {
        if depth > DEPTH {
            return Err(self.error("end of the nesting"));
        }
        if self.eat("!") {
            return Ok(!self.operand(depth + 1)?);
        }
        if self.eat("(") {
            if self.eat(")") {
                return Ok(Filter::Any(Vec::new()));
            }
            let inner = self.group(Strength::Any, depth + 1)?;
            self.expect(")", "closing parenthesis")?;
            return Ok(inner);
        }
        let timers = [
            ("after", TimerKind::Once),
            ("every", TimerKind::Interval),
            ("silence", TimerKind::Deadline),
        ];
        for (word, kind) in timers {
            if self.eat(word) {
                let time = self.time()?;
                return Ok(Filter::Timer { kind, time });
            }
        }
        if self.eat("bits") {
            self.expect("(", "opening parenthesis")?;
            let (source_mask, type_mask) = self.pair()?;
            self.expect(")", "closing parenthesis")?;
            let then = Box::new(self.operand(depth + 1)?);
            return Ok(Filter::Bits {
                source_mask,
                type_mask,
                then,
            });
        }
        if self.eat("mask") {
            self.expect("(", "opening parenthesis")?;
            let (source_mask, type_mask) = self.pair()?;
            self.expect("=", "equals sign")?;
            let (source_value, type_value) = self.pair()?;
            self.expect(")", "closing parenthesis")?;
            return Ok(Filter::Masked {
                source_mask,
                type_mask,
                source_value,
                type_value,
            });
        }
        self.leaf()
    }

    fn leaf(&mut self) -> Result<Filter, FilterTextError> {
        let first = self.wildcard_or_number()?;
        if self.eat(":") {
            let event_type = self.wildcard_or_number()?;
            return Ok(Filter::event(
                first.unwrap_or(ANY_SOURCE),
                event_type.unwrap_or(ANY_TYPE),
            ));
        }
        Ok(first.map_or(Filter::Everything, Filter::of_type))
    }

    /// `None` for a wildcard.
    fn wildcard_or_number(&mut self) -> Result<Option<i32>, FilterTextError> {
        if self.eat("*") {
            return Ok(None);
        }
        self.number().map(Some)
    }

    fn pair(&mut self) -> Result<(i32, i32), FilterTextError> {
        let source = self.number()?;
        self.expect(":", "colon")?;
        Ok((source, self.number()?))
    }

    /// A decimal or hexadecimal number of 32 bits, signed or not.
    fn number(&mut self) -> Result<i32, FilterTextError> {
        let is_negative = self.eat("-");
        let is_hexadecimal = self.eat("0x");
        let begin = self.at;
        let radix = if is_hexadecimal { 16 } else { 10 };
        let is_digit = |octet: &u8| (*octet as char).is_digit(radix);
        while self.text.get(self.at).is_some_and(is_digit) {
            self.at += 1;
        }
        let digits = str::from_utf8(&self.text[begin..self.at]).unwrap_or_default();
        let magnitude = u32::from_str_radix(digits, radix).map_err(|_| FilterTextError {
            at: begin + 1,
            expected: "number of 32 bits",
        })?;
        let number = magnitude.cast_signed();
        Ok(if is_negative {
            number.wrapping_neg()
        } else {
            number
        })
    }

    fn time(&mut self) -> Result<Duration, FilterTextError> {
        const EXPECTED: &str = "time, such as 80ms";
        self.skip_blanks();
        let begin = self.at;
        let is_digit = |octet: &u8| octet.is_ascii_digit() || *octet == b'.';
        while self.text.get(self.at).is_some_and(is_digit) {
            self.at += 1;
        }
        let digits = str::from_utf8(&self.text[begin..self.at]).unwrap_or_default();
        let number: f64 = digits.parse().map_err(|_| self.error(EXPECTED))?;
        let units = [
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
        ];
        for (unit, nanos) in units {
            if self.eat(unit) {
                // Whole nanoseconds, at most u64::MAX of them: the cast saturates.
                return Ok(Duration::from_nanos((number * nanos).round() as u64));
            }
        }
        Err(self.error(EXPECTED))
    }
}
