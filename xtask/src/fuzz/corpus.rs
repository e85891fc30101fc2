//! The corpora. The inputs that a run finds are in the build folder; `fuzz` has those that are
//! committed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::build::{self, FuzzPrograms, Purpose};
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
pub(super) fn keep(targets: &[String]) -> Result<(), Failure> {
    let programs = build::programs(targets, Purpose::Coverage)?;
    let mut targets = targets.iter();
    targets.try_for_each(|target| keep_one(&programs, target))
}

fn keep_one(programs: &FuzzPrograms, target: &str) -> Result<(), Failure> {
    let [corpus, _] = kept(target);
    let mut inputs = measure(programs, target)?;
    // Threads reach some edges by chance: what counts is reached each time.
    for (input, again) in inputs.iter_mut().zip(measure(programs, target)?) {
        let again: HashSet<u32> = again.edges.into_iter().collect();
        input.edges.retain(|edge| again.contains(edge));
    }
    let all = edges(&inputs);
    let (found, named): (Vec<_>, Vec<_>) =
        inputs.into_iter().partition(|input| is_digest(&input.path));
    let chosen = choose(found, &named);
    let names: HashSet<_> = chosen.iter().map(|input| input.path.file_name()).collect();
    let bad = |error: std::io::Error| Failure(format!("{}: {error}", corpus.display()));
    for old in files(&corpus).iter().filter(|path| is_digest(path)) {
        if !names.contains(&old.file_name()) {
            fs::remove_file(old).map_err(bad)?;
        }
    }
    for input in &chosen {
        let path = corpus.join(input.path.file_name().unwrap_or_default());
        if path != input.path {
            fs::copy(&input.path, path).map_err(bad)?;
        }
    }
    let octets: u64 = chosen.iter().map(|input| input.size).sum();
    let reached = &edges(&named) | &edges(&chosen);
    eprintln!(
        "{target}: {} files with {octets} octets, beside {} with names, reach {} of {} edges",
        chosen.len(),
        named.len(),
        reached.len(),
        all.len(),
    );
    Ok(())
}

/// A file of a corpus.
#[derive(Debug)]
struct Input {
    path: PathBuf,
    size: u64,
    /// The edges of the instrumented crates that it reaches.
    edges: Vec<u32>,
}

/// Runs all inputs of a target, each of them once, as libFuzzer does for a merge.
fn measure(programs: &FuzzPrograms, target: &str) -> Result<Vec<Input>, Failure> {
    // The same file may be in the folder of a run and in the repository.
    let folders = [vec![working(target)], kept(target).to_vec()].concat();
    let paths = folders.iter().flat_map(|folder| files(folder));
    let paths = paths.map(|path| (path.file_name().map(ToOwned::to_owned), path));
    let paths: BTreeMap<_, _> = paths.collect();
    let mut paths: Vec<(u64, PathBuf)> = paths
        .into_values()
        .map(|path| (path.metadata().map_or(0, |metadata| metadata.len()), path))
        .collect();
    paths.sort_unstable();
    // The number of files, the number of those in the first folder, and the paths.
    let mut control = format!("{}\n0\n", paths.len());
    for (_, path) in &paths {
        control += &format!("{}\n", path.display());
    }
    let list = target_dir().join("fuzz").join(format!("{target}.merge"));
    let bad = |error: std::io::Error| Failure(format!("{}: {error}", list.display()));
    create(&target_dir().join("fuzz"))?;
    fs::write(&list, control).map_err(bad)?;
    let mut command = Command::new(programs.path(target));
    command.envs(&programs.environment);
    command.args(["-merge_inner=2", "-use_counters=0", "-max_len=1048576"]);
    command.arg(format!("-merge_control_file={}", list.display()));
    run::run(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
    // For each file, `FT INDEX EDGE…` has been added.
    let text = fs::read_to_string(&list).map_err(bad)?;
    let mut edges: HashMap<usize, Vec<u32>> = text
        .lines()
        .filter_map(|line| {
            let mut numbers = line.strip_prefix("FT ")?.split(' ');
            let index = numbers.next()?.parse().ok()?;
            Some((
                index,
                numbers.filter_map(|edge| edge.parse().ok()).collect(),
            ))
        })
        .collect();
    let inputs = paths.into_iter().enumerate();
    let inputs = inputs.map(|(index, (size, path))| Input {
        path,
        size,
        edges: edges.remove(&index).unwrap_or_default(),
    });
    Ok(inputs.collect())
}

/// The edges that any of the inputs reaches.
fn edges(inputs: &[Input]) -> HashSet<u32> {
    let edges = inputs.iter().flat_map(|input| &input.edges);
    edges.copied().collect()
}

/// Chooses inputs that reach all edges which the named ones do not: in turn that with the most such
/// edges for its octets, as far as the limits go.
fn choose(inputs: Vec<Input>, named: &[Input]) -> Vec<Input> {
    let mut covered = edges(named);
    let value = |input: &Input, covered: &HashSet<u32>| {
        let new = input.edges.iter().filter(|edge| !covered.contains(edge));
        (new.count() as u64 * SCALE) / (input.size + FILE_COST)
    };
    let mut inputs: Vec<Option<Input>> = inputs.into_iter().map(Some).collect();
    let mut candidates: BinaryHeap<(u64, Reverse<usize>)> = inputs
        .iter()
        .enumerate()
        .filter_map(|(index, input)| Some((value(input.as_ref()?, &covered), Reverse(index))))
        .collect();
    let (mut chosen, mut octets) = (Vec::new(), 0);
    while let Some((_, index)) = candidates.pop() {
        let Some(input) = &inputs[index.0] else {
            continue;
        };
        let now = value(input, &covered);
        // Values only fall, so none of the others is above what it was.
        if candidates.peek().is_some_and(|(next, _)| now < *next) {
            candidates.push((now, index));
        } else if now > 0 && chosen.len() < MAX_FILES && octets + input.size <= MAX_OCTETS {
            octets += input.size;
            covered.extend(&input.edges);
            chosen.extend(inputs[index.0].take());
        }
    }
    without_redundant(chosen, named)
}

/// Drops what reaches nothing that the rest does not, the largest first.
fn without_redundant(mut inputs: Vec<Input>, named: &[Input]) -> Vec<Input> {
    let mut reached: HashMap<u32, usize> = HashMap::new();
    for edge in inputs.iter().chain(named).flat_map(|input| &input.edges) {
        *reached.entry(*edge).or_default() += 1;
    }
    inputs.sort_by_key(|input| Reverse(input.size));
    inputs.retain(|input| {
        let is_needed = input.edges.iter().any(|edge| reached[edge] == 1);
        if !is_needed {
            for edge in &input.edges {
                reached.entry(*edge).and_modify(|count| *count -= 1);
            }
        }
        is_needed
    });
    inputs
}

/// Whether the file has a name that libFuzzer has given it.
fn is_digest(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.len() == 40 && name.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// The most files of a target in the repository.
const MAX_FILES: usize = 600;
/// Their octets.
const MAX_OCTETS: u64 = 1 << 20;
/// The octets that a file counts for beside its own.
const FILE_COST: u64 = 1024;
/// Makes the value of a single edge of the largest file a whole number.
const SCALE: u64 = 1 << 32;
