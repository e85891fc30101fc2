//! Folders of the user, as the XDG Base Directory Specification has them.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Returns chronorb's folder for caches; nothing if the environment names none.
pub(crate) fn cache() -> Option<PathBuf> {
    folder(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"), ".cache")
}

/// Returns chronorb's folder for state of this machine that is kept between runs; nothing if the
/// environment names none.
pub(crate) fn state() -> Option<PathBuf> {
    folder(
        env::var_os("XDG_STATE_HOME"),
        env::var_os("HOME"),
        ".local/state",
    )
}

/// Returns chronorb's folder below a base, or below a folder of the home. Relative paths are
/// ignored, as the specification demands.
fn folder(base: Option<OsString>, home: Option<OsString>, in_home: &str) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute(base).or_else(|| Some(absolute(home)?.join(in_home)))?;
    Some(base.join("chronorb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_comes_before_the_home_and_only_absolute_paths_count() {
        for (base, home, expected) in [
            (Some("/state"), Some("/home/a"), Some("/state/chronorb")),
            (None, Some("/home/a"), Some("/home/a/.local/state/chronorb")),
            (
                Some(""),
                Some("/home/a"),
                Some("/home/a/.local/state/chronorb"),
            ),
            (
                Some("state"),
                Some("/home/a"),
                Some("/home/a/.local/state/chronorb"),
            ),
            (Some("/state"), None, Some("/state/chronorb")),
            (Some("state"), Some("home"), None),
            (None, Some(""), None),
            (None, None, None),
        ] {
            let found = folder(base.map(Into::into), home.map(Into::into), ".local/state");
            assert_eq!(found, expected.map(PathBuf::from), "{base:?} {home:?}");
        }
    }
}
