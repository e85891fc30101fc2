use std::collections::BTreeSet;

use super::source::File;
use super::*;

fn paths(text: &str) -> Vec<String> {
    let file = File::parse(text).expect("Rust");
    file.paths.iter().map(|path| path.join("::")).collect()
}

#[test]
fn private_uses_and_paths_of_code_are_arrows() {
    let text = "
        use std::{fmt, io::{self, Read as _}};
        use super::lane::{Lane, staff::Staff as Other};
        pub(crate) use lane::Place;
        pub use crate::poa::*;
        fn f(x: crate::core::Core) -> Result<super::Gone, ()> { crate::client::forget::<u32>(x); }
        // use crate::comment::C;
        const S: &str = \"crate::text::T\";
        m!(crate::in_macro::N);
    ";
    let expected = [
        "crate::client::forget",
        "crate::core::Core",
        "crate::in_macro::N",
        "std::fmt",
        "std::io::Read",
        "std::io::self",
        "super::Gone",
        "super::lane::Lane",
        "super::lane::staff::Staff",
    ];
    assert_eq!(paths(text), expected);
}

#[test]
fn tests_are_left_out() {
    let text = "
        use crate::a::A;
        #[cfg(test)]
        mod tests { use crate::b::B; }
        #[cfg(test)]
        use crate::c::C;
        #[cfg(feature = \"x\")]
        use crate::d::D;
    ";
    assert_eq!(paths(text), ["crate::a::A", "crate::d::D"]);
    let file = File::parse("#[cfg(test)]\nmod tests;\nmod other;").expect("Rust");
    assert_eq!(file.tests, BTreeSet::from(["tests".to_owned()]));
}

#[test]
fn paths_of_inline_modules_are_those_of_their_file() {
    let text = "mod inner { use super::X; use super::super::Y; use crate::z::Z; use self::W; }";
    assert_eq!(paths(text), ["X", "crate::z::Z", "super::Y"]);
}

#[test]
fn a_path_names_its_last_module() {
    let names = ["", "poa", "poa::table", "core"];
    let modules = names.map(|name| (name.to_owned(), BTreeSet::new()));
    let modules = Modules::from(modules);
    let named = |module: &str, path: &str| {
        let path: Vec<_> = path.split("::").map(str::to_owned).collect();
        resolve(&modules, module, &path)
    };
    assert_eq!(
        named("poa::table", "crate::core::Core").as_deref(),
        Some("core")
    );
    assert_eq!(
        named("core", "crate::poa::table::T").as_deref(),
        Some("poa::table")
    );
    assert_eq!(named("poa::table", "super::Poa").as_deref(), Some("poa"));
    assert_eq!(
        named("poa", "self::table::T").as_deref(),
        Some("poa::table")
    );
    assert_eq!(named("poa", "table::T").as_deref(), Some("poa::table"));
    assert_eq!(named("poa", "std::fmt"), None);
}

#[test]
fn cycles_and_forbidden_rooms_are_told() {
    let arrows = [
        ("a", vec!["b"]),
        ("b", vec!["c::d"]),
        ("c::d", vec!["a", "e"]),
        ("e", vec!["f"]),
        ("f", vec!["e"]),
    ];
    let arrows = arrows.map(|(from, to)| {
        let to = to.into_iter().map(str::to_owned);
        (from.to_owned(), to.collect())
    });
    let arrows = Arrows::from(arrows);
    assert_eq!(
        cycles::of(&arrows),
        [vec!["a", "b", "c::d"], vec!["e", "f"]]
    );
    let rules = CrateRules {
        largest_cycle: 2,
        forbidden: BTreeMap::from([("c".to_owned(), vec!["e".to_owned()])]),
    };
    let complaints: Vec<_> = rules.complaints(&arrows).collect();
    let expected = ["a cycle of 3 modules (at most 2): a b c::d", "c::d names e"];
    assert_eq!(complaints, expected);
}
