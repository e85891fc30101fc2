//! Tables from the name of an operation on the wire to its number in a skeleton.
//!
//! Skeletons use [`OperationTable`]. The others are the alternatives with which the literature
//! compares it; all of them give the same answers.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::collections::HashMap;

/// A perfect hash over the operations of one interface, inherited ones included.
///
/// The code generator searches for it, so that no two names share a slot. A lookup takes the same
/// few steps whatever the number of operations: the hash selects a bucket, the bucket's
/// displacement gives the slot, and one comparison tells whether the slot has the name. A slot has
/// 8 bytes and leads to the name at once, so that a large table takes few cache lines.
#[derive(Clone, Copy, Debug)]
pub struct OperationTable {
    seed: u64,
    displacements: &'static [u16],
    slots: &'static [Slot],
    names: &'static str,
}

/// Start and length of a name, and the number of the operation.
type Slot = (u32, u16, u16);

impl OperationTable {
    /// A slot without an operation: no name begins there.
    pub const EMPTY: (u32, u16, u16) = (u32::MAX, 0, 0);

    /// Makes a table of names that follow each other in a text. A slot is the start and the length
    /// of a name there, and the number of the operation.
    ///
    /// The other parts are the result of `chronorb_build::perfect_hash` for these names. With other
    /// parts names are not found, but nothing worse happens.
    ///
    /// # Panics
    /// Panics if the length of `displacements` or `slots` is not a power of two.
    pub const fn new(
        seed: u64,
        displacements: &'static [u16],
        slots: &'static [(u32, u16, u16)],
        names: &'static str,
    ) -> Self {
        assert!(displacements.len().is_power_of_two() && slots.len().is_power_of_two());
        Self {
            seed,
            displacements,
            slots,
            names,
        }
    }

    /// The number of the operation with this name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let hash = hash(self.seed, name);
        let bucket = hash as usize & (self.displacements.len() - 1);
        let displacement = *self.displacements.get(bucket)?;
        let slot = displaced(hash, displacement) as usize & (self.slots.len() - 1);
        let &(start, length, number) = self.slots.get(slot)?;
        let (start, length) = (start as usize, usize::from(length));
        let found = self.names.as_bytes().get(start..start + length)?;
        // Both ends are all octets of a short name, and those of `name` are known from its hash.
        let is_same = found.len() == name.len()
            && if name.len() <= 16 {
                ends(found) == ends(name)
            } else {
                found == name
            };
        is_same.then_some(usize::from(number))
    }
}

/// Operations sorted by name, found by binary search: the time grows with the logarithm of their
/// number.
#[derive(Clone, Copy, Debug)]
pub struct BinarySearchTable {
    operations: &'static [(&'static str, usize)],
}

impl BinarySearchTable {
    /// Makes a table of names with their numbers, sorted by the names' octets. A name that is out
    /// of order may not be found.
    pub const fn new(operations: &'static [(&'static str, usize)]) -> Self {
        Self { operations }
    }

    /// The number of the operation with this name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.operations
            .binary_search_by(|(other, _)| other.as_bytes().cmp(name))
            .ok()
            .and_then(|at| self.operations.get(at))
            .map(|&(_, number)| number)
    }
}

/// Operations in a hash table that is built at run time: its hash is not chosen for the names, so
/// names may collide.
#[derive(Clone, Debug)]
pub struct DynamicHashTable {
    numbers: HashMap<&'static [u8], usize>,
}

impl DynamicHashTable {
    /// Makes a table of the names, whose numbers are their positions. This allocates.
    pub fn new(names: &[&'static str]) -> Self {
        let numbers = names.iter().zip(0..);
        Self {
            numbers: numbers
                .map(|(name, number)| (name.as_bytes(), number))
                .collect(),
        }
    }

    /// The number of the operation with this name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.numbers.get(name).copied()
    }
}

/// Operations that are compared one after the other: the time grows with their number.
#[derive(Clone, Copy, Debug)]
pub struct LinearSearchTable {
    names: &'static [&'static str],
}

impl LinearSearchTable {
    /// Makes a table of the names, whose numbers are their positions.
    pub const fn new(names: &'static [&'static str]) -> Self {
        Self { names }
    }

    /// The number of the operation with this name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|other| other.as_bytes() == name)
    }
}

/// A hash of all octets and of the length. The code generator contains the same function.
#[inline]
pub(crate) fn hash(seed: u64, name: &[u8]) -> u64 {
    let (mut head, tail) = ends(name);
    if name.len() > 16 {
        for word in name[8..].as_chunks().0 {
            head = (head.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        }
    }
    // The length changes the seed, so that names that collide with one seed differ with another.
    let tail = tail ^ seed.wrapping_mul(2 * name.len() as u64 + 3);
    let product = u128::from(head ^ seed) * u128::from(tail);
    (product >> 64) as u64 ^ product as u64
}

/// The first and the last octets, which are all octets of a name of up to 16.
#[inline]
fn ends(name: &[u8]) -> (u64, u64) {
    if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        return (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
    }
    if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        return (head.into(), tail.into());
    }
    let head = name
        .iter()
        .fold(0, |head, &octet| head << 8 | u64::from(octet));
    (head, 0)
}

/// The hash displaced for its bucket; the lowest bits are the slot.
#[inline]
const fn displaced(hash: u64, displacement: u16) -> u64 {
    hash.wrapping_mul(MULTIPLIER.wrapping_add(2 * displacement as u64)) >> 32
}

/// An odd number with well-distributed one bits (from the golden ratio).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
