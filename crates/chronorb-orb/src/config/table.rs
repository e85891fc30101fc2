//! The form of the table of settings: its rows, the kinds of values, and the macro that makes the
//! fields of [`OrbConfig`], their defaults and the rows from it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::OrbConfig;

/// One setting: its texts, and the kind of its value.
pub(super) struct Setting {
    /// The key, as in a file.
    pub(super) key: &'static str,
    /// The names of its option.
    pub(super) options: &'static [&'static str],
    /// The line of `-ORBHelp`: for [`Apply::Text`] and [`Apply::List`] the form of the value and
    /// `: `, then the meaning; in brackets the default, if it is not a boolean or a number.
    pub(super) help: &'static str,
    /// The feature of the setting, if the program is built without it.
    pub(super) missing: Option<&'static MissingFeature>,
    pub(super) apply: Apply,
}

/// The kinds of settings, and the places of their values.
pub(super) enum Apply {
    Bool(fn(&mut OrbConfig) -> &mut bool),
    /// A number from the first bound to the second.
    U32(fn(&mut OrbConfig) -> &mut u32, u32, u32),
    Usize(fn(&mut OrbConfig) -> &mut usize, u64, u64),
    /// In milliseconds.
    Time(fn(&mut OrbConfig) -> &mut Duration),
    /// One of these names.
    Choice(&'static [NamedValue]),
    Text(ApplyText),
    /// Clears a list, and adds a text to it. Each source replaces the list of earlier ones.
    List(fn(&mut OrbConfig), ApplyText),
}

type ApplyText = fn(&mut OrbConfig, &str) -> Result<(), String>;

/// A name, and the function that sets its value; `None` if the program is built without its
/// feature, [`BASELINES`].
pub(super) type NamedValue = (&'static str, Option<fn(&mut OrbConfig)>);

impl Apply {
    fn apply(&self, config: &mut OrbConfig, text: &str) -> Result<(), String> {
        match *self {
            Self::Bool(place) => {
                *place(config) = match text {
                    "true" | "yes" | "1" => true,
                    "false" | "no" | "0" => false,
                    other => return Err(format!("{other:?} is not true or false")),
                };
            }
            Self::U32(place, least, greatest) => {
                *place(config) = number(text, least.into(), greatest.into())? as u32;
            }
            Self::Usize(place, least, greatest) => {
                *place(config) = number(text, least, greatest)? as usize;
            }
            Self::Time(place) => *place(config) = milliseconds(text)?,
            Self::Choice(choices) => {
                let chosen = choices.iter().find(|(name, _)| *name == text);
                let (_, choose) = chosen.ok_or_else(|| no_choice(text, choices))?;
                choose.ok_or_else(|| lacks(BASELINES))?(config);
            }
            Self::Text(apply) | Self::List(_, apply) => return apply(config, text),
        }
        Ok(())
    }
}

/// The problem of a text that is none of the names.
fn no_choice(text: &str, choices: &[NamedValue]) -> String {
    let names = || choices.iter().filter(|(_, choose)| choose.is_some());
    let last = names().count().saturating_sub(1);
    let mut problem = format!("{text:?} is not ");
    for (index, (name, _)) in names().enumerate() {
        problem.push_str(match index {
            0 => "",
            _ if index == last => " or ",
            _ => ", ",
        });
        problem.push_str(name);
    }
    problem
}

/// A cargo feature that this program is built without.
pub(super) struct MissingFeature {
    pub(super) feature: &'static str,
    /// The values that the program supports without the feature; all others are refused.
    pub(super) without: &'static [&'static str],
}

impl Setting {
    /// The first name of its option.
    pub(super) fn option(&self) -> &'static str {
        self.options.first().copied().unwrap_or_default()
    }

    /// Parses a value and applies it, or refuses it.
    pub(super) fn take(&self, config: &mut OrbConfig, text: &str) -> Result<(), String> {
        match self.missing {
            Some(missing) if missing.without.contains(&text) => Ok(()),
            Some(missing) => Err(lacks(missing.feature)),
            None => self.apply.apply(config, text),
        }
    }
}

/// Makes [`OrbConfig`], its `Default`, `SETTINGS` and `OrbConfig::left_out` from groups of fields
/// with their rows.
///
/// A group begins with what its settings need:
///
/// * `always`: nothing.
/// * `"feature"`: the feature. The fields exist without it, and only their defaults are taken then.
/// * `only "feature"`: the feature, and so do the fields, whose types it has.
///
/// A field has its default, and the rows of its settings in brackets:
///
/// ```text
/// [KEY at PLACE, OPTION | OTHER NAME, HELP, else [VALUE, …] => KIND]
/// ```
///
/// * Key and place are the field if none is given.
/// * The values after `else` ask for what a program without the feature does.
/// * The kind is one of [`Apply`], without its place: `Bool`, `U32(least, greatest)`, `Usize(…)`,
///   `Time`, `Choice { name => value, … }`, `Text(function)`, `List(function)`; or `Parsed` for a
///   value by `FromStr`, `Optional` for `Some` of it, `Value(function)` for that of a function of
///   the text.
macro_rules! settings {
    (@ $about:tt [$($done:tt)*] always { $($group:tt)* } $($rest:tt)*) => {
        settings! { @ $about [$($done)* { [cfg(true)] () $($group)* }] $($rest)* }
    };
    (@ $about:tt [$($done:tt)*] $feature:tt { $($group:tt)* } $($rest:tt)*) => {
        settings! { @ $about [$($done)* { [cfg(true)] ($feature) $($group)* }] $($rest)* }
    };
    (@ $about:tt [$($done:tt)*] only $feature:tt { $($group:tt)* } $($rest:tt)*) => {
        settings! {
            @ $about [$($done)* { [cfg(feature = $feature)] ($feature) $($group)* }] $($rest)*
        }
    };
    (@ $about:tt [$($done:tt)*] only $one:tt & $other:tt { $($group:tt)* } $($rest:tt)*) => {
        settings! {
            @ $about
            [$($done)* { [cfg(all(feature = $one, feature = $other))] () $($group)* }]
            $($rest)*
        }
    };
    (@ ($config:ident $($about:tt)*) [$({
        $exists:tt $needs:tt
        $([$($first:tt)+])*
        $(
            $(#[$doc:meta])*
            pub $(($scope:ident))? $field:ident: $type:ty = $default:expr;
            $([$($row:tt)+])*
        )*
    })*]) => {
        $($about)*
        pub struct $config {$($(
            $(#[$doc])*
            #$exists
            pub $(($scope))? $field: $type,
        )*)*}

        impl Default for $config {
            fn default() -> Self {
                Self {$($(
                    #$exists
                    $field: $default,
                )*)*}
            }
        }

        pub(super) const SETTINGS: &[Setting] = &[$(
            $(setting!($needs [$($first)+]),)*
            $($(setting!($needs $field [$($row)+]),)*)*
        )*];

        impl $config {
            /// Returns the first field that needs a feature which this program is built without,
            /// and the feature.
            pub(super) fn left_out(&self) -> Option<(&'static str, &'static str)> {
                $($(left_out!(self $exists $needs $field $type, $default);)*)*
                None
            }
        }
    };
    ($(#[$about:meta])* pub struct $config:ident; $($groups:tt)+) => {
        settings! { @ ($config $(#[$about])*) [] $($groups)+ }
    };
}

/// Converts a row.
macro_rules! setting {
    ($needs:tt $field:ident [$option:literal $($rest:tt)+]) => {
        setting!(@ $needs $field [$field] $option $($rest)+)
    };
    ($needs:tt $($field:ident)? [$key:ident $(at $($place:ident).+)?, $($rest:tt)+]) => {
        setting!(@ $needs $key [$($($place).+)?] $($rest)+)
    };
    (@ () $key:ident $place:tt $($option:literal)|+, $help:literal => $($kind:tt)+) => {
        Setting {
            key: stringify!($key),
            options: &[$($option),+],
            help: $help,
            missing: None,
            apply: kind!($place $($kind)+),
        }
    };
    (
        @ ($feature:tt) $key:ident $place:tt $($option:literal)|+, $help:literal
        $(, else [$($without:literal),+])? => $($kind:tt)+
    ) => {
        built!(
            ($feature),
            setting!(@ () $key $place $($option)|+, $help => $($kind)+),
            Setting {
                missing: Some(&crate::config::table::MissingFeature {
                    feature: $feature,
                    without: &[$($($without),+)?],
                }),
                ..setting!(@ () $key $place $($option)|+, $help => Text(nothing))
            }
        )
    };
}

/// Converts the kind of a row, for a place in the configuration.
macro_rules! kind {
    ([$($place:tt)+] Bool) => {
        Apply::Bool(|config| &mut config.$($place)+)
    };
    ([$($place:tt)+] U32($least:expr, $greatest:expr)) => {
        Apply::U32(|config| &mut config.$($place)+, $least, $greatest)
    };
    ([$($place:tt)+] Usize($least:expr, $greatest:expr)) => {
        Apply::Usize(|config| &mut config.$($place)+, $least, $greatest)
    };
    ([$($place:tt)+] Time) => {
        Apply::Time(|config| &mut config.$($place)+)
    };
    ($place:tt Choice { $($name:literal $([$feature:tt])? => $value:expr),+ $(,)? }) => {
        Apply::Choice(&[$(
            ($name, built!(($($feature)?), Some(kind!(@ $place $value)), None))
        ),+])
    };
    (@ [$($place:tt)+] $value:expr) => {
        |config: &mut OrbConfig| config.$($place)+ = $value
    };
    ([$($place:tt)+] Parsed) => {
        Apply::Text(|config, text| put(&mut config.$($place)+, text, parsed))
    };
    ([$($place:tt)+] Optional) => {
        Apply::Text(|config, text| put(&mut config.$($place)+, text, |text| parsed(text).map(Some)))
    };
    ([$($place:tt)+] Value($parse:expr)) => {
        Apply::Text(|config, text| put(&mut config.$($place)+, text, $parse))
    };
    ([$($place:tt)+] List($add:expr)) => {
        Apply::List(|config| config.$($place)+.clear(), $add)
    };
    ($place:tt Text($apply:expr)) => {
        Apply::Text($apply)
    };
}

/// Expands to the first expression, or to the second one without the feature.
macro_rules! built {
    ((), $with:expr, $without:expr) => {
        $with
    };
    (($feature:tt), $with:expr, $without:expr) => {{
        #[cfg(feature = $feature)]
        {
            $with
        }
        #[cfg(not(feature = $feature))]
        {
            $without
        }
    }};
}

/// Returns a field that always exists, if it has another value than its default and its feature is
/// missing.
macro_rules! left_out {
    ($config:ident [cfg(true)] ($feature:tt) $field:ident $type:ty, $default:expr) => {
        built!(($feature), {}, {
            let default: $type = $default;
            if $config.$field != default {
                return Some((stringify!($field), $feature));
            }
        })
    };
    ($($other:tt)*) => {};
}

/// The feature of strategies and architectures that serve comparisons only.
pub(super) const BASELINES: &str = "baselines";

/// Returns the message that this program is built without a feature.
pub(crate) fn lacks(feature: &str) -> String {
    format!("this program is built without the feature {feature} of the crate chronorb")
}

pub(super) fn nothing(_: &mut OrbConfig, _: &str) -> Result<(), String> {
    Ok(())
}

pub(super) fn put<T>(
    place: &mut T,
    text: &str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    *place = parse(text)?;
    Ok(())
}

pub(super) fn parsed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|problem: T::Err| problem.to_string())
}

pub(super) fn number(text: &str, least: u64, greatest: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|n| (least..=greatest).contains(n))
        .ok_or_else(|| format!("{text:?} is not a number from {least} to {greatest}"))
}

pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    number(text, 1, 1000 * 86_400 * 365).map(Duration::from_millis)
}
