//! In place of suggestions for names of settings that do not exist, in the smallest programs.

use super::{ConfigError, LIST};

pub(super) fn unknown(
    origin: &str,
    prefix: &str,
    name: &str,
    _: &mut dyn Iterator<Item = &'static str>,
    _: fn(&str) -> String,
) -> ConfigError {
    ConfigError::Unknown {
        origin: origin.to_owned(),
        name: format!("{prefix}{name}"),
        similar: Vec::new(),
    }
}

pub(super) const fn question(_: &[String]) -> &'static str {
    LIST
}
