//! In place of the reader of configuration files and of suggestions for names, in programs without
//! them.

use std::path::Path;

use super::table::lacks;
use super::{ConfigError, GivenSetting, LIST};

pub(super) fn read(path: &Path) -> Result<Vec<GivenSetting>, ConfigError> {
    Err(ConfigError::BadFile {
        path: path.to_owned(),
        problem: lacks("config-file"),
    })
}

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
