//! The output of the grammar-aware target is worth compiling.

use std::collections::BTreeMap;

use chronorb_idl::{Options, compile_text};

#[test]
fn most_of_what_the_grammar_writes_is_correct() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut refused: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    let mut correct = 0;
    for number in 0..60 {
        let data: Vec<u8> = (0..400).map(|_| random.u8(..)).collect();
        let text = chronorb_fuzz::idl(&data);
        // Generating Rust takes long without optimization.
        if number % 30 == 0 {
            chronorb_fuzz::idl_grammar(&data);
        }
        match compile_text("grammar.idl", &text, &Options::default()) {
            Ok(_) => correct += 1,
            Err(failure) => {
                for error in &failure.diagnostics {
                    let entry = refused.entry(error.code).or_insert((0, String::new()));
                    entry.0 += 1;
                    entry.1 = failure.diagnostics.render(false);
                }
            }
        }
    }
    for (code, (count, example)) in &refused {
        let example: String = example.chars().take(600).collect();
        println!("{code}: {count}\n{example}");
    }
    assert!(correct >= 30, "only {correct} of 60 are correct");
}
