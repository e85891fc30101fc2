//! The preprocessor: its output, and that the output means the same as the input.

use std::fs;
use std::path::{Path, PathBuf};

use chronorb_idl::model::Model;
use chronorb_idl::{Options, Severity, compile, compile_text, preprocess, preprocess_text};

/// Returns the remaining tokens, without line markers.
fn left(text: &str) -> String {
    let preprocessed = preprocess_text("a.idl", text, &Options::default()).unwrap();
    let lines = preprocessed.text.lines().filter(|l| !l.starts_with('#'));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn codes(text: &str) -> Vec<&'static str> {
    match preprocess_text("a.idl", text, &Options::default()) {
        Ok(preprocessed) => preprocessed.warnings.iter().map(|w| w.code).collect(),
        Err(failure) => failure.diagnostics.iter().map(|e| e.code).collect(),
    }
}

#[test]
fn an_object_macro_is_replaced_and_its_replacement_is_read_again() {
    assert_eq!(left("#define A B C\n#define B 1\nA"), "1 C");
}

#[test]
fn a_macro_is_not_replaced_inside_its_own_replacement() {
    assert_eq!(left("#define A A B\n#define B A\nA"), "A A");
    assert_eq!(left("#define f(x) x f(x)\nf(f(1))"), "1 f(1) f(1 f(1))");
}

#[test]
fn a_function_macro_without_parentheses_is_a_name() {
    assert_eq!(left("#define f(x) [x]\nf f (2) f\n(3)"), "f [2] [3]");
}

#[test]
fn arguments_are_expanded_except_beside_the_operators() {
    let macros = "#define X 1\n#define S(a) #a\n#define P(a, b) a ## b\n#define T(a) S(a)\n";
    assert_eq!(left(&format!("{macros}S(X) T(X)")), "\"X\" \"1\"");
    assert_eq!(left(&format!("{macros}P(X, X) P(, X) P(X,)")), "XX 1 1");
    assert_eq!(
        left(&format!("{macros}S( a  +\tb ) S(\"q\\n\")")),
        r#""a + b" "\"q\\n\"""#
    );
}

#[test]
fn the_replacement_is_read_again_together_with_what_follows() {
    // ISO/IEC 9899:1999, 6.10.3.4 and 6.10.3.5, examples 3 and 5, in another form.
    let macros = "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n\
                  #define z z[0]\n#define t(a) a\n";
    assert_eq!(
        left(&format!("{macros}f(y + 1) + f(f(z)) % t(t(g)(0) + t)(1);")),
        "f(2 * (y + 1)) + f(2 * (f(2 * (z[0])))) % f(2 * (0)) + t(1);"
    );
}

#[test]
fn a_macro_with_an_ellipsis_takes_any_number_of_arguments() {
    let macros = "#define V(...) <__VA_ARGS__>\n#define W(a, ...) a: __VA_ARGS__;\n\
                  #define L(a, ...) f(a, ## __VA_ARGS__)\n";
    assert_eq!(left(&format!("{macros}V() V(1) V(1,2)")), "<> <1> <1,2>");
    assert_eq!(left(&format!("{macros}W(1) W(1,2,3)")), "1:; 1: 2,3;");
    assert_eq!(left(&format!("{macros}L(1) L(1, 2)")), "f(1) f(1, 2)");
    assert_eq!(codes("#define W(a, b, ...) a\nW(1)\n"), ["E0014"]);
    assert_eq!(codes("#define W(..., a) a\n"), ["E0011"]);
    assert_eq!(codes("#define W(__VA_ARGS__) a\n"), ["E0011"]);
}

#[test]
fn all_operators_of_conditions_have_their_precedence() {
    for (expression, holds) in [
        ("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9", true),
        ("1 << 4 >> 2 == 4 | 0", true),
        ("7 & 3 ^ 1 | 8", true),
        ("-7 / 2 == -3 && -7 % 2 == -1 && ~0 == -1", true),
        ("0 ? 1 : 2 == 2 ? 1 : 0", true),
        ("defined A || defined(B) && !defined(C)", false),
        ("defined __LINE__ && defined(__CHRONORB_IDL__)", true),
        ("0x10 == 020 && 020 == 16 && 10UL == 10", true),
        ("'a' == 97 && '\\n' == 10 && '\\x41' == 'A'", true),
        ("0 && 1 / 0", false),
        ("1 || 1 / 0", true),
        ("2 > 1 && 1 < 2 && 2 >= 2 && 2 <= 2 && 1 != 2", true),
        ("UNKNOWN", false),
    ] {
        let text = format!("#if {expression}\nyes\n#else\nno\n#endif\n");
        assert_eq!(
            left(&text),
            if holds { "yes" } else { "no" },
            "{expression}"
        );
    }
}

#[test]
fn one_branch_is_compiled() {
    let choose = |value: &str| {
        left(&format!(
            "#define V {value}\n#if V == 1\none\n#elif V == 2\ntwo\n#elif V / (V - 4)\nmore\n\
             #else\nnone\n#endif\n"
        ))
    };
    assert_eq!(choose("1"), "one");
    assert_eq!(choose("2"), "two");
    assert_eq!(choose("5"), "more");
    assert_eq!(choose("0"), "none");
    let text = "#ifdef A\na\n#elifdef B\nb\n#elifndef C\nc\n#endif\n";
    assert_eq!(left(text), "c");
}

#[test]
fn what_is_not_compiled_need_not_be_tokens() {
    let text = "#if 0\ndon't \" ` $ \n#if ' (\n#else \"\n#endif it's\n#nonsense\n\
                /* #endif */ // #endif\n#else isn't it\nyes\n#endif that's it\n";
    assert_eq!(left(text), "yes");
}

#[test]
fn what_directives_say_to_people_need_not_be_tokens() {
    assert_eq!(codes("#error don't `use` $this\n"), ["E0015"]);
    assert_eq!(codes("#warning it's \"old\n"), ["W0001"]);
    assert_eq!(codes("#pragma vendor it's `so`\n"), ["W0002"]);
    assert_eq!(codes("#ident \"$Id: it's$\"\n#sccs '\n"), [""; 0]);
    let text = "#warning a \\\n  b /* c\nc */ d // e\nlong\n";
    let warnings = preprocess_text("a.idl", text, &Options::default()).unwrap();
    let warning = warnings.warnings.iter().next().unwrap();
    assert_eq!(warning.message, "a   b   d // e");
    assert_eq!(left(text), "long");
}

#[test]
fn a_comment_may_stand_anywhere_in_a_directive() {
    let text = "/* a */ # /* b */ define /* c */ A /* d\n e */ 1 // f\nA";
    assert_eq!(left(text), "1");
}

#[test]
fn lines_can_be_continued() {
    assert_eq!(
        left("#define A 1 \\\n + \\\r\n 2\nA // B \\\n C\nD"),
        "1 + 2 D"
    );
    assert_eq!(left("#if 0 \\\n || 1\nyes\n#endif"), "yes");
}

#[test]
fn trigraphs_are_no_characters() {
    assert_eq!(left("\"what??=\" ??="), "\"what??=\" ??=");
}

#[test]
fn built_in_names_follow_line_markers() {
    assert_eq!(left("__LINE__ __FILE__\n"), "1 \"a.idl\"");
    assert_eq!(
        left("#line 40 \"b \\\"q\\\".idl\"\n__LINE__ __FILE__\n__LINE__"),
        "40 \"b \\\"q\\\".idl\" 41"
    );
    let text = "#line 40 \"b.idl\"\n#line __LINE__\n__FILE__ __LINE__\n";
    assert_eq!(left(text), "\"b.idl\" 40");
}

#[test]
fn wrong_directives_are_told() {
    for (text, code) in [
        ("#line x", "E0011"),
        ("#line 1 x", "E0011"),
        ("#line", "E0011"),
        ("#define 1", "E0011"),
        ("#define defined 1", "E0011"),
        ("#include", "E0011"),
        ("#include <a", "E0011"),
        ("#include \"a", "E0007"),
        ("#frobnicate 'x", "E0010"),
        ("#elifdef A", "E0009"),
        ("#define f(a, a)", "E0011"),
        ("#define f(a", "E0011"),
        ("#define c(a, b) a ## b\nc(+, 1)", "E0014"),
        ("#if 1 +\n#endif", "E0012"),
        ("#if\n#endif", "E0012"),
        ("#if 1 ? 2\n#endif", "E0012"),
        ("#if defined\n#endif", "E0012"),
        ("#if 09\n#endif", "E0012"),
    ] {
        assert!(codes(text).contains(&code), "{text}: {:?}", codes(text));
    }
}

#[test]
fn a_prefix_ends_with_its_file_also_behind_line_markers() {
    let text = "# 1 \"main.idl\"\n#pragma prefix \"outer\"\n# 1 \"part.idl\" 1\n\
                struct Part { long a; };\n#pragma prefix \"inner\"\nstruct Inner { long a; };\n\
                # 3 \"main.idl\" 2\nstruct Main { long a; };\n";
    let model = compile_text("main.i", text, &Options::default())
        .unwrap()
        .model;
    let ids: Vec<_> = model
        .iter()
        .map(|(_, d)| (&*d.repository_id, d.in_main_file))
        .collect();
    assert_eq!(
        ids,
        [
            ("IDL:Part:1.0", false),
            ("IDL:inner/Inner:1.0", false),
            ("IDL:outer/Main:1.0", true)
        ]
    );
    let places: Vec<_> = model
        .iter()
        .map(|(_, d)| {
            (
                model.path(&d.location).unwrap().to_str().unwrap(),
                d.location.line,
            )
        })
        .collect();
    assert_eq!(places, [("part.idl", 1), ("part.idl", 3), ("main.idl", 3)]);
    assert_eq!(model.files, [PathBuf::from("main.i")]);
}

#[test]
fn a_finding_behind_a_line_marker_has_the_place_that_it_says() {
    let text = "#line 100 \"original.idl\"\n\n  struct S { Foo a; };\n";
    let failure = compile_text("made.idl", text, &Options::default()).unwrap_err();
    let label = &failure.diagnostics.iter().next().unwrap().labels[0];
    assert_eq!(label.path, Path::new("original.idl"));
    assert_eq!((label.location.line, label.location.column), (101, 14));
    assert_eq!((label.end.line, label.end.column), (101, 17));
    assert_eq!(
        &text[label.bytes().start as usize..label.bytes().end as usize],
        "Foo"
    );
}

/// Returns a text of the whole model, except for the order in which files were read. `columns` is
/// false for names from macros, whose columns differ.
fn said(model: &Model, columns: bool) -> Vec<String> {
    let mut said = vec![format!("{:?}", model.roots)];
    for (id, definition) in model.iter() {
        said.push(format!("{id:?} {:?}", model.path(&definition.location)));
        let mut text = without_numbers(&format!("{definition:?}"), "Location { file: ");
        if !columns {
            text = without_numbers(&text, ", column: ");
        }
        said.push(text);
    }
    said
}

/// Returns the text without the numbers that follow each `field`.
fn without_numbers(text: &str, field: &str) -> String {
    let mut parts = text.split(field);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest += field;
        rest += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    rest
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "idl"))
        .collect();
    files.sort();
    files
}

#[test]
fn the_output_compiles_to_the_same_model() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let options = Options {
        include_dirs: vec![tests.join("include")],
        ..Options::default()
    };
    for file in files_of(&tests.join("accept")) {
        let text = preprocess(&file, &options).unwrap().text;
        let direct = compile(&file, &options).unwrap().model;
        let through = compile_text("made.i", &text, &Options::default())
            .unwrap_or_else(|failure| panic!("{}:\n{failure}\n{text}", file.display()))
            .model;
        // The built-in files have macros too.
        let all_on_disk = direct.files_on_disk().count() == direct.files.len();
        let columns =
            all_on_disk && !fs::read_to_string(&file).is_ok_and(|text| text.contains("#define"));
        let (direct, through) = (said(&direct, columns), said(&through, columns));
        if let Some(i) = (0..direct.len()).find(|&i| through.get(i) != Some(&direct[i])) {
            let (made, said) = (through.get(i), &direct[i]);
            panic!("{}: {made:?} instead of {said:?}\n{text}", file.display());
        }
        assert_eq!(direct.len(), through.len());
        // Preprocessing is idempotent.
        let again = preprocess_text("made.i", &text, &Options::default()).unwrap();
        assert_eq!(again.text, text, "{}", file.display());
    }
}

#[test]
fn the_output_has_the_same_errors() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let options = Options {
        include_dirs: vec![tests.join("include")],
        ..Options::default()
    };
    for file in files_of(&tests.join("reject")) {
        let Ok(preprocessed) = preprocess(&file, &options) else {
            continue;
        };
        let errors = |failure: chronorb_idl::Failure| -> Vec<_> {
            let errors = failure.diagnostics.iter();
            let errors = errors.filter(|e| e.severity == Severity::Error);
            errors
                .map(|e| (e.code, e.labels[0].path.clone(), e.labels[0].location.line))
                .collect()
        };
        let direct = errors(compile(&file, &options).unwrap_err());
        let through = compile_text("made.i", &preprocessed.text, &Options::default());
        assert_eq!(errors(through.unwrap_err()), direct, "{}", file.display());
    }
}
