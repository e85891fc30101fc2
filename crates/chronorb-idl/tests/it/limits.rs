//! Hostile files: each is refused, and none makes the compiler panic, hang or grow without bound.

use std::fs;

use std::sync::LazyLock;

use chronorb_idl::{Options, compile, compile_text};
use proptest::prelude::*;

fn first_error(text: &str) -> &'static str {
    let failure = compile_text("hostile.idl", text, &Options::default()).unwrap_err();
    failure.to_string();
    failure.diagnostics.iter().next().unwrap().code
}

#[test]
fn a_file_of_more_than_16_mib_is_refused() {
    assert_eq!(first_error(&" ".repeat(16 * 1024 * 1024 + 1)), "E0800");
}

#[test]
fn includes_nest_at_most_100_deep() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..150 {
        let text = format!("#include \"f{}.idl\"\n", i + 1);
        fs::write(dir.path().join(format!("f{i}.idl")), text).unwrap();
    }
    let failure = compile(&dir.path().join("f0.idl"), &Options::default()).unwrap_err();
    assert_eq!(failure.diagnostics.iter().next().unwrap().code, "E0801");
}

#[test]
fn files_that_include_each_other_twice_do_not_multiply_without_end() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..40 {
        let text = format!("#include \"f{0}.idl\"\n#include \"f{0}.idl\"\n", i + 1);
        fs::write(dir.path().join(format!("f{i}.idl")), text).unwrap();
    }
    fs::write(dir.path().join("f40.idl"), "").unwrap();
    let failure = compile(&dir.path().join("f0.idl"), &Options::default()).unwrap_err();
    assert_eq!(failure.diagnostics.iter().next().unwrap().code, "E0802");
}

#[test]
fn a_cycle_that_multiplies_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("a.idl");
    fs::write(&main, "#include \"a.idl\"\n".repeat(10)).unwrap();
    let failure = compile(&main, &Options::default()).unwrap_err();
    assert_eq!(failure.diagnostics.iter().next().unwrap().code, "E0003");
}

#[test]
fn more_than_four_million_tokens_are_refused() {
    assert_eq!(first_error(&"{}".repeat(2_100_000)), "E0805");
}

#[test]
fn pasted_tokens_do_not_double_without_end() {
    let mut text = "#define P0(x) x ## x\n".to_owned();
    for i in 1..40 {
        text += &format!("#define P{i}(x) P{}(x ## x)\n", i - 1);
    }
    text += "const long P39(a) = 1;\n";
    assert_eq!(first_error(&text), "E0803");
}

#[test]
fn expressions_of_any_shape_are_limited() {
    let chain = format!("const long A = 1{};", " + 1".repeat(100_000));
    let signs = format!("const long A = {}1;", "-".repeat(100_000));
    let condition = format!("#if {}1\n#endif\n", "(".repeat(100_000));
    let negations = format!("#if {}1\n#endif\n", "!".repeat(100_000));
    assert_eq!(first_error(&chain), "E0804");
    assert_eq!(first_error(&signs), "E0804");
    assert_eq!(first_error(&condition), "E0012");
    assert_eq!(first_error(&negations), "E0012");
}

#[test]
fn nested_structs_modules_and_dimensions_are_limited() {
    let structs = "struct S { ".repeat(100_000);
    let modules = "module M { ".repeat(100_000);
    let braces = "{".repeat(1_000_000);
    let dimensions = format!("typedef long A{};", "[2]".repeat(100_000));
    assert_eq!(first_error(&structs), "E0804");
    assert_eq!(first_error(&modules), "E0804");
    assert_eq!(first_error(&braces), "E0100");
    assert_eq!(first_error(&dimensions), "E0804");
}

#[test]
fn an_interface_has_at_most_250_bases() {
    let mut text = "interface I0 { };\n".to_owned();
    for i in 1..=251 {
        text += &format!("interface I{i} : I{} {{ }};\n", i - 1);
    }
    assert_eq!(first_error(&text), "E0806");
}

#[test]
fn strings_that_are_copied_by_many_constants_are_limited() {
    let mut text = format!("const string S = \"{}\";\n", "x".repeat(1_000_000));
    for i in 0..100 {
        text += &format!("const string S{i} = S;\n");
    }
    assert_eq!(first_error(&text), "E0807");
}

#[test]
fn types_and_names_that_are_copied_by_many_declarators_are_limited() {
    let names: Vec<String> = (0..200_000).map(|i| format!("N{i}")).collect();
    let (open, close) = ("sequence<".repeat(150), ">".repeat(150));
    let text = format!("typedef {open}long{close} {};", names.join(", "));
    assert_eq!(first_error(&text), "E0809");
}

#[test]
fn annotations_that_are_copied_by_many_declarators_are_limited() {
    let long = vec!["n".repeat(250); 190].join("::");
    let members: Vec<String> = (0..20_000).map(|i| format!("m{i}")).collect();
    let text = format!(
        "struct S {{ @rt::lane({long}) long {}; }};",
        members.join(", ")
    );
    assert_eq!(first_error(&text), "E0809");
}

#[test]
fn nested_unions_maps_and_annotations_are_limited() {
    let unions: String = (0..300)
        .map(|i| format!("union U{i} switch (long) {{ case 1: "))
        .collect();
    assert_eq!(first_error(&unions), "E0804");
    let map = format!(
        "typedef {}long{} M;",
        "map<long, ".repeat(300),
        ">".repeat(300)
    );
    assert_eq!(first_error(&map), "E0804");
    let value = format!(
        "@id({}1{}) struct S {{ }};",
        "(".repeat(300),
        ")".repeat(300)
    );
    assert_eq!(first_error(&value), "E0804");
    let product = vec!["1.5d"; 300].join(" * ");
    assert_eq!(first_error(&format!("const fixed F = {product};")), "E0804");
}

#[test]
fn a_struct_or_bit_set_has_at_most_250_bases() {
    for (kind, first) in [("struct", "struct S0 { };"), ("bitset", "bitset S0 { };")] {
        let chain: String = (0..300)
            .map(|i| format!("{kind} S{} : S{i} {{ }};\n", i + 1))
            .collect();
        assert_eq!(first_error(&format!("{first}\n{chain}")), "E0806");
    }
}

#[test]
fn a_union_of_twenty_thousand_cases_compiles() {
    let cases: String = (0..20_000)
        .map(|i| format!("case {i}: long m{i};\n"))
        .collect();
    let text = format!("union U switch (long) {{\n{cases}}};");
    compile_text("large.idl", &text, &Options::default()).unwrap();
}

#[test]
fn a_chain_of_incomplete_types_compiles() {
    let chain: String = (0..20_000)
        .map(|i| format!("typedef A{i} A{}[1];\n", i + 1))
        .collect();
    let text = format!("struct F;\ntypedef sequence<F> A0;\n{chain}struct F {{ A20000 m; }};");
    compile_text("chain.idl", &text, &Options::default()).unwrap();
}

#[test]
fn a_chain_of_twenty_thousand_typedefs_compiles() {
    let mut text = "typedef long T0;\n".to_owned();
    for i in 1..20_000 {
        text += &format!("typedef T{} T{i};\nconst T{i} C{i} = {i};\n", i - 1);
    }
    compile_text("chain.idl", &text, &Options::default()).unwrap();
}

#[test]
fn a_string_that_a_macro_repeats_is_limited() {
    let mut text = format!("#define S \"{}\"\n", "x".repeat(100_000));
    for i in 0..1000 {
        text += &format!("const string S{i} = S;\n");
    }
    assert_eq!(first_error(&text), "E0807");
}

#[test]
fn many_interfaces_with_the_same_large_bases_are_limited() {
    let operations: String = (0..20_000).map(|i| format!("void f{i}();")).collect();
    let mut text = format!("interface A {{ {operations} }};\ninterface B {{ }};\n");
    for i in 0..10_000 {
        text += &format!("interface I{i} : A, B {{ }};\n");
    }
    assert_eq!(first_error(&text), "E0809");
}

#[test]
fn a_scoped_name_has_at_most_200_parts() {
    let name = "A::".repeat(100_000);
    assert_eq!(first_error(&format!("typedef {name}A T;")), "E0804");
    assert_eq!(
        first_error(&format!("#pragma ID {name}A \"IDL:A:1.0\"")),
        "E0011"
    );
}

fn compiles_or_fails(text: &str) {
    match compile_text("random.idl", text, &Options::default()) {
        Ok(compilation) => drop(compilation.warnings.render(true)),
        Err(failure) => drop(failure.diagnostics.render(true)),
    }
}

/// The texts in `accept/` and `reject/`, as raw material.
static CORPUS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut texts = Vec::new();
    for folder in ["accept", "reject"] {
        let mut paths: Vec<_> = fs::read_dir(tests.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        for path in paths {
            let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
            if text.len() < 4000 {
                texts.push(text);
            }
        }
    }
    texts
});

/// Returns the pieces of a text that a random change may move: words, numbers and single
/// characters.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (i, c) in text.char_indices() {
        let before = text[..i].chars().next_back();
        if i > 0 && !(is_word(c) && before.is_some_and(is_word)) {
            pieces.push(&text[start..i]);
            start = i;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    })]

    #[test]
    fn random_text_does_not_panic(text in "(?s).{0,150}") {
        compiles_or_fails(&text);
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("random.idl");
        fs::write(&path, &bytes).unwrap();
        match compile(&path, &Options::default()) {
            Ok(compilation) => drop(compilation.warnings.render(false)),
            Err(failure) => drop(failure.to_string()),
        }
    }

    #[test]
    fn words_of_idl_in_any_order_do_not_panic(
        words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..120)
    ) {
        compiles_or_fails(&words.join(" "));
    }

    #[test]
    fn changed_files_do_not_panic(
        file in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..4),
            1..12,
        ),
    ) {
        let (file, other): (&String, &String) = (file.get(&CORPUS[..]), other.get(&CORPUS[..]));
        let donor = pieces(other);
        let mut text = pieces(file);
        for (at, from, what) in changes {
            let place = at.index(text.len());
            let piece = donor[from.index(donor.len())];
            match what {
                0 => drop(text.remove(place)),
                1 => text.insert(place, piece),
                2 => text[place] = piece,
                _ => text.truncate(place + 1),
            }
            if text.is_empty() {
                break;
            }
        }
        compiles_or_fails(&text.concat());
    }
}

const WORDS: [&str; 78] = [
    "module",
    "interface",
    "struct",
    "exception",
    "enum",
    "typedef",
    "const",
    "union",
    "any",
    "local",
    "abstract",
    "valuetype",
    "typeid",
    "typeprefix",
    "import",
    "native",
    "fixed",
    "long",
    "short",
    "unsigned",
    "double",
    "string",
    "wstring",
    "sequence",
    "octet",
    "boolean",
    "void",
    "oneway",
    "in",
    "out",
    "inout",
    "raises",
    "readonly",
    "attribute",
    "getraises",
    "setraises",
    "context",
    "switch",
    "case",
    "default",
    "Object",
    "TRUE",
    "map",
    "bitset",
    "A",
    "B",
    "C",
    "A::B",
    "::C",
    "_in",
    "{",
    "}",
    "{",
    "};",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ";",
    ",",
    ":",
    "=",
    "@",
    "+",
    "<<",
    "~",
    "/",
    "1",
    "0",
    "1.5",
    "\"text\"",
    "'c'",
    "\n#define A B\n",
    "\n#if A\n",
    "\n#endif\n",
];
