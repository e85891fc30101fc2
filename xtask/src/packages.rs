//! The crates that are published: what their manifests say, and whether their packages build alone.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use crate::run::{self, Failure, root};
use crate::targets;

/// A crate that is published.
struct Crate {
    name: String,
    /// The folder, from the workspace's root.
    folder: String,
    manifest: Table,
}

/// Says what the crates' manifests and folders lack, which lists of features are not those of the
/// manifests, and whether the tutorial has its files.
pub(crate) fn complaints() -> Result<Vec<String>, Failure> {
    let mut complaints = Vec::new();
    for published in published()? {
        complaints.extend(published.complaints());
    }
    complaints.extend(feature_complaints()?);
    complaints.extend(tutorial_files().err().map(|Failure(what)| what));
    Ok(complaints)
}

impl Crate {
    fn read(folder: String) -> Result<Self, Failure> {
        let manifest = table(&root().join(&folder).join("Cargo.toml"))?;
        let name = manifest
            .get("package")
            .and_then(|package| package.get("name"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self {
            name,
            folder,
            manifest,
        })
    }

    fn package(&self, key: &str) -> Option<&Value> {
        self.manifest.get("package")?.get(key)
    }

    fn is_published(&self) -> bool {
        self.package("publish").and_then(Value::as_bool) != Some(false)
    }

    fn complaints(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for key in ["description", "license", "readme", "rust-version"] {
            if self.package(key).is_none() {
                missing.push(format!("its manifest has no {key}"));
            }
        }
        for (key, most) in [("categories", 5), ("keywords", 5)] {
            let list = self.package(key).and_then(Value::as_array);
            if !list.is_some_and(|list| (1..=most).contains(&list.len())) {
                missing.push(format!("its manifest has not 1 to {most} {key} of its own"));
            }
        }
        let docs = self
            .package("metadata")
            .and_then(|metadata| metadata.get("docs"));
        let docs = docs.and_then(|docs| docs.get("rs"));
        if docs.and_then(|docs| docs.get("all-features")) != Some(&Value::Boolean(true)) {
            missing.push("docs.rs would not document all features".to_owned());
        }
        for file in ["README.md", LICENCES[0], LICENCES[1]] {
            if !root().join(&self.folder).join(file).is_file() {
                missing.push(format!("{file} is missing"));
            }
        }
        let folder = &self.folder;
        missing
            .into_iter()
            .map(|what| format!("{folder}: {what}"))
            .collect()
    }

    /// The features, and whether they are on by default.
    fn features(&self) -> BTreeMap<String, bool> {
        let Some(features) = self.manifest.get("features").and_then(Value::as_table) else {
            return BTreeMap::new();
        };
        let default = features.get("default").and_then(Value::as_array);
        let is_default = |name: &str| {
            default.is_some_and(|list| list.iter().any(|one| one.as_str() == Some(name)))
        };
        let names = features.keys().filter(|name| *name != "default");
        names.map(|name| (name.clone(), is_default(name))).collect()
    }
}

/// The crates in `crates/`.
fn published() -> Result<Vec<Crate>, Failure> {
    let folder = root().join("crates");
    let bad = |error| failure(&folder, error);
    let mut crates = Vec::new();
    for entry in fs::read_dir(&folder).map_err(bad)? {
        let name = entry.map_err(bad)?.file_name();
        crates.push(Crate::read(format!("crates/{}", name.to_string_lossy()))?);
    }
    crates.retain(Crate::is_published);
    crates.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(crates)
}

/// Returns the dependencies of the published crates on each other, without those of tests.
pub(crate) fn dependencies() -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::new();
    for published in published()? {
        let targets = published.manifest.get("target").and_then(Value::as_table);
        let targets = targets.into_iter().flat_map(Table::values);
        let tables = targets
            .filter_map(Value::as_table)
            .chain([&published.manifest]);
        let lists = tables.flat_map(|table| {
            let lists = ["dependencies", "build-dependencies"];
            lists.map(|list| table.get(list).and_then(Value::as_table))
        });
        let names = lists.flatten().flat_map(Table::keys);
        let names = names.filter(|name| name.starts_with("chronorb"));
        pairs.extend(names.map(|name| (published.name.clone(), name.clone())));
    }
    Ok(pairs)
}

/// Returns the features of `chronorb`, without the list of default ones.
pub(crate) fn chronorb_features() -> Result<Vec<String>, Failure> {
    let features = Crate::read("crates/chronorb".to_owned())?.features();
    Ok(features.into_keys().collect())
}

/// The lists of features for users are those of the facade's manifest, and so are the features of
/// the crate that has them.
fn feature_complaints() -> Result<Vec<String>, Failure> {
    let features = Crate::read("crates/chronorb".to_owned())?.features();
    let orb = Crate::read("crates/chronorb-orb".to_owned())?.features();
    let mut complaints = Vec::new();
    let mut compare = |place: &str, found: BTreeMap<String, bool>| {
        if found != features {
            complaints.push(format!(
                "{place}: the features are {}, and those of crates/chronorb/Cargo.toml {}",
                listed(&found),
                listed(&features)
            ));
        }
    };
    compare("crates/chronorb-orb/Cargo.toml", orb);
    for (place, heading) in [
        ("crates/chronorb/src/lib.rs", "# Features"),
        ("README.md", "## Features"),
        ("docs/src/footprint.md", "## Features"),
    ] {
        compare(place, feature_table(&read(&root().join(place))?, heading));
    }
    Ok(complaints)
}

/// The rows ``| `NAME` | on | … |`` below a heading.
fn feature_table(text: &str, heading: &str) -> BTreeMap<String, bool> {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches("//!").trim());
    let section = lines.skip_while(|line| *line != heading).skip(1);
    let rows = section.take_while(|line| !line.starts_with('#'));
    let mut features = BTreeMap::new();
    for row in rows.filter_map(|line| line.strip_prefix("| `")) {
        let (name, rest) = row.split_once('`').unwrap_or_default();
        let default = rest.split('|').nth(1).unwrap_or_default();
        features.insert(name.to_owned(), default.trim() == "on");
    }
    features
}

fn listed(features: &BTreeMap<String, bool>) -> String {
    let listed = features.iter().map(|(name, is_default)| {
        let default = if *is_default { " (on)" } else { "" };
        format!("{name}{default}")
    });
    listed.collect::<Vec<_>>().join(", ")
}

/// Packs all crates that are published, has cargo build each from its package, and then the command
/// and the tutorial's project from all packages.
pub(crate) fn package() -> Result<(), Failure> {
    run::cargo(&["package", "--allow-dirty"], &[])?;
    let packages = PackageWorkspace::new()?;
    packages.cargo(&["build", "--package=chronorb-cli"])?;
    packages.tutorial("build")
}

/// Packs all crates that are published, and documents them and checks the tutorial's project with
/// nothing but the packages and the oldest Rust. To document a crate, cargo checks those that it
/// depends on.
pub(crate) fn quick() -> Result<(), Failure> {
    run::cargo(&["package", "--no-verify", "--quiet", "--allow-dirty"], &[])?;
    let mut packages = PackageWorkspace::new()?;
    packages.toolchain = targets::oldest_rust()?;
    packages.cargo(&["doc", "--workspace", "--no-deps"])?;
    packages.tutorial("check")
}

/// A folder with the unpacked packages as a workspace, and the project of the book's first chapter
/// beside them. All else comes from the registry.
struct PackageWorkspace {
    folder: PathBuf,
    /// The name of a toolchain for rustup; `None` for the one of this job.
    toolchain: Option<String>,
}

impl PackageWorkspace {
    fn new() -> Result<Self, Failure> {
        let workspace = read(&root().join("Cargo.toml"))?;
        let version = version(&workspace)?;
        let packages = run::target_dir().join("package");
        let alone = packages.join("alone");
        remove(&alone)?;
        let (mut patches, mut members) = (String::new(), String::new());
        for published in published()? {
            let name = format!("{}-{version}", published.name);
            unpack(&packages.join(format!("{name}.crate")), &alone)?;
            let folder = alone.join(&name);
            let _ = writeln!(patches, "{} = {{ path = {folder:?} }}", published.name);
            let _ = writeln!(members, "    {name:?},");
        }
        let config = format!("{}[patch.crates-io]\n{patches}", dev_profile(&workspace));
        write(&alone.join(".cargo/config.toml"), &config)?;
        let manifest = format!(
            "[workspace]\nresolver = \"3\"\nexclude = [\"tutorial\"]\nmembers = [\n{members}]\n"
        );
        write(&alone.join("Cargo.toml"), &manifest)?;
        let tutorial = alone.join("tutorial");
        for (file, text) in tutorial_files()? {
            write(&tutorial.join(file), &text)?;
        }
        // The versions that all else is built with.
        let lock = read(&root().join("Cargo.lock"))?;
        for folder in [&alone, &tutorial] {
            write(&folder.join("Cargo.lock"), &lock)?;
        }
        Ok(Self {
            folder: alone,
            toolchain: None,
        })
    }

    /// Runs cargo in the workspace of packages.
    fn cargo(&self, args: &[&str]) -> Result<(), Failure> {
        self.cargo_in(&self.folder, args)
    }

    /// Runs cargo in the tutorial's project.
    fn tutorial(&self, job: &str) -> Result<(), Failure> {
        self.cargo_in(&self.folder.join("tutorial"), &[job])
    }

    /// Runs cargo in a folder. Warnings of documentation are errors.
    fn cargo_in(&self, folder: &Path, args: &[&str]) -> Result<(), Failure> {
        let mut command = if let Some(toolchain) = &self.toolchain {
            let mut rustup = Command::new("rustup");
            rustup.args(["run", toolchain, "cargo"]);
            rustup
        } else {
            Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        };
        command.args(args).current_dir(folder);
        command.env("CARGO_TARGET_DIR", run::target_dir());
        command.env("RUSTDOCFLAGS", "--deny warnings");
        eprintln!("in {}:", folder.display());
        run::run(&mut command)
    }
}

/// The workspace's profile for development, as its manifest has it, so that dependencies need not
/// be built again.
fn dev_profile(workspace: &str) -> String {
    let sections = workspace.split("\n[profile.").skip(1);
    let dev = sections.filter(|section| section.starts_with("dev"));
    dev.map(|section| format!("[profile.{section}\n")).collect()
}

/// The files of the tutorial's project: a code block of the chapter belongs to the file whose name,
/// in backticks, begins the paragraph before it.
fn tutorial_files() -> Result<BTreeMap<String, String>, Failure> {
    let chapter = read(&root().join(TUTORIAL))?;
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut paragraph = "";
    let mut was_blank = true;
    let mut lines = chapter.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block = lines.by_ref().take_while(|line| *line != "```");
            let text: String = block.map(|line| format!("{line}\n")).collect();
            let name = paragraph
                .strip_prefix('`')
                .and_then(|rest| rest.split('`').next());
            if let Some(name) = name.filter(|name| name.contains('.')) {
                files.entry(name.to_owned()).or_default().push_str(&text);
            }
            paragraph = "";
        } else if was_blank && !line.is_empty() {
            paragraph = line;
        }
        was_blank = line.is_empty();
    }
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    if names == TUTORIAL_FILES {
        return Ok(files);
    }
    Err(Failure(format!(
        "{TUTORIAL}: its code blocks are of {names:?}, not of {TUTORIAL_FILES:?}"
    )))
}

pub(crate) fn version(workspace: &str) -> Result<String, Failure> {
    of_workspace(workspace, "version")
}

/// Returns a value that all packages of a workspace inherit.
pub(crate) fn of_workspace(manifest: &str, key: &str) -> Result<String, Failure> {
    let manifest: Table = toml::from_str(manifest).unwrap_or_default();
    let package = manifest
        .get("workspace")
        .and_then(|table| table.get("package"));
    let value = package
        .and_then(|table| table.get(key))
        .and_then(Value::as_str);
    let value = value.map(str::to_owned);
    value.ok_or_else(|| Failure(format!("Cargo.toml: the workspace has no {key}")))
}

/// Unpacks a package with the present time: all packages have the same times, by which cargo would
/// not see a change.
fn unpack(package: &Path, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| failure(folder, error))?;
    let mut tar = Command::new("tar");
    run::run(tar.arg("-xzmf").arg(package).arg("-C").arg(folder))
}

pub(crate) fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failure(folder, error)),
        _ => Ok(()),
    }
}

fn table(path: &Path) -> Result<Table, Failure> {
    toml::from_str(&read(path)?).map_err(|error| failure(path, error))
}

pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| failure(path, error))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| failure(folder, error))?;
    fs::write(path, text).map_err(|error| failure(path, error))
}

pub(crate) fn failure(path: &Path, error: impl Display) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}

pub(crate) const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
const TUTORIAL: &str = "docs/src/getting-started.md";
/// In alphabetical order.
const TUTORIAL_FILES: [&str; 6] = [
    "Cargo.toml",
    "build.rs",
    "idl/quoter.idl",
    "src/bin/quoter-client.rs",
    "src/bin/quoter-server.rs",
    "src/lib.rs",
];
