//! Writing JSON: the few kinds of values that a report has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chronorb_rt::is_hidden;

/// A value with a form in JSON.
pub(super) trait Json {
    /// Appends the value.
    fn write(&self, text: &mut String);
}

/// Implements [`Json`] for a struct, as an object with these fields.
macro_rules! object {
    ($type:ty: $($name:literal = $field:tt),+ $(,)?) => {
        impl Json for $type {
            fn write(&self, text: &mut String) {
                text.push('{');
                $(field(text, $name, &self.$field);)+
                text.push('}');
            }
        }
    };
}

pub(super) use object;

/// Appends a field of an object. No value ends with the brace by which an object begins.
pub(super) fn field(text: &mut String, name: &str, value: &dyn Json) {
    if !text.ends_with('{') {
        text.push(',');
    }
    name.write(text);
    text.push(':');
    value.write(text);
}

macro_rules! number {
    ($($type:ty)+) => {$(
        impl Json for $type {
            fn write(&self, text: &mut String) {
                write_number(text, (*self).into());
            }
        }
    )+};
}

number!(u8 i16 u32 u64);

impl Json for usize {
    fn write(&self, text: &mut String) {
        write_number(text, *self as i128);
    }
}

fn write_number(text: &mut String, number: i128) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{number}");
}

impl Json for bool {
    fn write(&self, text: &mut String) {
        text.push_str(if *self { "true" } else { "false" });
    }
}

impl Json for str {
    fn write(&self, text: &mut String) {
        text.push('"');
        for letter in self.chars() {
            match letter {
                '"' | '\\' => text.extend(['\\', letter]),
                hidden if is_hidden(hidden) => {
                    for unit in hidden.encode_utf16(&mut [0; 2]) {
                        let _ = write!(text, "\\u{unit:04x}");
                    }
                }
                _ => text.push(letter),
            }
        }
        text.push('"');
    }
}

impl Json for String {
    fn write(&self, text: &mut String) {
        self.as_str().write(text);
    }
}

impl<T: Json> Json for Option<T> {
    fn write(&self, text: &mut String) {
        match self {
            Some(value) => value.write(text),
            None => text.push_str("null"),
        }
    }
}

impl<T: Json> Json for Vec<T> {
    fn write(&self, text: &mut String) {
        text.push('[');
        for (number, item) in self.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            item.write(text);
        }
        text.push(']');
    }
}

impl Json for BTreeMap<String, u64> {
    fn write(&self, text: &mut String) {
        text.push('{');
        for (name, value) in self {
            field(text, name, value);
        }
        text.push('}');
    }
}
