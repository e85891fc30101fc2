//! Licences, duplicates, origins and advisories of dependencies, by cargo-deny.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{failure, read, remove, write};
use crate::run::{self, Failure, ask, root, target_dir};

/// Checks the dependencies of each workspace. With `--advisories FOLDER` it also checks them
/// against the advisories in a clone of an advisory database.
pub(crate) fn deny(options: &[&str]) -> Result<(), Failure> {
    let database = match *options {
        [] => None,
        ["--advisories", folder] => Some(database(folder)?),
        _ => return Err(Failure("the option is --advisories FOLDER".to_owned())),
    };
    if ask("cargo-deny", &["--version"]).is_none() {
        run::cargo(&["install", "--locked", "cargo-deny"], &[])?;
    }
    let mut failures = Vec::new();
    for (manifest, config) in WORKSPACES {
        failures.extend(workspace(manifest, config, database.as_deref()).err());
    }
    if failures.is_empty() {
        return Ok(());
    }
    let failures = failures.into_iter().map(|Failure(problem)| problem);
    Err(Failure(failures.collect::<Vec<_>>().join("\n")))
}

/// Checks the dependencies of one workspace.
fn workspace(manifest: &str, config: &str, database: Option<&Path>) -> Result<(), Failure> {
    let config = root().join(config);
    check(manifest, &config, &[], &["licenses", "bans", "sources"])?;
    let Some(database) = database else {
        return Ok(());
    };
    // The check before has fetched all crates.
    let config = with_database(&config, database)?;
    check(manifest, &config, &["--offline"], &["advisories"])
}

/// Runs cargo-deny for the locked dependencies of a workspace.
fn check(manifest: &str, config: &Path, mode: &[&str], checks: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("cargo-deny");
    command.current_dir(root());
    command.args(["--all-features", "--locked", "--manifest-path", manifest]);
    command.arg("--config").arg(config).args(mode);
    command.args(["check", "--hide-inclusion-graph"]);
    // One configuration serves several workspaces, of which not each needs all of it.
    command.args(["--allow", "license-not-encountered"]);
    command.args(["--allow", "license-exception-not-encountered"]);
    run::run(command.args(checks))
}

/// Puts the advisory database in `folder` where cargo-deny would have cloned [`URL`]. Returns the
/// folder of clones.
fn database(folder: &str) -> Result<PathBuf, Failure> {
    let given = fs::canonicalize(folder).map_err(|error| failure(folder.as_ref(), error))?;
    let clones = target_dir().join("advisories");
    remove(&clones)?;
    fs::create_dir_all(&clones).map_err(|error| failure(&clones, error))?;
    symlink(given, clones.join(CLONE)).map_err(|error| failure(&clones, error))?;
    Ok(clones)
}

/// Writes a copy of a configuration that names a folder of clones, and returns its path.
fn with_database(config: &Path, clones: &Path) -> Result<PathBuf, Failure> {
    let text = read(config)?;
    let section = "[advisories]\n";
    let Some((before, after)) = text.split_once(section) else {
        let problem = "it has no section [advisories]";
        return Err(failure(config, problem));
    };
    let text = format!("{before}{section}db-path = {clones:?}\ndb-urls = [{URL:?}]\n{after}");
    let copy = clones.join("deny.toml");
    write(&copy, &text)?;
    Ok(copy)
}

/// The manifests of the workspaces, with their configurations.
const WORKSPACES: [(&str, &str); 3] = [
    ("Cargo.toml", "deny.toml"),
    (run::OUTSIDE, "deny.toml"),
    (run::INTEGRATIONS, "integrations/deny.toml"),
];

/// The address that the given database pretends to be from; nothing is fetched.
const URL: &str = "https://localhost/given";
/// The folder that cargo-deny expects a clone of [`URL`] in: the name, and a hash of the address.
const CLONE: &str = "given-5222c4007edc1b91";
