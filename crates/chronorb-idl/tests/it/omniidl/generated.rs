//! Random files of the constructs that real files have and compilers treat differently. Ours
//! accepts all of them, and omniidl is asked for its opinion.

use std::collections::BTreeSet;
use std::fs;

use chronorb_idl::{Options, codes, compile};

use super::{difference, omniidl_is_there, ours, theirs};

/// Definitions, in which `#` is a number of their own, and the lenient warning that they get.
/// `typeprefix` applies to a module, so each stands in one.
const CONSTRUCTS: [(&str, Option<&str>); 24] = [
    ("struct S# { long a; string b; };", None),
    ("interface I# { long get_x(); attribute long x; };", None),
    (
        "interface Log# { attribute long log_level; void setLogLevel(in long l); };",
        None,
    ),
    (
        "interface P# { string get_profile(); string getProfile(); };",
        None,
    ),
    (
        "interface A# { void write_records(); }; interface B# : A# { void writeRecords(); };",
        None,
    ),
    ("struct td_oa# { long a; }; typedef long tdOa#;", None),
    (
        "enum Color# { RED#, GREEN# }; typedef sequence<Color#> Colors#;",
        None,
    ),
    (
        "exception E# { long why; }; interface R# { void f() raises (E#); };",
        None,
    ),
    (
        "valuetype V# { public long a; private string b; factory make(in long a); };",
        None,
    ),
    ("struct N# { long v; sequence<N#> more; };", None),
    (
        "typedef long T#; struct M# { T# t#; };",
        Some(codes::CASE_COLLISION),
    ),
    ("struct Name# { long name#; };", Some(codes::CASE_COLLISION)),
    (
        "interface C# { void stop(); void Stop(); };",
        Some(codes::CASE_COLLISION),
    ),
    (
        "struct K# { string home; boolean multiple; };",
        Some(codes::YOUNGER_KEYWORD_AS_NAME),
    ),
    (
        "interface U# { void f(in string component); };",
        Some(codes::YOUNGER_KEYWORD_AS_NAME),
    ),
    ("struct L# { long Long; };", Some(codes::KEYWORD_COLLISION)),
    ("module Empty# { };", Some(codes::EMPTY_MODULE)),
    (
        "typeprefix Later# \"x.org\"; module Later# { struct S { long a; }; };",
        Some(codes::EARLY_TYPE_PREFIX),
    ),
    ("enum Level# { @value(-3) LOW#, @value(4) HIGH# };", None),
    (
        "union Id#; struct El# { @external Id# which; }; \
      union Id# switch (octet) { case 1: long plain; case 2: El# list; };",
        None,
    ),
    (
        "@vendor::unknown(nowhere + 1, level = Other) struct An# { long a; };",
        None,
    ),
    ("module Ev# { eventtype Event { public long a; }; };", None),
    ("struct Ref# { @optional long a; };", None),
    ("const double D# = 14;", Some(codes::INTEGER_AS_FLOAT)),
];

/// The constructs at the beginning of the list that omniidl accepts.
const PLAIN: usize = 10;

/// A generator of numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        let Self(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 33) as usize % end
    }
}

#[test]
fn files_of_random_constructs_are_accepted_and_mean_what_omniidl_reads() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(43);
    let mut files = Vec::new();
    for number in 0..80 {
        // Half of the files are such that omniidl accepts them.
        let among = if number % 2 == 0 {
            PLAIN
        } else {
            CONSTRUCTS.len()
        };
        let mut text = String::from("#pragma prefix \"g.org\"\n");
        let mut expected = BTreeSet::new();
        for part in 0..1 + random.below(12) {
            let (construct, code) = CONSTRUCTS[random.below(among)];
            text += &format!("module G{part} {{ {construct} }};\n").replace('#', &part.to_string());
            expected.extend(code);
        }
        let file = folder.path().join(format!("g{number}.idl"));
        fs::write(&file, &text).unwrap();
        files.push((file, text, expected));
    }
    for (file, text, expected) in &files {
        let compiled = compile(file, &Options::default());
        let compiled = compiled.unwrap_or_else(|failure| panic!("{text}\n{failure}"));
        let codes = compiled.warnings.iter().map(|warning| warning.code);
        let lenient: BTreeSet<_> = codes.filter(|code| codes::LENIENT.contains(code)).collect();
        assert_eq!(lenient, *expected, "{text}");
        let strict = Options {
            strict: true,
            ..Options::default()
        };
        assert_eq!(
            compile(file, &strict).is_err(),
            !expected.is_empty(),
            "{text}"
        );
    }
    if !omniidl_is_there() {
        return;
    }
    let paths: Vec<_> = files.iter().map(|(file, ..)| file.clone()).collect();
    let (results, mut taken) = (theirs(&paths, &[]), 0);
    for (file, text, _) in &files {
        match &results[file] {
            Ok(theirs) => {
                taken += 1;
                let difference = difference(file, theirs, &[]);
                assert!(difference.is_empty(), "{text}\n{difference}");
            }
            Err(errors) => {
                let compilation = ours(file, &[]).unwrap();
                let warned = !compilation.warnings.is_empty();
                assert!(
                    warned,
                    "omniidl refuses without a warning of ours:\n{text}\n{errors}"
                );
            }
        }
    }
    assert!(taken >= 40, "omniidl accepts {taken} files only");
}
