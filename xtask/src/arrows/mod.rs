//! Arrows between the modules of a crate: which module names which other one.
//!
//! An arrow ends at the module that defines the item of a path, through all re-exports: where
//! `poa/mod.rs` re-exports a `Poa` of `poa/adapter.rs`, `crate::poa::Poa` is an arrow to
//! `poa::adapter`. What another crate defines belongs to the module that re-exports it. Counted are
//! private `use` lines and all paths of code. A re-export is counted only where its own module
//! uses the name. Tests are left out.

mod cycles;
mod resolve;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::run::{Failure, root};
use source::Files;

/// By module, the modules that it names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The rules of `xtask/arrows.toml`, by the name of the crate that they restrict.
type Rules = BTreeMap<String, CrateRules>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrateRules {
    /// The number of modules in the largest cycle; 1 if there is none.
    modules: usize,
    /// The number of rooms in the largest cycle of rooms; 1 if there is none.
    rooms: usize,
    /// Rooms with those that they must not name.
    #[serde(default)]
    forbidden: BTreeMap<String, Vec<String>>,
}

/// Checks the arrows of each crate against `xtask/arrows.toml`. With `--show CRATE` it prints all
/// arrows of one.
pub(crate) fn arrows(options: &[&str]) -> Result<(), Failure> {
    if let ["--show", name] = options {
        for (from, to) in arrows_of(name)? {
            println!("{from} -> {}", Vec::from_iter(to).join(" "));
        }
        return Ok(());
    }
    let complaints = complaints()?;
    if complaints.is_empty() {
        println!("no cycle is larger than its record");
        return Ok(());
    }
    Err(Failure(complaints.join("\n")))
}

/// Returns the differences between the arrows of all crates and `xtask/arrows.toml`.
pub(crate) fn complaints() -> Result<Vec<String>, Failure> {
    let file = root().join("xtask/arrows.toml");
    let bad = |problem: String| Failure(format!("{}: {problem}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|e| bad(e.to_string()))?;
    let rules: Rules = toml::from_str(&text).map_err(|e| bad(e.to_string()))?;
    let mut complaints = Vec::new();
    for name in crates()? {
        let Some(rules) = rules.get(&name) else {
            complaints.push(format!("{name} has no entry in xtask/arrows.toml"));
            continue;
        };
        let found = rules.complaints(&arrows_of(&name)?);
        complaints.extend(found.into_iter().map(|it| format!("{name}: {it}")));
    }
    Ok(complaints)
}

/// Returns the names of the folders in `crates/`.
fn crates() -> Result<Vec<String>, Failure> {
    let folder = root().join("crates");
    let bad = |error: std::io::Error| Failure(format!("{}: {error}", folder.display()));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        if entry.path().join("src").is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn arrows_of(name: &str) -> Result<Arrows, Failure> {
    let folder = root().join("crates").join(name).join("src");
    read(&folder).map_err(|error| Failure(format!("{}: {error}", folder.display())))
}

fn read(folder: &Path) -> Result<Arrows, String> {
    let mut files = Files::default();
    files.read_folder(folder, "")?;
    Ok(resolve::arrows(&files.into_modules()))
}

/// Returns the arrows between rooms: the modules at the root, each with all that is in it. The
/// root itself is a room without a name.
fn rooms(arrows: &Arrows) -> Arrows {
    let room = |module: &str| {
        let (room, _) = module.split_once("::").unwrap_or((module, ""));
        room.to_owned()
    };
    let mut rooms = Arrows::new();
    for (from, to) in arrows {
        let from = room(from);
        let others = to.iter().map(|to| room(to)).filter(|to| *to != from);
        let others: Vec<_> = others.collect();
        rooms.entry(from).or_default().extend(others);
    }
    rooms
}

fn child(module: &str, name: &str) -> String {
    match module {
        "" => name.to_owned(),
        module => format!("{module}::{name}"),
    }
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

impl CrateRules {
    fn complaints(&self, arrows: &Arrows) -> Vec<String> {
        let mut complaints = compare("modules", arrows, self.modules);
        complaints.extend(compare("rooms", &rooms(arrows), self.rooms));
        for (room, others) in &self.forbidden {
            let of_room = arrows.iter().filter(|(from, _)| is_in(from, room));
            let pairs = of_room.flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
            let bad = pairs.filter(|(_, to)| others.iter().any(|other| is_in(to, other)));
            complaints.extend(bad.map(|(from, to)| format!("{from} names {to}")));
        }
        complaints
    }
}

/// Compares the largest cycle with the record of its size. A smaller one has to be recorded, so
/// that it stays so.
fn compare(kind: &str, arrows: &Arrows, record: usize) -> Vec<String> {
    let cycles = cycles::of(arrows);
    let largest = cycles.first().map_or(1, Vec::len);
    if largest < record {
        return vec![format!(
            "the largest cycle has {largest} {kind}, and not {record}: \
             record {kind} = {largest} in xtask/arrows.toml"
        )];
    }
    let large = cycles.into_iter().filter(|cycle| cycle.len() > record);
    large
        .map(|cycle| {
            let n = cycle.len();
            format!(
                "a cycle of {n} {kind} (at most {record}): {}",
                cycle.join(" ")
            )
        })
        .collect()
}

/// Whether a module is that room, or in it.
fn is_in(module: &str, room: &str) -> bool {
    let rest = module.strip_prefix(room);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests;
