//! The list of all options of a program, for `-ORBHelp`.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use super::OrbConfig;
use super::settings::SETTINGS;
use super::table::{Apply, Setting};

pub(super) const OPTION: &str = "-ORBHelp";

/// Writes the list to standard output. A closed output is not an error.
pub(super) fn print() {
    let _ = io::stdout().write_all(list().as_bytes());
}

/// Returns two lines for each option of this program: it with the form of its value, and its
/// meaning with the default.
pub(super) fn list() -> String {
    let mut text = String::new();
    let mut config = OrbConfig::default();
    for setting in SETTINGS.iter().filter(|setting| setting.missing.is_none()) {
        describe(setting, &mut config, &mut text);
    }
    text
}

fn describe(setting: &Setting, config: &mut OrbConfig, text: &mut String) {
    let _ = write!(text, "{} ", setting.option());
    let mut meaning = setting.help;
    let mut default = None;
    // A string takes every text.
    let _ = match setting.apply {
        Apply::Bool(place) => {
            default = Some(u64::from(*place(config)));
            write!(text, "0|1")
        }
        Apply::U32(place, least, greatest) => {
            default = Some((*place(config)).into());
            write!(text, "{least}..{greatest}")
        }
        Apply::Usize(place, least, greatest) => {
            default = Some(*place(config) as u64);
            write!(text, "{least}..{greatest}")
        }
        Apply::Time(place) => {
            default = Some(place(config).as_millis() as u64);
            write!(text, "MS")
        }
        Apply::Choice(choices) => {
            let names = choices.iter().filter(|(_, choose)| choose.is_some());
            for (index, (name, _)) in names.enumerate() {
                text.push_str(if index == 0 { "" } else { "|" });
                text.push_str(name);
            }
            Ok(())
        }
        Apply::Text(_) | Apply::List(..) => {
            let (form, rest) = meaning.split_once(": ").unwrap_or(("VALUE", meaning));
            meaning = rest;
            write!(text, "{form}")
        }
    };
    let _ = write!(text, "\n      {meaning}");
    if let Some(default) = default {
        let _ = write!(text, " [{default}]");
    }
    text.push('\n');
}
