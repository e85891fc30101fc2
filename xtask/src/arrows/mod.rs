//! Arrows between the modules of a crate: which module names which other one.
//!
//! An arrow ends at the last module of a path: `crate::poa::Poa` names `poa`, whose file says what
//! the folder offers. Counted are the paths of private `use` lines, and all paths of code that
//! begin with `crate` or `super`. Re-exports are not counted, and neither are tests.

mod cycles;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::run::{Failure, root};
use source::Modules;

/// By module, the modules that it names.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The rules of `xtask/arrows.toml`, by the name of the crate that they restrict.
type Rules = BTreeMap<String, CrateRules>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrateRules {
    /// The most modules of a cycle.
    largest_cycle: usize,
    /// Rooms, which are modules at the root, with those that they must not name.
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
        println!("all arrows go down");
        return Ok(());
    }
    Err(Failure(complaints.join("\n")))
}

/// Returns the violations in the arrows of all crates.
pub(crate) fn complaints() -> Result<Vec<String>, Failure> {
    let file = root().join("xtask/arrows.toml");
    let bad = |problem: String| Failure(format!("{}: {problem}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|e| bad(e.to_string()))?;
    let rules: Rules = toml::from_str(&text).map_err(|e| bad(e.to_string()))?;
    let mut complaints = Vec::new();
    for (name, rules) in &rules {
        let arrows = arrows_of(name)?;
        complaints.extend(rules.complaints(&arrows).map(|it| format!("{name}: {it}")));
    }
    Ok(complaints)
}

fn arrows_of(name: &str) -> Result<Arrows, Failure> {
    let folder = root().join("crates").join(name).join("src");
    read(&folder).map_err(|error| Failure(format!("{}: {error}", folder.display())))
}

fn read(folder: &Path) -> Result<Arrows, String> {
    let modules = source::modules(folder)?;
    let arrows = modules.iter().map(|(name, paths)| {
        let targets = paths
            .iter()
            .filter_map(|path| resolve(&modules, name, path));
        (name.clone(), targets.filter(|to| to != name).collect())
    });
    Ok(arrows.collect())
}

/// Returns the innermost module that `path` names, seen from `module`; `None` if it is outside the
/// crate.
fn resolve(modules: &Modules, module: &str, path: &[String]) -> Option<String> {
    let mut at = module.to_owned();
    let mut segments = path.iter().map(String::as_str).peekable();
    match *segments.peek()? {
        "crate" => {
            segments.next();
            at.clear();
        }
        "self" => {
            segments.next();
        }
        "super" => {
            while segments.next_if_eq(&"super").is_some() {
                at = parent(&at).to_owned();
            }
        }
        name if modules.contains_key(&child(&at, name)) => {}
        _ => return None,
    }
    for name in segments {
        let inner = child(&at, name);
        if !modules.contains_key(&inner) {
            break;
        }
        at = inner;
    }
    Some(at)
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
    fn complaints(&self, arrows: &Arrows) -> impl Iterator<Item = String> {
        let large = cycles::of(arrows)
            .into_iter()
            .filter(|cycle| cycle.len() > self.largest_cycle)
            .map(|cycle| {
                let (n, most) = (cycle.len(), self.largest_cycle);
                format!(
                    "a cycle of {n} modules (at most {most}): {}",
                    cycle.join(" ")
                )
            });
        let forbidden = self.forbidden.iter().flat_map(|(room, others)| {
            let of_room = arrows.iter().filter(|(from, _)| is_in(from, room));
            let pairs = of_room.flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
            let bad = pairs.filter(|(_, to)| others.iter().any(|other| is_in(to, other)));
            bad.map(|(from, to)| format!("{from} names {to}"))
        });
        large.chain(forbidden)
    }
}

/// Whether a module is that room, or in it.
fn is_in(module: &str, room: &str) -> bool {
    let rest = module.strip_prefix(room);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests;
