//! Tables of TOML: keys are taken one by one, and those that are left are mistakes.

use std::cell::RefCell;
use std::ops::Range;

use chronorb_sched::Time;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::error::Mistakes;
use crate::units::{A_PERIOD, A_RATE, A_TIME, parse_period, parse_rate, parse_time};

/// A value of TOML with its place.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// A value of the model, with the place of its text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WithSpan<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// A table whose keys are taken.
pub(crate) struct Table<'a, 't> {
    table: &'t DeTable<'a>,
    span: Range<usize>,
    taken: RefCell<Vec<&'static str>>,
}

impl<'a, 't> Table<'a, 't> {
    pub(crate) const fn new(table: &'t DeTable<'a>, span: Range<usize>) -> Self {
        Self {
            table,
            span,
            taken: RefCell::new(Vec::new()),
        }
    }

    /// Returns the table of a value; anything else is a mistake.
    pub(crate) fn of(value: &'t Value<'a>, mistakes: &mut Mistakes<'_>) -> Option<Self> {
        if let DeValue::Table(table) = value.get_ref() {
            return Some(Self::new(table, value.span()));
        }
        mistakes.add(&value.span(), "this has to be a table");
        None
    }

    /// Returns the place of the table.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Takes the value of a key.
    pub(crate) fn take(&self, key: &'static str) -> Option<&'t Value<'a>> {
        self.taken.borrow_mut().push(key);
        self.table.get(key)
    }

    /// Takes a text that is not empty.
    pub(crate) fn text(
        &self,
        key: &'static str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<WithSpan<String>> {
        let value = self.take(key)?;
        text(value, &format!("{key} has to be a text"), mistakes)
    }

    /// Takes a text, without which the table is a mistake.
    pub(crate) fn required_text(
        &self,
        key: &'static str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<WithSpan<String>> {
        if !self.table.contains_key(key) {
            self.taken.borrow_mut().push(key);
            mistakes.add(&self.span, format!("{key} is missing"));
            return None;
        }
        self.text(key, mistakes)
    }

    /// Takes a time.
    pub(crate) fn time(&self, key: &'static str, mistakes: &mut Mistakes<'_>) -> Option<Time> {
        self.parsed(key, A_TIME, parse_time, mistakes)
    }

    /// Takes a time with its place.
    pub(crate) fn time_with_span(
        &self,
        key: &'static str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<WithSpan<Time>> {
        let span = self.take(key)?.span();
        let value = self.time(key, mistakes)?;
        Some(WithSpan { value, span })
    }

    /// Takes a time that is not zero.
    pub(crate) fn positive_time(
        &self,
        key: &'static str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Time> {
        let time = self.time(key, mistakes)?;
        self.positive(key, time, mistakes)
    }

    /// Takes a period.
    pub(crate) fn period(&self, key: &'static str, mistakes: &mut Mistakes<'_>) -> Option<Time> {
        let period = self.parsed(key, A_PERIOD, parse_period, mistakes)?;
        self.positive(key, period, mistakes)
    }

    /// Takes a data rate.
    pub(crate) fn rate(&self, key: &'static str, mistakes: &mut Mistakes<'_>) -> Option<u64> {
        self.parsed(key, A_RATE, parse_rate, mistakes)
    }

    /// Takes an integer of a range.
    pub(crate) fn integer(
        &self,
        key: &'static str,
        least: u64,
        most: u64,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<u64> {
        let value = self.take(key)?;
        let integer = integer(value).filter(|integer| (least..=most).contains(integer));
        if integer.is_none() {
            let problem = format!("{key} has to be a whole number from {least} to {most}");
            mistakes.add(&value.span(), problem);
        }
        integer
    }

    /// Takes one of several words, and returns its number.
    pub(crate) fn word(
        &self,
        key: &'static str,
        words: &[&str],
        mistakes: &mut Mistakes<'_>,
    ) -> Option<usize> {
        let value = self.take(key)?;
        let given = match value.get_ref() {
            DeValue::String(text) => words.iter().position(|word| *word == text.as_ref()),
            _ => None,
        };
        if given.is_none() {
            let problem = format!("{key} has to be {}", alternatives(words));
            mistakes.add(&value.span(), problem);
        }
        given
    }

    /// Takes a boolean, which is false if it is left out.
    pub(crate) fn flag(&self, key: &'static str, mistakes: &mut Mistakes<'_>) -> bool {
        let Some(value) = self.take(key) else {
            return false;
        };
        if let DeValue::Boolean(flag) = value.get_ref() {
            return *flag;
        }
        mistakes.add(&value.span(), format!("{key} has to be true or false"));
        false
    }

    /// Takes an array; a single value counts as an array of one.
    pub(crate) fn array(&self, key: &'static str) -> Vec<&'t Value<'a>> {
        self.take(key)
            .map_or_else(Vec::new, |value| match value.get_ref() {
                DeValue::Array(values) => values.iter().collect(),
                _ => vec![value],
            })
    }

    /// Takes the tables of an array.
    pub(crate) fn tables(&self, key: &'static str, mistakes: &mut Mistakes<'_>) -> Vec<Self> {
        let values = self.array(key).into_iter();
        values
            .filter_map(|value| Self::of(value, mistakes))
            .collect()
    }

    /// Returns all keys and values, which then count as taken.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'t str, &'t Value<'a>)> + use<'a, 't> {
        let entries = self.table.iter();
        entries.map(|(key, value)| (key.get_ref().as_ref(), value))
    }

    /// Reports the keys that were not taken.
    pub(crate) fn finish(self, mistakes: &mut Mistakes<'_>) {
        let taken = self.taken.into_inner();
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !taken.contains(&name) {
                let problem = unknown("key", name, taken.iter().copied());
                mistakes.add(&key.span(), problem);
            }
        }
    }

    fn parsed(
        &self,
        key: &'static str,
        form: &str,
        parse: fn(&str) -> Option<u64>,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<u64> {
        let value = self.take(key)?;
        parsed(value, key, form, parse, mistakes)
    }

    fn positive(&self, key: &'static str, time: Time, mistakes: &mut Mistakes<'_>) -> Option<Time> {
        if time == 0 {
            let span = self.take(key).map_or_else(|| self.span(), Spanned::span);
            mistakes.add(&span, format!("{key} is zero"));
            return None;
        }
        Some(time)
    }
}

/// Returns a value of a unit; anything else is a mistake.
pub(crate) fn parsed(
    value: &Value<'_>,
    key: &str,
    form: &str,
    parse: fn(&str) -> Option<u64>,
    mistakes: &mut Mistakes<'_>,
) -> Option<u64> {
    let parsed = match value.get_ref() {
        DeValue::String(text) => parse(text),
        _ => None,
    };
    if parsed.is_none() {
        mistakes.add(&value.span(), format!("{key} has to be {form}"));
    }
    parsed
}

/// Returns a text that is not empty and has no control characters; anything else is a mistake.
pub(crate) fn text(
    value: &Value<'_>,
    problem: &str,
    mistakes: &mut Mistakes<'_>,
) -> Option<WithSpan<String>> {
    let span = value.span();
    match value.get_ref() {
        DeValue::String(text) if !text.is_empty() && !text.contains(char::is_control) => {
            Some(WithSpan {
                value: text.to_string(),
                span,
            })
        }
        DeValue::String(_) => {
            mistakes.add(&span, "this text is empty, or has control characters");
            None
        }
        _ => {
            mistakes.add(&span, problem);
            None
        }
    }
}

/// Returns the value of an integer of TOML that is not negative.
pub(crate) fn integer(value: &Value<'_>) -> Option<u64> {
    match value.get_ref() {
        DeValue::Integer(integer) => number(integer),
        _ => None,
    }
}

fn number(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Returns the message for a name that does not exist, with the nearest one that does.
pub(crate) fn unknown<'n>(
    kind: &str,
    name: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> String {
    const LONGEST: usize = 64;
    const MOST_LISTED: usize = 12;
    let shown: String = name.chars().take(LONGEST).collect();
    let limit = (name.len() / 3).max(1);
    let near = names
        .clone()
        .filter(|_| name.len() <= LONGEST)
        .filter_map(|other| {
            if other.len().abs_diff(name.len()) > limit || other.len() > 2 * LONGEST {
                return None;
            }
            let distance =
                strsim::osa_distance(&name.to_ascii_lowercase(), &other.to_ascii_lowercase());
            (distance <= limit).then_some((distance, other))
        });
    if let Some((_, nearest)) = near.min() {
        return format!("there is no {kind} {shown:?}: did you mean {nearest:?}?");
    }
    let mut all: Vec<_> = names.collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return format!("there is no {kind} {shown:?}");
    }
    let rest = if all.len() > MOST_LISTED { ", …" } else { "" };
    all.truncate(MOST_LISTED);
    format!(
        "there is no {kind} {shown:?}: there are {}{rest}",
        all.join(", ")
    )
}

fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}
