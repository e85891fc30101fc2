//! Configuration files, which are TOML.

use std::path::Path;

use super::settings::{CONFIG_FILE, SETTINGS};
use super::{ConfigError, GivenSetting, similar};

/// Reads the settings of a file.
pub(super) fn read(path: &Path) -> Result<Vec<GivenSetting>, ConfigError> {
    let bad = |problem: String| ConfigError::BadFile {
        path: path.to_owned(),
        problem,
    };
    let text = chronorb_rt::read_text(path).map_err(|e| bad(e.to_string()))?;
    let table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| bad(e.to_string()))?;
    let mut given = Vec::new();
    for (key, value) in &table {
        let mut settings = SETTINGS.iter().filter(|s| s.key() != CONFIG_FILE);
        let setting = settings.find(|s| s.key() == *key);
        let setting = setting.ok_or_else(|| {
            let origin = path.display().to_string();
            let settings = SETTINGS.iter().filter(|s| s.key() != CONFIG_FILE);
            similar::unknown(
                &origin,
                "",
                key,
                &mut settings.map(|s| s.key()),
                str::to_owned,
            )
        })?;
        given.extend(texts(value).into_iter().map(|value| GivenSetting {
            setting,
            name: key.clone(),
            value,
        }));
    }
    Ok(given)
}

/// The texts of a TOML value: of an array those of its elements, of a table `key=value`.
fn texts(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::String(text) => vec![text.clone()],
        toml::Value::Array(items) => items.iter().flat_map(texts).collect(),
        toml::Value::Table(table) => table
            .iter()
            .flat_map(|(key, value)| {
                texts(value)
                    .into_iter()
                    .map(move |text| format!("{key}={text}"))
            })
            .collect(),
        toml::Value::Integer(n) => vec![n.to_string()],
        toml::Value::Float(x) => vec![x.to_string()],
        toml::Value::Boolean(yes) => vec![yes.to_string()],
        toml::Value::Datetime(time) => vec![time.to_string()],
    }
}
