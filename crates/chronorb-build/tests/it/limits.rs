//! Types that a few lines of IDL make very large, and files with too much code.

use std::fmt::Write;

use chronorb_build::{GenerateError, GenerateOptions, generate};

fn rust(idl: &str) -> Result<String, GenerateError> {
    let compilation =
        chronorb_idl::compile_text("x.idl", idl, &chronorb_idl::Options::default()).unwrap();
    generate(&compilation.model, &GenerateOptions::default())
}

/// Returns `first`, and definitions of `t1`, `t2` and so on, in which `N` is the own number and `P`
/// the one before.
fn chain(first: &str, next: &str, len: usize) -> String {
    let mut idl = first.to_owned();
    for n in 1..len {
        let next = next.replace('N', &n.to_string());
        let _ = writeln!(idl, "{}", next.replace('P', &(n - 1).to_string()));
    }
    idl
}

#[track_caller]
fn assert_refused(idl: &str, message: &str) {
    let error = rust(idl).expect_err("a type that is too large");
    assert_eq!(error.to_string(), message);
}

#[test]
fn structs_that_double_each_other_are_refused() {
    let twice = |len| chain("struct t0 { long a; };\n", "struct tN { tP x, y; };", len);
    assert!(rust(&twice(10)).is_ok());
    assert_refused(
        &twice(60),
        "struct `t14` (x.idl:15:8) is nested too deeply or has too many parts",
    );
}

#[test]
fn types_that_are_nested_by_their_names_are_refused() {
    let sequences = |len| chain("typedef string t0;\n", "typedef sequence<tP> tN;", len);
    let arrays = |len| chain("typedef string t0;\n", "typedef tP tN[2];", len);
    let structs = |len| chain("struct t0 { long a; };\n", "struct tN { tP a; };", len);
    for idl in [sequences(100), arrays(100), structs(100)] {
        assert!(rust(&idl).is_ok());
    }
    for idl in [sequences(3000), arrays(3000), structs(3000)] {
        assert!(matches!(rust(&idl), Err(GenerateError::TooLarge { .. })));
    }
}

#[test]
fn types_that_all_hold_each_other_are_refused_where_their_type_codes_have_no_end() {
    let all = |n: usize| {
        let names: String = (0..n).map(|i| format!("struct t{i};\n")).collect();
        let members: String = (0..n).map(|i| format!(" sequence<t{i}> m{i};")).collect();
        let structs = (0..n).map(|i| format!("struct t{i} {{{members} }};\n"));
        names + &structs.collect::<String>()
    };
    assert!(rust(&all(5)).is_ok());
    assert!(matches!(
        rust(&all(12)),
        Err(GenerateError::TooLarge { .. })
    ));
}

#[test]
fn unions_and_maps_count_as_structs_do() {
    let union = "union tN switch (boolean) { case TRUE: tP x; case FALSE: tP y; };";
    let idl = chain("struct t0 { long a; };\n", union, 60);
    assert!(matches!(rust(&idl), Err(GenerateError::TooLarge { .. })));
    let map = "typedef map<long, tP> tN;";
    let idl = chain("typedef string t0;\n", map, 3000);
    assert!(matches!(rust(&idl), Err(GenerateError::TooLarge { .. })));
}

/// Returns `head`, `count` pieces with `N` as their number, and `tail`.
fn many(head: &str, piece: &str, count: usize, tail: &str) -> String {
    let mut idl = head.to_owned();
    for n in 0..count {
        idl += &piece.replace('N', &n.to_string());
    }
    idl + tail
}

#[test]
fn definitions_of_too_many_parts_are_refused() {
    let too_many = |place: &str, parts: usize| {
        format!(
            "{place} has {parts} parts, and 16384 are the most: members, enumerators, operations \
             and attributes with their parameters and exceptions, inherited ones too\n  \
             hint: divide it"
        )
    };
    let enumerators = many("enum e { first", ", eN", 16_384, " };");
    assert_refused(&enumerators, &too_many("enum `e` (x.idl:1:6)", 16_385));
    let operations = many("interface i {", "void opN(in long a);", 8_193, "};");
    assert_refused(&operations, &too_many("interface `i` (x.idl:1:11)", 16_386));
    let attributes = many("valuetype v {", "attribute long aN;", 16_385, "};");
    assert_refused(&attributes, &too_many("valuetype `v` (x.idl:1:11)", 16_385));
    let cases = many("union u switch(long) {", "case N: long mN;", 8_193, "};");
    assert_refused(&cases, &too_many("union `u` (x.idl:1:7)", 16_386));
    let members = many("struct s {", "long mN;", 16_385, "};");
    assert_refused(&members, &too_many("struct `s` (x.idl:1:8)", 16_385));
    let bases = many("interface a {", "void aN();", 8_193, "};\n")
        + &many("interface b {", "void bN();", 8_193, "};\n");
    assert_refused(
        &(bases + "interface c : a, b {};"),
        &too_many("interface `c` (x.idl:3:11)", 16_386),
    );
}

#[test]
fn an_enum_of_the_greatest_size_is_generated() {
    let rust = rust(&many("enum e { first", ", eN", 16_383, " };")).expect("it is not too large");
    assert!(rust.contains("E16382,"));
}
