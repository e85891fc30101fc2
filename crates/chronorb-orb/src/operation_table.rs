//! From the name of an operation on the wire to its number in a skeleton.

/// A perfect hash over the operations of one interface, inherited ones
/// included. The code generator searches the seed, so that no two names share
/// a slot; a lookup is one multiplication, one load and one comparison.
#[derive(Clone, Copy, Debug)]
pub struct OperationTable {
    seed: u64,
    shift: u32,
    slots: &'static [u16],
    names: &'static [&'static str],
}

impl OperationTable {
    /// The number that stands in the slots without an operation.
    pub const EMPTY: u16 = u16::MAX;

    /// A table of the names, whose numbers are their positions.
    ///
    /// `slots` has a power of two as length, at least 2, and holds for each
    /// hash value the number of the name that has it, or [`Self::EMPTY`].
    pub const fn new(seed: u64, slots: &'static [u16], names: &'static [&'static str]) -> Self {
        assert!(slots.len() >= 2 && slots.len().is_power_of_two());
        Self {
            seed,
            shift: u64::BITS - slots.len().trailing_zeros(),
            slots,
            names,
        }
    }

    /// The number of the operation with this name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let slot = (hash(self.seed, name) >> self.shift) as usize;
        let number = usize::from(*self.slots.get(slot)?);
        let found = self.names.get(number)?;
        (found.as_bytes() == name).then_some(number)
    }
}

/// The length, the first eight and the last eight octets, times the seed; its
/// highest bits are the slot. The code generator holds the same function.
#[inline]
const fn hash(seed: u64, name: &[u8]) -> u64 {
    let (head, tail) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => {
            let mut head = 0;
            let mut at = name.len();
            while at > 0 {
                at -= 1;
                head = (head << 8) | name[at] as u64;
            }
            (head, 0)
        }
    };
    head.wrapping_add(tail.rotate_left(25))
        .wrapping_add(name.len() as u64)
        .wrapping_mul(seed)
}
