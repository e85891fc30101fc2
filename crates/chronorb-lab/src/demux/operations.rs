//! Interfaces of many operations, and skeletons that only find theirs.

use std::collections::HashSet;
use std::hint::black_box;

use chronorb_orb::codegen::v1::{
    BinarySearchTable, Call, Decoder, DynamicHashTable, LinearSearchTable, OperationTable,
    ReplyWriter, Skeleton, SystemException, bad_operation,
};

/// A function from the name of an operation to its number.
pub(super) trait Find: Fn(&[u8]) -> Option<usize> + Copy + Send + Sync + 'static {}

impl<F: Fn(&[u8]) -> Option<usize> + Copy + Send + Sync + 'static> Find for F {}

/// The operations of one interface in the tables of all strategies, as the code generator would
/// make them. They stay for the life of the program, like generated ones.
#[derive(Clone, Copy)]
pub(super) struct Operations {
    pub(super) names: &'static [&'static str],
    perfect: &'static OperationTable,
    hash: &'static DynamicHashTable,
    binary: &'static BinarySearchTable,
    linear: &'static LinearSearchTable,
    /// The bytes of the perfect table with the names.
    pub(super) perfect_bytes: usize,
}

impl Operations {
    /// Returns an interface of so many operations, up to 65,534.
    pub(super) fn new(count: u32) -> Self {
        let names = one_after_the_other(&names(count));
        let hash = chronorb_build::perfect_hash(names).expect("the names differ and are few");
        let places = hash.places(names).into_iter();
        let slots: Vec<_> = places
            .map(|place| place.unwrap_or(OperationTable::EMPTY))
            .collect();
        let text = &*names.concat().leak();
        let perfect_bytes = size_of_val(&*hash.displacements) + size_of_val(&*slots) + text.len();
        let (displacements, slots) = (hash.displacements.leak(), slots.leak());
        let mut sorted: Vec<(&'static str, usize)> = names.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self {
            names,
            perfect: leak(OperationTable::new(hash.seed, displacements, slots, text)),
            hash: leak(DynamicHashTable::new(names)),
            binary: leak(BinarySearchTable::new(sorted.leak())),
            linear: leak(LinearSearchTable::new(names)),
            perfect_bytes,
        }
    }

    pub(super) fn by_perfect_hash(self) -> impl Find {
        move |name: &[u8]| self.perfect.find(name)
    }

    pub(super) fn by_dynamic_hash(self) -> impl Find {
        move |name: &[u8]| self.hash.find(name)
    }

    pub(super) fn by_binary_search(self) -> impl Find {
        move |name: &[u8]| self.binary.find(name)
    }

    pub(super) fn by_linear_search(self) -> impl Find {
        move |name: &[u8]| self.linear.find(name)
    }
}

fn leak<T>(table: T) -> &'static T {
    Box::leak(Box::new(table))
}

/// A skeleton that finds the operation, and does nothing else.
pub(super) struct EmptySkeleton<F>(pub(super) F);

impl<F: Find> Skeleton for EmptySkeleton<F> {
    fn repository_id(&self) -> &'static str {
        "IDL:chronorb/Lab/Empty:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        operation: &[u8],
        _: &mut Decoder<'a>,
        _: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        let found = black_box((self.0)(operation));
        found.map(drop).ok_or_else(bad_operation)
    }
}

/// Puts names next to each other in memory, like the constants of a program.
fn one_after_the_other(names: &[String]) -> &'static [&'static str] {
    let mut rest: &'static str = names.concat().leak();
    let placed = names.iter().map(|name| {
        let (first, others) = rest.split_at(name.len());
        rest = others;
        first
    });
    placed.collect::<Vec<_>>().leak()
}

/// Returns names as interfaces have them, of different lengths and with common beginnings.
fn names(count: u32) -> Vec<String> {
    let mut seen = HashSet::new();
    let name = |n: usize| {
        let verb = VERBS[n % VERBS.len()];
        let noun = NOUNS[n / VERBS.len() % NOUNS.len()];
        let name = match n / (VERBS.len() * NOUNS.len()) {
            0 => format!("{verb}_{noun}"),
            series => format!("{verb}_{noun}_{series}"),
        };
        assert!(seen.insert(name.clone()), "{name} comes twice");
        name
    };
    (0..count as usize).map(name).collect()
}

const VERBS: [&str; 10] = [
    "get", "set", "open", "close", "start", "stop", "query", "update", "attach", "release",
];
const NOUNS: [&str; 10] = [
    "track",
    "channel",
    "sensor_state",
    "alarm",
    "flight_plan",
    "route",
    "switch_port",
    "log",
    "calibration",
    "session",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_gives_the_same_numbers() {
        let operations = Operations::new(1_000);
        for (number, name) in operations.names.iter().enumerate() {
            let name = name.as_bytes();
            assert_eq!(operations.by_perfect_hash()(name), Some(number));
            assert_eq!(operations.by_dynamic_hash()(name), Some(number));
            assert_eq!(operations.by_binary_search()(name), Some(number));
            assert_eq!(operations.by_linear_search()(name), Some(number));
        }
        assert_eq!(operations.by_perfect_hash()(b"get_lost"), None);
    }
}
