//! The layers of crates: ARCHITECTURE.md and `Cargo.toml` state the same ones, dependencies point
//! to lower layers or stand in the list of those within a layer, and layer 0 does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use crate::packages::{self, read};
use crate::run::{Failure, root};

type Layers<'t> = BTreeMap<&'t str, u32>;
type Pairs<'t> = BTreeSet<(&'t str, &'t str)>;

/// Returns what contradicts the table of layers, and what is missing from it.
pub(crate) fn complaints(files: &[&str]) -> Result<Vec<String>, Failure> {
    let architecture = read(&root().join(ARCHITECTURE))?;
    let manifest = read(&root().join("Cargo.toml"))?;
    let (layers, floors) = (layers(&architecture), floors(&manifest));
    let mut complaints = Vec::new();
    let names: BTreeSet<_> = layers.keys().chain(floors.keys()).collect();
    for name in names {
        let (layer, floor) = (layers.get(name), floors.get(name));
        // Tests of generated code have a floor only.
        if layer != floor && !(layer.is_none() && name.contains('/')) {
            complaints.push(format!(
                "{name}: {ARCHITECTURE} has it in layer {layer:?}, Cargo.toml on floor {floor:?}"
            ));
        }
    }
    let dependencies = packages::dependencies()?;
    let dependencies = dependencies.iter().map(|(of, on)| (&**of, &**on));
    complaints.extend(pair_complaints(
        &layers,
        &within(&architecture),
        dependencies,
    ));
    for file in files {
        let crate_ = file
            .strip_prefix("crates/")
            .and_then(|it| it.split_once("/src/"));
        if let Some((name, _)) = crate_
            && layers.get(name) == Some(&0)
            && !READS_FILES.contains(&name)
            && let Some(module) = io_in(&read(&root().join(file)).unwrap_or_default())
        {
            complaints.push(format!("{file} is in layer 0, and uses {module}"));
        }
    }
    Ok(complaints)
}

/// Returns the crates of the table of layers.
fn layers(architecture: &str) -> Layers<'_> {
    let rows = architecture.lines().filter_map(|line| {
        let (layer, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let crates = rest.split(" | ").next()?.split('`').skip(1).step_by(2);
        Some((layer.parse().ok()?, crates))
    });
    let rows = rows.flat_map(|(layer, crates)| crates.map(move |name| (name, layer)));
    rows.collect()
}

/// Returns the crates of the workspace that are under a heading of a floor.
fn floors(manifest: &str) -> Layers<'_> {
    let mut floor = None;
    let mut floors = Layers::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("# ") {
            let number = comment
                .strip_prefix("Floor ")
                .and_then(|it| it.split_once(':'));
            floor = number.and_then(|(number, _)| number.parse().ok());
        } else if let (Some(floor), Some(path)) = (floor, line.strip_prefix("\"crates/")) {
            floors.extend(path.split_once('"').map(|(name, _)| (name, floor)));
        }
    }
    floors
}

/// Returns the dependencies within a layer: the chains "`a` to `b` to `c`" of a sentence.
fn within(architecture: &str) -> Pairs<'_> {
    let sentence = architecture.split(WITHIN).nth(1).unwrap_or_default();
    let sentence = sentence.split(".\n").next().unwrap_or_default();
    let mut pairs = Pairs::new();
    for chain in sentence.split(',') {
        let names: Vec<_> = chain.split('`').skip(1).step_by(2).collect();
        for (at, of) in names.iter().enumerate() {
            pairs.extend(names[at + 1..].iter().map(|on| (*of, *on)));
        }
    }
    pairs
}

/// Returns the dependencies that point to no lower layer and are not listed, and the listed ones
/// that do not exist.
fn pair_complaints<'a>(
    layers: &Layers<'_>,
    listed: &Pairs<'_>,
    dependencies: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<String> {
    let mut unused = listed.clone();
    let mut complaints = Vec::new();
    for (of, on) in dependencies {
        let pair = (short(of), short(on));
        let is_down = layers
            .get(of)
            .zip(layers.get(on))
            .is_some_and(|(of, on)| of > on);
        if !unused.remove(&pair) && !is_down {
            complaints.push(format!(
                "{of} depends on {on}, which is in no lower layer, nor listed in {ARCHITECTURE}"
            ));
        }
    }
    let unused = unused.iter();
    let unused = unused.map(|(of, on)| format!("{ARCHITECTURE}: {of} does not depend on {on}"));
    complaints.extend(unused);
    complaints
}

fn short(name: &str) -> &str {
    name.strip_prefix("chronorb-").unwrap_or(name)
}

/// Returns a module of I/O, clocks or threads that a source uses outside of its tests.
fn io_in(source: &str) -> Option<&'static str> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code = || {
        source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
    };
    let mut modules = IO.into_iter();
    modules.find(|module| code().any(|line| line.contains(module)))
}

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const WITHIN: &str = "within a layer from ";
/// The crates of layer 0 that ARCHITECTURE.md excepts.
const READS_FILES: [&str; 1] = ["chronorb-idl"];
const IO: [&str; 7] = [
    "std::fs",
    "std::net",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "rustix::",
    "libc::",
];

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Dependencies point to lower layers, and within a layer from `d` to `c`,
`b` to `a`.

| layer | crate | contents |
|---|---|---|
| 1 | `chronorb-c`, `chronorb-d` | `chronorb-e` |
| 0 | `chronorb-a`, `chronorb-b` | |
";

    #[test]
    fn both_lists_of_layers_are_read() {
        let manifest = "members = [
    # Floor 0: octets.
    \"crates/chronorb-a\", # a
    \"crates/chronorb-b\",
    # Floor 1: Linux.
    \"crates/chronorb-c\",
    \"crates/chronorb-d\",
    # Beside the floors.
    \"crates/chronorb-f\",
]";
        let expected = [("a", 0), ("b", 0), ("c", 1), ("d", 1)];
        for found in [layers(TEXT), floors(manifest)] {
            let found: Vec<_> = found.iter().map(|(name, at)| (short(name), *at)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn dependencies_point_down_or_are_listed() {
        let (layers, listed) = (layers(TEXT), within(TEXT));
        assert_eq!(listed, Pairs::from([("b", "a"), ("d", "c")]));
        let complaints = |pairs: &[(&'static str, &'static str)]| {
            pair_complaints(&layers, &listed, pairs.iter().copied())
        };
        let right = [
            ("chronorb-b", "chronorb-a"),
            ("chronorb-c", "chronorb-a"),
            ("chronorb-d", "chronorb-c"),
        ];
        assert_eq!(complaints(&right), [""; 0]);
        assert_eq!(
            complaints(&right[..2]),
            ["ARCHITECTURE.md: d does not depend on c"]
        );
        let wrong = [&right[..], &[("chronorb-a", "chronorb-c")]].concat();
        assert!(complaints(&wrong)[0].starts_with("chronorb-a depends on chronorb-c,"));
        let chain = within("within a layer from `x` to `y` to `z`.\n");
        assert_eq!(chain, Pairs::from([("x", "y"), ("x", "z"), ("y", "z")]));
    }

    #[test]
    fn io_is_found_outside_of_tests() {
        assert_eq!(io_in("use std::fs::File;"), Some("std::fs"));
        assert_eq!(
            io_in("// std::fs\n#[cfg(test)]\nmod tests { use std::net::IpAddr; }"),
            None
        );
    }
}
