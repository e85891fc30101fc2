//! The minor codes: their text forms, and the book's tables of them.

use std::collections::BTreeSet;

use chronorb_giop::{SystemException, SystemExceptionKind, minor};

#[test]
fn the_book_has_each_minor_code_with_its_exception_and_meaning() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/errors.md");
    let book = std::fs::read_to_string(path).expect("the chapter is there");
    let (_, tables) = book.split_once("\n## Minor codes").expect("it has tables");
    let told: BTreeSet<&str> = tables.lines().filter(|l| l.contains("| `0x")).collect();
    let known: Vec<_> = minor::all()
        .map(|(kind, code, meaning)| format!("| `{kind}` | `{code:#010x}` | {meaning} |"))
        .collect();
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let missing: Vec<_> = known.difference(&told).collect();
    let outdated: Vec<_> = told.difference(&known).collect();
    assert!(missing.is_empty(), "not in the book: {missing:#?}");
    assert!(outdated.is_empty(), "only in the book: {outdated:#?}");
}

#[test]
fn no_code_has_two_meanings() {
    let codes: BTreeSet<_> = minor::all()
        .map(|(kind, code, _)| (kind.name(), code))
        .collect();
    assert_eq!(codes.len(), minor::all().count());
}

#[test]
fn exceptions_show_their_minor_in_hexadecimal_with_its_meaning() {
    let known = SystemException::no(SystemExceptionKind::Transient, minor::NO_USABLE_PROFILE);
    assert_eq!(
        format!("{known:?}"),
        "SystemException { kind: Transient, minor: 0x4f4d0002 (no profile of the reference can \
         be reached), completed: No }"
    );
    let foreign = SystemException::maybe(SystemExceptionKind::Unknown, 0x4944_0001);
    assert_eq!(
        format!("{foreign:?}"),
        "SystemException { kind: Unknown, minor: 0x49440001, completed: Maybe }"
    );
}
