//! The list of codes in the book.

use std::fs;
use std::path::Path;

#[test]
fn every_code_stands_in_the_book_with_its_meaning() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(root.join("src/codes.rs")).unwrap();
    let book = fs::read_to_string(root.join("../../docs/src/idl-compiler.md")).unwrap();
    let mut meaning = String::new();
    let mut rows = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            let blank = if meaning.is_empty() { "" } else { " " };
            meaning = format!("{meaning}{blank}{text}");
        } else if let Some((_, code)) = line.split_once(" = \"") {
            let code = code.trim_end_matches("\";");
            rows.push(format!("| `{code}` | {} |", meaning.trim_end_matches('.')));
            meaning.clear();
        }
    }
    assert!(rows.len() > 80, "only {} codes were found", rows.len());
    let missing: Vec<_> = rows
        .iter()
        .filter(|row| !book.lines().any(|line| line == *row))
        .collect();
    assert!(missing.is_empty(), "rows that are missing: {missing:#?}");
    let listed = book
        .lines()
        .filter(|line| line.starts_with("| `E") || line.starts_with("| `W"));
    let stale: Vec<_> = listed
        .filter(|line| !rows.iter().any(|row| row == line))
        .collect();
    assert!(stale.is_empty(), "rows that mean nothing: {stale:#?}");
}
