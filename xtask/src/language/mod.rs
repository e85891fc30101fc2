//! The rules of language: offences by area and kind, which may only become fewer.
//!
//! An area is a crate, another folder at the root, or `root` for the files there. The file
//! `xtask/language.toml` has the number of offences that each area still has. Quotations, code
//! spans and listings are not looked at, and neither are test data and generated code.

mod kinds;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::checks::is_test_data;
use crate::history::has_commit;
use crate::run::{Failure, ask, root};
use kinds::{Kind, Offence};

/// Numbers of offences by area, then by the name of their kind.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// The content of `xtask/language.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Baseline {
    /// The commit after which the subjects of commits are checked.
    base: String,
    #[serde(default)]
    areas: Counts,
}

/// A file that people write.
struct File {
    path: String,
    text: String,
}

/// An offence with its place: a file's path and line, or a commit.
struct Place {
    area: String,
    path: String,
    offence: Offence,
}

const MAX_SUBJECT: usize = 72;

/// The files that have the words themselves.
const RECOGNISERS: &str = "xtask/src/language/kinds";

/// The start of files that `chronorb-build` has written.
const GENERATED: &str = "// @generated";

/// Checks the language of the tree against `xtask/language.toml`, or prints what `options` ask for.
pub(crate) fn language(options: &[&str]) -> Result<(), Failure> {
    match *options {
        [] => {
            let complaints = complaints()?;
            if complaints.is_empty() {
                println!("no more offences than are tracked");
                return Ok(());
            }
            Err(Failure(complaints.join("\n")))
        }
        ["--track"] => {
            let base = baseline()?.base;
            let text = text_of(&base, &counts(&offences(&files()?, &base)));
            fs::write(path(), text).map_err(|error| bad(&error))
        }
        ["--show", area] => {
            let offences = offences(&files()?, &baseline()?.base);
            let in_area = |place: &&Place| place.area == area || place.path.starts_with(area);
            for Place { path, offence, .. } in offences.iter().filter(in_area) {
                let (kind, line) = (offence.kind.name(), offence.line);
                println!("{path}:{line}: {kind}: {}", offence.text);
            }
            Ok(())
        }
        ["--sample", n, "--seed", seed] => {
            let number = |text: &str| {
                let parsed = text.parse::<u64>();
                parsed.map_err(|error| Failure(format!("{text:?}: {error}")))
            };
            for (place, doc) in sample(&files()?, number(n)?, number(seed)?) {
                println!("{place}\n{doc}\n");
            }
            Ok(())
        }
        _ => Err(Failure(
            "the options are --track, --show AREA, and --sample N --seed S".to_owned(),
        )),
    }
}

/// Returns the areas that have more offences of a kind than are tracked.
pub(crate) fn complaints() -> Result<Vec<String>, Failure> {
    let Baseline { base, areas } = baseline()?;
    if !has_commit(&base) {
        println!("left out: the subjects of commits, as {base} is not here");
    }
    Ok(rises(&counts(&offences(&files()?, &base)), &areas))
}

fn rises(found: &Counts, tracked: &Counts) -> Vec<String> {
    let mut rises = Vec::new();
    for (area, kinds) in found {
        for (kind, count) in kinds {
            let most = tracked.get(area).and_then(|kinds| kinds.get(kind));
            let most = most.copied().unwrap_or(0);
            if *count > most {
                rises.push(format!(
                    "{area}: {count} offences of the kind {kind}, {most} are tracked; \
                     see cargo xtask language --show {area}"
                ));
            }
        }
    }
    rises
}

/// Reads all tracked Rust and Markdown files.
fn files() -> Result<Vec<File>, Failure> {
    let root = root();
    let args = [
        "-C",
        &root.display().to_string(),
        "ls-files",
        "*.rs",
        "*.md",
    ];
    let paths = ask("git", &args)
        .ok_or_else(|| Failure("git ls-files failed: is this a git checkout?".to_owned()))?;
    let is_checked = |path: &&str| !is_test_data(path) && !path.starts_with(RECOGNISERS);
    let paths = paths.lines().filter(is_checked);
    // A file that is deleted in the work tree may still be in the index.
    let files = paths.filter_map(|path| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        let path = path.to_owned();
        (!text.starts_with(GENERATED)).then_some(File { path, text })
    });
    Ok(files.collect())
}

fn offences(files: &[File], base: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let mut first_definitions = BTreeMap::new();
    for File { path, text } in files {
        let is_rust = path.ends_with(".rs");
        let mut offences = if is_rust {
            kinds::of_rust(text)
        } else {
            kinds::of_markdown(text)
        };
        if let Some((crate_, _)) = path.split_once("/src/").filter(|_| is_rust) {
            for definition in kinds::definitions(text) {
                let key = (crate_.to_owned(), definition.name);
                let line = definition.line;
                if let Some(first) = first_definitions.get(&key) {
                    let text = format!("{} is also defined in {first}", key.1);
                    let kind = Kind::SameName;
                    offences.push(Offence { kind, line, text });
                } else {
                    first_definitions.insert(key, format!("{path}:{line}"));
                }
            }
        }
        places.extend(offences.into_iter().map(|offence| Place {
            area: area_of(path).to_owned(),
            path: path.clone(),
            offence,
        }));
    }
    places.extend(long_subjects(base));
    places
}

fn area_of(path: &str) -> &str {
    let inner = path.strip_prefix("crates/").unwrap_or(path);
    inner.split_once('/').map_or("root", |(area, _)| area)
}

fn counts(places: &[Place]) -> Counts {
    let mut counts = Counts::new();
    for place in places {
        let kinds = counts.entry(place.area.clone()).or_default();
        *kinds
            .entry(place.offence.kind.name().to_owned())
            .or_default() += 1;
    }
    counts
}

/// Returns the subjects of commits after `base` that are too long; none where history is cut off.
fn long_subjects(base: &str) -> Vec<Place> {
    let range = format!("{base}..HEAD");
    let root = root().display().to_string();
    let args = ["-C", &root, "log", "--no-merges", "--format=%h %s", &range];
    let log = ask("git", &args).filter(|_| has_commit(base));
    let log = log.unwrap_or_default();
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    let long = commits.filter(|(_, subject)| subject.chars().count() > MAX_SUBJECT);
    long.map(|(commit, subject)| Place {
        area: "commits".to_owned(),
        path: commit.to_owned(),
        offence: Offence {
            kind: Kind::CommitSubject,
            line: 1,
            text: subject.to_owned(),
        },
    })
    .collect()
}

/// Draws doc comments at random, with their places. The same seed draws the same ones.
fn sample(files: &[File], n: u64, seed: u64) -> Vec<(String, String)> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut docs: Vec<_> = rust
        .flat_map(|File { path, text }| {
            let docs = kinds::documentation(text).into_iter();
            docs.map(move |(line, doc)| (format!("{path}:{line}"), doc))
        })
        .collect();
    let mut drawn = Vec::new();
    let mut state = seed;
    for _ in 0..n.min(docs.len() as u64) {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let index = (z % docs.len() as u64) as usize;
        drawn.push(docs.swap_remove(index));
    }
    drawn
}

fn baseline() -> Result<Baseline, Failure> {
    let text = fs::read_to_string(path()).map_err(|error| bad(&error))?;
    toml::from_str(&text).map_err(|error| bad(&error))
}

fn text_of(base: &str, counts: &Counts) -> String {
    let mut text = format!(
        "# Offences against the rules of language (`cargo xtask language`), which may only become\n\
         # fewer. `cargo xtask language --track` writes this file.\n\
         base = \"{base}\"\n"
    );
    for (area, kinds) in counts {
        text.push_str(&format!("\n[areas.{area}]\n"));
        for (kind, count) in kinds {
            text.push_str(&format!("{kind} = {count}\n"));
        }
    }
    text
}

fn path() -> PathBuf {
    root().join("xtask/language.toml")
}

fn bad(problem: &dyn std::fmt::Display) -> Failure {
    Failure(format!("{}: {problem}", path().display()))
}

#[cfg(test)]
mod tests;
