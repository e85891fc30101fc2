//! All files of the corpora, without the fuzzer.

use std::fs;
use std::panic;
use std::path::Path;

#[test]
fn cdr_values() {
    replay("cdr_values", chronorb_fuzz::cdr_values);
}

#[test]
fn giop_message() {
    replay("giop_message", chronorb_fuzz::giop_message);
}

#[test]
fn gioplite() {
    replay("gioplite", chronorb_fuzz::gioplite);
}

#[test]
fn idl_grammar() {
    replay("idl_grammar", chronorb_fuzz::idl_grammar);
}

#[test]
fn idl_source() {
    replay("idl_source", chronorb_fuzz::idl_source);
}

#[test]
fn multicast_packets() {
    replay("multicast_packets", chronorb_fuzz::multicast_packets);
}

#[test]
fn reference_text() {
    replay("reference_text", chronorb_fuzz::reference_text);
}

#[test]
fn rio_frame() {
    replay("rio_frame", chronorb_fuzz::rio_frame);
}

#[test]
fn shared_ring() {
    replay("shared_ring", chronorb_fuzz::shared_ring);
}

fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let mut failed = Vec::new();
    let mut files = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus can be read") {
        let path = entry.expect("the corpus can be read").path();
        let data = fs::read(&path).expect("the corpus can be read");
        if panic::catch_unwind(|| run(&data)).is_err() {
            failed.push(path);
        }
        files += 1;
    }
    assert_ne!(files, 0, "{} is empty", corpus.display());
    assert!(failed.is_empty(), "{failed:#?}");
}
