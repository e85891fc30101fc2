//! Answers to names of settings that do not exist.

use crate::config::{ConfigError, LIST};

/// Returns the error for a setting `prefix` + `name` that does not exist. `names` are those that
/// exist, and `spell` writes them as in the source.
pub(in crate::config) fn unknown(
    origin: &str,
    prefix: &str,
    name: &str,
    names: &mut dyn Iterator<Item = &'static str>,
    spell: fn(&str) -> String,
) -> ConfigError {
    ConfigError::Unknown {
        origin: origin.to_owned(),
        name: format!("{prefix}{name}"),
        similar: closest(name, names).into_iter().map(spell).collect(),
    }
}

/// Returns up to three of `names` that may have been meant, the closest first: those with few
/// mistakes, and those that begin with `name`, but none that is more than twice as far as the
/// closest. Case does not count.
fn closest(name: &str, names: &mut dyn Iterator<Item = &'static str>) -> Vec<&'static str> {
    if name.len() > LONGEST {
        return Vec::new();
    }
    let meant = name.to_ascii_lowercase();
    let mistakes = (meant.len() / 3).max(1);
    let mut near: Vec<_> = names
        .filter_map(|candidate| {
            let lower = candidate.to_ascii_lowercase();
            let distance = strsim::osa_distance(&meant, &lower);
            let is_part = meant.len() >= SHORTEST_PART && lower.starts_with(&meant);
            (distance <= mistakes || is_part).then_some((distance, candidate))
        })
        .collect();
    let Some(least) = near.iter().map(|(distance, _)| *distance).min() else {
        return Vec::new();
    };
    near.retain(|(distance, _)| *distance <= 2 * least);
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().map(|(_, name)| name).take(MOST).collect()
}

/// Returns a hint for an unknown name: `did you mean -ORBThreads?`, and the place of the list.
pub(in crate::config) fn question(similar: &[String]) -> String {
    match similar {
        [] => LIST.to_owned(),
        names => format!("did you mean {}? ({LIST})", names.join(" or ")),
    }
}

/// Suggestions, at most.
const MOST: usize = 3;
/// No name of a setting is as long, in octets.
const LONGEST: usize = 64;
/// Octets of the beginning of a name by which it is found.
const SHORTEST_PART: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn similar(name: &str, names: &'static [&str]) -> Vec<String> {
        match unknown("here", "", name, &mut names.iter().copied(), str::to_owned) {
            ConfigError::Unknown { similar, .. } => similar,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn typing_errors_are_found_in_any_case() {
        let names = &["Threads", "ListenEndpoints", "ArenaSize"];
        for (name, meant) in [
            ("Thread", "Threads"),
            ("listenendpoint", "ListenEndpoints"),
            ("Aerna_Size", "ArenaSize"),
            ("threads", "Threads"),
        ] {
            assert_eq!(similar(name, names), [meant]);
        }
    }

    #[test]
    fn the_beginning_of_a_name_finds_it() {
        let names = &["threads", "listen_endpoints", "orb_id"];
        assert_eq!(similar("listen", names), ["listen_endpoints"]);
        assert!(similar("or", names).is_empty());
    }

    #[test]
    fn no_more_than_three_are_told_and_none_that_is_far_beside_a_close_one() {
        let names = &["abcdefxy", "abcdefx", "abcdefy", "abcdefz"];
        assert_eq!(similar("abcdefw", names), ["abcdefx", "abcdefy", "abcdefz"]);
        assert_eq!(similar("abcdefx", names), ["abcdefx"]);
        let names = &["threadpool_strategy", "threads"];
        assert_eq!(similar("thread", names), ["threads"]);
    }

    #[test]
    fn a_message_has_the_suggestions_and_where_all_settings_are() {
        let told = |name, spell| {
            let mut names = ["threads", "threaded"].into_iter();
            unknown("environment", "X_", name, &mut names, spell).to_string()
        };
        assert_eq!(
            told("THREADX", |name| format!("X_{}", name.to_ascii_uppercase())),
            "environment: there is no setting X_THREADX; did you mean X_THREADS or X_THREADED? \
             (the documentation of chronorb::config::OrbConfig and the chapter Configuration \
             of the book list all settings)"
        );
        for name in ["verbose", "", &"x".repeat(100_000)] {
            let text = told(name, str::to_owned);
            assert!(!text.contains("did you mean"), "{text}");
            assert!(text.ends_with("the book list all settings"), "{text}");
        }
    }
}
