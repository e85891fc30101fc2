//! Interfaces of many operations, and skeletons that do nothing but find theirs.

use std::collections::HashSet;
use std::hint::black_box;

use chronorb_orb::codegen::v1::{
    BinarySearchTable, Call, Decoder, DynamicHashTable, LinearSearchTable, OperationTable,
    ReplyWriter, Skeleton, SystemException, bad_operation,
};

/// From the name of an operation to its number.
pub(super) trait Find: Copy + Send + Sync + 'static {
    fn find(self, name: &[u8]) -> Option<usize>;
}

impl Find for &'static OperationTable {
    #[inline]
    fn find(self, name: &[u8]) -> Option<usize> {
        OperationTable::find(self, name)
    }
}

impl Find for &'static DynamicHashTable {
    #[inline]
    fn find(self, name: &[u8]) -> Option<usize> {
        DynamicHashTable::find(self, name)
    }
}

impl Find for &'static BinarySearchTable {
    #[inline]
    fn find(self, name: &[u8]) -> Option<usize> {
        BinarySearchTable::find(self, name)
    }
}

impl Find for &'static LinearSearchTable {
    #[inline]
    fn find(self, name: &[u8]) -> Option<usize> {
        LinearSearchTable::find(self, name)
    }
}

/// The operations of one interface in the tables of all strategies, as the code generator would
/// make them. They stay for the life of the program, as generated ones do.
#[derive(Clone, Copy)]
pub(super) struct Operations {
    pub(super) names: &'static [&'static str],
    pub(super) perfect: &'static OperationTable,
    pub(super) hash: &'static DynamicHashTable,
    pub(super) binary: &'static BinarySearchTable,
    pub(super) linear: &'static LinearSearchTable,
    /// Octets of the perfect table with the names.
    pub(super) perfect_octets: usize,
}

impl Operations {
    /// An interface of so many operations, up to 65,534.
    pub(super) fn new(count: u32) -> Self {
        let names = one_after_the_other(&names(count));
        let hash = chronorb_build::perfect_hash(names).expect("the names differ and are few");
        let perfect_octets = 2 * (hash.displacements.len() + hash.slots.len())
            + names
                .iter()
                .map(|name| name.len() + size_of::<&str>())
                .sum::<usize>();
        let perfect = OperationTable::new(
            hash.seed,
            hash.displacements.leak(),
            hash.slots.leak(),
            names,
        );
        let mut sorted: Vec<(&'static str, usize)> = names.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self {
            names,
            perfect: Box::leak(Box::new(perfect)),
            hash: Box::leak(Box::new(DynamicHashTable::new(names))),
            binary: Box::leak(Box::new(BinarySearchTable::new(sorted.leak()))),
            linear: Box::leak(Box::new(LinearSearchTable::new(names))),
            perfect_octets,
        }
    }
}

/// A skeleton that finds the operation, and then does nothing.
pub(super) struct Empty<F>(pub(super) F);

impl<F: Find> Skeleton for Empty<F> {
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
        match black_box(self.0.find(operation)) {
            Some(_) => Ok(()),
            None => Err(bad_operation()),
        }
    }
}

/// Names that lie beside each other, as the constants of a program do.
fn one_after_the_other(names: &[String]) -> &'static [&'static str] {
    let mut rest: &'static str = names.concat().leak();
    let mut placed = Vec::with_capacity(names.len());
    for name in names {
        let (first, others) = rest.split_at(name.len());
        placed.push(first);
        rest = others;
    }
    placed.leak()
}

/// Names as interfaces have them, of different lengths and with common beginnings.
fn names(count: u32) -> Vec<String> {
    let mut seen = HashSet::new();
    (0..count)
        .map(|n| {
            let verb = VERBS[n as usize % VERBS.len()];
            let noun = NOUNS[n as usize / VERBS.len() % NOUNS.len()];
            let name = match n as usize / (VERBS.len() * NOUNS.len()) {
                0 => format!("{verb}_{noun}"),
                series => format!("{verb}_{noun}_{series}"),
            };
            assert!(seen.insert(name.clone()), "{name} comes twice");
            name
        })
        .collect()
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
            assert_eq!(Find::find(operations.perfect, name), Some(number));
            assert_eq!(Find::find(operations.hash, name), Some(number));
            assert_eq!(Find::find(operations.binary, name), Some(number));
            assert_eq!(Find::find(operations.linear, name), Some(number));
        }
        assert_eq!(Find::find(operations.perfect, b"get_lost"), None);
    }
}
