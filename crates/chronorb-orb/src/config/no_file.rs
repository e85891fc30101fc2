//! In place of the reader of configuration files, in programs without it.

use std::path::Path;

use super::settings::lacks;
use super::{ConfigError, SourcedValue};

pub(super) fn read(path: &Path) -> Result<Vec<SourcedValue>, ConfigError> {
    Err(ConfigError::BadFile {
        path: path.to_owned(),
        problem: lacks("config-file"),
    })
}
