//! Configuration files, which are TOML, and answers to names of settings that do not exist.

mod similar;

use std::path::Path;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::settings::{CONFIG_FILE, SETTINGS};
use super::{ConfigError, GivenSetting};

pub(super) use similar::{question, unknown};

/// Reads the settings of a file.
pub(super) fn read(path: &Path) -> Result<Vec<GivenSetting>, ConfigError> {
    let bad = |problem: String| ConfigError::BadFile {
        path: path.to_owned(),
        problem,
    };
    let text = chronorb_rt::read_text(path).map_err(|e| bad(e.to_string()))?;
    let table = DeTable::parse(&text).map_err(|e| bad(e.to_string()))?;
    let mut given = Vec::new();
    for (key, value) in table.get_ref() {
        let key = key.get_ref();
        let mut settings = SETTINGS.iter().filter(|s| s.key != CONFIG_FILE);
        let setting = settings.find(|s| s.key == key);
        let setting = setting.ok_or_else(|| {
            let origin = path.display().to_string();
            let settings = SETTINGS.iter().filter(|s| s.key != CONFIG_FILE);
            unknown(
                &origin,
                "",
                key,
                &mut settings.map(|s| s.key),
                str::to_owned,
            )
        })?;
        given.extend(
            texts(value.get_ref())
                .into_iter()
                .map(|value| GivenSetting {
                    setting,
                    name: key.to_string(),
                    value,
                }),
        );
    }
    Ok(given)
}

/// The texts of a TOML value: of an array those of its elements, of a table `key=value`.
fn texts(value: &DeValue<'_>) -> Vec<String> {
    match value {
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Array(items) => {
            let items = items.iter().map(Spanned::get_ref);
            items.flat_map(texts).collect()
        }
        DeValue::Table(table) => table
            .iter()
            .flat_map(|(key, value)| {
                texts(value.get_ref())
                    .into_iter()
                    .map(move |text| format!("{}={text}", key.get_ref()))
            })
            .collect(),
        DeValue::Integer(n) => vec![decimal(n)],
        DeValue::Float(x) => vec![x.to_string()],
        DeValue::Boolean(yes) => vec![yes.to_string()],
        DeValue::Datetime(time) => vec![time.to_string()],
    }
}

/// The number in the base that settings have. One that is too large for any setting stays as it is,
/// and is refused by the setting.
fn decimal(number: &DeInteger<'_>) -> String {
    let value = i64::from_str_radix(number.as_str(), number.radix());
    value.map_or_else(|_| number.to_string(), |value| value.to_string())
}
