use super::source::Modules;
use super::*;

/// Reads a crate of these modules, each with the text of its file.
fn modules(files: &[(&str, &str)]) -> Modules {
    let mut read = Files::default();
    for (module, text) in files {
        read.read(module, text).expect("Rust");
    }
    read.into_modules()
}

/// Returns the arrows of a crate of these modules, `from -> to …`, without modules that have none.
fn lines(files: &[(&str, &str)]) -> Vec<String> {
    let arrows = resolve::arrows(&modules(files)).into_iter();
    let arrows = arrows.filter(|(_, to)| !to.is_empty());
    arrows
        .map(|(from, to)| format!("{from} -> {}", Vec::from_iter(to).join(" ")))
        .collect()
}

fn graph(arrows: &[(&str, &[&str])]) -> Arrows {
    let owned = |to: &&str| (*to).to_owned();
    let arrows = arrows.iter();
    arrows
        .map(|(from, to)| ((*from).to_owned(), to.iter().map(owned).collect()))
        .collect()
}

/// A POA and a server that name each other, each by what the other's folder re-exports.
const HIDDEN_CYCLE: [(&str, &str); 5] = [
    ("", "mod poa; mod server;"),
    ("poa", "mod adapter; pub(crate) use adapter::Poa;"),
    (
        "poa::adapter",
        "use crate::server::Lane; pub(crate) struct Poa(Lane);",
    ),
    ("server", "mod lane; pub(crate) use lane::Lane;"),
    (
        "server::lane",
        "use crate::poa::Poa; pub(crate) struct Lane(Poa);",
    ),
];

#[test]
fn re_exports_hide_no_cycle() {
    let arrows = resolve::arrows(&modules(&HIDDEN_CYCLE));
    assert_eq!(cycles::of(&arrows), [["poa::adapter", "server::lane"]]);
    assert_eq!(cycles::of(&rooms(&arrows)), [["poa", "server"]]);
}

#[test]
fn arrows_end_where_items_are_defined() {
    let files = [
        (
            "",
            "pub use a::{self, inner::Deep as Renamed}; mod a; mod b; mod c; mod d; mod e;",
        ),
        (
            "a",
            "pub(crate) mod inner; mod others; pub(crate) use inner::*; pub(super) use others::*;",
        ),
        (
            "a::inner",
            "pub struct Deep; pub enum Kind { One } pub fn inner() {}",
        ),
        (
            "a::others",
            "pub use super::inner::Kind as Sort; pub const LIMIT: u32 = 1;",
        ),
        // A renamed re-export, and glob re-exports of a glob re-export.
        ("b", "use crate::Renamed; use crate::a::Sort::One;"),
        ("c", "fn limit() -> u32 { crate::a::LIMIT }"),
        // A module that is imported, a function with the name of its module, a type's own item.
        ("d", "use super::a; fn f() { a::inner(); }"),
        ("e", "fn f() -> crate::a::Kind { crate::a::Kind::One }"),
    ];
    let expected = [
        "b -> a::inner",
        "c -> a::others",
        "d -> a::inner",
        "e -> a::inner",
    ];
    assert_eq!(lines(&files), expected);
}

#[test]
fn re_exports_are_arrows_only_where_their_module_uses_them() {
    let folder = "mod adapter; pub use adapter::Poa; pub use adapter::State;";
    let adapter = ("poa::adapter", "pub struct Poa; pub struct State;");
    assert_eq!(lines(&[("poa", folder), adapter]), [""; 0]);
    let used = format!("{folder} fn f(_: &Poa) {{}}");
    assert_eq!(lines(&[("poa", &used), adapter]), ["poa -> poa::adapter"]);
}

#[test]
fn items_of_other_crates_belong_to_the_module_that_re_exports_them() {
    let files = [
        ("", "mod a; mod b; mod c;"),
        ("a", "pub use chronorb_rt::Clock;"),
        ("b", "use crate::a::Clock;"),
        ("c", "use chronorb_rt::Clock; use std::fmt;"),
    ];
    assert_eq!(lines(&files), ["b -> a"]);
}

#[test]
fn imports_that_lead_to_themselves_end() {
    let files = [
        ("", "mod a; mod b; pub use a::*; pub use b::*;"),
        ("a", "pub use crate::b::*; pub use crate::*; use crate::X;"),
        ("b", "pub use crate::a::*; pub struct X;"),
    ];
    assert_eq!(lines(&files), ["a -> b"]);
}

#[test]
fn code_is_read_in_macros_attributes_and_inline_modules() {
    let files = [
        ("", "mod a; mod b;"),
        (
            "a",
            "pub struct A; pub fn f() {} #[macro_export] macro_rules! m { () => {} }",
        ),
        ("b", "mod inner { fn g() { wrap!(crate::a::f()); } }"),
        ("c", "#[arg(with = crate::a::f)] struct C;"),
        ("d", "crate::m!();"),
        (
            "e",
            "mod inner { use super::X; use super::super::a::A; } struct X;",
        ),
    ];
    assert_eq!(lines(&files), ["b -> a", "c -> a", "d -> a", "e -> a"]);
}

#[test]
fn names_of_fields_methods_and_associated_items_are_no_arrows() {
    let folder = "mod open; pub use open::open; struct S;
        impl S { fn open(&self) { self.open(); T::<u32>::open(); } }";
    let files = [("driver", folder), ("driver::open", "pub fn open() {}")];
    assert_eq!(lines(&files), [""; 0]);
    let range = format!("{folder} fn f() {{ for _ in 0..open() {{}} }}");
    let files = [("driver", range.as_str()), files[1]];
    assert_eq!(lines(&files), ["driver -> driver::open"]);
}

#[test]
fn text_and_tests_are_left_out() {
    let files = [
        ("", "#[cfg(test)] mod tests; mod a; mod b;"),
        ("a", "pub struct A; pub struct B; pub struct C;"),
        ("tests", "use crate::a::A;"),
        ("tests::more", "use crate::a::A;"),
        (
            "b",
            "// use crate::a::A;
             const S: &str = \"crate::a::A\";
             #[cfg(test)] use crate::a::A;
             #[cfg(test)] fn f(_: crate::a::B) { crate::a::f(); }
             #[cfg(all(test, unix))] mod tests { use crate::a::C; }",
        ),
    ];
    assert_eq!(lines(&files), [""; 0]);
    let features = ("b", "#[cfg(feature = \"x\")] use crate::a::A;");
    assert_eq!(lines(&[files[0], files[1], features]), ["b -> a"]);
}

#[test]
fn cycles_and_forbidden_rooms_are_reported() {
    let arrows = graph(&[
        ("a", &["b"]),
        ("b", &["c::d"]),
        ("c::d", &["a", "e"]),
        ("e", &["f"]),
        ("f", &["e"]),
    ]);
    assert_eq!(
        cycles::of(&arrows),
        [vec!["a", "b", "c::d"], vec!["e", "f"]]
    );
    let rules = |modules, rooms| CrateRules {
        modules,
        rooms,
        forbidden: BTreeMap::from([("c".to_owned(), vec!["e".to_owned()])]),
    };
    let expected = [
        "a cycle of 3 modules (at most 2): a b c::d",
        "a cycle of 3 rooms (at most 2): a b c",
        "c::d names e",
    ];
    assert_eq!(rules(2, 2).complaints(&arrows), expected);
    assert_eq!(rules(3, 3).complaints(&arrows), expected[2..]);
}

#[test]
fn smaller_cycles_have_to_be_recorded() {
    let arrows = graph(&[("a::b", &["a::c"]), ("a::c", &["a::b", "d"])]);
    let rules = CrateRules {
        modules: 3,
        rooms: 1,
        forbidden: BTreeMap::new(),
    };
    let expected = "the largest cycle has 2 modules, and not 3: \
                    record modules = 2 in xtask/arrows.toml";
    assert_eq!(rules.complaints(&arrows), [expected]);
}
