//! The tests of `unsafe` code under AddressSanitizer.

use crate::run::{self, Failure, target_dir};

/// Memory that is used after its end, or beyond it, in tests and corpora. The sanitizer is part of
/// every toolchain, as that of `tsan` is. The standard library is not built with it, so it sees an
/// access within that library only where it is inlined or checked by the C library.
pub(crate) fn asan() -> Result<(), Failure> {
    let environment = [
        ("RUSTC_BOOTSTRAP", "1".to_owned()),
        ("RUSTFLAGS", "-Zsanitizer=address".to_owned()),
        (
            "CARGO_TARGET_DIR",
            target_dir().join("asan").display().to_string(),
        ),
        // It would move variables to another stack, and the limits of stacks are found by them.
        ("ASAN_OPTIONS", "detect_stack_use_after_return=0".to_owned()),
    ];
    for test in TESTS {
        run::cargo(&[&["test", TARGET], *test].concat(), &environment)?;
    }
    let corpora = ["--package=chronorb-fuzz", "--test=replay"];
    let corpora = [&["test", TARGET], &corpora[..], &["--"], CORPORA].concat();
    run::cargo(&corpora, &environment)
}

const TARGET: &str = "--target=x86_64-unknown-linux-gnu";

/// The tests that reach `unsafe` code. Tests of how deep a stack lets types be are left
/// out: the sanitizer makes each level of a recursion several times as large.
const TESTS: &[&[&str]] = &[
    &[
        "--package=chronorb-cdr",
        "--lib",
        "--test=it",
        "--",
        "--skip=stack::",
        "--skip=nested_only_so_deep",
    ],
    &[
        "--package=chronorb-rt",
        "--lib",
        "--",
        "slots",
        "hash_index",
        "epoch",
        "row",
        "mapping",
    ],
    &[
        "--package=chronorb-probe",
        "--features=laboratory",
        "--lib",
        "--",
        "mailbox",
    ],
    &[
        "--package=chronorb-transport",
        "--features=shm",
        "--lib",
        "--",
        "shm::",
    ],
];

/// The targets whose corpora reach it.
const CORPORA: &[&str] = &[
    "corpus::cdr_values",
    "corpus::giop_message",
    "corpus::message_reader",
    "corpus::shared_ring",
    "corpus::typed_values",
];
