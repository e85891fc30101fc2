//! The lints of the request path: each file that ARCHITECTURE.md names for it denies what
//! `clippy.toml` disallows, and no file allows this where nothing denies it.

use std::fs::read_to_string;

use crate::run::root;

/// Returns the files of the path without the attribute, and exceptions from no rule.
pub(crate) fn complaints(files: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    let paths = paths(&read(ARCHITECTURE));
    if paths.is_empty() {
        complaints.push(format!("{ARCHITECTURE}: no files below {HEADING:?}"));
    }
    for path in paths {
        let found: Vec<_> = files.iter().filter(|file| is_at(file, &path)).collect();
        if found.is_empty() {
            complaints.push(format!("{ARCHITECTURE}: there is no {path}"));
        }
        for file in found {
            if !read(file).contains(DENY) {
                complaints.push(format!(
                    "{file} is on the path of a request, without {DENY}"
                ));
            }
        }
    }
    let sources = files
        .iter()
        .filter(|file| file.ends_with(".rs") && file.contains("/src/"));
    for file in sources.filter(|file| file.starts_with("crates/")) {
        let text = read(file);
        if allows(&text) && !denies(&text) {
            let outer = outer(file).into_iter();
            let outer = outer.filter(|outer| files.contains(&outer.as_str()));
            if !outer.map(|outer| read(&outer)).any(|text| denies(&text)) {
                complaints.push(format!("{file} allows what nothing denies"));
            }
        }
    }
    complaints
}

/// Returns the files and folders in the picture of the path. Those without a crate are the ORB's.
fn paths(architecture: &str) -> Vec<String> {
    let section = architecture.split(HEADING).nth(1).unwrap_or_default();
    let picture = section.split("```").nth(1).unwrap_or_default();
    let mut crate_ = "chronorb-orb";
    let mut paths = Vec::new();
    for word in picture.split_whitespace() {
        let word = word.trim_end_matches([',', ';', ':']);
        if word.starts_with("chronorb-") {
            crate_ = word;
        } else if word.ends_with(".rs") || word.ends_with('/') {
            let paths_of = alternatives(word).into_iter();
            paths.extend(paths_of.map(|path| format!("crates/{crate_}/src/{path}")));
        }
    }
    paths
}

/// Returns `a/b.rs` and `a/c.rs` for `a/{b,c}.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(start, rest)| {
        let (names, end) = rest.split_once('}')?;
        Some((start, names, end))
    });
    let Some((start, names, end)) = parts else {
        return vec![path.to_owned()];
    };
    let names = names.split(',');
    names.map(|name| format!("{start}{name}{end}")).collect()
}

/// Whether a file is that of the path, or in the folder that the path is. Tests are not.
fn is_at(file: &str, path: &str) -> bool {
    if !path.ends_with('/') {
        return file == path
            || path
                .strip_suffix(".rs")
                .is_some_and(|path| file.strip_prefix(path) == Some("/mod.rs"));
    }
    file.starts_with(path) && file.ends_with(".rs") && !file.ends_with("/tests.rs")
}

/// Returns the files that the modules around that of a file may have.
fn outer(file: &str) -> Vec<String> {
    let folders = file.match_indices('/').map(|(at, _)| &file[..at]);
    let folders = folders.filter(|folder| folder.contains("/src"));
    let files = folders.flat_map(|folder| {
        [
            format!("{folder}.rs"),
            format!("{folder}/mod.rs"),
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
        ]
    });
    files.filter(|outer| outer != file).collect()
}

/// Whether Rust has the attribute for a lint of `clippy.toml` at its start, for all of the file.
fn denies(text: &str) -> bool {
    let mut inner = text.split("#![").skip(1);
    inner.any(|attribute| attribute.contains("deny(clippy::disallowed_m"))
}

/// Whether Rust allows a lint of `clippy.toml` somewhere.
fn allows(text: &str) -> bool {
    let mut attributes = text.split("allow(").chain(text.split("expect("));
    attributes.any(|rest| rest.trim_start().starts_with("clippy::disallowed_m"))
}

/// Reads a file; one that is deleted in the work tree may still be in the index.
fn read(file: &str) -> String {
    read_to_string(root().join(file)).unwrap_or_default()
}

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const HEADING: &str = "\n## The path of a request\n";
const DENY: &str = "#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_names_files() {
        let text = "x.rs
## The path of a request

y.rs
```text
   │ object.rs, scope.rs        │ generated, call.rs
 server/worker.rs, server/worker/{affine,permits}.rs
   ├── chronorb-giop: connection.rs (MessageReader), framing.rs,
   │                  target.rs
   └── chronorb-rt:   time/clock.rs; server: table/slots/
```
z.rs";
        let expected = [
            "crates/chronorb-orb/src/object.rs",
            "crates/chronorb-orb/src/scope.rs",
            "crates/chronorb-orb/src/call.rs",
            "crates/chronorb-orb/src/server/worker.rs",
            "crates/chronorb-orb/src/server/worker/affine.rs",
            "crates/chronorb-orb/src/server/worker/permits.rs",
            "crates/chronorb-giop/src/connection.rs",
            "crates/chronorb-giop/src/framing.rs",
            "crates/chronorb-giop/src/target.rs",
            "crates/chronorb-rt/src/time/clock.rs",
            "crates/chronorb-rt/src/table/slots/",
        ];
        assert_eq!(paths(text), expected);
    }

    #[test]
    fn files_of_a_path() {
        assert!(is_at("a/src/b.rs", "a/src/b.rs"));
        assert!(is_at("a/src/b/mod.rs", "a/src/b.rs"));
        assert!(!is_at("a/src/b/c.rs", "a/src/b.rs"));
        assert!(is_at("a/src/b/c.rs", "a/src/b/"));
        assert!(!is_at("a/src/b/tests.rs", "a/src/b/"));
    }

    #[test]
    fn exceptions_are_told_from_rules() {
        let rule = "//! Doc.\n#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]";
        let exceptions = [
            "#[allow(clippy::disallowed_methods, reason = \"once\")]",
            "#[allow(\n    clippy::disallowed_macros,\n)]",
            "#[expect(clippy::disallowed_methods)]",
        ];
        assert!(denies(rule) && !allows(rule));
        for exception in exceptions {
            assert!(allows(exception) && !denies(exception));
        }
        assert!(!allows("#[allow(clippy::disallowed_types)]"));
        let around = [
            "crates/a/src.rs",
            "crates/a/src/mod.rs",
            "crates/a/src/lib.rs",
            "crates/a/src/main.rs",
            "crates/a/src/b.rs",
            "crates/a/src/b/mod.rs",
            "crates/a/src/b/lib.rs",
            "crates/a/src/b/main.rs",
        ];
        assert_eq!(outer("crates/a/src/b/c.rs"), around);
    }
}
