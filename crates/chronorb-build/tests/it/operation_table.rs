//! Equal results of every operation lookup. The tables are the runtime's, the perfect hash is the
//! generator's.

#[allow(dead_code, unreachable_pub, reason = "it is a part of the runtime")]
#[path = "../../../chronorb-orb/src/operation_table.rs"]
mod table;

use chronorb_build::perfect_hash;
use table::{BinarySearchTable, DynamicHashTable, LinearSearchTable, OperationTable};

#[test]
fn no_operations_have_no_number() {
    answers_by_position::<&str>(&[]);
}

#[test]
fn one_operation_is_told_from_all_others() {
    answers_by_position(&["ping"]);
    answers_by_position(&[""]);
}

#[test]
fn ten_operations_are_found() {
    answers_by_position(&[
        "bind",
        "rebind",
        "resolve",
        "unbind",
        "list",
        "destroy",
        "to_name",
        "to_string",
        "_is_a",
        "_non_existent",
    ]);
}

#[test]
fn names_of_all_lengths_with_one_beginning_are_found() {
    let names: Vec<String> = (0..100).map(|n| "x".repeat(n)).collect();
    answers_by_position(&names);
}

#[test]
fn names_that_differ_in_one_place_only_are_found_wherever_it_is() {
    for length in [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 40] {
        let names: Vec<String> = (0..length)
            .flat_map(|place| ["a", "b"].map(|c| (place, c)))
            .map(|(place, c)| {
                let mut name = "-".repeat(length);
                name.replace_range(place..=place, c);
                name
            })
            .collect();
        answers_by_position(&names);
    }
}

#[test]
fn a_thousand_operations_are_found() {
    let names: Vec<String> = (0..1000).map(|n| format!("operation_{n}")).collect();
    answers_by_position(&names);
}

#[test]
fn ten_thousand_operations_are_found_in_a_table_of_two_and_a_half_slots_for_each() {
    let names: Vec<String> = (0..10_000)
        .map(|n| format!("get_the_{n}_of_the_market"))
        .collect();
    answers_by_position(&names);
    let hash = perfect_hash(&names).expect("no name occurs twice");
    assert!(hash.slots.len() + hash.displacements.len() <= 25_000);
}

#[test]
fn operations_are_found_in_thousands_of_random_sets() {
    let mut random = Random(fastrand::Rng::with_seed(7));
    for _ in 0..2000 {
        let (names, others) = (random.names(), random.names());
        let finders = Finders::new(&names);
        for name in names.iter().chain(&others) {
            let expected = names.iter().position(|other| other == name);
            finders.assert_finds(name.as_bytes(), expected);
        }
    }
}

#[test]
fn there_is_no_perfect_hash_over_a_name_that_occurs_twice_or_over_too_many() {
    assert_eq!(perfect_hash(&["a", "b", "a"]), None);
    let names: Vec<String> = (0..65_535).map(|n| n.to_string()).collect();
    assert_eq!(perfect_hash(&names), None);
    assert!(perfect_hash(&names[1..]).is_some());
    assert_eq!(perfect_hash(&["a".repeat(65_536)]), None);
    answers_by_position(&["a".repeat(65_535), "b".to_owned()]);
}

#[test]
fn the_same_names_give_the_same_perfect_hash() {
    let names = ["a", "b", "c", "d", "e"];
    assert_eq!(perfect_hash(&names), perfect_hash(&names));
}

/// Asserts that each name is found at its position, and similar names are not found.
fn answers_by_position<S: AsRef<str>>(names: &[S]) {
    let finders = Finders::new(names);
    let position = |name: &str| names.iter().position(|other| other.as_ref() == name);
    for (number, name) in names.iter().enumerate() {
        assert_eq!(finders.perfect.find(name.as_ref().as_bytes()), Some(number));
    }
    // A linear search of each of many names takes too long.
    for (number, name) in names.iter().enumerate().step_by(names.len() / 500 + 1) {
        let name = name.as_ref();
        finders.assert_finds(name.as_bytes(), Some(number));
        for other in [
            format!("{name}_"),
            format!("_{name}"),
            name.to_uppercase(),
            name.chars().skip(1).collect(),
            name.chars().rev().collect(),
        ] {
            finders.assert_finds(other.as_bytes(), position(&other));
        }
    }
    finders.assert_finds(b"", position(""));
    finders.assert_finds(&[0xff; 300], None);
    finders.assert_finds(b"\0", None);
}

/// The same names in each kind of table.
struct Finders {
    perfect: OperationTable,
    sorted: BinarySearchTable,
    hashed: DynamicHashTable,
    listed: LinearSearchTable,
}

impl Finders {
    fn new<S: AsRef<str>>(names: &[S]) -> Self {
        let names: Vec<&'static str> = names
            .iter()
            .map(|name| &*name.as_ref().to_owned().leak())
            .collect();
        let names: &'static [&'static str] = names.leak();
        let hash = perfect_hash(names).expect("no name occurs twice");
        let slots: Vec<_> = hash.places(names).into_iter().map(slot).collect();
        let (seed, displacements) = (hash.seed, hash.displacements);
        let mut sorted: Vec<(&'static str, usize)> = names.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self {
            perfect: OperationTable::new(
                seed,
                displacements.leak(),
                slots.leak(),
                names.concat().leak(),
            ),
            sorted: BinarySearchTable::new(sorted.leak()),
            hashed: DynamicHashTable::new(names),
            listed: LinearSearchTable::new(names),
        }
    }

    fn assert_finds(&self, name: &[u8], expected: Option<usize>) {
        let found = [
            self.perfect.find(name),
            self.sorted.find(name),
            self.hashed.find(name),
            self.listed.find(name),
        ];
        assert_eq!(found, [expected; 4], "{}", name.escape_ascii());
    }
}

/// A slot of the runtime's table.
fn slot(place: Option<(u32, u16, u16)>) -> (u32, u16, u16) {
    place.unwrap_or(OperationTable::EMPTY)
}

/// Random names, the same in each run.
struct Random(fastrand::Rng);

impl Random {
    /// Returns two to forty distinct names of up to thirty characters.
    fn names(&mut self) -> Vec<String> {
        let wanted = 2 + self.0.usize(..39);
        let mut names: Vec<String> = Vec::new();
        while names.len() < wanted {
            let length = 1 + self.0.usize(..30);
            let name: String = (0..length)
                .map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz_"[self.0.usize(..27)]))
                .collect();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
