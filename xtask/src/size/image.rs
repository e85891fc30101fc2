//! The loaded parts of a program, by its sections and by the names of its functions.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::run::{Failure, ask};

/// The loaded parts of a program.
#[derive(Serialize)]
pub(super) struct Image {
    /// All [`KINDS`], in this order.
    pub(super) parts: Vec<Part>,
    /// The parts together.
    pub(super) total: u64,
}

/// The sections of one kind.
#[derive(Serialize)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) octets: u64,
}

/// The parts of a program that belong to one crate.
#[derive(Serialize)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) code: u64,
    pub(super) data: u64,
}

impl Image {
    pub(super) fn of(program: &Path) -> Result<Self, Failure> {
        let text = tool("size", &["-A", "-d"], program)?;
        let mut parts: Vec<Part> = KINDS
            .iter()
            .map(|(name, _)| Part { name, octets: 0 })
            .collect();
        for (section, octets) in text.lines().filter_map(loaded_section) {
            // The last kind is all the rest.
            let kind = KINDS
                .iter()
                .position(|(_, sections)| sections.contains(&section));
            parts[kind.unwrap_or(KINDS.len() - 1)].octets += octets;
        }
        let total = parts.iter().map(|part| part.octets).sum();
        if total == 0 {
            let program = program.display();
            return Err(Failure(format!("size -A names no section of {program}")));
        }
        Ok(Self { parts, total })
    }
}

/// Returns the sizes of the functions and variables of a program by crate, the greatest first.
///
/// Instances of generic types belong to the first crate in their name that is not of the standard
/// library. Constants without a name, and the tables for unwinding, belong to no crate.
pub(super) fn crates(program: &Path) -> Result<Vec<Crate>, Failure> {
    let text = tool("nm", &["--demangle", "--print-size"], program)?;
    let mut sizes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for symbol in text.lines().filter_map(Symbol::of) {
        let (code, data) = sizes.entry(owner(symbol.name)).or_default();
        *(if symbol.is_code { code } else { data }) += symbol.octets;
    }
    let crates = sizes.into_iter().map(|(name, (code, data))| Crate {
        name: name.to_owned(),
        code,
        data,
    });
    let mut crates: Vec<Crate> = crates.collect();
    crates.sort_by_key(|part| std::cmp::Reverse(part.code + part.data));
    Ok(crates)
}

/// Parses the name and the size of a section that is loaded: others have no address. The padding of
/// the last page before the data belongs to no section.
fn loaded_section(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_whitespace();
    let (name, octets, address) = (words.next()?, words.next()?, words.next()?);
    let address: u64 = address.parse().ok()?;
    (address != 0 && name != ".relro_padding").then_some(())?;
    Some((name, octets.parse().ok()?))
}

/// A function or variable.
struct Symbol<'t> {
    name: &'t str,
    octets: u64,
    is_code: bool,
}

impl<'t> Symbol<'t> {
    /// From a line of `nm`: address, size, kind, name.
    fn of(line: &'t str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let (_, octets, kind) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            name: words.next()?,
            octets: u64::from_str_radix(octets, 16).ok()?,
            is_code: matches!(kind, "t" | "T" | "w" | "W"),
        })
    }
}

fn owner(name: &str) -> &str {
    let mut named = crates_in(name).filter(|name| !OF_STANDARD_LIBRARY.contains(name));
    named.next().unwrap_or("the standard library")
}

/// The first parts of the paths in a name.
fn crates_in(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
        .filter_map(|path| path.split_once("::"))
        .map(|(first, _)| first)
        .filter(|first| first.starts_with(|c: char| c.is_ascii_lowercase() || c == '_'))
}

fn tool(program: &str, options: &[&str], file: &Path) -> Result<String, Failure> {
    let file = file.display().to_string();
    let args: Vec<&str> = options.iter().copied().chain([file.as_str()]).collect();
    ask(program, &args).ok_or_else(|| {
        Failure(format!(
            "{program} {}: it failed or is missing (install with: apt-get install binutils)",
            args.join(" ")
        ))
    })
}

/// Kinds of sections.
const KINDS: &[(&str, &[&str])] = &[
    ("code", &[".text", ".init", ".fini", ".plt", ".plt.got"]),
    ("constants", &[".rodata"]),
    (
        "tables for unwinding",
        &[".eh_frame", ".eh_frame_hdr", ".gcc_except_table"],
    ),
    (
        "data, read-only after relocation",
        &[
            ".data.rel.ro",
            ".dynamic",
            ".fini_array",
            ".got",
            ".got.plt",
            ".init_array",
            ".tdata",
        ],
    ),
    ("data", &[".data"]),
    ("zeros (bss)", &[".bss", ".tbss"]),
    ("names and relocations for the loader", &[]),
];

/// The crates that come with the compiler.
const OF_STANDARD_LIBRARY: &[&str] = &[
    "__rustc",
    "addr2line",
    "adler2",
    "alloc",
    "compiler_builtins",
    "core",
    "gimli",
    "hashbrown",
    "memchr",
    "miniz_oxide",
    "object",
    "panic_unwind",
    "rustc_demangle",
    "std",
    "std_detect",
    "unwind",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sections_with_an_address_are_loaded() {
        assert_eq!(
            loaded_section(".text   680403   264464"),
            Some((".text", 680_403))
        );
        assert_eq!(loaded_section(".comment   178   0"), None);
        assert_eq!(loaded_section(".relro_padding   872   973976"), None);
        assert_eq!(loaded_section("section   size   addr"), None);
        assert_eq!(loaded_section("Total   2982823"), None);
    }

    #[test]
    fn a_symbol_has_a_size_a_kind_and_a_name() {
        let line = "000000000004cb9d 0000000000003c72 t <chronorb_orb::server::Worker>::handle";
        let symbol = Symbol::of(line).expect("it has all four");
        assert_eq!(symbol.octets, 0x3c72);
        assert!(symbol.is_code);
        assert_eq!(symbol.name, "<chronorb_orb::server::Worker>::handle");
        assert!(Symbol::of("                 U write").is_none());
    }

    #[test]
    fn what_is_generic_belongs_to_the_crate_that_it_was_made_for() {
        for (name, whose) in [
            ("<chronorb_rt::slots::Slots<u8>>::take", "chronorb_rt"),
            (
                "core::ptr::drop_in_place::<chronorb_orb::orb::Orb>",
                "chronorb_orb",
            ),
            ("<alloc::vec::Vec<u8>>::push", "the standard library"),
            (
                "<Powers as chronorb_orb::call::Skeleton>::dispatch",
                "chronorb_orb",
            ),
            ("main", "the standard library"),
        ] {
            assert_eq!(owner(name), whose, "{name}");
        }
    }
}
