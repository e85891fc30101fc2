//! All files of the corpora, and inputs that a seeded generator makes of them, without the fuzzer.

mod grammar;

use std::env;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

use fastrand::Rng;

type Target = fn(&[u8]);

/// The targets, and the number of inputs that are generated for each, which `CHRONORB_FUZZ_INPUTS`
/// multiplies.
macro_rules! targets {
    ($($name:ident: $count:literal;)*) => {
        /// Inputs that were found before.
        mod corpus {
            $(#[test]
            fn $name() {
                super::replay(stringify!($name), chronorb_fuzz::$name);
            })*
        }

        /// Inputs that follow from fixed seeds.
        mod generated {
            $(#[test]
            fn $name() {
                super::generate(stringify!($name), chronorb_fuzz::$name, $count);
            })*
        }

        #[test]
        fn every_target_is_replayed() {
            let mut named = vec![$(stringify!($name)),*];
            named.sort_unstable();
            assert_eq!(named, programs());
        }
    };
}

targets! {
    cdr_values: 10_000;
    client_replies: 1_600;
    context_requests: 600;
    event_channel: 200;
    event_subscriptions: 10_000;
    giop_message: 10_000;
    gioplite: 10_000;
    idl_grammar: 2;
    idl_source: 200;
    message_reader: 10_000;
    monitor_lines: 1_000;
    multicast_packets: 10_000;
    naming_store: 4_000;
    naming_text: 4_000;
    object_keys: 4_000;
    omniorb_anys: 600;
    reference_text: 10_000;
    rio_frame: 10_000;
    schedule_file: 200;
    scheduler_histories: 200;
    server_requests: 4_000;
    service_contexts: 10_000;
    shared_ring: 4_000;
    typed_values: 2_000;
}

/// The names of the programs of targets.
fn programs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let names = files(&folder)
        .into_iter()
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    names.collect()
}

fn replay(target: &str, run: Target) {
    let inputs = inputs(target);
    assert!(!inputs.is_empty(), "{target} has no corpus");
    let failed = inputs.iter().filter(|path| {
        let data = fs::read(path).expect("the corpus can be read");
        panic::catch_unwind(|| run(&data)).is_err()
    });
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Runs inputs of which each follows from its number alone.
fn generate(target: &str, run: Target, count: u64) {
    let inputs = inputs(target);
    let corpus: Vec<Vec<u8>> = inputs
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .collect();
    let times = env::var("CHRONORB_FUZZ_INPUTS").map_or(1, |times| {
        times.parse().expect("CHRONORB_FUZZ_INPUTS is a number")
    });
    for seed in 0..count * times {
        let data = input(&corpus, seed);
        if panic::catch_unwind(|| run(&data)).is_err() {
            let path = env::temp_dir().join(format!("{target}-{seed}"));
            let kept = fs::write(&path, &data);
            panic!(
                "{target} fails with seed {seed}, in {}: {kept:?}",
                path.display()
            );
        }
    }
}

/// Any octets, or those of a file, changed.
fn input(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    if corpus.is_empty() || random.u8(..4) == 0 {
        return (0..random.usize(..600)).map(|_| random.u8(..)).collect();
    }
    let mut data = random.choice(corpus).cloned().unwrap_or_default();
    for _ in 0..random.u8(1..8) {
        let at = random.usize(..=data.len());
        match random.u8(..6) {
            0 => data.insert(at, random.u8(..)),
            1 => data.truncate(at),
            2 => {
                let other = random.choice(corpus).map_or(&[][..], Vec::as_slice);
                let from = random.usize(..=other.len());
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
            _ => {
                if let Some(octet) = data.get_mut(at) {
                    let any = random.u8(..);
                    *octet = random
                        .choice([0, 1, 0x7f, 0xff, *octet ^ 1, any])
                        .unwrap_or(any);
                }
            }
        }
    }
    data
}

/// The files of a target, in the order of their names.
fn inputs(target: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["corpus", "regressions"].map(|folder| fuzz.join(folder).join(target));
    folders.iter().flat_map(|folder| files(folder)).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    paths.sort_unstable();
    paths
}
