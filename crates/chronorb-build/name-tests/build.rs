//! Writes IDL with awkward names in every position, and compiles it.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use chronorb_build::{BuildError, configure};

fn main() -> Result<(), BuildError> {
    let out_dir = env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?;
    let file = Path::new(&out_dir).join("words.idl");
    fs::write(&file, idl()).map_err(|source| BuildError::Write {
        path: file.clone(),
        source,
    })?;
    configure().compile(&[&file])
}

/// Returns IDL with each word in each position. With an underscore before it, any word is a name in
/// IDL.
fn idl() -> String {
    let mut idl = String::new();
    for (list, words) in [("keywords", KEYWORDS), ("library", LIBRARY), ("own", OWN)] {
        for (kind, definition) in TYPES.iter().enumerate() {
            // Each word as one kind of type: a name that hides an item which generated code needs
            // does so for all code in its module.
            let words = words.iter().skip(kind).step_by(TYPES.len());
            let _ = writeln!(idl, "module {list}_types{kind} {{");
            for (index, word) in words.clone().enumerate() {
                let number = index.to_string();
                let definition = definition.replace("WORD", word).replace('#', &number);
                let _ = writeln!(idl, "  {definition}");
            }
            let _ = writeln!(idl, "  struct AllOfThem {{ {} }};", members(words, kind));
            let _ = writeln!(idl, "}};");
        }
        let each = |format: &dyn Fn(&str) -> String| -> String {
            words.iter().map(|word| format(word)).collect()
        };
        let methods: Vec<_> = words
            .iter()
            .filter(|word| !OF_REFERENCES.contains(word))
            .collect();
        let method = |format: &dyn Fn(&str) -> String| -> String {
            methods.iter().map(|word| format(word)).collect()
        };
        let _ = writeln!(
            idl,
            "module {list}_within {{
              struct Fields {{ {} }};
              exception Thrown {{ {} }};
              union Variants switch (unsigned short) {{ {} }};
              module enumerators {{ enum Words {{ {} }}; const Words last = _{}; }};
              module constants {{ {} }};
              interface Operations {{ {} }};
              interface Parameters {{
                string all({}) raises (Thrown);
                sequence<string> changed({});
                void given({});
              }};
            }};",
            each(&|word| format!("string _{word};")),
            each(&|word| format!("sequence<string> _{word};")),
            numbered(words, |number, word| format!(
                "case {number}: string _{word};"
            )),
            joined(words, |word| format!("_{word}")),
            words.last().copied().unwrap_or_default(),
            each(&|word| format!("const long _{word} = 1;")),
            method(&|word| format!("void _{word}();")),
            joined(words, |word| format!("in string _{word}")),
            joined(words, |word| format!("inout sequence<string> _{word}")),
            joined(words, |word| format!("out string _{word}")),
        );
        for word in words {
            let _ = writeln!(
                idl,
                "module {list}_modules {{ module _{word} {{
                   enum Inner {{ ONE, TWO }};
                 }}; }};"
            );
        }
    }
    idl
}

fn members<'w>(words: impl Iterator<Item = &'w &'w str>, kind: usize) -> String {
    // Exceptions cannot be types of members.
    if kind == EXCEPTION {
        return "long none;".to_owned();
    }
    let members = words.enumerate();
    members
        .map(|(index, word)| format!("_{word} m{index}; sequence<_{word}> s{index};"))
        .collect()
}

fn joined(words: &[&str], format: impl Fn(&str) -> String) -> String {
    let words: Vec<_> = words.iter().map(|word| format(word)).collect();
    words.join(", ")
}

fn numbered(words: &[&str], format: impl Fn(usize, &str) -> String) -> String {
    let words = words.iter().enumerate();
    words.map(|(index, word)| format(index, word)).collect()
}

/// The methods of every reference; the generator reports these names as collisions.
const OF_REFERENCES: &[&str] = &["as_object", "as_view_in", "narrow", "unchecked_narrow"];

const EXCEPTION: usize = 2;

/// A definition of each kind, called WORD.
const TYPES: &[&str] = &[
    "struct _WORD { string text; long amount; };",
    "struct _WORD { double amount; };",
    "exception _WORD { string text; }; interface I# { void op() raises (_WORD); };",
    "union _WORD switch (boolean) { case TRUE: string text; case FALSE: sequence<_WORD> more; };",
    "module e# { enum _WORD { ONE, TWO }; }; typedef e#::_WORD _WORD;",
    "typedef sequence<string> _WORD;",
    "interface _WORD { _WORD op(in _WORD one, inout _WORD two); };",
    "struct _WORD { struct Inside { string text; } part; };",
];

/// The keywords of Rust, including reserved ones.
const KEYWORDS: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "raw",
    "ref",
    "return",
    "safe",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "macro_rules",
    "auto",
    "default",
];

/// The names in the prelude of Rust, its primitive types and crates, and names of traits' methods.
const LIBRARY: &[&str] = &[
    "Box",
    "Vec",
    "String",
    "Option",
    "Some",
    "None",
    "Result",
    "Ok",
    "Err",
    "Clone",
    "Copy",
    "Send",
    "Sync",
    "Sized",
    "Drop",
    "Fn",
    "FnMut",
    "FnOnce",
    "Iterator",
    "From",
    "Into",
    "Default",
    "Eq",
    "PartialEq",
    "Ord",
    "PartialOrd",
    "Debug",
    "Display",
    "Hash",
    "Error",
    "Any",
    "Arc",
    "ToString",
    "ToOwned",
    "AsRef",
    "bool",
    "char",
    "str",
    "u8",
    "i32",
    "u64",
    "f64",
    "usize",
    "std",
    "core",
    "alloc",
    "chronorb",
    "test",
    "matches",
    "write",
    "format",
    "panic",
    "map",
    "iter",
    "cloned",
    "unwrap",
    "len",
    "fmt",
];

/// The names that generated code and the runtime use.
const OWN: &[&str] = &[
    "a",
    "answer",
    "arena",
    "as_object",
    "as_view",
    "as_view_in",
    "bits",
    "buf",
    "call",
    "cdr",
    "context",
    "d",
    "decode",
    "derived",
    "discriminator",
    "e",
    "encode",
    "encode_slice",
    "entries",
    "exception",
    "flat",
    "index",
    "interface",
    "item",
    "items",
    "key",
    "layout",
    "min_size",
    "narrow",
    "new",
    "number",
    "object",
    "operation",
    "other",
    "owned",
    "places",
    "r",
    "reference",
    "reply",
    "repository_id",
    "rt",
    "s",
    "scope",
    "servant",
    "skeleton",
    "swap",
    "system",
    "system_exception",
    "this",
    "to_owned",
    "type_code",
    "typed",
    "unchecked_narrow",
    "unknown",
    "value",
    "view",
    "views",
    "w",
];
