//! Choices that have the same name in figures and on the command line.

use serde::Serialize;
use serde_json::Value;

/// Returns the name of a choice in figures.
pub(crate) fn name_of(choice: &impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(Value::String(name)) => name,
        other => unreachable!("a choice is a name in figures, and not {other:?}"),
    }
}

/// Implements `Display` and `FromStr` for enums by their names in figures; `ALL` lists the choices.
macro_rules! by_name {
    ($($choice:ty),+) => {$(
        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$crate::named::name_of(self))
            }
        }

        impl std::str::FromStr for $choice {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let all = Self::ALL.map(|choice| choice.to_string());
                let named = Self::ALL.into_iter().zip(&all).find(|(_, name)| *name == text);
                let (choice, _) = named.ok_or_else(|| format!("there are {}", all.join(", ")))?;
                Ok(choice)
            }
        }
    )+};
}

pub(crate) use by_name;
