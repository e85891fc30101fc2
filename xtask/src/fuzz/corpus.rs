//! The corpora. The inputs that a run finds are in the build folder; `fuzz` has those that are
//! committed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::build::FuzzPrograms;
use super::run::{create, files};
use crate::run::{self, Failure, root, target_dir};

/// The folder that a run adds to.
pub(super) fn working(target: &str) -> PathBuf {
    target_dir().join("fuzz/corpus").join(target)
}

/// The folders of the repository: what reaches much code, and what once failed.
pub(super) fn kept(target: &str) -> [PathBuf; 2] {
    let fuzz = root().join("fuzz");
    [
        fuzz.join("corpus").join(target),
        fuzz.join("regressions").join(target),
    ]
}

/// Puts what reaches the most code in the fewest octets into the repository. Files with names of
/// their own stay there.
pub(super) fn keep(programs: &FuzzPrograms, target: &str) -> Result<(), Failure> {
    let small = target_dir().join("fuzz/small").join(target);
    let _ = fs::remove_dir_all(&small);
    create(&small)?;
    let work = working(target);
    let [corpus, regressions] = kept(target);
    create(&corpus)?;
    let mut command = Command::new(programs.path(target));
    command.envs(&programs.environment);
    command.args([
        "-set_cover_merge=1",
        "-use_counters=0",
        "-max_len=1048576",
        "-timeout=20",
    ]);
    command.arg(&small).arg(&work).arg(&corpus);
    if regressions.is_dir() {
        command.arg(&regressions);
    }
    run::run(command.stdout(Stdio::null()).stderr(Stdio::null()))?;

    let mut chosen: Vec<(u64, PathBuf)> = Vec::new();
    for path in files(&small) {
        let size = path.metadata().map_or(u64::MAX, |metadata| metadata.len());
        chosen.push((size, path));
    }
    chosen.sort();
    let bad = |error: std::io::Error| Failure(format!("{}: {error}", corpus.display()));
    for old in files(&corpus).iter().filter(|path| is_digest(path)) {
        fs::remove_file(old).map_err(bad)?;
    }
    let named: Vec<Vec<u8>> = [&corpus, &regressions]
        .into_iter()
        .flat_map(|folder| files(folder))
        .filter_map(|path| fs::read(path).ok())
        .collect();
    let (mut count, mut octets) = (0, 0);
    for (size, path) in &chosen {
        if count == MAX_FILES || octets + size > MAX_OCTETS {
            break;
        }
        let is_named = fs::read(path).is_ok_and(|octets| named.contains(&octets));
        let Some(name) = path.file_name().filter(|_| !is_named) else {
            continue;
        };
        fs::copy(path, corpus.join(name)).map_err(bad)?;
        count += 1;
        octets += size;
    }
    eprintln!(
        "{target}: {count} of {} files kept, {octets} octets",
        chosen.len()
    );
    Ok(())
}

/// Whether the file has a name that libFuzzer has given it.
fn is_digest(path: &std::path::Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.len() == 40 && name.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// The most files of a target in the repository.
const MAX_FILES: usize = 600;
/// Their octets.
const MAX_OCTETS: u64 = 1 << 20;
