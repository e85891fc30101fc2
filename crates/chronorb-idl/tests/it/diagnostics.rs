//! The rendering of errors, and their limits.

use std::fs;

use chronorb_idl::{Options, Severity, compile, compile_text};

fn rendered(text: &str) -> String {
    let options = Options {
        strict: true,
        ..Options::default()
    };
    compile_text("market.idl", text, &options)
        .unwrap_err()
        .to_string()
}

macro_rules! looks {
    ($($name:ident: $text:expr;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(rendered($text));
        })*
    };
}

looks! {
    a_misspelled_type_gets_a_suggestion:
        "module M {\n  struct Quote { strng symbol; };\n};\n";
    a_second_definition_shows_the_first:
        "struct Level { long px; };\n\nenum Level { LOW, HIGH };\n";
    a_missing_semicolon_is_marked_where_it_belongs:
        "interface Clock {\n  long now()\n  void stop();\n};\n";
    an_inherited_operation_shows_both_bases:
        "interface A { void run(); };\ninterface B { void run(); };\ninterface C : A, B { };\n";
    a_value_out_of_range_shows_the_range:
        "const unsigned short PORT = 65536;\n";
    a_label_given_twice_shows_the_first:
        "union U switch (char) {\n  case 'a': long x;\n  case 'b': case 'a': long y;\n};\n";
    a_default_for_nothing_says_so:
        "enum E { A, B };\nunion U switch (E) {\n  case A: case B: long x;\n  default: long y;\n\
        };\n";
    a_label_of_another_type_says_what_is_expected:
        "union U switch (boolean) {\n  case 1: long x;\n};\n";
    a_label_in_another_scope_is_told_its_name:
        "module M { enum Side { BUY, SELL }; };\nunion U switch (M::Side) {\n  case BUY: long x;\n\
        };\n";
    a_discriminator_must_be_countable:
        "typedef double Price;\nunion U switch (Price) {\n  case 1: long x;\n};\n";
    a_member_without_labels_gets_an_example:
        "union U switch (long) {\n  long x;\n};\n";
    a_struct_in_itself_is_told_of_sequences:
        "struct Node {\n  Node next;\n};\n";
    an_incomplete_type_shows_its_declaration:
        "struct Later;\ntypedef sequence<Later> Laters;\ninterface I {\n  Laters all();\n};\n\
        struct Later { long a; };\n";
    an_inherited_member_shows_where_it_comes_from:
        "struct A { long size; };\nstruct B : A { };\nstruct C : B {\n  long size;\n};\n";
    too_many_digits_show_the_range:
        "typedef fixed<32, 2> Money;\nconst fixed<5, 3> F = 1d;\n";
    kinds_of_numbers_are_not_mixed:
        "const fixed PRICE = 12.50d * 2;\n";
    digits_that_are_lost_are_a_warning_beside_the_error:
        "typedef fixed<4, 1> Rate;\nconst Rate LOW = 0.125d;\nconst Rate HIGH = 12345d;\n";
    an_enum_tells_which_enumerator_was_meant:
        "enum Colour { RED, GREEN };\nconst Colour C = Colour::GREN;\n";
    a_missing_parameter_of_an_annotation_is_named:
        "struct S {\n  @range(min = 3) long a;\n  @id(number = 1) long b;\n};\n";
    an_unknown_annotation_gets_a_suggestion:
        "struct S {\n  @optoinal long a;\n  Missing b;\n};\n";
    contradicting_annotations_show_each_other:
        "@final @mutable struct S {\n  @min(5) @default(3) long a;\n};\n";
    a_taken_bit_shows_the_earlier_flag:
        "bitmask Access {\n  READ,\n  @position(0) WRITE\n};\n";
    a_field_beyond_64_bits_is_shown:
        "bitset Header {\n  bitfield<60> most;\n  bitfield<5> rest;\n};\n";
    a_value_of_two_enumerators_shows_both:
        "enum E {\n  @value(1) ONE,\n  @value(1) UNO\n};\n";
    a_native_type_in_a_remote_operation_is_local:
        "native Cookie;\ninterface I {\n  void f(in Cookie c);\n};\n";
    integers_of_other_kinds_of_constants_get_their_form:
        "const double D = 14;\nconst fixed F = 1.5;\n";
    a_name_of_corba_gets_its_file:
        "interface I {\n  CORBA::RepositoryId id();\n};\n";
    a_connector_is_called_one:
        "connector Wire { };\nhome H manages Wire { };\n";
    an_error_in_a_macro_is_shown_at_its_use:
        "#define FIELD(T) T value\nstruct S {\n  FIELD(Price);\n};\n";
    a_misspelled_keyword_gets_a_suggestion:
        "interface Clock {\n  attribut long rate;\n};\n";
    a_keyword_as_a_name_gets_its_escape:
        "struct Order { long in; };\n";
    an_unclosed_brace_shows_where_it_opened:
        "module M {\n  interface I {\n    void f();\n  };\n";
    a_missing_file_shows_where_it_was_searched:
        "#include \"nowhere.idl\"\n";
    several_errors_come_in_the_order_of_lines:
        "struct S { Foo a; };\nconst long B = 1 / 0;\ninterface I { oneway long f(out any x); };\n";
    a_renumbered_line_shows_its_number:
        "#line 100 \"original.idl\"\n\nstruct S { Foo a; };\n";
    tabs_and_terminal_escapes_are_harmless:
        "\tconst long A = \x1b[31m 1;\n";
}

#[test]
fn colours_are_used_when_asked_for() {
    let failure = compile_text("a.idl", "struct S { T t1; };", &Options::default()).unwrap_err();
    assert!(failure.diagnostics.render(true).contains("\x1b["));
    assert!(!failure.diagnostics.render(false).contains('\x1b'));
}

#[test]
fn a_finding_can_be_read_by_programs() {
    let text = "typedef long T;\nstruct S { long a; };\nenum S { A };\n";
    let failure = compile_text("dir/a.idl", text, &Options::default()).unwrap_err();
    assert_eq!(failure.diagnostics.len(), 1);
    let error = failure.diagnostics.iter().next().unwrap();
    assert_eq!(error.code, chronorb_idl::codes::DUPLICATE);
    assert_eq!(error.severity, Severity::Error);
    let places: Vec<_> = error
        .labels
        .iter()
        .map(|label| {
            (
                label.path.to_str().unwrap(),
                label.location.line,
                label.location.column,
            )
        })
        .collect();
    assert_eq!(places, [("dir/a.idl", 3, 6), ("dir/a.idl", 2, 8)]);
}

#[test]
fn after_fifty_errors_compiling_stops() {
    let text = "struct S { Missing m; };\n".repeat(500);
    let failure = compile_text("a.idl", &text, &Options::default()).unwrap_err();
    assert_eq!(failure.diagnostics.len(), 50);
    assert!(failure.to_string().contains("stopped after 50 errors"));
}

#[test]
fn a_line_too_long_to_show_is_named_only() {
    let text = format!("const long A = {}B;", " ".repeat(100_000));
    let text = rendered(&text);
    assert!(text.contains("market.idl:1:100016: not defined"), "{text}");
    assert!(text.len() < 1000);
}

#[test]
fn a_warning_does_not_fail() {
    let text = "#warning old\n#pragma vendor x\nstruct S { long a; };\n";
    let compilation = compile_text("a.idl", text, &Options::default()).unwrap();
    let codes: Vec<&str> = compilation.warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["W0001", "W0002"]);
}

#[test]
fn a_main_file_that_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().join("missing.idl"), dir.path().to_owned()] {
        let failure = compile(&path, &Options::default()).unwrap_err();
        let error = failure.diagnostics.iter().next().unwrap();
        assert_eq!(error.code, "E0001");
        assert!(failure.to_string().contains("cannot read"));
    }
}

#[test]
fn an_included_file_can_be_at_fault() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("main.idl");
    fs::write(&main, "#include \"part.idl\"\n").unwrap();
    fs::write(dir.path().join("part.idl"), "\nstruct S { T t1; };\n").unwrap();
    let failure = compile(&main, &Options::default()).unwrap_err();
    let error = failure.diagnostics.iter().next().unwrap();
    assert_eq!(error.labels[0].path, dir.path().join("part.idl"));
    assert_eq!(error.labels[0].location.line, 2);
}

#[test]
fn bytes_that_are_not_utf8_are_an_error_outside_of_comments() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("main.idl");
    fs::write(&main, b"// \xfc\nconst string S = \"\xfc\";\n").unwrap();
    let failure = compile(&main, &Options::default()).unwrap_err();
    let error = failure.diagnostics.iter().next().unwrap();
    assert_eq!((error.code, error.labels[0].location.line), ("E0004", 2));
}

#[test]
fn an_earlier_definition_in_another_file_is_shown_behind_characters_of_many_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("main.idl");
    fs::write(&main, "#include \"part.idl\"\nenum S { A };\n").unwrap();
    let part = "// äöü ∀∃ 日本語\n// é\n/* 語 */ struct S { long a; };\n";
    fs::write(dir.path().join("part.idl"), part).unwrap();
    let failure = compile(&main, &Options::default()).unwrap_err();
    let shown = failure.to_string();
    assert!(shown.contains("main.idl:2:6 ]"), "{shown}");
    assert!(shown.contains("part.idl:3:16 ]"), "{shown}");
}

#[test]
fn names_like_younger_keywords_are_a_warning() {
    let text = "typedef long EventType;\nstruct Home { EventType a; };\n";
    let warnings = compile_text("a.idl", text, &Options::default())
        .unwrap()
        .warnings;
    let found: Vec<_> = warnings
        .iter()
        .map(|finding| (finding.code, finding.labels[0].location.line))
        .collect();
    assert_eq!(found, [("W0012", 1), ("W0012", 2)]);
}

/// Returns the codes and hints of the errors of a text.
fn hints(text: &str) -> Vec<(&'static str, String)> {
    let failure = compile_text("market.idl", text, &Options::default()).unwrap_err();
    let errors = failure.diagnostics.iter();
    let errors = errors.filter(|finding| finding.severity == Severity::Error);
    let hints = errors.map(|error| (error.code, error.hint.clone().unwrap_or_default()));
    hints.collect()
}

#[test]
fn words_and_habits_of_other_languages_get_a_hint() {
    for (text, hint) in [
        (
            "interface I { void a(in int x); };",
            "`int` is `long` in IDL",
        ),
        (
            "interface I { void a(in unsigned int x); };",
            "`int` is `long` in IDL",
        ),
        ("struct S { bool b; };", "`bool` is `boolean` in IDL"),
        ("struct S { byte b; };", "`byte` is `octet` in IDL"),
        ("struct S { int32_t b; };", "`int32_t` is `int32` in IDL"),
        ("struct S { String b; };", "did you mean `string`?"),
        (
            "struct S { list<long> b; };",
            "`list` is `sequence<T>` in IDL",
        ),
        (
            "typedef long T; interface I { void a(in T[] x); };",
            "an array has its length behind the name, as `long name[3]`; for any length write \
             `sequence<long> name`",
        ),
        (
            "interface J { }; interface I extends J { };",
            "`extends` is `: Base` in IDL",
        ),
        (
            "exception X { }; interface I { long g() throws X; };",
            "`throws` is `raises (E)` in IDL",
        ),
        (
            "class C { };",
            "write `interface` for operations, and `struct` for data",
        ),
        (
            "interface I { static long f(); };",
            "IDL has no `static`: remove it",
        ),
        (
            "module M { const static int FOO = 7; };",
            "`int` is `long` in IDL",
        ),
        (
            "struct S { long a, long b; };",
            "end each member with `;`: behind `,` stands only a further name",
        ),
        (
            "interface I { void a(in long x in string y); };",
            "write `,` between two parameters",
        ),
        (
            "interface I { void b(in long x = 3); };",
            "IDL has no default values: remove it",
        ),
        (
            "interface I { long c() const; };",
            "IDL has no `const` behind an operation: remove it",
        ),
    ] {
        assert_eq!(hints(text)[0].1, hint, "{text}");
    }
}

#[test]
fn a_string_over_two_lines_is_reported_once() {
    assert_eq!(
        hints("const string S = \"ab\ncd\";\nconst string T = \"e\";\n"),
        [("E0007", "end it with `\"`".to_owned())]
    );
}

#[test]
fn files_are_read_in_their_encoding() {
    use chronorb_idl::SourceEncoding::{Latin1, ShiftJis, Utf8};
    let read = |encoding, bytes: &[u8]| {
        let options = Options {
            encoding,
            ..Options::default()
        };
        chronorb_idl::compile_from("x.idl", bytes, &options)
    };
    // The second octet of the character is a backslash, which would continue the line.
    let shift_jis = b"// \x95\x5c\nconst wstring S = L\"\x95\x5c\";\n";
    let compilation = read(ShiftJis, shift_jis).unwrap();
    let chronorb_idl::model::DefKind::Const { value, .. } = &compilation.model.definitions[0].kind
    else {
        panic!("no constant");
    };
    assert_eq!(format!("{value:?}"), "WString(\"表\")");
    let in_utf_8 = read(Utf8, shift_jis).unwrap();
    assert!(in_utf_8.model.definitions.is_empty(), "all is comment");
    let latin_1 = b"const string S = \"\xe9\";\n";
    let compilation = read(Latin1, latin_1).unwrap();
    let chronorb_idl::model::DefKind::Const { value, .. } = &compilation.model.definitions[0].kind
    else {
        panic!("no constant");
    };
    assert_eq!(format!("{value:?}"), "String(\"é\")");
    assert!(read(Utf8, latin_1).is_err());
}
