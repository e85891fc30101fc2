//! The perfect hash by which a skeleton finds an operation from its name.
//!
//! The seed is searched here, at generation time; the lookup stands in the
//! runtime (`OperationTable`), which holds the same [`hash`].

/// The value in a slot that no name has.
pub const EMPTY: u16 = u16::MAX;

/// A hash without collisions over a set of names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PerfectHash {
    /// The multiplier; odd.
    pub seed: u64,
    /// For each hash value the position of its name, or [`EMPTY`]; the length
    /// is a power of two.
    pub slots: Vec<u16>,
}

/// Searches a perfect hash over the names.
///
/// There is none, and the result is `None`, for fewer than two names, for
/// 65,535 or more, and where two names have the same length, beginning and
/// end; the caller then compares the names one by one.
pub fn find<S: AsRef<[u8]>>(names: &[S]) -> Option<PerfectHash> {
    if names.len() < 2 || names.len() >= usize::from(EMPTY) {
        return None;
    }
    let mut keys: Vec<u64> = names.iter().map(|name| hash(1, name.as_ref())).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }

    let smallest = (names.len() * 2).next_power_of_two();
    let mut slots = vec![EMPTY; smallest];
    while slots.len() <= smallest.saturating_mul(LARGEST_FACTOR) {
        let mut random = FIRST_SEED;
        for _ in 0..SEEDS_PER_SIZE {
            random = next_random(random);
            let seed = random | 1;
            if fill(&mut slots, seed, names) {
                return Some(PerfectHash { seed, slots });
            }
        }
        let doubled = slots.len() * 2;
        slots.resize(doubled, EMPTY);
    }
    None
}

/// The length, the first eight and the last eight octets of the name, times
/// the seed; its highest bits are the slot.
pub const fn hash(seed: u64, name: &[u8]) -> u64 {
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

/// Puts each name into its slot; false if two want the same.
fn fill<S: AsRef<[u8]>>(slots: &mut [u16], seed: u64, names: &[S]) -> bool {
    slots.fill(EMPTY);
    let shift = u64::BITS - slots.len().trailing_zeros();
    for (number, name) in names.iter().enumerate() {
        let slot = &mut slots[(hash(seed, name.as_ref()) >> shift) as usize];
        if *slot != EMPTY {
            return false;
        }
        *slot = number as u16;
    }
    true
}

/// One step of SplitMix64: the seeds are always the same, so that the
/// generated code is.
const fn next_random(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const FIRST_SEED: u64 = 0x6368_726f_6e6f_7262;
const SEEDS_PER_SIZE: u32 = 4096;
const LARGEST_FACTOR: usize = 1 << 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_own_slot() {
        let names = [
            "bind",
            "rebind",
            "bind_context",
            "resolve",
            "unbind",
            "list",
        ];
        let table = find(&names).expect("distinct names");
        let shift = u64::BITS - table.slots.len().trailing_zeros();
        for (number, name) in names.iter().enumerate() {
            let slot = (hash(table.seed, name.as_bytes()) >> shift) as usize;
            assert_eq!(usize::from(table.slots[slot]), number);
        }
    }

    #[test]
    fn names_that_differ_only_in_the_middle_have_no_perfect_hash() {
        let names = ["get_quote_of_A_by_symbol", "get_quote_of_B_by_symbol"];
        assert_eq!(find(&names), None);
    }

    #[test]
    fn a_table_of_a_thousand_operations_is_found() {
        let names: Vec<String> = (0..1000).map(|n| format!("operation_{n}")).collect();
        let table = find(&names).expect("distinct names");
        assert!(table.slots.len() <= 1 << 17);
    }

    #[test]
    fn the_same_names_give_the_same_table() {
        let names = ["a", "b", "c", "d", "e"];
        assert_eq!(find(&names), find(&names));
    }
}
